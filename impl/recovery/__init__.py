"""Recovery: what is off the device comes back, by itself, and what was known outlives a crash."""

from fivestate.impl.recovery.copies import Copies, HostCopies
from fivestate.impl.recovery.disk import DiskCopies
from fivestate.impl.recovery.restart import Restored, restore
from fivestate.impl.recovery.warm import Warmth, warm
from fivestate.impl.recovery.worker import Worker

__all__ = [
    "Copies",
    "DiskCopies",
    "HostCopies",
    "Restored",
    "Warmth",
    "Worker",
    "restore",
    "warm",
]
