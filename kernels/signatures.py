"""Signatures: the types of a kernel's parameters, written in a few lines."""

from __future__ import annotations


def types(kind: str, names: str) -> dict[str, str]:
    """Give one of Triton's types to parameters, whose names are separated by spaces."""
    return dict.fromkeys(names.split(), kind)
