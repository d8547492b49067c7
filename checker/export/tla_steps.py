"""TLA+'s steps: what an action makes of each variable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fivestate.checker.export.tla_expressions import BESIDE_EQUALS, Expressions, bullet, renamed
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.tracing import Action, Effect
from fivestate.spec.language.trees import TRUE, Bound


def action_lines(words: Expressions, action: Action) -> Iterator[str]:
    """Yield the definition of an action: guards, then effects, then what stays as it is."""
    arguments = [words.bound(bound.name) for bound in action.parameters]
    yield f"{words.call(action.name, arguments)} =="
    for guard in action.guards:
        condition = words.settle(guard.condition)
        if condition == TRUE:
            continue
        lines = words.block(condition, 7)
        if len(lines) == 1:
            yield f"    /\\ {lines[0]}  \\* {guard.name}"
        else:
            yield f"    \\* {guard.name}"
            yield from (f"    {line}" for line in bullet("/\\", lines))
    for name in words.variables:
        effects = [
            replace(effect, value=words.settle(effect.value))
            for effect in action.effects
            if effect.variable == name
        ]
        if effects:
            lines = _next_value(words, name, effects)
            yield from (f"    {line}" for line in bullet("/\\", lines))
    written = {effect.variable for effect in action.effects}
    same = [own for name, own in words.variables.items() if name not in written]
    if same:
        yield f"    /\\ UNCHANGED <<{', '.join(same)}>>"


def _next_value(words: Expressions, variable: str, effects: list[Effect]) -> list[str]:
    name = words.variables[variable]
    if not effects[0].indices:
        value = words.block(effects[0].value, 10 + len(name), BESIDE_EQUALS)
        return _after(f"{name}' = ", value)
    if any(effect.over for effect in effects):
        return _function(words, variable, effects)
    lines: list[str] = []
    for number, effect in enumerate(effects):
        head = f"!{words.index(effect.indices)} = "
        head = f"{name}' = [{name} EXCEPT {head}" if number == 0 else f"    {head}"
        tail = "," if number + 1 < len(effects) else "]"
        part = _after(head, words.block(effect.value, 7 + len(head)))
        lines += [*part[:-1], f"{part[-1]}{tail}"]
    return lines


def _function(words: Expressions, variable: str, effects: list[Effect]) -> list[str]:
    """Return a new value for a whole array: each effect where it applies, else the old cell."""
    sorts = words.model.variables[variable].over
    own = _own_names(words, sorts, effects)
    over = ", ".join(f"{n} \\in {words.sorts[s]}" for n, s in zip(own, sorts, strict=True))
    name = words.variables[variable]
    lines = [f"{name}' = [{over} |->"]
    for effect in effects:
        inside = {bound.name for bound in effect.over}
        names: dict[str, str] = {}
        conditions: list[str] = []
        for element, index in zip(own, effect.indices, strict=True):
            if isinstance(index, Bound) and index.name in inside and index.name not in names:
                names[index.name] = element
            else:
                conditions.append(f"{element} = {words.text(renamed(index, names))}")
        value = renamed(effect.value, names)
        if not conditions:  # it applies everywhere, so no other effect can
            return [*lines, *(f"    {line}" for line in _closed(words.block(value, 11)))]
        where = " /\\ ".join(conditions)
        lines.append(f"    IF {where} THEN")
        lines += [f"        {line}" for line in words.block(value, 15)]
        lines.append("    ELSE")
    return [*lines, f"        {name}[{', '.join(own)}]]"]


def _own_names(
    words: Expressions,
    sorts: tuple[type[Sort], ...],
    effects: list[Effect],
) -> list[str]:
    """Return names for the elements of an array: those of the loop where it has one."""
    own: list[str] = []
    for at, sort in enumerate(sorts):
        indices = (effect.indices[at] for effect in effects if effect.indices[at] in effect.over)
        loops = [index.name for index in indices if isinstance(index, Bound)]
        name = words.bound(loops[0] if loops else f"{sort.letter}_any")
        own.append(words.bound(f"{name}_any") if name in own else name)
    return own


def _after(head: str, lines: list[str]) -> list[str]:
    return [f"{head}{lines[0]}", *(f"{' ' * len(head)}{line}" for line in lines[1:])]


def _closed(lines: list[str]) -> list[str]:
    return [*lines[:-1], f"{lines[-1]}]"]
