"""Shadow of a model's prefix cache: a lease that may be used, or is only compared.

Used as the prefix cache is::

    shadowed = ShadowCache(PrefixCache(model), Shadow())
    held = shadowed.lease(prompt)
    output = model.generate(prompt, cache=held.cache, max_new_tokens=64)
    shadowed.commit(held, output)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b

from fivestate.impl.models.parts import RecordedCache, assemble, disassemble
from fivestate.impl.models.prefix_cache import Committed, Lease, PrefixCache, Tokens
from fivestate.impl.models.provenance import Provenance
from fivestate.impl.models.replay import run
from fivestate.impl.rollout import Decision, Use
from fivestate.impl.shadow import Difference, Rows, Shadow
from fivestate.spec.reuse import Span

MISSED = Decision(Use.REUSE, compare=False)
"""What is done where nothing was reused: there is nothing to compare."""


@dataclass(frozen=True)
class Held:
    """What a request goes on with.

    Attributes:
        lease: pass ``lease.cache`` on: it is empty where the prompt is computed as if missed.
        would: what the cache gives; the same as ``lease`` where that is used.
        decision: what is done with the hit.
        key: digest of the reused prefix.
    """

    lease: Lease
    would: Lease
    decision: Decision
    key: bytes

    @property
    def cache(self) -> RecordedCache:
        """The cache to go on with."""
        return self.lease.cache


class ShadowCache:
    """A prefix cache that is believed as far as its rollout has come.

    Args:
        prefixes: the cache.
        shadow: compares, and has the rollout.
    """

    def __init__(self, prefixes: PrefixCache, shadow: Shadow) -> None:
        self.prefixes, self.shadow = prefixes, shadow

    def lease(self, tokens: Tokens) -> Held:
        """Lease the longest prefix worth resuming, and decide whether it is used.

        Raises:
            Refused: the allocator has no room to hold the prefix while it is copied.
            ValueError: there is no token, more than one sequence, or padding.
        """
        would = self.prefixes.lease(tokens)
        if not would.resume:
            return Held(would, would, MISSED, b"")
        prefix = ",".join(map(str, would.tokens[: would.resume]))
        key = blake2b(prefix.encode(), digest_size=32).digest()
        decision = self.shadow.decide(key)
        lease = would if decision.use is Use.REUSE else self._missed(would)
        return Held(lease, would, decision, key)

    def commit(self, held: Held, tokens: Tokens) -> Committed:
        """Compare, if that was decided, and keep what was written.

        What was built on a prefix that differs is not kept; what was computed in its place is, and
        so takes the place of the rows that were wrong.

        Raises:
            ValueError: these are not the tokens that were written.
        """
        if held.decision.compare:
            computed = self._computed(held)
            differs = self._judge(held, computed) is not None
            if differs and held.decision.use is Use.REUSE:
                return self._replaced(held.would, computed)
        return self.prefixes.commit(held.lease, tokens)

    def _computed(self, held: Held) -> RecordedCache:
        """Return what was computed in the chunks of the cached rows: the request's own, or anew.

        Rows of other chunks are no measure, however near they mostly are: where an index chooses
        among scores that tie, and those of ``relu`` do, another chunk's length decides.
        """
        would, written = held.would, _written(held.lease)
        if held.decision.use is Use.SHADOW and written.end >= would.resume:
            own = written.cut(would.resume) == would.provenance
            return held.cache if own else self._again(would)
        return self._again(would)

    def _judge(self, held: Held, computed: RecordedCache) -> Difference | None:
        resume, gives = held.would.resume, held.would.cache
        return self.shadow.judge(
            held.key, lambda: (_rows(gives, resume), _rows(computed, resume)), exact=True
        )

    def _again(self, would: Lease) -> RecordedCache:
        """Compute what the cache gives once more, in the same chunks, so bit for bit.

        The last chunk is not cut: more rows than are compared do no harm.
        """
        model, cache = self.prefixes.model, self._missed(would).cache
        for chunk, kept in would.provenance.steps():
            run(model, cache, chunk.tokens)
            at = chunk.start + kept
            if at < min(chunk.end, would.resume):
                cache = assemble(model, disassemble(cache, at), at, layout=cache.layout)
        return cache

    def _replaced(self, would: Lease, computed: RecordedCache) -> Committed:
        """Put what was computed in the place of rows that were wrong, unless it had to be cut."""
        *first, last = would.provenance.chunks
        tokens = (*(t for chunk in first for t in chunk.tokens), *last.tokens)
        if len(tokens) == last.end:
            right = replace(self._missed(would), cache=computed, tokens=tokens)
            return self.prefixes.commit(right, tokens)
        return Committed(would.provenance, ())

    def _missed(self, would: Lease) -> Lease:
        """Return a lease of nothing: the prompt is computed from its first token."""
        empty = RecordedCache(self.prefixes.model, self.prefixes.layout, would.by)
        return Lease(empty, would.tokens, would.verdict, Provenance(), would.by)


def _written(lease: Lease) -> Provenance:
    """Return the chunks of what was written, as far as they are of the prompt."""
    provenance, tokens = lease.provenance, lease.tokens
    for length in lease.cache.chunk_lengths:
        chunk = tokens[provenance.end : provenance.end + length]
        if len(chunk) < length:
            break
        provenance = provenance.then(chunk)
    return provenance


def _rows(cache: RecordedCache, resume: int) -> Rows:
    """Return the rows that a resume reads, by group."""
    found: dict[str, Span] = {g.name: g.need(resume) for g in cache.layout.geometry.groups}
    return {name: cache.read(name, span).rows for name, span in found.items()}
