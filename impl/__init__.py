"""The reference allocator, in torch: it does what the specification says, over real memory.

Where to begin, from the bottom up:

- ``pools`` has the blocks; ``chain`` the prefixes and their cells; ``requests`` who wants what;
  ``refusals`` how no is said
- ``allocator``: one method for each action of the machine, in files named as the specification's;
  ``abstraction`` reads the machine's state back from memory, and tests compare
- ``cache``: what an engine calls for sequences of tokens, with ``held`` and ``leases``. Below it
  ``keys`` and ``index`` find a prefix, ``matching`` and ``availability`` judge it, ``admission``
  and ``recoveries`` bring it about, ``sequences`` and ``tables`` keep what is written behind it,
  and ``publishing`` and ``retention`` make it a prefix for others
- ``graphs``: steps of fixed shape, replayed where that is allowed
- ``tiers``: host memory and a crash-safe store; ``recovery``: what brings bytes back, on threads
- ``models``: ``PrefixCache`` for transformers; ``shadow``, ``shadow_models`` and ``rollout``: how a
  cache comes to be believed
- ``metrics``, with ``alerts.yaml`` and ``dashboard.json``; ``bench``, beside vLLM's cache manager
"""
