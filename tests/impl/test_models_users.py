"""The way that users take, ``PrefixCache`` and ``generate``: what is missing is never computed on.

Blind use of each of these forms gives other logits; ``test_models_faults`` shows that.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.impl.model_examples import model, prompt, rng_of
from tests.impl.model_stores import STORES, lose_the_last, prefixes_in, served

from fivestate.impl.models.prefix_cache import PrefixCache
from fivestate.impl.models.store import DictStore
from fivestate.impl.models.tiny import tiny
from fivestate.spec.reuse import Kind, Why

TEXT = prompt(rng_of(31), 70)

MISSING = [
    ("deepseek-v4", "swa", Why.WINDOW_GONE),
    ("deepseek-v4", "c4_state", Why.TAIL_GONE),
    ("deepseek-v4", "c4_index", Why.INDEX_GONE),
    ("deepseek-v4", "c4", None),
    ("gpt-oss", "local", Why.WINDOW_GONE),
    ("qwen3", "full", None),
]
"""A model, the group whose last rows are gone, and what is said; without entries nothing is known.

Every boundary is aligned, so the tail is what overlaps it.
"""


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("name", "group", "why"), MISSING)
def test_with_one_form_missing_generate_goes_on_from_where_all_are(
    tmp_path: Path, store: str, name: str, group: str, why: Why | None
) -> None:
    with prefixes_in(store, model(name), tmp_path) as prefixes:
        served(prefixes, TEXT)
        assert (prefixes.match(TEXT).kind, prefixes.match(TEXT).resume) == (Kind.HIT, 64)
        lose_the_last(prefixes, group)
        lease, _ = served(prefixes, TEXT)
        assert lease.resume == 48
        if why is not None:
            assert lease.verdict.kind is Kind.PARTIAL
            assert why in {reason.why for reason in lease.verdict.reasons}
        assert served(prefixes, TEXT)[0].resume == 64


@pytest.mark.parametrize("store", STORES)
def test_rows_of_other_weights_are_not_generated_from(tmp_path: Path, store: str) -> None:
    on = tiny("deepseek-v4")
    with prefixes_in(store, on, tmp_path) as prefixes:
        served(prefixes, TEXT)
        with torch.no_grad():
            next(on.parameters()).mul_(1.5)
        assert served(prefixes, TEXT)[0].verdict.kind is Kind.MISS
        assert served(prefixes, TEXT)[0].resume == 64


@pytest.mark.parametrize("store", STORES)
def test_rows_of_other_kernels_are_not_generated_from(tmp_path: Path, store: str) -> None:
    on = tiny("gpt-oss")
    with prefixes_in(store, on, tmp_path) as prefixes:
        served(prefixes, TEXT)
        before, other = prefixes.lease(TEXT), {"eager": "sdpa"}
        now = on.config._attn_implementation
        assert now is not None
        on.config._attn_implementation = other.get(now, "eager")
        lease, tokens = served(prefixes, TEXT)
        assert lease.verdict.kind is Kind.MISS
        if store == "parts":
            assert (Why.KERNEL, "full") in {(r.why, r.group) for r in lease.verdict.reasons}
        refused = prefixes.commit(before, before.tokens[: before.resume])
        assert [reason.why for reason in refused.reasons] == [Why.KERNEL]  # type: ignore[union-attr]  # a reason
        assert served(prefixes, tokens)[0].resume == 64


def test_copies_of_other_kernels_are_not_loaded_back(monkeypatch: pytest.MonkeyPatch) -> None:
    store = DictStore()
    served(PrefixCache(model("qwen3"), store=store), TEXT)
    for key in list(store):
        store.offload(key)
    kept = DictStore(kept=store.bytes)
    monkeypatch.setattr("transformers.__version__", "6.0.0")
    lease, _ = served(PrefixCache(model("qwen3"), store=kept), TEXT)
    assert (lease.verdict.kind, lease.resume) == (Kind.MISS, 0)
    assert {reason.why for reason in lease.verdict.reasons} >= {Why.KERNEL}


def test_a_copy_that_is_gone_when_it_is_loaded_is_not_generated_from() -> None:
    """It was there when the prompt was matched, on the one tier that has it."""
    store = DictStore()
    served(PrefixCache(model("deepseek-v4"), store=store), TEXT)
    for key in list(store):
        store.offload(key)
    lost = [key for key in store if key.group == "c4_state"][-1]
    for damaged in (store.bytes[lost][:-1], store.bytes[lost][:-1] + b"\xff"):
        kept = DictStore(kept={**store.bytes, lost: damaged})
        prefixes = PrefixCache(model("deepseek-v4"), store=kept)
        assert prefixes.match(TEXT).resume == 64
        lease, _ = served(prefixes, TEXT)
        assert lease.resume < 64
        assert lease.verdict.kind in (Kind.PARTIAL, Kind.MISS)


def test_a_model_that_has_changed_its_type_is_refused_before_anything_is_computed() -> None:
    on: Any = tiny("qwen3")
    prefixes = PrefixCache(on)
    served(prefixes, TEXT)
    on.to(torch.bfloat16)
    with pytest.raises(ValueError, match=r"computes in torch\.bfloat16 now.*a new PrefixCache"):
        prefixes.lease(TEXT)
    assert served(PrefixCache(on), TEXT)[0].verdict.kind is Kind.MISS


def test_the_lines_of_the_readme_do_what_they_say_as_they_stand() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    [lines] = [
        block
        for block in re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
        if "PrefixCache(" in block
    ]
    on = model("deepseek-v4")
    scope: dict[str, Any] = {"model": on, "prompt": torch.tensor([TEXT])}
    exec(lines, scope)  # noqa: S102 -- the README's own lines
    assert scope["lease"].verdict.kind is Kind.MISS
    length = scope["output"].shape[1]  # it may come to its end before 64 tokens
    assert length > len(TEXT)
    scope["prompt"] = torch.cat([scope["output"], torch.tensor([[1, 2, 3]])], dim=1)
    again = "\n".join(line for line in lines.splitlines() if "PrefixCache" not in line)
    exec(again, scope)  # noqa: S102 -- the README's own lines
    assert (scope["lease"].verdict.kind, scope["lease"].resume) == (
        Kind.HIT,
        (length - 1) // 16 * 16,
    )
