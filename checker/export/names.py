"""Names: what a thing of the specification is called where other words are taken."""

from __future__ import annotations

import re
from collections.abc import Iterable


class Names:
    """Hands out identifiers that are legal, not reserved, and each given once."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._taken = set(reserved)

    def give(self, wanted: str) -> str:
        """Return ``wanted``, made an identifier, with a number behind it if that is taken."""
        plain = re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_") or "x"
        if plain[0].isdigit():
            plain = f"x{plain}"
        name, number = plain, 2
        while name in self._taken:
            name, number = f"{plain}_{number}", number + 1
        self._taken.add(name)
        return name


def camel(name: str) -> str:
    """Return ``abort_leased`` as ``AbortLeased``."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[\W_]+", name))
