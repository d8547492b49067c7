"""The digest that vouches for what a tier holds: the kernels' own, written in hexadecimal."""

from __future__ import annotations

from fivestate.kernels.digest import DIGEST_BYTES, digest_bytes

HEX_DIGITS = 2 * DIGEST_BYTES


def digest(data: bytes | memoryview) -> str:
    """Return the content digest of bytes in host memory, as hexadecimal digits."""
    return digest_bytes(data).hex()
