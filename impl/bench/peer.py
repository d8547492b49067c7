"""The peer in the bench of the allocator: vLLM's ``KVCacheManager``, where it is installed.

The groups are those of our geometry, as vLLM itself lays them out for this model; without the
draft model's, which never votes. Source: domain §1.11, §1.12.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from fivestate.impl.bench.workload import CHUNK_TOKENS, Turn
from fivestate.spec.reuse import CacheGroup, Geometry, Shape

VERSION = "0.33.0"
"""The version whose surface is used here; others are refused, for they may have another."""


def installed() -> str | None:
    """Return what stands in the way of a comparison, or nothing."""
    try:
        found = version("vllm")
    except PackageNotFoundError:
        return f"vLLM is not installed: pip install --no-deps vllm=={VERSION}"
    if found != VERSION:
        return f"vLLM {found} is installed: the comparison is with {VERSION}"
    try:
        import_module("vllm.v1.core.kv_cache_manager")
    except ImportError as error:
        return f"vLLM {VERSION} cannot be imported: {error}"
    return None


class VLLM:
    """vLLM's cache manager, driven as its scheduler drives it."""

    name = f"vLLM {VERSION}"

    def __init__(self, geometry: Geometry, tokens: int) -> None:
        kinds: Any = import_module("vllm.v1.kv_cache_interface")
        utils: Any = import_module("vllm.v1.core.kv_cache_utils")
        digest: Any = import_module("vllm.utils.hashing").sha256
        manager: Any = import_module("vllm.v1.core.kv_cache_manager").KVCacheManager
        self._params: Any = import_module("vllm.sampling_params").SamplingParams
        self._request: Any = import_module("vllm.v1.request").Request
        utils.init_none_hash(digest)
        step, fine = geometry.scheduler_block_size, geometry.hash_block_size
        hasher: Callable[[Any], list[Any]] = utils.get_request_block_hasher(fine, digest)
        self._hasher, self._number = hasher, 0
        groups = [
            kinds.KVCacheGroupSpec([group.name], _spec(kinds, group)) for group in geometry.voting
        ]
        blocks = sum(3 * tokens // group.block_size + 10_000 for group in geometry.voting)
        config = kinds.KVCacheConfig(blocks, [], groups)
        longest = 2 * tokens + CHUNK_TOKENS
        self._manager = manager(config, longest, step, fine, max_in_flight_tokens=CHUNK_TOKENS)

    def turn(self, prompt: list[int], answer: list[int]) -> Turn:
        """Reuse what there is of a prompt, compute the rest of it, decode an answer, and end."""
        manager, turn = self._manager, Turn()
        request = turn.timed("hash", lambda: self._hashed(prompt, len(answer)))
        blocks, hit, *_ = turn.timed("match", lambda: manager.get_computed_blocks(request))
        turn.timed("allocate", lambda: self._allocate(request, blocks, hit))
        turn.hit_tokens = hit
        while request.num_computed_tokens < len(prompt):
            count = min(len(prompt) - request.num_computed_tokens, CHUNK_TOKENS)
            _require(manager.allocate_slots(request, count))
            request.num_computed_tokens += count
        turn.timed("append", lambda: self._append(request, answer))
        turn.timed("free", lambda: manager.free(request))
        return turn

    def _hashed(self, prompt: list[int], new_tokens: int) -> Any:
        self._number += 1
        params = self._params(max_tokens=new_tokens)
        name = str(self._number)
        return self._request(name, prompt, params, None, block_hasher=self._hasher)

    def _allocate(self, request: Any, blocks: Any, hit: int) -> None:
        count = min(request.num_prompt_tokens - hit, CHUNK_TOKENS)
        _require(self._manager.allocate_slots(request, count, hit, blocks))
        self._manager.get_block_ids(request.request_id)
        request.num_computed_tokens = hit + count

    def _append(self, request: Any, answer: list[int]) -> None:
        for token in answer:
            request.append_output_token_ids(token)
            _require(self._manager.allocate_slots(request, 1))
            request.num_computed_tokens += 1


def _spec(kinds: Any, group: CacheGroup) -> Any:
    common: dict[str, Any] = {"block_size": group.block_size, "num_kv_heads": 1}
    common |= {"head_size": 64, "dtype": torch.uint8}
    if group.shape is Shape.PREFIX:
        return kinds.MLAAttentionSpec(**common, tokens_per_state=group.ratio)
    window = group.window if group.shape is Shape.RUN else group.lookback + group.ratio
    return kinds.SlidingWindowMLASpec(**common, sliding_window=window)


def _require(blocks: object) -> None:
    if blocks is None:
        raise ValueError("vLLM has no room: the bench gave it too few blocks")
