"""Device code: each kernel beside its torch reference, chosen by device; it sees spec only.

Nothing is imported here: what a module is imported for is paid for there, and Triton fixes its
mode when it is (see ``launch``).

- ``pages``: ``gather``, ``scatter``, ``repack``, ``zero_copy`` between page tables; ``paged`` and
  ``layout`` say where rows are
- ``window``: ``append`` to rings, ``collect`` from them
- ``digest``: ``digest`` of objects on a device, ``digest_bytes`` in host memory
- ``fold``, ``route``, ``attend``: entries from rows, the choice among them, and what reads them
- ``classify``, ``revalidate``: verdicts of a batch, and leases inside a captured graph
- ``compile``, ``bench``: ahead-of-time compilation, and speed; ``COMPILED.md``, ``RESULTS.md``
"""
