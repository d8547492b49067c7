"""A prefix cache for ``generate``: a prompt goes on from the rows of an earlier one, or does not.

A lease is a copy, so nothing that is evicted later can reach it (I-3).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from threading import RLock
from types import TracebackType
from typing import Self

from torch import Tensor
from transformers import PreTrainedModel

from fivestate.impl.cache import Cache
from fivestate.impl.models.backend import Backend, Written
from fivestate.impl.models.backend import Why as Because
from fivestate.impl.models.by_block import ByBlock
from fivestate.impl.models.by_digest import ByDigest
from fivestate.impl.models.folder import Folder
from fivestate.impl.models.layout import BLOCK, layout_of
from fivestate.impl.models.parts import RecordedCache, Stamp, assemble
from fivestate.impl.models.provenance import Provenance
from fivestate.impl.models.store import DictStore, Store
from fivestate.impl.models.weights import Watch, kernels_of
from fivestate.spec.reuse import Rates, Reason, Verdict, Why

LOG = logging.getLogger("fivestate.models")

Tokens = Tensor | Sequence[int]
"""A prompt: numbers, or a tensor of shape (tokens,) or (1, tokens)."""


@dataclass(frozen=True)
class Lease:
    """A cache to go on with, and why it is not a longer one.

    Attributes:
        cache: holds the tokens before ``resume``; pass it as ``cache=`` with the whole prompt.
        tokens: the prompt.
        verdict: MISS, PARTIAL or HIT, with reasons, cost and the four numbers.
        provenance: the chunks in which the reused rows were made.
        by: weights and kernels of the model when the cache was leased.
        run: digest of the provenance.
    """

    cache: RecordedCache
    tokens: tuple[int, ...]
    verdict: Verdict
    provenance: Provenance
    by: Stamp
    run: str = ""

    @property
    def resume(self) -> int:
        """The first position that is computed."""
        return self.provenance.end


@dataclass(frozen=True, slots=True)
class Committed:
    """What of a finished request is kept.

    Attributes:
        provenance: the chunks in which all its rows were made.
        boundaries: the positions that can be resumed thanks to it.
        reasons: why it is no more.
    """

    provenance: Provenance
    boundaries: tuple[int, ...]
    reasons: tuple[Because, ...] = ()


class PrefixCache:
    """Rows of earlier prompts, for one model.

    ::

        prefixes = PrefixCache(model)
        lease = prefixes.lease(prompt)  # lease.verdict: MISS, PARTIAL or HIT, and why
        output = model.generate(prompt, cache=lease.cache, max_new_tokens=64)
        prefixes.commit(lease, output)

    Over a ``Folder`` it is closed at the end, and whoever opens that folder again has the rows::

        with PrefixCache(model, store=Folder(path="prefixes")) as prefixes:
            ...

    Logits are bit for bit what ``replay`` gives for ``lease.provenance`` and the chunks behind it.
    Prefixes of which only some rows are left are resumed where all are; the rest is computed.

    Args:
        model: a causal model of transformers, with the cache it makes for itself.
        store: where rows are kept: parts in a ``Store``; blocks of the reference allocator, in a
            ``Cache`` of this model's geometry (see ``by_block.cache_for``) or, with what is known
            of it, in a ``ByBlock``; or a ``Folder``, which outlives the process. By default parts
            in memory, without a limit.
        block_size: tokens after which a prefix can be resumed; rounded up to whole groups.
        weights: an epoch of the weights, where the caller counts them; by default they are read
            (see ``weights.Watch`` for what is seen of a change).
        salt: what keeps tenants apart: equal tokens with another salt are another prefix.
        rates: how fast bytes move and tokens are computed; decides what is worth loading back.

    Raises:
        ValueError: the model is not a causal one, or keeps its cache in a way that is not known;
            the store is of another model.
        StoreError: the folder cannot be opened; see ``Folder.open``.
    """

    def __init__(  # noqa: PLR0913 -- each is named by the caller, and has a default
        self,
        model: PreTrainedModel,
        *,
        store: Store | Cache | ByBlock | Folder | None = None,
        block_size: int = BLOCK,
        weights: int | None = None,
        salt: str = "",
        rates: Rates | None = None,
    ) -> None:
        given: object = model  # who calls this may have no types
        if not isinstance(given, PreTrainedModel) or given.config.is_encoder_decoder:
            shown = f"model: {type(model).__name__}"
            raise ValueError(f"{shown}: a causal language model of transformers is allowed")
        self.model = model
        self.layout = layout_of(model.config, block_size=block_size, dtype=model.dtype)
        self.store = DictStore() if store is None else store
        self._epoch = weights
        self._watch = Watch(model)
        self._lock = RLock()
        self._rows = self._backend(salt, rates or Rates())

    def _backend(self, salt: str, rates: Rates) -> Backend:
        store = self.store
        if isinstance(store, Folder):
            return store.open(self.layout, self._now(), salt, rates, self.model.device)
        if isinstance(store, Cache):
            return ByBlock(self.layout, store, salt)
        if not isinstance(store, ByBlock):
            return ByDigest(self.layout, store, salt, rates)
        if store.layout != self.layout:
            message = f"store: blocks of {store.layout.geometry.name!r}, {store.layout.signature}"
            raise ValueError(f"{message}: those of this model are {self.layout.signature}")
        return store

    @property
    def weights(self) -> int:
        """The epoch of the weights: the caller's, or what the model has now."""
        return self._watch.weights if self._epoch is None else self._epoch

    def new_weights(self, weights: int | None = None) -> None:
        """Say that the weights have changed: rows made with others are refused from now on (H-2).

        Args:
            weights: their epoch, where the caller counts them.
        """
        with self._lock:
            self._epoch = weights if weights is not None else self._epoch
            self._watch.look_again()

    def match(self, tokens: Tokens) -> Verdict:
        """Say what the prefix of a prompt is worth now. Nothing is held: it may be gone later.

        Raises:
            ValueError: there is no token, or more than one sequence.
        """
        with self._lock:
            return self._rows.match(_numbers(tokens), self._now())

    def lease(self, tokens: Tokens) -> Lease:
        """Return a cache that holds the longest prefix worth resuming, an own copy of it.

        What is off the device is loaded back first.

        Raises:
            Refused: the allocator has no room to hold the prefix while it is copied.
            ValueError: there is no token, more than one sequence, or padding.
        """
        with self._lock:
            prompt, now = self._prompt(tokens), self._now()
            taken = self._rows.take(prompt, now)
            at = taken.provenance.end
            if at:
                parts, by = taken.parts, now.weights
                cache = assemble(self.model, parts, at, layout=self.layout, weights=by)
            else:
                cache = RecordedCache(self.model, self.layout, now)
            return Lease(cache, prompt, taken.verdict, taken.provenance, now, taken.run)

    def commit(self, lease: Lease, tokens: Tokens) -> Committed:
        """Keep what was written into a leased cache.

        Where the store has the same tokens from another run, they are replaced: rows of two runs
        are never mixed, or no schedule would give them again.

        Args:
            lease: from ``lease``; its cache was written to by one or more forwards.
            tokens: the prompt and what was generated; a last one that has no rows yet may follow.

        Raises:
            ValueError: these are not the tokens that were written.
        """
        with self._lock:
            numbers, cache = _numbers(tokens), lease.cache
            length = cache.get_seq_length()
            both = min(length, len(lease.tokens))
            if length > len(numbers) or numbers[:both] != lease.tokens[:both]:
                wrong = f"tokens: {len(numbers)} are given, {length} are written"
                raise ValueError(f"{wrong}: the leased prompt and what came behind it is allowed")
            provenance = lease.provenance
            for length in cache.chunk_lengths:
                provenance = provenance.then(numbers[provenance.end : provenance.end + length])
            now = self._now()
            if now != lease.by:
                value, why = f"{lease.by.kernels}≠{now.kernels}", Why.KERNEL
                if now.weights != lease.by.weights:
                    value, why = f"{lease.by.weights:#x}≠{now.weights:#x}", Why.WEIGHTS
                LOG.warning("%s changed since the lease: nothing is kept: %s", why.value, value)
                return Committed(provenance, (), (Reason("H-2", why, value),))
            resume, rows = lease.resume, numbers[: provenance.end]
            written = Written(rows, provenance, resume, lease.run, lease.by, cache)
            return Committed(provenance, *self._rows.keep(written))

    def settle(self) -> None:
        """Wait until all that was committed is where it outlives the process, if there is that."""
        self._rows.settle()

    def close(self) -> None:
        """Settle, and give the folder back, if there is one; leases stay what they are."""
        with self._lock:
            self._rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _now(self) -> Stamp:
        """Return the weights and the kernels of the model as it is.

        Raises:
            ValueError: it computes in another type than the rows that are kept.
        """
        if self.model.dtype is not self.layout.dtype:
            message = f"model: it computes in {self.model.dtype} now, and the rows that are kept"
            raise ValueError(f"{message} are {self.layout.dtype}: make a new PrefixCache for it")
        return Stamp(self.weights, kernels=kernels_of(self.model))

    def _prompt(self, tokens: Tokens) -> tuple[int, ...]:
        """Refuse padding: ``generate`` masks it, so the rows behind it are of another prompt."""
        prompt, pad = _numbers(tokens), getattr(self.model.generation_config, "pad_token_id", None)
        ends = getattr(self.model.generation_config, "eos_token_id", None)
        ends = ends if isinstance(ends, list) else [ends]
        if pad in prompt and pad not in ends:
            at = prompt.index(pad)
            raise ValueError(f"tokens: position {at} is the pad token {pad}: text only is allowed")
        return prompt


def _numbers(tokens: Tokens) -> tuple[int, ...]:
    if isinstance(tokens, Tensor):
        if tokens.dim() > 2 or (tokens.dim() == 2 and tokens.shape[0] != 1):
            shape = tuple(tokens.shape)
            raise ValueError(f"tokens: shape {shape}: one sequence is allowed: (n,) or (1, n)")
        tokens = tokens.flatten().tolist()
    if not tokens:
        raise ValueError("tokens: none is given: a prompt has one at least")
    return tuple(tokens)
