"""The checks of arguments: overlap is that of bytes, and values are looked at where it is free."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fivestate.kernels.device import checks


def addresses(tensor: torch.Tensor) -> set[int]:
    """Return the address of every byte of a tensor."""
    at = {tensor.data_ptr()}
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        steps = [step * stride * tensor.element_size() for step in range(size)]
        at = {start + step for start in at for step in steps}
    return {start + byte for start in at for byte in range(tensor.element_size())}


MEMORY = torch.zeros(1_000, dtype=torch.uint8)


@st.composite
def views(draw: st.DrawFn) -> torch.Tensor:
    """Return a view of the memory, of one to three dimensions in any order."""
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    strides = [draw(st.integers(0, 30)) for _ in shape]
    kind = draw(st.sampled_from([torch.uint8, torch.int16]))
    return MEMORY.view(kind).as_strided(shape, strides, draw(st.integers(0, 60)))


@settings(deadline=None, max_examples=150)
@given(views(), views())
def test_two_tensors_overlap_iff_they_share_a_byte(one: torch.Tensor, other: torch.Tensor) -> None:
    shared = bool(addresses(one) & addresses(other)) and bool(one.numel() and other.numel())
    assert checks.overlap(one, other) == shared
    assert checks.overlap(other, one) == shared


@settings(deadline=None, max_examples=50)
@given(views())
def test_the_extent_of_a_tensor_is_that_of_its_bytes(tensor: torch.Tensor) -> None:
    if tensor.numel():
        found = addresses(tensor)
        assert checks.extent(tensor) == (min(found), max(found) + 1)


@settings(deadline=None, max_examples=150)
@given(views())
def test_what_is_apart_has_an_address_for_each_element(tensor: torch.Tensor) -> None:
    try:
        checks.apart("rows", tensor)
    except ValueError:
        return  # interleaved rows may be refused without need
    assert len(addresses(tensor)) == tensor.nbytes or not tensor.numel()


def test_expanded_rows_are_not_apart() -> None:
    checks.apart("rows", MEMORY.as_strided((3, 4, 5), (40, 10, 1)))
    checks.apart("rows", MEMORY.as_strided((4, 3, 5), (10, 40, 1)))
    checks.apart("rows", MEMORY.as_strided((1, 5), (0, 1)))
    for strides, told in (((0, 1), 0), ((4, 1), 4)):
        with pytest.raises(
            ValueError, match=f"rows: a stride of {told} lets what it holds overlap"
        ):
            checks.apart("rows", MEMORY.as_strided((3, 5), strides))


def test_values_name_the_first_that_is_out_of_range() -> None:
    checks.values("page", torch.tensor([3, -1, 0]), -1, 3)
    checks.values("page", torch.tensor([], dtype=torch.int64), 0, 0)
    with pytest.raises(ValueError, match=r"page\[2\]: 4 is given, -1 .. 3 is wanted"):
        checks.values("page", torch.tensor([3, -1, 4, 9]), -1, 3)


def test_ids_below_the_least_may_be_given_again() -> None:
    checks.distinct("page", torch.tensor([-1, 0, 5, -1, 0, 6]))
    with pytest.raises(ValueError, match="page: 6 is given more than once"):
        checks.distinct("page", torch.tensor([6, 5, 6]))


def test_on_a_device_values_are_looked_at_only_when_debugging(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class OnDevice:
        is_cuda = True

    capturing = False
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing)
    monkeypatch.setenv("FIVESTATE_DEBUG", "0")
    assert not checks.readable(OnDevice())  # type: ignore[arg-type] # stands for a tensor
    monkeypatch.setenv("FIVESTATE_DEBUG", "1")
    assert checks.readable(OnDevice())  # type: ignore[arg-type] # stands for a tensor
    capturing = True
    assert not checks.readable(OnDevice())  # type: ignore[arg-type] # stands for a tensor


def test_only_the_last_dimensions_have_to_be_dense() -> None:
    checks.dense("rows", torch.empty(4, 3, 2)[::2], 2)
    checks.dense("rows", torch.empty(4, 1, 2).expand(4, 1, 2), 2)
    with pytest.raises(ValueError, match="rows: stride 6 in dimension 1, 2 is wanted"):
        checks.dense("rows", torch.empty(4, 9, 2)[:, ::3], 2)


def test_views_of_one_slab_are_compared_without_walking_their_pages() -> None:
    slab = torch.empty((1 << 20, 64), dtype=torch.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "_runs", None)  # whoever walks it fails
        assert not checks.overlap(slab[:, :32], slab[:, 32:])
        assert not checks.overlap(slab[5:, 40:], slab[:, 8:40])
        with pytest.raises(TypeError):
            checks.overlap(slab[:, :33], slab[:, 32:])
    small = slab[:50]
    assert checks.overlap(small[:, :33], small[:, 32:])
    assert not checks.overlap(small[:20, :33], small[20:, 32:])
    wide = slab.view(-1)[:4096].as_strided((50, 40), (64, 1), 40)  # goes on in the next page
    assert checks.overlap(wide, small[:, :32])
