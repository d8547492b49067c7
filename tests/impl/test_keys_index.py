"""The index: how far a prompt is known, beside a count token by token."""

from __future__ import annotations

import random

import pytest

from fivestate.impl.chain import Node
from fivestate.impl.index import Index
from fivestate.impl.keys import Keys, Media, Prompt

KEYS = Keys(4, 2)
HOME = object()


def root() -> Node:
    return Node(HOME, None, 0, 0, [])


def grow(index: Index, parent: Node, prompt: Prompt, blocks: int) -> Node:
    """Put a known node behind ``parent`` that ends after ``blocks`` blocks of the prompt."""
    start = parent.end_tokens // 4
    digests = list(prompt.digests()[start:blocks])
    node = Node(HOME, parent, parent.end_tokens, 4 * blocks, digests)
    node.known = True
    parent.children[digests[0]] = node
    index.put(node)
    return node


def shared(one: list[int], other: list[int]) -> int:
    """Count the tokens that two lists share at their start."""
    pairs = list(zip(one, other, strict=False))
    return next((n for n, (a, b) in enumerate(pairs) if a != b), len(pairs))


@pytest.mark.parametrize("seed", range(40))
def test_what_is_found_is_what_is_shared_in_whole_blocks_with_some_known_sequence(
    seed: int,
) -> None:
    rng = random.Random(seed)  # noqa: S311 -- the same runs every time
    start = root()
    index = Index(start)
    stored: list[tuple[list[int], Node]] = []
    ends: list[list[int]] = []
    for _ in range(12):
        tokens = [rng.randrange(2) for _ in range(rng.randrange(1, 22))]
        prompt = KEYS.prompt(tokens)
        found = index.find(prompt)
        known = [
            (shared(tokens, other) // 4 * 4, node)
            for other, node in stored
            if all(step.known for step in node.path())
        ]
        blocks = max((min(length, node.end_tokens) for length, node in known), default=0) // 4
        assert found.blocks == blocks
        assert found.node.start_tokens < 4 * blocks <= found.node.end_tokens or not blocks
        seen = [shared(tokens, end) // 2 * 2 for end in ends if len(end) // 4 == blocks]
        assert found.tokens == max([4 * blocks, *(n for n in seen if n > 4 * blocks)])
        if found.node.end_tokens == 4 * blocks and len(tokens) // 4 > blocks:
            if prompt.digests()[blocks] not in found.node.children:
                stored.append((tokens, grow(index, found.node, prompt, len(tokens) // 4)))
        elif stored and rng.random() < 0.3:
            rng.choice(stored)[1].known = False
        index.note(prompt)
        ends.append(tokens)


def test_a_node_that_is_not_known_hides_what_is_behind_it() -> None:
    start, prompt = root(), KEYS.prompt(range(12))
    index = Index(start)
    first = grow(index, start, prompt, 1)
    second = grow(index, first, prompt, 2)
    third = grow(index, second, prompt, 3)
    assert index.find(prompt) == (third, 3, 12)
    second.known = False
    assert index.find(prompt) == (first, 1, 4)
    first.known = False
    assert index.find(prompt) == (start, 0, 0)
    first.known = second.known = True
    assert index.find(prompt) == (third, 3, 12)
    index.clear()
    assert index.find(prompt) == (start, 0, 0)


def test_what_nobody_can_use_is_looked_for_when_the_index_has_doubled() -> None:
    start, prompt = root(), KEYS.prompt(range(12))
    index = Index(start, sweep_at=3)
    first = grow(index, start, prompt, 2)
    gone: list[Node] = []

    def prune(node: Node) -> bool:
        gone.append(node)
        return node.parent is not None and not node.children

    second = grow(index, first, prompt, 3)
    second.known = False
    index.sweep([first, second], prune)
    assert gone == [second], "known nodes are not asked"
    assert len(index) == 2
    assert index.find(prompt) == (first, 2, 8)
    first.known = False
    index.sweep([first], prune)
    assert gone == [second], "two digests are fewer than twice two"


def test_a_node_that_was_split_is_found_by_both_parts() -> None:
    start, prompt = root(), KEYS.prompt(range(12))
    index = Index(start, sweep_at=1)
    lower = grow(index, start, prompt, 3)
    upper = Node(HOME, start, 0, 4, lower.digests[:1])
    upper.known = True
    upper.children[lower.digests[1]] = lower
    lower.parent, lower.start_tokens, lower.digests = upper, 4, lower.digests[1:]
    assert index.find(KEYS.prompt(range(6))) == (upper, 1, 4)
    assert index.find(prompt) == (lower, 3, 12)
    lower.known = False
    index.sweep([upper, lower], lambda _node: True)
    assert index.find(prompt) == (upper, 1, 4)
    assert len(index) == 1


def test_what_was_seen_and_fills_no_block_counts_in_whole_hash_blocks() -> None:
    index, start = Index(root()), [1, 2, 3]
    index.note(KEYS.prompt(start))
    assert index.find(KEYS.prompt([1, 2, 3, 9, 9])).tokens == 2, "three tokens are one and a half"
    assert index.find(KEYS.prompt([1, 9, 9, 9])).tokens == 0
    assert index.find(KEYS.prompt(start, salt="other")).tokens == 0
    assert index.find(KEYS.prompt(start, media=[Media(0, 1, "cat")])).tokens == 0


def test_what_is_too_short_for_a_hash_block_is_not_remembered() -> None:
    index = Index(root())
    index.note(KEYS.prompt([1]))
    index.note(KEYS.prompt([5, 5, 5, 5, 1]))
    assert index.find(KEYS.prompt([1, 2, 3])).tokens == 0


def test_the_latest_ends_are_remembered_and_the_oldest_places_go_first() -> None:
    index = Index(root(), remembered_bytes=8 * 3 * 4)
    for end in range(9):  # of one place, eight are kept
        index.note(KEYS.prompt([end, end, end]))
        index.note(KEYS.prompt([end, end, end]))
    counts = [index.find(KEYS.prompt([end, end, end])).tokens for end in range(9)]
    assert counts == [0, *[2] * 8]
    index.note(KEYS.prompt([1, 1, 1], salt="other"))
    assert [index.find(KEYS.prompt([end, end, end])).tokens for end in range(9)] == [0] * 9
    assert index.find(KEYS.prompt([1, 1, 1], salt="other")).tokens == 2
