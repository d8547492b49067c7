"""Spin: where it is missing, what needs it is skipped, but in CI that is a failure."""

import os
import shutil

import pytest

needs_spin = pytest.mark.skipif(
    shutil.which("spin") is None and os.environ.get("CI") != "true",
    reason="spin is not installed",
)
