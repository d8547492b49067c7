"""Plans: the figures of a shipped geometry, conflicts named exactly, and what is refused."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fivestate.checker.cli.app import run
from fivestate.checker.plan import proofs as theory
from fivestate.checker.plan.arithmetic import number
from fivestate.checker.plan.proofs import descent, proofs
from fivestate.checker.plan.report import Report, plan
from fivestate.checker.plan.solve import Conflict, Problem
from fivestate.checker.plan.speed import measure
from fivestate.checker.plan.wishes import Wishes, read_wishes
from fivestate.spec.language import ModelError
from fivestate.spec.need import round_down
from fivestate.spec.reuse import (
    Asked,
    Availability,
    CacheGroup,
    Geometry,
    Role,
    classify,
    resident,
)
from fivestate.spec.reuse.admission import admission_cap
from fivestate.spec.reuse.files import preset, presets, read_geometry
from fivestate.spec.reuse.huggingface import from_config
from fivestate.spec.vocabulary import COMPRESSED, WINDOW

USAGE_ERROR = 64

DSV4 = {
    "model_type": "deepseek_v4",
    "num_hidden_layers": 43,
    "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],
    "head_dim": 512,
    "qk_rope_head_dim": 64,
    "index_head_dim": 128,
    "sliding_window": 128,
    "num_nextn_predict_layers": 1,
}
DSV32 = {
    "model_type": "deepseek_v32",
    "num_hidden_layers": 61,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "index_head_dim": 128,
    "index_topk": 2048,
}
GEMMA3 = {
    "model_type": "gemma3",
    "text_config": {
        "num_hidden_layers": 62,
        "sliding_window_pattern": 6,
        "sliding_window": 1024,
        "num_key_value_heads": 16,
        "head_dim": 128,
    },
}
GPT_OSS = {
    "model_type": "gpt_oss",
    "num_hidden_layers": 36,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "sliding_window": 128,
    "num_key_value_heads": 8,
    "head_dim": 64,
}
LLAMA4 = {
    "model_type": "llama4",
    "text_config": {
        "num_hidden_layers": 48,
        "no_rope_layers": [1, 1, 1, 0] * 12,
        "attention_chunk_size": 8192,
        "num_key_value_heads": 8,
        "head_dim": 128,
    },
}
QWEN3_NEXT = {
    "model_type": "qwen3_next",
    "num_hidden_layers": 48,
    "full_attention_interval": 4,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_key_head_dim": 128,
    "linear_num_value_heads": 32,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}
CONFIGS = {
    "dsv4-flash": DSV4,
    "dsv32": DSV32,
    "gemma3-27b": GEMMA3,
    "gpt-oss-120b": GPT_OSS,
    "llama4-scout": LLAMA4,
    "qwen3-next-80b": QWEN3_NEXT,
}


def test_the_figures_of_dsv4_flash(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "dsv4-flash", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["hash_granularity_tokens"] == 4
    assert found["hit_granularity_tokens"] == 256
    assert found["bytes_per_token"] == 3850.25
    assert found["bytes_per_token_padded"] == 3915.0
    groups = {group["name"]: group for group in found["groups"]}
    pages = {name: group["page_size_bytes"] for name, group in groups.items()}
    assert (pages["c4"], pages["c128"], pages["c4_index"]) == (37_440, 1_728, 8_640)
    assert (pages["c4_state"], pages["c128_state"], pages["swa"]) == (32_832, 32_832, 37_440)
    hit = {name: group["blocks_for_a_hit"] for name, group in groups.items()}
    assert (hit["swa"], hit["c4_state"], hit["c128_state"]) == (2, 2, 16)
    caps = {name: group["admission_cap_blocks"] for name, group in groups.items()}
    assert (caps["swa"], caps["c4_state"], caps["c128_state"]) == (131, 2_051, 1_041)


def test_what_dsv4_flash_costs() -> None:
    shape = preset("dsv4-flash")
    wishes = read_wishes(["context=131072tokens", "memory=64GiB", "requests=2"], shape)
    found = plan(shape, wishes)
    assert isinstance(found, Report)
    cost = found.capacity
    swa, states = 43 * 128 * 584, 21 * 8 * 8_192 + 21 * 8 * 2_048 + 20 * 128 * 4_096
    assert cost.bytes_per_request == swa + states
    assert cost.load_bytes == 512 * 1_002_240 + 2 * 43 * 37_440 + 21 * (32_832 + 8_640)
    assert [first.kind for first in cost.first_token] == ["HIT", "PARTIAL", "MISS"]
    assert cost.first_token[0].nanoseconds == (255 + 256) * 10**9 // 10_000
    scheme_a = cost.scheme_a
    assert scheme_a.bytes_per_token == 43 * 584
    below = scheme_a.enough_below_tokens
    assert below is not None
    assert below * (43 * 584 - 3850.25) <= swa + states < (below + 1) * (43 * 584 - 3850.25)
    assert scheme_a.fits_below_tokens == 64 * 2**30 // (2 * 43 * 584)


@pytest.mark.parametrize("name", presets())
def test_every_geometry_can_be_planned_as_it_is_and_freely(name: str) -> None:
    shape = preset(name)
    as_it_is = plan(shape, read_wishes([], shape))
    freely = plan(shape, read_wishes([], shape, free=True))
    assert isinstance(as_it_is, Report)
    assert isinstance(freely, Report)
    assert as_it_is.geometry.groups == shape.groups
    assert freely.hit_tokens <= as_it_is.hit_tokens


@pytest.mark.parametrize(
    ("window", "block", "hit", "cap"),
    [
        (128, 64, 2, 131),
        (8, 4, 2, 2_051),
        (128, 8, 16, 1_041),
        (128, 16, 8, 521),
        (128, 128, 1, 66),
        (128, 32, 4, 261),
        (512, 16, 32, 545),
        (1_024, 16, 64, 577),
        (4_096, 16, 256, 769),
    ],
)
def test_blocks_for_a_hit_and_caps_are_those_of_the_engine(
    window: int, block: int, hit: int, cap: int
) -> None:
    group = CacheGroup(name="w", state=WINDOW, block_size=block, window=window)
    assert group.hit_blocks == hit
    assert admission_cap(group, 8_192, 131_072) == cap


@pytest.mark.parametrize(("name", "step"), [("dsv4-ascend-32", 4_096), ("dsv4-ascend-128", 16_384)])
def test_a_coarse_geometry_is_warned_of(name: str, step: int) -> None:
    shape = preset(name)
    found = plan(shape, read_wishes([], shape))
    assert isinstance(found, Report)
    assert found.hit_tokens == step
    assert f"no prompt under {step + 1:,} tokens can ever hit" in found.warnings[0]


def test_hits_are_coarser_where_entries_are_spread_over_ranks() -> None:
    shape = preset("dsv4-flash")
    found = plan(shape, read_wishes(["ranks=8"], shape))
    assert isinstance(found, Report)
    assert found.hit_tokens == 8 * 256


CONTRADICTIONS = {
    "the block of an entry group is too long": (
        ["shortest_prompt=4096tokens", "kernel_block=128entries", "padding=90%"],
        {"shortest_prompt=4096tokens", "kernel_block=128entries"},
        "one block of c128 covers 16,384 tokens (128 entries of 128 tokens each)",
    ),
    "a ratio alone is too coarse": (
        ["shortest_prompt=100tokens", "memory=100GiB"],
        {"shortest_prompt=100tokens"},
        "one block of c128 covers 128 tokens",
    ),
    "memory": (
        ["memory=1MiB", "shortest_prompt=4096tokens"],
        {"memory=1MiB"},
        "no plan needs less than",
    ),
    "two sizes of one block": (
        ["block.swa=64tokens", "block.swa=32tokens", "load_back=10s"],
        {"block.swa=64tokens", "block.swa=32tokens"},
        "no block sizes meet all of them",
    ),
    "padding of short pages": (
        ["padding=5%", "shortest_prompt=1024tokens", "memory=100GiB"],
        {"padding=5%", "shortest_prompt=1024tokens"},
        "one block of c128 covers",
    ),
    "time to first token": (
        ["ttft=1ms", "share=90%", "padding=60%"],
        {"ttft=1ms"},
        "ms to the first token",
    ),
    "time to load": (["load_back=1us", "bandwidth=1GB/s"], {"load_back=1us"}, "no plan loads less"),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_exactly_the_wishes_that_conflict_are_named(case: str) -> None:
    texts, conflicting, because = CONTRADICTIONS[case]
    shape = preset("dsv4-flash")
    wishes = read_wishes(texts, shape, free=True)
    found = plan(shape, wishes)
    assert isinstance(found, Conflict)
    assert {wish.text for wish in found.wishes} == conflicting
    assert because in found.because
    for left_out in found.wishes:  # all but any one of them can be met
        rest = tuple(wish for wish in found.wishes if wish is not left_out)
        assert isinstance(plan(shape, Wishes(rest, wishes.setting)), Report)


def test_the_finest_plan_is_the_finest_of_all() -> None:
    groups = (
        CacheGroup(name="c3", state=COMPRESSED, block_size=12, ratio=3, bytes_per_entry=5),
        CacheGroup(name="w", state=WINDOW, block_size=8, window=5),
    )
    shape = Geometry("small", groups)
    wishes = read_wishes(["kernel_block=4entries"], shape, free=True)
    problem = Problem(shape, wishes)
    solved = problem.solve()
    assert not isinstance(solved, Conflict)
    possible = [
        Geometry("tried", (one.group, other.group)).scheduler_block_size
        for one, other in [(a, b) for a in problem.options[0] for b in problem.options[1]]
        if one.group.entries_per_block % 4 == other.group.entries_per_block % 4 == 0
    ]
    chosen = replace(shape, groups=tuple(each.group for each in solved))
    assert chosen.scheduler_block_size == min(possible)


def test_a_conflict_exits_1_and_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    wish = ["--wish", "shortest_prompt=4096tokens"]
    assert run(["plan", "dsv4-ascend-128", *wish, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["conflict"] == [
        "shortest_prompt=4096tokens",
        "block.c128=16384tokens, as it is",
    ]
    assert "no prompt under 16,385 tokens can ever hit" in told["because"]


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ("memory=10ms", "unit 'ms': B or KiB or MiB or GiB or KB or MB or GB is allowed"),
        ("memory=10", "unit 'none'"),
        ("shortest_prompt=0tokens", "0: 1 or more is allowed"),
        ("shortest_prompt=-4tokens", "a whole number and tokens is allowed"),
        ("smallest=4", "unknown name 'smallest'"),
        ("memory", "NAME=NUMBER and a unit is allowed"),
        ("block=4tokens", "say which group"),
        ("block.c5=4tokens", "has no group 'c5'"),
        ("memory.c4=4GiB", "memory is not about one group"),
        ("hits=90%", "100% or less"),
    ],
)
def test_a_wrong_wish_is_refused(wish: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "dsv4-flash", "--wish", wish]) == USAGE_ERROR
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", presets())
def test_everything_taken_for_granted_is_proved_of_every_geometry(name: str) -> None:
    assert [proof for proof in proofs(preset(name)) if not proof.proved] == []


FAULTS = {
    "window_start": lambda position, window: position - window,
    "tail_start": lambda folded, ratio, _: folded * ratio,
    "entries_end": lambda position, ratio: (position + ratio - 1) // ratio * ratio,
    "visible": lambda entry, query, ratio: entry * ratio <= query,
    "resume_limit": lambda fork, _, lookback: round_down(fork, number("zero") + 4) - lookback,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_seeded_fault_is_refuted_with_numbers(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(theory, fault, FAULTS[fault])
    refuted = [proof for proof in proofs(preset("toy")) if not proof.proved]
    assert refuted
    assert all("=" in proof.counterexample for proof in refuted)


def test_peek_and_drop_is_refuted() -> None:
    assert descent(peek=0).proved
    assert not descent(peek=1).proved


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_json_gives_the_shipped_geometry(name: str, tmp_path: Path) -> None:
    shape, shipped = from_config(CONFIGS[name], name), preset(name)
    by_name = {group.name: replace(group, unverified=()) for group in shipped.groups}
    assert {group.name: group for group in shape.groups} == by_name
    file = tmp_path / f"{name}.json"
    file.write_text(json.dumps(CONFIGS[name]), "utf-8")
    assert run(["plan", str(file), "--json"]) == 0


def test_the_geometries_that_are_shipped() -> None:
    assert len(presets()) >= 14
    assert preset("dsv4-pro").bytes_per_token * 16 == 88_183
    assert preset("dsv41-flash").bytes_per_token == 890
    assert all(preset(name).source for name in presets())


BAD_FILES = {
    "zero.toml": ('[group.a]\nstate = "COMPRESSED"\nblock_size = 0\n', "block_size = 0"),
    "minus.toml": ('[group.a]\nstate = "COMPRESSED"\nblock_size = -4\n', "block_size = -4"),
    "ratio.toml": (
        '[group.a]\nstate = "COMPRESSED"\nblock_size = 6\nratio = 4\n',
        "block_size = 6: a multiple of ratio = 4 is allowed",
    ),
    "state.toml": (
        '[group.a]\nstate = "SQUASHED"\nblock_size = 6\n',
        "state = 'SQUASHED' is unknown; known: COMPRESSED, INDEXER, ON_DISK, TAIL, WINDOW",
    ),
    "tier.toml": ('[group.a]\nstate = "ON_DISK"\nblock_size = 6\n', "it is a tier, not a group"),
    "window.toml": ('[group.a]\nstate = "WINDOW"\nblock_size = 6\n', "window = 0: 1 or more"),
    "owner.toml": ('[group.a]\nstate = "TAIL"\nblock_size = 6\n', "of = ''"),
    "field.toml": (
        '[group.a]\nstate = "COMPRESSED"\nblocksize = 6\n',
        "unknown field 'blocksize'; did you mean 'block_size'?",
    ),
    "text.toml": ('[group.a]\nstate = "COMPRESSED"\nblock_size = "6"\n', "block_size = '6'"),
    "none.toml": ("", "groups is empty"),
    "broken.toml": ("[group", "is not TOML"),
    "model.json": ("{}", "field 'model_type' is missing: this is no model's config.json"),
    "list.json": ("[]", "this is no model's config.json"),
    "broken.json": ("{", "is not JSON"),
    "other.json": ('{"model_type": "bert"}', "model_type = 'bert' has no rule"),
    "lacks.json": (
        '{"model_type": "gpt_oss", "num_hidden_layers": 2, "sliding_window": 8}',
        "field 'sliding_window_pattern' is missing",
    ),
    "ratios.json": (
        json.dumps({**DSV4, "compress_ratios": [4]}),
        "compress_ratios has 1 entries: one for each of 43 layers",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_wrong_geometry_is_refused_with_field_value_and_what_is_allowed(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, says = BAD_FILES[name]
    file = tmp_path / name
    file.write_text(text, "utf-8")
    assert run(["plan", str(file)]) == USAGE_ERROR
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_a_geometry_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "dsv4-flesh"]) == USAGE_ERROR
    assert "did you mean 'dsv4-flash'?" in capsys.readouterr().err
    assert run(["plan", "nothing.toml"]) == USAGE_ERROR
    assert run(["plan"]) == USAGE_ERROR


AVAILABLE = """
[[copy]]
group = "full"
start = 0
end = 32
tier = "HOST"
"""
BAD_CASES = {
    "unknown field 'tiers'; did you mean 'tier'?": AVAILABLE.replace("tier", "tiers"),
    "tier = 'TAPE' is unknown; known: DEVICE, DISK, HOST": AVAILABLE.replace("HOST", "TAPE"),
    "has no group 'half'": AVAILABLE.replace("full", "half"),
    "span = [0, 0]": AVAILABLE.replace("32", "0"),
    "start = -1: a whole number, 0 or more": AVAILABLE.replace("start = 0", "start = -1"),
    "rank = 0, 2: every rank from 0 on is needed": AVAILABLE + "rank = 2\n",
    "unknown field 'kernels'": AVAILABLE + '[kernels]\nkernel = "1"\n',
    "missing: stride, payload, count": AVAILABLE + "place = {address = 0}\n",
}


@pytest.mark.parametrize("says", BAD_CASES)
def test_a_wrong_availability_is_refused(
    says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.toml"
    file.write_text(BAD_CASES[says], "utf-8")
    asked = ["explain", "homogeneous", "--fork", "32", "--available", str(file)]
    assert run(asked) == USAGE_ERROR
    assert says in capsys.readouterr().err


def test_a_case_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.toml"
    file.write_text(AVAILABLE, "utf-8")
    asked = ["explain", "homogeneous", "--fork", "32", "--available", str(file)]
    assert run([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["resume"]) == ("PARTIAL", 32)
    assert told["steps"] == ["load back 0..31 of full from HOST"]
    assert told["ledger"][0]["form"] == "ON_DISK"
    assert run(asked) == 0
    assert "first: load back" in capsys.readouterr().out


def calls_of_classify(tokens: int) -> int:
    """Count the function calls of one verdict on a prefix whose windows have to be replayed."""
    shape, calls = preset("dsv4-flash"), 0
    copies = {g.name: (resident(0, tokens),) for g in shape.groups if g.role is Role.REQUIRED}

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        classify(shape, Asked(tokens), Availability((copies,)))
    finally:
        sys.setprofile(None)
    return calls


def test_classify_does_no_more_for_a_long_prompt_than_for_a_short_one() -> None:
    assert calls_of_classify(131_072) <= calls_of_classify(16_384) * 1.1
    assert calls_of_classify(1_048_576) <= calls_of_classify(131_072) * 1.1


def test_the_speed_of_classify_is_measured_by_length_and_by_groups() -> None:
    speeds = list(measure(preset("dsv4-flash"), seconds=0.01))
    assert {speed.tokens for speed in speeds} >= {1_024, 131_072, 1_048_576}
    assert len({speed.groups for speed in speeds}) > 4
    assert all(speed.per_second > 0 for speed in speeds)


def test_two_groups_of_one_name_are_refused() -> None:
    text = '[group.a]\nstate = "COMPRESSED"\nblock_size = 4\n'
    group = read_geometry(text, "one").groups[0]
    with pytest.raises(ModelError, match="two groups are called 'a'"):
        Geometry("two", (group, group))
