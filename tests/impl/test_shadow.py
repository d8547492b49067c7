"""A cache is compared before it is believed, and one wrong row takes all of it back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from prometheus_client import CollectorRegistry, generate_latest
from tests.impl.model_examples import model, prompt, rng_of
from tests.impl.recovery_world import Engine, allocator, digests, expected

from fivestate.impl.models.parts import RecordedCache
from fivestate.impl.models.prefix_cache import PrefixCache
from fivestate.impl.models.replay import run
from fivestate.impl.models.store import DictStore
from fivestate.impl.rollout import Ramp, Rollout, Use
from fivestate.impl.shadow import TOLERANCE, Difference, Shadow, compare, pages
from fivestate.impl.shadow_models import Held, ShadowCache
from fivestate.spec.reuse import Span
from fivestate.spec.vocabulary import COMPRESSED

QUICK = Ramp(shares=(0.0, 0.5, 1.0), agreements=3, sample=1.0)
NAMES = ("deepseek-v4", "gemma3", "qwen3")


class Service:
    """Serves prompts of one model through a shadowed cache."""

    def __init__(self, name: str, ramp: Ramp = QUICK, seed: int = 0) -> None:
        self.model, self.rng, self.store = model(name), rng_of(seed), DictStore()
        self.shadow = Shadow(Rollout(ramp))
        self.cache = ShadowCache(PrefixCache(self.model, store=self.store), self.shadow)
        self.systems = [prompt(self.rng, 40) for _ in range(4)]

    def turn(self, chunk: int = 16) -> Held:
        """Ask a question behind one of a few system prompts."""
        text = [*self.rng.choice(self.systems), *prompt(self.rng, 5)]
        held = self.cache.lease(text)
        for at in range(held.lease.resume, len(text), chunk):
            run(self.model, held.cache, text[at : at + chunk])
        self.cache.commit(held, text)
        return held

    def climb(self, chunk: int = 16) -> None:
        """Serve until everything is reused, or for so long that it should be."""
        for _ in range(40):
            if self.shadow.rollout.share == 1:
                return
            self.turn(chunk)

    def corrupt(self, group: str) -> None:
        """Change one number in every stored row set of a group."""
        for part in self.store._device[group].values():
            part.rows[0, -1, 0] += 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("chunk", [16, 13])
def test_where_nothing_is_wrong_all_is_reused_in_the_end(name: str, chunk: int) -> None:
    service = Service(name)
    service.climb(chunk)
    assert service.shadow.rollout.share == 1
    assert not service.shadow.compared("differed")
    held = service.turn(chunk)
    assert held.decision.use is Use.REUSE
    assert held.lease.resume


def test_in_the_shadow_nothing_is_reused_and_the_hit_is_recovered_all_the_same() -> None:
    service = Service("deepseek-v4", Ramp(sample=1.0))
    for _ in range(6):
        service.turn()
    text = [*service.systems[0], 1, 2, 3]
    held = service.cache.lease(text)
    assert held.would.resume
    assert not held.lease.resume
    assert held.cache.get_seq_length() == 0


def window_of(name: str) -> str:
    return {"deepseek-v4": "swa", "gemma3": "local"}[name]


@pytest.mark.parametrize("name", ["deepseek-v4", "gemma3"])
def test_a_row_that_changed_in_a_stored_window_takes_the_share_back_to_nothing(name: str) -> None:
    service = Service(name)
    service.climb()
    assert service.shadow.rollout.share == 1
    service.corrupt(window_of(name))
    service.turn()
    assert service.shadow.rollout.share == 0
    assert service.shadow.compared("differed") == 1


def test_what_differed_in_the_shadow_is_replaced_and_agrees_the_next_time() -> None:
    service = Service("deepseek-v4", Ramp(sample=1.0, differences=9))
    text = [*service.systems[0], *prompt(service.rng, 5)]
    for _ in range(4):
        held = service.cache.lease(text)
        run(service.model, held.cache, text)
        service.cache.commit(held, text)
    assert service.shadow.compared("agreed") == 3
    service.corrupt("swa")
    for _ in range(2):
        held = service.cache.lease(text)
        run(service.model, held.cache, text)
        service.cache.commit(held, text)
    assert service.shadow.compared("differed") == 1
    assert service.shadow.compared("agreed") == 4


def test_what_differed_while_it_was_used_is_not_built_upon() -> None:
    service = Service("deepseek-v4", Ramp(shares=(0.0, 1.0), agreements=1, sample=1.0))
    text = [*service.systems[0], *prompt(service.rng, 5)]
    for _ in range(2):
        held = service.cache.lease(text)
        run(service.model, held.cache, text)
        service.cache.commit(held, text)
    assert service.shadow.rollout.share == 1
    service.corrupt("swa")
    held = service.cache.lease(text)
    assert held.decision.use is Use.REUSE
    run(service.model, held.cache, text[held.lease.resume :])
    service.cache.commit(held, text)
    assert service.shadow.compared("differed") == 1
    held = service.cache.lease(text)
    run(service.model, held.cache, text)
    service.cache.commit(held, text)
    assert service.shadow.compared("differed") == 1


def test_bits_are_compared_where_the_chunks_are_the_same_and_numbers_where_not() -> None:
    given = {"swa": torch.zeros(2, 3)}
    near, far = {"swa": torch.zeros(2, 3)}, {"swa": torch.zeros(2, 3)}
    near["swa"][1, 2] = 2.0**-8
    far["swa"][1, 2] = TOLERANCE * 2
    assert compare(given, near, exact=False) is None
    found = compare(given, near, exact=True)
    assert found == Difference("swa", (1, 2), 2.0**-8, exact=True)
    assert compare(given, far, exact=False) is not None
    minus = {"swa": -torch.zeros(2, 3)}
    assert compare(given, minus, exact=True) is not None
    assert compare(given, {"swa": torch.full((2, 3), float("nan"))}, exact=False) is not None
    assert compare(given, {"swa": torch.zeros(2, 4)}, exact=False) is not None
    with pytest.raises(ValueError, match="cannot be compared"):
        compare(given, {"c4": torch.zeros(2, 3)}, exact=True)


def test_blocks_of_the_allocator_are_compared_byte_by_byte(tmp_path: Path) -> None:
    home = allocator(tmp_path / "disk")
    engine, shadow = Engine(home), Shadow(Rollout(QUICK))
    node = engine.publish(digests("a", "b"))
    request = engine.ask(node)

    def rows() -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        computed: dict[str, torch.Tensor] = {}
        for cell in request.held:
            computed |= expected(cell, home.layout)
        return pages(home, request.held), computed

    for _ in range(6):
        assert shadow.judge(node.digests[-1], rows, exact=True) is None
    assert shadow.rollout.share == 1
    home.pools["c2"].storage[node.cells[COMPRESSED].blocks["c2"][1], 5] ^= 1
    found = shadow.judge(node.digests[-1], rows, exact=True)
    assert found is not None
    assert (found.group, found.at) == ("c2", (1, 5))
    assert shadow.rollout.share == 0


def test_the_figures_are_there_to_be_scraped() -> None:
    service = Service("qwen3")
    for _ in range(6):
        service.turn()
    registry = CollectorRegistry()
    registry.register(service.shadow)
    text = generate_latest(registry).decode()
    assert 'fivestate_shadow_hits_total{use="shadow"}' in text
    assert 'result="agreed"' in text
    assert "fivestate_reuse_share" in text
    assert service.shadow.seconds > 0


def test_a_prefix_whose_chunks_were_cut_is_compared_and_not_built_upon_when_it_differs() -> None:
    """Its rows cannot be put in place again: no cache has had all of its chunks."""
    service = Service("deepseek-v4", Ramp(shares=(0.0, 1.0), agreements=1, sample=1.0))
    first = prompt(service.rng, 45)
    text = [*first[:36], *prompt(service.rng, 30)]
    for each in (first, first, text):
        held = service.cache.lease(each)
        run(service.model, held.lease.cache, each[held.lease.resume :])
        service.cache.commit(held, each)
    assert service.shadow.rollout.share == 1
    held = service.cache.lease(text)
    assert not held.would.provenance.plain
    assert held.decision.use is Use.REUSE
    service.corrupt("swa")
    wrong = service.cache.lease(text)
    run(service.model, wrong.cache, text[wrong.lease.resume :])
    assert not service.cache.commit(wrong, text).boundaries
    assert service.shadow.compared("differed") == 1


def test_a_request_that_stops_early_in_the_shadow_is_compared_with_what_is_computed_anew() -> None:
    service = Service("qwen3", Ramp(sample=1.0))
    text = [*service.systems[0], *prompt(service.rng, 10)]
    for written in (50, 50, 20):
        held = service.cache.lease(text)
        run(service.model, held.cache, text[:written])
        if written == 50:
            run(service.model, held.cache, [1, 2])  # behind the prompt
        service.cache.commit(held, [*text, 1, 2])
    assert service.shadow.compared("agreed") == 2
    assert not service.shadow.compared("differed")


def test_other_chunks_are_no_alarm_though_an_index_s_ties_go_another_way_in_them() -> None:
    """Bit for bit the same text in other chunks gives other rows here, and far from rounding."""
    service = Service("deepseek-v4", Ramp(sample=1.0), seed=1)
    text = prompt(service.rng, 66)
    caches = []
    for length in (36, 66):
        cache = RecordedCache(service.model)
        run(service.model, cache, text[:length])
        caches.append({"swa": cache.read("swa", Span(16, 32)).rows})
    assert compare(*caches, exact=False) is not None
    for each in ([*text[:36]], text):
        held = service.cache.lease(each)
        run(service.model, held.cache, each)
        service.cache.commit(held, each)
    assert held.would.resume == 32
    assert service.shadow.compared("agreed") == 1
    assert not service.shadow.compared("differed")
