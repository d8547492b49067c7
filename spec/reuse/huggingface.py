"""Geometries from a model's ``config.json``, as Hugging Face's transformers writes it.

A config says what the layers are; block sizes are an engine's, so the usual ones are taken and
``fivestate plan`` may choose others. Sources: transformers 5.24.0; domain §4, §7.
"""

from __future__ import annotations

from collections.abc import Callable

from fivestate.spec.language import ModelError
from fivestate.spec.language.errors import did_you_mean
from fivestate.spec.reuse.fields import Entry, numbers, whole, words
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.groups import CacheGroup, Role
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW

BLOCK = 16
"""Tokens in a block where no kernel asks for another size."""

_DTYPES = {"bfloat16": 2, "float16": 2, "float32": 4}


def from_config(config: object, name: str) -> Geometry:
    """Return the geometry of the model that a ``config.json`` describes.

    Raises:
        ModelError: it is no model's config, its model type has no rule, or a field is missing.
    """
    if not isinstance(config, dict) or "model_type" not in config:
        raise ModelError(f"{name}: field 'model_type' is missing: this is no model's config.json")
    kind = config["model_type"]
    rule = _RULES.get(kind) if isinstance(kind, str) else None
    if rule is None:
        known = did_you_mean(str(kind), _RULES)
        raise ModelError(f"{name}: model_type = {kind!r} has no rule; {known}")
    inner = config.get("text_config")
    return Geometry(
        name,
        rule(inner if isinstance(inner, dict) else config, name),
        source=f"config.json of a {kind}",
    )


