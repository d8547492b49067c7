"""Triton fixes its mode when it is imported: here, before any test is, and for all of them.

On a machine without a GPU that is the interpreter. ``tests/gpu/run.sh`` asks for the GPU.
"""

import os

if os.environ.get("FIVESTATE_TEST_DEVICE", "cpu") == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
