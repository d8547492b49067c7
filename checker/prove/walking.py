"""Walking through z3 terms, many and large ones: by z3's own handles, which cost nothing to make.

A term keeps everything below it alive, so no handle outlives what it stands for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import z3  # type: ignore[import-untyped]  # it ships no types
from z3 import z3core

from fivestate.checker.prove.signature import Expression

Handle = Any
BOTH = (True, False)


def constants(condition: Expression) -> list[Expression]:
    """Return the atoms that a condition speaks of by name."""
    context = condition.ctx_ref()
    seen: set[int] = set()
    found: list[Expression] = []
    stack: list[Handle] = [condition.as_ast()]
    while stack:
        node = stack.pop()
        number = z3core.Z3_get_ast_id(context, node)
        if number in seen:
            continue
        seen.add(number)
        below = z3core.Z3_get_app_num_args(context, node)
        stack += [z3core.Z3_get_app_arg(context, node, at) for at in range(below)]
        if not below and _is_atom(context, node):
            found.append(z3.ExprRef(node, condition.ctx))
    return found


def uses(condition: Expression, names: Collection[int]) -> Iterator[tuple[Expression, bool]]:
    """Yield what is used of some names, and whether it is taken to be true, in a true condition.

    Args:
        condition: the condition.
        names: the ids of the names' declarations.
    """
    context = condition.ctx_ref()
    seen: set[tuple[int, bool]] = set()
    stack: list[tuple[Handle, bool]] = [(condition.as_ast(), True)]
    while stack:
        node, true = stack.pop()
        key = z3core.Z3_get_ast_id(context, node), true
        if key in seen:
            continue
        seen.add(key)
        declared = z3core.Z3_get_app_decl(context, node)
        if z3core.Z3_get_func_decl_id(context, declared) in names:
            yield z3.BoolRef(node, condition.ctx), true
            continue
        below = [
            z3core.Z3_get_app_arg(context, node, at)
            for at in range(z3core.Z3_get_app_num_args(context, node))
        ]
        match z3core.Z3_get_decl_kind(context, declared):
            case z3.Z3_OP_NOT:
                stack.append((below[0], not true))
            case z3.Z3_OP_AND | z3.Z3_OP_OR:
                stack += [(each, true) for each in below]
            case z3.Z3_OP_IMPLIES:
                stack += [(below[0], not true), (below[1], true)]
            case z3.Z3_OP_ITE:
                stack += [(below[0], side) for side in BOTH]
                stack += [(each, true) for each in below[1:]]
            case _:
                stack += [(each, side) for each in below for side in BOTH]


def _is_atom(context: Any, node: Handle) -> bool:
    sort = z3core.Z3_get_sort(context, node)
    return bool(z3core.Z3_get_sort_kind(context, sort) == z3.Z3_UNINTERPRETED_SORT)
