"""What an allocator may do: each of these has to be possible, or the machine is too strict.

An invariant is kept by doing nothing at all. What is listed here nobody is owed, and a user may
still count on: the machine permits it in some state that it reaches. A rule that is tightened by
mistake, until it refuses one of these, is found here and nowhere else (D-25).
"""

from __future__ import annotations

from fivestate.spec.allocator.permissions.cells import CELLS
from fivestate.spec.allocator.permissions.changes import CHANGES
from fivestate.spec.allocator.permissions.copies import COPIES
from fivestate.spec.allocator.permissions.requests import REQUESTS

PERMISSIONS = (*REQUESTS, *CELLS, *COPIES, *CHANGES)