def _deepseek_v32(config: Entry, name: str) -> tuple[CacheGroup, ...]:
    layers = whole(config, "num_hidden_layers", name, least=1)
    latent = whole(config, "kv_lora_rank", name, least=1)
    rope = whole(config, "qk_rope_head_dim", name)
    index = whole(config, "index_head_dim", name, least=1)
    whole(config, "index_topk", name, least=1)
    scales = 4 * (latent // 128)
    return (
        _entries("mla", layers, latent + scales + 2 * rope, block=64),
        _index("index", "mla", layers, index + 4 * (index // 128), block=64),
    )


def _deepseek_v4(config: Entry, name: str) -> tuple[CacheGroup, ...]:
    layers = whole(config, "num_hidden_layers", name, least=1)
    ratios = numbers(config, "compress_ratios", name)
    if len(ratios) < layers:
        message = f"{name}: compress_ratios has {len(ratios)} entries"
        raise ModelError(f"{message}: one for each of {layers} layers, or more, is allowed")
    head = whole(config, "head_dim", name, least=1)
    rope = whole(config, "qk_rope_head_dim", name)
    row = head - rope + 2 * rope + (head - rope) // 64 + 1
    groups: list[CacheGroup] = []
    for ratio in sorted(set(ratios[:layers]) - {0}):
        count = ratios[:layers].count(ratio)
        groups.append(_entries(f"c{ratio}", count, row, block=256, ratio=ratio, align=576))
        overlaps = ratio == _OVERLAPPING_RATIO
        groups.append(_state(f"c{ratio}_state", f"c{ratio}", count, ratio, head, overlaps=overlaps))
        if overlaps:
            index = whole(config, "index_head_dim", name, least=1)
            size = index + 4 * (index // 128)
            groups.append(_index("c4_index", "c4", count, size, block=256, ratio=ratio, align=576))
            groups.append(_state("c4_index_state", "c4_index", count, ratio, index, overlaps=True))
    span = whole(config, "sliding_window", name, least=1)
    groups.append(_window("swa", layers, row, span, block=64, align=576))
    drafts = whole(config, "num_nextn_predict_layers", name, 0)
    if drafts:
        groups.append(_window("mtp", drafts, row, span, Role.VOLATILE, block=64, align=576))
    return tuple(groups)


_OVERLAPPING_RATIO = 4
"""The ratio at which DeepSeek-V4's compressor overlaps, and which alone has an index."""


def _windows(config: Entry, name: str) -> tuple[CacheGroup, ...]:
    """Full and window layers, as Gemma 3 and gpt-oss have them."""
    kinds = _layer_types(config, name, "sliding_attention", "sliding_window_pattern")
    span = whole(config, "sliding_window", name, least=1)
    row = _row_bytes(config, name)
    local = kinds.count("sliding_attention")
    return (
        _entries("full", len(kinds) - local, row),
        _window("local", local, row, span),
    )


def _llama4(config: Entry, name: str) -> tuple[CacheGroup, ...]:
    layers = whole(config, "num_hidden_layers", name, least=1)
    if config.get("no_rope_layers"):
        full = numbers(config, "no_rope_layers", name).count(0)
    else:
        full = layers // whole(config, "no_rope_layer_interval", name, 4, least=1)
    chunk = whole(config, "attention_chunk_size", name, least=1)
    row = _row_bytes(config, name)
    return _entries("full", full, row), _window("local", layers - full, row, chunk, chunked=True)


def _qwen3_next(config: Entry, name: str) -> tuple[CacheGroup, ...]:
    kinds = _layer_types(config, name, "linear_attention", "full_attention_interval")
    row = _row_bytes(config, name)
    sizes = [
        whole(config, f"linear_{part}", name, least=1)
        for part in ("num_key_heads", "key_head_dim", "num_value_heads", "value_head_dim")
    ]
    key, value = sizes[0] * sizes[1], sizes[2] * sizes[3]
    kept = whole(config, "linear_conv_kernel_dim", name, least=1) - 1
    state = (sizes[2] * sizes[1] * sizes[3] + (2 * key + value) * kept) * _width(config, name)
    recurrent = kinds.count("linear_attention")
    block = -(-state // (row * BLOCK)) * BLOCK
    return (
        _entries("full", len(kinds) - recurrent, row, block=block),
        CacheGroup(
            name="delta",
            state=COMPRESSED,
            recurrent=True,
            block_size=block,
            layers=recurrent,
            bytes_per_entry=state,
            page_alignment=block * row,
        ),
    )


def _layer_types(config: Entry, name: str, other: str, interval: str) -> list[str]:
    """Return the kind of each layer, from the list or from how often a full one comes."""
    layers = whole(config, "num_hidden_layers", name, least=1)
    kinds = words(config, "layer_types", name)
    if not kinds:
        every = whole(config, interval, name, least=1)
        kinds = ["full_attention" if (i + 1) % every == 0 else other for i in range(layers)]
    unknown = sorted(set(kinds) - {other, "full_attention"})
    if unknown or len(kinds) != layers:
        allowed = f"{layers} entries, {other} or full_attention, are allowed"
        raise ModelError(f"{name}: layer_types has {len(kinds)} entries {unknown}: {allowed}")
    return kinds


def _row_bytes(config: Entry, name: str) -> int:
    """Bytes of keys and values of one token in one layer."""
    heads = whole(config, "num_key_value_heads", name, least=1)
    return 2 * heads * whole(config, "head_dim", name, least=1) * _width(config, name)


def _width(config: Entry, name: str) -> int:
    dtype = config.get("torch_dtype", config.get("dtype", "bfloat16"))
    if dtype not in _DTYPES:
        raise ModelError(f"{name}: torch_dtype = {dtype!r}; {did_you_mean(str(dtype), _DTYPES)}")
    return _DTYPES[dtype]


def _entries(  # noqa: PLR0913 -- the fields of a group
    name: str, layers: int, size: int, *, block: int = BLOCK, ratio: int = 1, align: int = 1
) -> CacheGroup:
    return CacheGroup(
        name=name,
        state=COMPRESSED,
        block_size=block,
        ratio=ratio,
        layers=layers,
        bytes_per_entry=size,
        page_alignment=align,
    )


def _index(  # noqa: PLR0913 -- the fields of a group
    name: str, of: str, layers: int, size: int, *, block: int, ratio: int = 1, align: int = 1
) -> CacheGroup:
    """An index whose rows are projected from hidden states: required, no entry gives them again."""
    return CacheGroup(
        name=name,
        of=of,
        state=INDEXER,
        block_size=block,
        ratio=ratio,
        layers=layers,
        bytes_per_entry=size,
        page_alignment=align,
    )


def _state(  # noqa: PLR0913 -- the fields of a group
    name: str, of: str, layers: int, ratio: int, head: int, *, overlaps: bool
) -> CacheGroup:
    return CacheGroup(
        name=name,
        of=of,
        state=TAIL,
        block_size=4 if overlaps else 8,
        ratio=ratio,
        lookback=ratio if overlaps else 0,
        layers=layers,
        bytes_per_entry=(2 if overlaps else 1) * 2 * head * 4,
        page_alignment=576,
        role=Role.REBUILDABLE,
    )


def _window(  # noqa: PLR0913 -- the fields of a group
    name: str,
    layers: int,
    size: int,
    window: int,
    role: Role = Role.REBUILDABLE,
    *,
    block: int = BLOCK,
    align: int = 1,
    chunked: bool = False,
) -> CacheGroup:
    return CacheGroup(
        name=name,
        state=WINDOW,
        block_size=block,
        window=window,
        layers=layers,
        bytes_per_entry=size,
        page_alignment=align,
        role=role,
        chunked=chunked,
    )


_RULES: dict[str, Callable[[Entry, str], tuple[CacheGroup, ...]]] = {
    "deepseek_v32": _deepseek_v32,
    "deepseek_v4": _deepseek_v4,
    "gemma3": _windows,
    "gemma3_text": _windows,
    "gpt_oss": _windows,
    "llama4": _llama4,
    "llama4_text": _llama4,
    "qwen3_next": _qwen3_next,
}
"""The model types that are read."""
