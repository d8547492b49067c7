"""Docstrings that Python drops: the strings that stand below a member or a constant."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from enum import Enum
    from types import ModuleType


def members(enum: type[Enum]) -> dict[str, str]:
    """Return what the source says below each member of an enum, by the member's name."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(enum))).body
    return _below(body.body) if isinstance(body, ast.ClassDef) else {}


def constants(module: ModuleType) -> dict[str, str]:
    """Return what the source says below each assignment of a module, by the name assigned."""
    return _below(ast.parse(inspect.getsource(module)).body)


def _below(body: list[ast.stmt]) -> dict[str, str]:
    said: dict[str, str] = {}
    for above, statement in pairwise(body):
        match above, statement:
            case (
                ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                said[name] = inspect.cleandoc(text)
            case _:
                pass
    return said
