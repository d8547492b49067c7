r"""The counts of every shipped model: committed, and equal for whoever counts.

After a change that is meant to change them, and only then::

    python -c "
    from pathlib import Path
    from fivestate.checker.counts import rewrite
    from fivestate.spec.models import MODELS
    print(*rewrite(Path('tests/counts.json'), MODELS.values()), sep='\\n')"
"""

from collections import Counter
from pathlib import Path

import networkx as nx
import pytest
from tests.machines.two_phase import two_phase
from tests.need_spin import needs_spin

from fivestate.checker import counts
from fivestate.checker.export.crosscheck import spin_counts
from fivestate.spec.language import Model, Run
from fivestate.spec.language.ground import evaluate
from fivestate.spec.models import MODELS

COMMITTED = counts.load(Path(__file__).with_name("counts.json"))

INTERPRETER_STATES = 10_000
PYTHON_STATES = 100_000
NATIVE_STATES = 3_000_000
SPIN_STATES = 3_000_000


def smaller_than(states: int) -> list[str]:
    """Return the models that are worth the time of a slow reader."""
    return [name for name in MODELS if name in COMMITTED and COMMITTED[name].distinct <= states]


def walked(model: Model) -> "nx.MultiDiGraph[tuple[int, ...]]":
    """Return the state graph as the interpreter of the language gives it, step by step."""
    run = Run(model)
    graph: nx.MultiDiGraph[tuple[int, ...]] = nx.MultiDiGraph()
    graph.add_node(run.state)
    waiting = [run.state]
    while waiting:
        run.state = state = waiting.pop()
        for step in model.steps:
            if all(evaluate(condition, state) for _, condition in step.guards):
                after = run.after(step)
                if after not in graph:
                    waiting.append(after)
                graph.add_edge(state, after, step.label, action=step.action.name)
    return graph


def walked_counts(model: Model) -> counts.Counts:
    graph = walked(model)
    fired = Counter(str(data["action"]) for _, _, data in graph.edges(data=True))
    return counts.Counts(
        graph.number_of_nodes(),
        graph.number_of_edges(),
        max(nx.single_source_shortest_path_length(graph, model.initial).values()),
        {action.name: fired[action.name] for action in model.actions},
    )


def test_every_model_is_counted() -> None:
    assert list(COMMITTED) == list(MODELS)


@pytest.mark.parametrize("name", smaller_than(PYTHON_STATES))
def test_python(name: str) -> None:
    found = counts.measure([MODELS[name]], "python")
    assert counts.differences({name: COMMITTED[name]}, found) == []


@pytest.mark.parametrize("name", smaller_than(NATIVE_STATES))
def test_native(name: str) -> None:
    found = counts.measure([MODELS[name]], "native")
    assert counts.differences({name: COMMITTED[name]}, found) == []


@pytest.mark.parametrize("name", smaller_than(INTERPRETER_STATES))
def test_networkx_on_the_interpreter(name: str) -> None:
    found = {name: walked_counts(MODELS[name])}
    assert counts.differences({name: COMMITTED[name]}, found) == []


@needs_spin
@pytest.mark.parametrize("name", smaller_than(SPIN_STATES))
def test_spin(name: str) -> None:
    found = {name: spin_counts(MODELS[name])}
    assert counts.differences({name: COMMITTED[name]}, found) == []


def test_what_differs_is_named() -> None:
    two, three = (counts.measure([two_phase(members)]) for members in (2, 3))
    one = {"x": two["two-phase-2"]}
    other = {"x": three["two-phase-3"]}
    assert counts.differences(one, one) == []
    lines = counts.differences(one, other)
    assert any(line.startswith("x: distinct") for line in lines)
    assert any(line.startswith("x: prepare fires") for line in lines)
    assert counts.differences(one, {}) == ["x: not counted"]
    assert counts.differences({}, one) == ["x: not expected"]


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    assert counts.rewrite(path, [two_phase(2)]) == ["two-phase-2: not expected"]
    assert counts.rewrite(path, [two_phase(2)]) == []
    assert counts.dump(counts.load(path)) == path.read_text("utf-8")
