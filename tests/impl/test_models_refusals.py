"""What the parts of the model adapter refuse, and with which words."""

from __future__ import annotations

import importlib.util
import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.impl.model_examples import model, prompt, rng_of
from transformers import (
    DynamicCache,
    Gemma3TextConfig,
    MistralConfig,
    Qwen3Config,
    T5Config,
    T5ForConditionalGeneration,
)

from fivestate.impl import models
from fivestate.impl.chain import CopyKey
from fivestate.impl.models import layout
from fivestate.impl.models.labels import HostRows, label_of
from fivestate.impl.models.layers import RecordedCSA, Slot
from fivestate.impl.models.layout import layout_of
from fivestate.impl.models.parts import Part, RecordedCache
from fivestate.impl.models.prefix_cache import PrefixCache
from fivestate.impl.models.provenance import Node
from fivestate.impl.models.replay import run
from fivestate.impl.models.rows import RowLog
from fivestate.impl.models.store import DictStore, Key, read_label, to_bytes
from fivestate.spec.reuse import Span
from fivestate.spec.vocabulary import COMPRESSED

PART, NODE = Part(Span(0, 4), torch.zeros(1, 4, 2)), Node(b"", 4, (), "run")


def test_without_transformers_the_import_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ImportError, match=r"transformers 5\.24 or later.*fivestate\[models\]"):
        runpy.run_path(str(Path(models.__file__)))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: layout_of(Qwen3Config(), block_size=0), "block_size = 0: 1 or more tokens"),
        (lambda: layout_of(MistralConfig(sliding_window=1)), "sliding_window = 1: 2 or more"),
    ],
)
def test_a_config_that_makes_no_layout_is_refused(made: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        made()


def test_layers_that_keep_one_kind_of_rows_in_two_shapes_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each group is one matrix of rows, so one width for all of its layers."""
    config = Gemma3TextConfig(num_hidden_layers=2, layer_types=["sliding_attention"] * 2)
    windows: list[Any] = [*DynamicCache(config=config).layers]
    windows[1].sliding_window = 3
    made = type("Made", (), {"layers": windows})
    monkeypatch.setattr(layout, "DynamicCache", lambda **_: made)
    with pytest.raises(ValueError, match=r"layers 0 and 1 of a \w+ differ in 'local'"):
        layout_of(config)


def test_rows_that_nobody_has_written_are_refused_by_layer() -> None:
    on = model("deepseek-v4")
    cache = RecordedCache(on)
    with pytest.raises(ValueError, match=r"'c4': rows 0\.\.7 of layer 1 are not there"):
        cache.read("c4", Span(0, 8))
    csa = RecordedCSA(on.config)
    with pytest.raises(ValueError, match=r"entries of 0\.\.7: nothing is written"):
        csa.read(Slot.COMPRESSOR, Span(0, 8))
    full = RecordedCache(model("qwen3"))
    with pytest.raises(ValueError, match=r"rows 0\.\.7: nothing is written"):
        full.recorded[0].read(Slot.KEYS, Span(0, 8))


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda layer: layer.crop(1), r"crop\(1\)"),
        (lambda layer: layer.reorder_cache(torch.zeros(1)), "reorder_cache"),
        (lambda layer: layer.batch_repeat_interleave(2), r"batch_repeat_interleave\(2\)"),
        (lambda layer: layer.batch_select_indices(torch.zeros(1)), "batch_select_indices"),
        (lambda layer: layer.activate_past_recording(), "activate_past_recording"),
    ],
)
def test_what_would_take_a_recorded_cache_back_is_refused_and_changes_nothing(
    act: Callable[[Any], None], said: str
) -> None:
    on = model("qwen3")
    cache = RecordedCache(on)
    run(on, cache, prompt(rng_of(1), 5))
    before = cache.read("full", Span(0, 5)).rows
    with pytest.raises(ValueError, match=f"{said}: .*one cache a sequence, without beams"):
        act(cache.recorded[0])
    cache.recorded[0].crop(0)
    assert torch.equal(cache.read("full", Span(0, 5)).rows, before)


def test_a_row_log_lets_go_of_nothing_twice() -> None:
    log = RowLog()
    log.append(torch.arange(6.0).view(3, 2))
    log.forget(2)
    log.forget(1)
    assert log.kept == Span(2, 3)


def test_a_part_of_a_block_that_is_not_known_is_refused() -> None:
    store, key = DictStore(), Key(b"\1" * 32, "full")
    with pytest.raises(ValueError, match="'full': block 01010101 is not known"):
        store.put(key, PART)
    store.offload(key)
    assert not store.bytes
    store.evict(key)
    assert store.get(key) is None


def test_bytes_whose_header_is_no_table_say_nothing() -> None:
    body = json.dumps({"__metadata__": ["fivestate"]}).encode()
    assert read_label(len(body).to_bytes(8, "little") + body) is None
    assert read_label(to_bytes(PART, NODE)) is not None


def test_a_copy_of_which_nobody_knows_how_it_was_made_is_neither_kept_nor_given() -> None:
    runs = {b"1": NODE}
    host, key = HostRows(runs), CopyKey(b"1", COMPRESSED, 1)
    pages = {"full": torch.zeros(1, 8, dtype=torch.uint8)}
    host.put(key, pages)
    assert host.get(key).keys() == pages.keys()
    with pytest.raises(ValueError, match="nobody knows how it was made"):
        host.put(CopyKey(b"2", COMPRESSED, 2), pages)
    runs[b"1"] = Node(b"", 4, (), "another")
    with pytest.raises(ValueError, match="it is of another run than its block"):
        host.get(key)
    assert label_of("run").shape == (1, 3)


def test_what_is_no_causal_model_is_refused() -> None:
    small = T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, vocab_size=9)
    for other in (T5ForConditionalGeneration(small), "Qwen/Qwen3-0.6B", None):
        wrong: Any = other
        with pytest.raises(ValueError, match="a causal language model of transformers is allowed"):
            PrefixCache(wrong)
