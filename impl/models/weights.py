"""Weights and kernels: what a model has now, so that rows of others are told apart (权重版本)."""

from __future__ import annotations

from hashlib import blake2b

import torch
import transformers
from torch import Tensor, nn
from transformers import PreTrainedModel


def weights_of(model: nn.Module) -> int:
    """Return 63 bits that name the weights: every name, type, shape and byte of the state dict."""
    digest = blake2b(digest_size=8)
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return int.from_bytes(digest.digest(), "big") >> 1


def kernels_of(model: PreTrainedModel) -> str:
    """Return what computes the rows of a model; another one gives other bits (内核 ABI)."""
    libraries = f"transformers {transformers.__version__}, torch {torch.__version__}"
    config = model.config  # transformers has no public name for what it has chosen
    chosen = config._attn_implementation, config._experts_implementation  # noqa: SLF001 -- as above
    return f"{libraries}, {chosen[0]}, {chosen[1]}, {model.device.type}"


class Watch:
    """The weights of a model, read again only when something was written to them.

    Writes are seen by torch's version counters and by addresses. A write through ``.data`` leaves
    no mark there: after one, say so with ``look_again``.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._marks: tuple[tuple[str, int, int], ...] = ()
        self._weights = 0

    @property
    def weights(self) -> int:
        """The weights now."""
        marks = tuple(_mark(name, tensor) for name, tensor in self._tensors())
        if marks != self._marks:
            self._marks, self._weights = marks, weights_of(self._model)
        return self._weights

    def look_again(self) -> None:
        """Read the weights at the next question, whatever the counters say."""
        self._marks = ()

    def _tensors(self) -> list[tuple[str, Tensor]]:
        return [*self._model.named_parameters(), *self._model.named_buffers()]


def _mark(name: str, tensor: Tensor) -> tuple[str, int, int]:
    version = -1 if tensor.is_inference() else tensor._version  # noqa: SLF001 -- torch's counter
    return name, tensor.data_ptr(), version
