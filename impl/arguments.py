"""Arguments: what an engine gives is checked by name, before anything is done with it."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex


def whole(name: str, value: SupportsIndex, least: int = 0) -> int:
    """Return a whole number.

    Raises:
        ValueError: it is none, or less than ``least``.
    """
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ValueError(f"{name} = {value!r}: {least} or more is allowed")
    return number


def require(name: str, value: object, kind: type) -> None:
    """Refuse what is not of a kind.

    Raises:
        ValueError: it is not.
    """
    if not isinstance(value, kind):
        raise ValueError(f"{name} = {value!r}: a {kind.__name__} is allowed")  # noqa: TRY004 -- bad input is a ValueError throughout
