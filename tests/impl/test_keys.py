"""Keys: what gives the same digest, what never does, and what is refused as an argument."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivestate.impl.keys import Keys, Media, Prompt, encode, root
from fivestate.spec.language import ModelError
from fivestate.spec.reuse.files import preset, presets

KEYS = Keys(8, 2)
TOKENS = list(range(100, 124))


def digests(tokens: Sequence[int], **what: Any) -> list[bytes]:
    return list(KEYS.prompt(tokens, **what).digests())


def test_a_digest_has_256_bits_and_there_is_one_for_each_whole_step() -> None:
    assert [len(digest) for digest in digests([*TOKENS, 1])] == [32, 32, 32]
    assert digests(TOKENS[:7]) == []


@pytest.mark.parametrize("name", presets())
def test_a_geometry_hashes_at_the_granularity_of_hits(name: str) -> None:
    shape = preset(name)
    keys = Keys.of(shape)
    assert keys == Keys(shape.scheduler_block_size, shape.hash_block_size)


def test_the_chain_is_sha_256_over_the_parent_and_four_bytes_a_token() -> None:
    parent, found = root("adapter", "salt"), digests(TOKENS, adapter="adapter", salt="salt")
    for number, digest in enumerate(found):
        block = b"".join(t.to_bytes(4, "little") for t in TOKENS[number * 8 : number * 8 + 8])
        parent = hashlib.sha256(parent + block).digest()
        assert digest == parent


@pytest.mark.parametrize("changed", range(24))
def test_a_changed_token_changes_every_digest_from_its_block_on(changed: int) -> None:
    other = [*TOKENS]
    other[changed] += 1
    same = [one == two for one, two in zip(digests(TOKENS), digests(other), strict=True)]
    assert same == [block < changed // 8 for block in range(3)]


IDENTITIES: list[dict[str, Any]] = [
    {},
    {"adapter": "a"},
    {"salt": "a"},
    {"adapter": "a", "salt": "a"},
    {"adapter": ""},
    {"salt": ""},
    {"media": [Media(2, 5, "a")]},
    {"media": [Media(2, 5, "b")]},
    {"media": [Media(2, 6, "a")]},
    {"media": [Media(3, 5, "a")]},
    {"media": [Media(2, 4, "a"), Media(4, 5, "a")]},
]


@pytest.mark.parametrize("pair", list(combinations(IDENTITIES, 2)), ids=str)
def test_whoever_differs_in_anything_but_tokens_shares_no_digest(
    pair: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    one, other = (digests(TOKENS, **what) for what in pair)
    assert not set(one) & set(other)


def test_an_image_leaves_the_blocks_before_it_alone() -> None:
    plain, with_image = digests(TOKENS), digests(TOKENS, media=[Media(8, 9, "cat")])
    assert plain[0] == with_image[0]
    assert not set(plain[1:]) & set(with_image[1:])


def test_an_image_over_two_blocks_is_in_both() -> None:
    first, second = (digests(TOKENS, media=[Media(6, 10, name)]) for name in ("cat", "dog"))
    assert not set(first) & set(second)


def test_a_token_beyond_four_bytes_is_hashed_exactly() -> None:
    large = [*TOKENS]
    large[9] += 1 << 32  # four bytes alone would not tell it from what it was
    found = digests(large)
    assert found[0] == digests(TOKENS)[0], "a block without one is hashed as always"
    assert not set(found[1:]) & set(digests(TOKENS)[1:])
    larger = [*large]
    larger[9] += 1 << 32
    assert not set(found[1:]) & set(digests(larger)[1:])


def test_eight_bytes_for_each_token_are_never_four_for_twice_as_many() -> None:
    wide, narrow = Keys(4, 4), Keys(8, 8)
    large = [1 << 33, 2, 3, 4]
    halves = [half for token in large for half in (token & 0xFFFFFFFF, token >> 32)]
    assert wide.prompt(large).digests() != narrow.prompt(halves).digests()


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(
    st.lists(st.integers(0, 3) | st.just(1 << 40), max_size=40),
    st.lists(st.integers(0, 40), max_size=4),
    st.lists(st.none(), max_size=1),
)
def test_how_a_prompt_was_put_together_leaves_no_trace(
    tokens: list[int], cuts: list[int], asked: list[None]
) -> None:
    places = sorted([0, *(min(cut, len(tokens)) for cut in cuts)])
    prompt = KEYS.prompt([])
    for start, end in zip(places, [*places[1:], len(tokens)], strict=True):
        prompt.extend([7, 7, 7, 7, 7, 7, 7, 7, 7])
        if asked:
            prompt.digests()
        prompt.truncate(start)
        prompt.extend(tokens[start:end])
    assert prompt.tokens() == tokens
    assert list(prompt.digests()) == digests(tokens)


def test_the_tokens_behind_a_match_are_those_of_its_block() -> None:
    prompt = KEYS.prompt(TOKENS[:12])
    assert [array("I", prompt.behind(n)).tolist() for n in range(3)] == [
        TOKENS[:8],
        TOKENS[8:12],
        [],
    ]
    assert prompt.chained(1) == prompt.digests()[0]
    assert prompt.chained(0) == root()


def test_tokens_that_do_not_say_what_they_are_are_not_compared() -> None:
    image, large = KEYS.prompt(TOKENS, media=[Media(9, 10, "cat")]), KEYS.prompt(TOKENS[:8])
    large.extend([1 << 32])
    assert [image.behind(n) == b"" for n in range(3)] == [False, True, False]
    assert [large.behind(n) == b"" for n in range(2)] == [False, True]


@pytest.mark.parametrize(
    "tokens", [np.array(TOKENS), array("H", TOKENS), tuple(TOKENS), range(100, 124)]
)
def test_any_sequence_of_whole_numbers_is_a_prompt(tokens: Any) -> None:
    assert digests(tokens) == digests(TOKENS)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ([1, -1], r"tokens\[1\] = -1: a token id"),
        ([1 << 64], r"tokens\[0\] = 18446744073709551616"),
        ([1, 2.0], r"tokens\[1\] = 2.0"),
        (["a"], r"tokens\[0\] = 'a'"),
        (7, "tokens = 7: a sequence"),
        (None, "tokens = None: a sequence"),
    ],
)
def test_what_is_no_token_is_refused_by_its_place(tokens: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        KEYS.prompt(tokens)
    prompt = KEYS.prompt(TOKENS)
    with pytest.raises(ValueError, match=said):
        prompt.extend(tokens)
    assert prompt.tokens() == TOKENS, "nothing was added"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"salt": 7}, "salt = 7: a string or None"),
        ({"salt": b"x"}, "salt = b'x'"),
        ({"adapter": ("a",)}, r"adapter = \('a',\)"),
        ({"media": [(1, 2, "a")]}, r"media\[0\] = \(1, 2, 'a'\): Media"),
        ({"media": [Media(0, 1, "a"), Media(4, 4, "a")]}, r"media\[1\]"),
        ({"media": [Media(-1, 4, "a")]}, r"media\[0\]"),
        ({"media": [Media(0, 1, b"a")]}, r"media\[0\] = .*digest=b'a'"),  # type: ignore[arg-type]  # the mistake
    ],
)
def test_what_is_no_identity_is_refused_by_its_name(what: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        KEYS.prompt(TOKENS, **what)


@pytest.mark.parametrize(("step", "fine"), [(8, 3), (0, 0), (8, 0), (4, 8), (-8, -4)])
def test_granularities_that_do_not_divide_are_refused(step: int, fine: int) -> None:
    with pytest.raises(ModelError, match=f"step_tokens = {step}, fine_tokens = {fine}"):
        Keys(step, fine)


def test_tokens_are_kept_in_four_bytes_until_one_does_not_fit() -> None:
    assert encode(TOKENS).itemsize == 4
    assert encode([1 << 32]).itemsize == 8
    prompt = KEYS.prompt(TOKENS)
    prompt.extend([1 << 32])
    assert isinstance(prompt, Prompt)
    assert prompt.tokens(23) == [TOKENS[23], 1 << 32]
    assert prompt.keys is KEYS


@pytest.mark.parametrize("change", [lambda p: p.extend([7]), lambda p: p.truncate(3)])
@pytest.mark.parametrize("first", [True, False])
def test_a_copy_and_its_original_change_apart(
    change: Callable[[Prompt], None], *, first: bool
) -> None:
    original = KEYS.prompt(TOKENS)
    original.digests()
    copy = original.copy()
    changed, other = (original, copy) if first else (copy, original)
    change(changed)
    assert changed.tokens() != TOKENS
    assert other.tokens() == TOKENS
    assert list(other.digests()) == digests(TOKENS)
    assert list(changed.digests()) == digests(changed.tokens())
