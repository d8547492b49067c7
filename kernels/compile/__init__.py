"""Ahead-of-time compilation: every kernel for every target, without a GPU.

``python -m fivestate.kernels.compile`` compiles each variant for each target and writes
``COMPILED.md`` and ``compiled.json`` into the folder above; with ``--check`` it compares instead,
and exits with 1 if something differs or a promise is broken. Names of modules of ``variants`` or
a ``--target`` narrow it, to try one out: the figures are printed then, and nothing is written.

- ``variant``: what a variant is; ``variants``: those of each kernel, one file a subject
- ``build``: compiles one variant, and reads registers, spills and instructions
- ``tables``: promises, and both tables

Triton fixes while it is imported whether it interprets or compiles, so this needs a process of its
own, without ``TRITON_INTERPRET`` and ``FIVESTATE_INTERPRET``.
"""
