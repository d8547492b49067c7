"""Mermaid: the life of one variable, drawn from the arcs that an exploration has seen."""

from __future__ import annotations

from fivestate.checker.exploration import Exploration
from fivestate.checker.export.names import Names
from fivestate.spec.language.errors import did_you_mean
from fivestate.spec.language.trees import Type

_ACTIONS_A_LINE = 3


def life(exploration: Exploration, variable: str) -> str:
    """Return a state diagram of ``variable``: its values, and which actions lead where.

    All cells of the variable are drawn as one, for they live alike; an arc is drawn where some
    step of the graph changes some cell so. What an exploration that was stopped has not seen is
    missing, and the diagram says so.

    Raises:
        ValueError: the model has no such variable, or the exploration has kept no edges.
    """
    model, edges = exploration.model, exploration.edges
    cells = [at for at, cell in enumerate(model.cells) if cell.variable == variable]
    if not cells:
        known = [cell.variable for cell in model.cells]
        advice = did_you_mean(variable, dict.fromkeys(known))
        raise ValueError(f"model {model.name} has no variable {variable!r}; {advice}")
    if edges is None:
        raise ValueError(f"model {model.name} was explored without edges: ask for them")
    arcs: set[tuple[int, int, str]] = set()
    for source, before in enumerate(exploration.states):
        for edge in range(int(edges.offsets[source]), int(edges.offsets[source + 1])):
            after = exploration.states[int(edges.targets[edge])]
            for at in cells:
                if before[at] != after[at]:
                    action = model.steps[int(edges.labels[edge])].action.name
                    arcs.add((int(before[at]), int(after[at]), action))
    first = sorted({model.initial[at] for at in cells})
    kind = model.cells[cells[0]].type
    return _diagram(exploration, f"{variable} of {model.name}", first, arcs, kind)


def _diagram(
    exploration: Exploration,
    title: str,
    first: list[int],
    arcs: set[tuple[int, int, str]],
    kind: Type,
) -> str:
    model = exploration.model
    names = Names({"end", "state", "note", "direction", "class", "default"})
    values = sorted({*first, *(code for before, after, _ in arcs for code in (before, after))})
    shown = {code: model.show(kind, code) for code in values}
    ids = {code: names.give(text) for code, text in shown.items()}
    lines = ["---", f"title: {title}", "---", "stateDiagram-v2"]
    if exploration.stopped:
        lines.append(f"    %% incomplete: {exploration.stopped}")
    lines += [f'    state "{shown[c]}" as {ids[c]}' for c in values if ids[c] != shown[c]]
    lines += [f"    [*] --> {ids[code]}" for code in first]
    order = [action.name for action in model.actions]
    for before, after in sorted({(before, after) for before, after, _ in arcs}):
        taken = [name for name in order if (before, after, name) in arcs]
        lines.append(f"    {ids[before]} --> {ids[after]} : {_label(taken)}")
    return "\n".join(lines) + "\n"


def _label(actions: list[str]) -> str:
    rows = [actions[at : at + _ACTIONS_A_LINE] for at in range(0, len(actions), _ACTIONS_A_LINE)]
    return "<br/>".join(", ".join(row) for row in rows)
