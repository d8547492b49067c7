"""Device code: each kernel beside its torch reference, chosen by device; it sees spec only.

Nothing is imported here: what a module is imported for is paid for there, and Triton fixes its
mode when it is (see ``device.launch``). What one calls is in the files of this folder:

- ``pages``: ``gather``, ``scatter``, ``repack``, ``zero_copy`` between page tables
- ``window``: ``append`` to rings, ``collect`` from them
- ``digest``: ``digest`` of objects on a device, ``digest_bytes`` in host memory
- ``fold``, ``route`` (with ``select``), ``attend``: entries from rows, the choice among them, and
  what reads them
- ``classify``, ``revalidate``: verdicts of a batch, and leases inside a captured graph

What they stand on:

- ``forms``: how rows lie in pages; ``parts``: what kernels are made of; ``device``: how one is
  started, and what is refused before
- ``compile``, ``bench``: ahead-of-time compilation, and speed; ``COMPILED.md``, ``RESULTS.md``
"""
