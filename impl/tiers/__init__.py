"""The tiers off the device: host memory, a store on disk, and the transfers between."""

from fivestate.impl.tiers.budget import Budget
from fivestate.impl.tiers.digest import Vouched
from fivestate.impl.tiers.errors import Corrupt, Missing, StoreError
from fivestate.impl.tiers.holdings import Stats
from fivestate.impl.tiers.host import HostTier
from fivestate.impl.tiers.identity import StoreIdentity, fingerprint
from fivestate.impl.tiers.moves import Outcome, demote, fetch, load_cell, store_cell
from fivestate.impl.tiers.store import Store
from fivestate.impl.tiers.transfers import Kind, Stage, Transfer, Transfers

__all__ = [
    "Budget",
    "Corrupt",
    "HostTier",
    "Kind",
    "Missing",
    "Outcome",
    "Stage",
    "Stats",
    "Store",
    "StoreError",
    "StoreIdentity",
    "Transfer",
    "Transfers",
    "Vouched",
    "demote",
    "fetch",
    "fingerprint",
    "load_cell",
    "store_cell",
]
