"""The digest: one value on every way, that a change of place, order, length or a bit changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.ways import DEVICE, each_way, needs_interpreter, random_bytes, running

from fivestate.kernels import digest as module
from fivestate.kernels.digest import DIGEST_BYTES, digest, digest_bytes, digest_reference

SIZES = (0, 1, 7, 8, 9, 127, 128, 129, 130, 255, 256, 257, 1_728, 8_192, 8_193)
WHOLE = 1 << 64
KEY, LOW, HIGH = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def oracle(data: bytes) -> bytes:
    """Return the digest as the module's docstring defines it, one word after the other."""
    words = [len(data)]
    words += [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]
    low = high = 0
    for i, word in enumerate(words):
        x = (word ^ (i + 1) * KEY % WHOLE) * KEY % WHOLE
        x = (x ^ x >> 32) * LOW % WHOLE
        x ^= x >> 29
        y = x * HIGH % WHOLE
        low, high = low + x, high + (y ^ y >> 32)
    return b"".join((half % WHOLE).to_bytes(8, "little") for half in (low, high))


def as_bytes(row: torch.Tensor) -> bytes:
    return bytes(row.cpu().contiguous().view(torch.uint8).tolist())


def check(objects: torch.Tensor) -> None:
    """Digest objects and compare each with the oracle and with the entry for bytes."""
    found = digest(objects)
    assert found.shape == (len(objects), 2)
    assert found.dtype == torch.int64
    for row, content in zip(found, objects, strict=True):
        data = bytes(content.tolist())
        assert as_bytes(row) == oracle(data) == digest_bytes(data)


@each_way
@pytest.mark.parametrize("size_bytes", SIZES)
def test_every_way_gives_the_defined_value_at_boundary_sizes(way: str, size_bytes: int) -> None:
    with running(way) as device:
        for count in (0, 1, 3):
            check(random_bytes(count, size_bytes, seed=count, device=device))


@each_way
def test_a_large_object_is_split_among_programs_without_a_change(way: str) -> None:
    for size_bytes in (65_536, 65_544, 196_600):
        with running(way) as device:
            check(random_bytes(2, size_bytes, device=device))


@each_way
@pytest.mark.parametrize("offset", [0, 1, 2, 4, 8, 12])
@pytest.mark.parametrize("gap", [0, 1, 4, 8, 24])
def test_objects_may_be_strided_and_start_anywhere(way: str, offset: int, gap: int) -> None:
    with running(way) as device:
        memory = random_bytes(5 * (72 + gap) + offset, device=device)
        check(memory.as_strided((4, 72), (72 + gap, 1), offset))


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 5), st.integers(0, 700), st.integers(0, 9), st.integers(0, 16))
def test_kernel_and_reference_agree(count: int, size: int, gap: int, offset: int) -> None:
    memory = random_bytes(count * (size + gap) + offset + size, seed=size)
    objects = memory.as_strided((count, size), (size + gap, 1), offset)
    with running("kernel"):
        found = digest(objects.to(DEVICE)).cpu()
    assert torch.equal(found, digest_reference(objects))


def test_the_reference_does_not_depend_on_how_much_it_does_at_a_time() -> None:
    objects = random_bytes(5, 1_000)
    expected = digest_reference(objects)
    for chunk_words in (1, 7, 125, 126, 300, 1 << 20):
        assert torch.equal(digest_reference(objects, chunk_words), expected)


def test_bytes_of_any_kind_have_the_same_digest() -> None:
    data = bytes(random_bytes(70_003).tolist())
    expected = oracle(data)
    assert len(expected) == DIGEST_BYTES
    for given_bytes in (data, bytearray(data), memoryview(data), memoryview(b"x" + data)[1:]):
        assert digest_bytes(given_bytes) == expected
    words = torch.tensor([1, 2, 3], dtype=torch.int64)
    assert digest_bytes(words.numpy().data) == oracle(bytes(words.numpy().tobytes()))
    assert digest_bytes(b"") == oracle(b"")


def changed(data: bytes) -> dict[str, bytes]:
    """Return contents that are not the same, each by an accident that happens."""
    swapped = bytearray(data)
    swapped[0:8], swapped[8:16] = data[8:16], data[0:8]
    flips = {f"bit {bit}": bytearray(data) for bit in range(0, len(data) * 8, 61)}
    for name, content in flips.items():
        bit = int(name.split()[1])
        content[bit // 8] ^= 1 << bit % 8
    signs = {f"signs of words 0 and {word}": bytearray(data) for word in range(1, len(data) // 8)}
    for name, content in signs.items():  # a sum of products alone would lose every second one
        content[7] ^= 128
        content[int(name.split()[-1]) * 8 + 7] ^= 128
    return {
        "two words swapped": bytes(swapped),
        "shifted by a byte": data[1:] + data[:1],
        "shifted by a word": data[8:] + data[:8],
        "a zero more": data + b"\0",
        "a byte less": data[:-1],
        "half a load": data[: len(data) // 2] + bytes(len(data) - len(data) // 2),
        **{name: bytes(content) for name, content in (flips | signs).items()},
    }


def test_accidents_change_both_halves() -> None:
    data = bytes(random_bytes(200, seed=1).tolist())
    good = digest_bytes(data)
    for name, content in changed(data).items():
        found = digest_bytes(content)
        assert found[:8] != good[:8], name
        assert found[8:] != good[8:], name


def test_zeros_of_other_lengths_differ() -> None:
    found = {digest_bytes(bytes(size)) for size in range(300)}
    assert len(found) == 300


def ignores_the_place(x: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda words, keys: x(words.sort(1).values, keys)


def test_a_digest_that_ignores_order_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "word_sums", ignores_the_place(module.word_sums))
    with running("reference"), pytest.raises(AssertionError):
        check(random_bytes(1, 64))


@needs_interpreter
def test_a_kernel_whose_keys_do_not_depend_on_the_place_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_KEY", module._LOW)
    with running("kernel"), pytest.raises(AssertionError):
        check(random_bytes(1, 64))


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        (torch.zeros(2, 8), "objects: float32 is given, uint8 is wanted"),
        (torch.zeros(8, dtype=torch.uint8), r"objects: shape \(8,\) is given, \(any, any\)"),
        (torch.zeros(2, 16, dtype=torch.uint8)[:, ::2], "objects: stride 2 in dimension 1"),
    ],
)
def test_what_cannot_be_digested_is_refused(objects: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        digest(objects)
