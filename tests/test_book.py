"""The book says what the specification says, all of it, in mathematics that can be trusted."""

import ast
import doctest
import importlib
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivestate.checker.book import docstrings, features, files, mathematics, sections
from fivestate.checker.book.clauses import stem
from fivestate.checker.book.definitions import Definition
from fivestate.checker.book.markdown import prose
from fivestate.checker.book.words import Words
from fivestate.checker.cli.app import app, run
from fivestate.checker.cli.book import book
from fivestate.spec.language.errors import ModelError
from fivestate.spec.language.ground import evaluate
from fivestate.spec.language.machine import Machine
from fivestate.spec.language.properties import Property, changes
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.tracing import Action
from fivestate.spec.language.trees import (
    OPERATORS,
    Apply,
    Boolean,
    Bound,
    Cell,
    Constant,
    Enumerated,
    Integer,
    Literal,
    Maybe,
    Node,
    Quantified,
    Read,
    Took,
    walk,
)
from fivestate.spec.models import FAILS, HOLDS, LARGE, MODELS
from fivestate.spec.sequence import SEQUENCE, actions
from fivestate.spec.vocabulary import CacheState, Device

SPEC = Path(__file__).parents[1] / "spec"
README = (SPEC / "README.md").read_text("utf-8")
DECISIONS = (SPEC / "DECISIONS.md").read_text("utf-8")


class Thing(Sort, letter="t"):
    """Something."""


class Other(Sort, letter="o"):
    """Something else."""


def true(name: str, *indices: Node, after: bool = False) -> Read:
    return Read(name, indices, Boolean(), after)


def number(value: str | int) -> Node:
    return Literal(value, Integer()) if isinstance(value, int) else Read(value, (), Integer())


def on(operator: str, *arguments: Node) -> Apply:
    arithmetic = operator in {"+", "-", "*", "//", "min", "max"}
    return Apply(operator, arguments, Integer() if arithmetic else Boolean())


a, b, c = true("a"), true("b"), true("c")
x, y, z = number("x"), number("y"), number("z")
T, U = Thing.named("t"), Other.named("o")
READY = Literal(list(Device).index(Device.READY), Enumerated(Device))


def every(bound: Bound, body: Node, quantifier: str = "forall") -> Quantified:
    kind = Integer() if quantifier in {"count", "total"} else Boolean()
    return Quantified(quantifier, bound, body, kind)


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (Literal(1, Boolean()), "true"),
        (READY, "READY"),
        (Literal(0, Maybe(Thing)), "NOTHING"),
        (Literal(2, Maybe(Thing)), "t1"),
        (number(-1), "−1"),
        (true("known", T), "known[t]"),
        (true("known", T, after=True), "known′[t]"),
        (true("routed", after=True), "routed′"),
        (Took(frozenset({"evict"})), "step = evict"),
        (Took(frozenset({"land", "evict"})), "step ∈ {evict, land}"),
        (on("not", a), "¬a"),
        (on("not", on("not", a)), "¬¬a"),
        (on("not", on("and", a, b)), "¬(a ∧ b)"),
        (on("not", on("==", x, y)), "¬(x = y)"),
        (on("and", a, on("or", b, c)), "a ∧ (b ∨ c)"),
        (on("or", on("and", a, b), c), "a ∧ b ∨ c"),
        (on("implies", on("or", a, b), c), "a ∨ b ⇒ c"),
        (on("implies", a, on("implies", b, c)), "a ⇒ b ⇒ c"),
        (on("implies", on("implies", a, b), c), "(a ⇒ b) ⇒ c"),
        (on("and", on("implies", a, b), c), "(a ⇒ b) ∧ c"),
        (on("and", on("==", x, y), on("!=", x, z)), "x = y ∧ x ≠ z"),
        (on("==", a, on("and", b, c)), "a = (b ∧ c)"),
        (on("==", on("<", x, y), on(">=", y, z)), "(x < y) = (y ≥ z)"),
        (on("<=", x, y), "x ≤ y"),
        (on(">", x, y), "x > y"),
        (on("-", x, on("-", y, z)), "x − (y − z)"),
        (on("-", on("-", x, y), z), "x − y − z"),
        (on("*", on("+", x, y), z), "(x + y) · z"),
        (on("+", on("*", x, y), z), "x · y + z"),
        (on("//", on("+", x, y), z), "⌊(x + y) / z⌋"),
        (on("*", on("//", x, y), y), "⌊x / y⌋ · y"),
        (on("max", on("-", x, y), number(0)), "max(x − y, 0)"),
        (on("min", x, y), "min(x, y)"),
        (on("just", T), "t"),
        (on("ite", a, x, y), "if a then x else y"),
        (on("+", x, on("ite", a, y, z)), "x + (if a then y else z)"),
        (on("ite", a, x, on("ite", b, y, z)), "if a then x else if b then y else z"),
        (every(T, a), "∀ t ∈ Thing: a"),
        (every(T, every(U, a)), "∀ t ∈ Thing, o ∈ Other: a"),
        (every(T, every(U, a, "exists")), "∀ t ∈ Thing: ∃ o ∈ Other: a"),
        (on("and", every(T, a), b), "(∀ t ∈ Thing: a) ∧ b"),
        (on("implies", a, every(T, b)), "a ⇒ ∀ t ∈ Thing: b"),
        (on("<=", every(T, a, "count"), x), "#{t ∈ Thing: a} ≤ x"),
        (on("+", every(T, x, "total"), y), "Σ(t ∈ Thing: x) + y"),
        (on("or", on("==", x, number(1)), on("==", x, number(2))), "x ∈ {1, 2}"),
        (on("or", on("==", x, number(1)), on("==", x, number(2)), a), "x ∈ {1, 2} ∨ a"),
        (on("or", on("==", x, number(1)), on("==", y, number(2))), "x = 1 ∨ y = 2"),
        (on("not", on("or", on("==", x, number(1)), on("==", x, number(2)))), "x ∉ {1, 2}"),
        (on("==", Apply("just", (T,), Maybe(Thing)), Read("want", (), Maybe(Thing))), "want = t"),
        (Apply("holds", (T,), Boolean()), "holds(t)"),
        (Apply("HYBRID", (), Boolean()), "HYBRID"),
    ],
)
def test_a_tree_reads_as_mathematics(tree: Node, text: str) -> None:
    assert mathematics.text(tree) == text


TRUTHS = st.builds(lambda at: Cell(at, Boolean()), st.integers(0, 2))
NUMBERS = st.builds(lambda at: Cell(at, Integer()), st.integers(3, 5))


def numbers() -> st.SearchStrategy[Node]:
    def larger(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        return st.builds(on, st.sampled_from(["+", "-", "*", "min", "max"]), inner, inner)

    return st.recursive(NUMBERS, larger, max_leaves=4)


def truths() -> st.SearchStrategy[Node]:
    signs = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    leaves = TRUTHS | st.builds(on, signs, numbers(), numbers())

    def larger(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        several = st.lists(inner, min_size=2, max_size=3)
        return (
            st.builds(lambda one: on("not", one), inner)
            | st.builds(on, st.sampled_from(["==", "!="]), inner, inner)
            | st.builds(lambda op, all_: on(op, *all_), st.sampled_from(["and", "or"]), several)
        )

    return st.recursive(leaves, larger, max_leaves=8)


class _Tight(ast.NodeTransformer):
    """Python's ``~`` binds as tightly as ¬ does here, and ``not`` does not."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.UnaryOp:
        self.generic_visit(node)
        return ast.UnaryOp(ast.Not(), node.operand) if isinstance(node.op, ast.Invert) else node


PYTHON = str.maketrans(
    {"∧": " and ", "∨": " or ", "¬": "~", "≠": "!=", "≤": "<=", "≥": ">=", "−": "-", "·": "*"},
)


@settings(deadline=None)
@given(truths(), st.tuples(*[st.booleans()] * 3, *[st.integers(0, 3)] * 3))
def test_no_parenthesis_is_missing(tree: Node, state: tuple[int, ...]) -> None:
    """Read by Python's rules of precedence, which are these, the text means what the tree does."""
    written = re.sub(r"(?<![<>!])=", "==", mathematics.text(tree).translate(PYTHON))
    parsed = ast.parse(written.replace("!==", "!="), mode="eval")
    code = compile(ast.fix_missing_locations(_Tight().visit(parsed)), "text", "eval")
    value = eval(code, {"cell": state, "min": min, "max": max})  # noqa: S307 -- our own text
    assert bool(value) == bool(evaluate(tree, state))


def test_a_long_line_is_broken_at_its_outermost_operator() -> None:
    tree = on("implies", on("and", a, on("or", b, c)), every(T, on("and", a, b)))
    assert mathematics.lines(tree, 24) == ["a ∧ (b ∨ c)", "⇒ ∀ t ∈ Thing: a ∧ b"]
    assert mathematics.lines(tree, 16) == ["a ∧ (b ∨ c)", "⇒ ∀ t ∈ Thing:", "    a ∧ b"]
    assert mathematics.lines(tree, 8) == [
        "∧ a",
        "∧ ∨ b",
        "  ∨ c",
        "⇒ ∀ t ∈ Thing:",
        "    ∧ a",
        "    ∧ b",
    ]


def test_the_words_of_the_source_stand_again_in_its_trees() -> None:
    words = Words(SEQUENCE)
    assert {"TOKENS", "RATIO", "LOOKBACK", "SPAN"} == set(words.constants)
    assert {"tail_serves", "window_serves", "tail_start"} <= {d.name for d in words.definitions}
    claims = {claim.name: words.spoken(claim.condition) for claim in SEQUENCE.claims}
    assert mathematics.text(claims["tail_joins"]) == "tail_serves(folded, verified)"
    assert mathematics.text(claims["window_gone"]) == "snapshot > 0 ∧ ¬window_serves(snapshot)"


def expanded(node: Node, words: Words) -> Node:
    """Put bodies back for the names of definitions."""
    match node:
        case Apply(operator, arguments) if operator not in OPERATORS:
            inner = [expanded(argument, words) for argument in arguments]
            body, parameters = bodies(words)[operator.removesuffix("′")]
            given = dict(zip((bound.name for bound in parameters), inner, strict=True))
            return substituted(body, given, after=operator.endswith("′"))
        case Apply(arguments=arguments):
            return replace(node, arguments=tuple(expanded(a, words) for a in arguments))
        case Quantified(body=body):
            return replace(node, body=expanded(body, words))
        case _:
            return node


def bodies(words: Words) -> dict[str, tuple[Node, tuple[Bound, ...]]]:
    state = words.machine.state
    found = {d.name: (d.body, d.parameters) for d in words.definitions}
    return {**found, "changes": (changes(state(), state(after=True)).node, ())}


def substituted(node: Node, given: dict[str, Node], *, after: bool) -> Node:
    def inside(part: Node) -> Node:
        return substituted(part, given, after=after)

    match node:
        case Bound(name) if name in given:
            return given[name]
        case Read(indices=indices):
            return replace(node, indices=tuple(map(inside, indices)), after=node.after or after)
        case Constant(indices=indices):
            return replace(node, indices=tuple(map(inside, indices)))
        case Apply(arguments=arguments):
            return replace(node, arguments=tuple(map(inside, arguments)))
        case Quantified(bound=bound):
            inner = {name: value for name, value in given.items() if name != bound.name}
            return replace(node, body=substituted(node.body, inner, after=after))
        case _:
            return node


def meaning(node: Node, words: Words, names: tuple[str, ...] = ()) -> tuple[object, ...]:
    """Return what a tree says, whatever its bound names and its constants are called."""

    def inside(parts: tuple[Node, ...]) -> tuple[object, ...]:
        return tuple(meaning(part, words, names) for part in parts)

    match node:
        case Bound(name):
            return ("bound", names[::-1].index(name) if name in names else name)
        case Read(name, indices, _, after):
            return ("read", name, after, *inside(indices))
        case Constant(name, indices):
            declared = words.constants.get(name)
            return ("constant", name if declared is None else declared.name, *inside(indices))
        case Apply(("and" | "or") as operator, arguments):
            flat: list[object] = []
            for part, said in zip(arguments, inside(arguments), strict=True):
                same = isinstance(part, Apply) and part.operator == operator
                flat += said[1:] if same and isinstance(said, tuple) else [said]
            return (operator, *flat)
        case Apply(operator, arguments):
            return (operator, *inside(arguments))
        case Quantified(quantifier, bound, body):
            inner = meaning(body, words, (*names, bound.name))
            return (quantifier, bound.sort.__name__, inner)
        case _:
            return ("node", node)


@pytest.mark.parametrize("machine", sections.all_machines(), ids=lambda machine: machine.name)
def test_a_name_stands_only_for_what_it_is_defined_as(machine: Machine) -> None:
    words = Words(machine)
    trees = [claim.condition for claim in machine.claims]
    trees += [guard.condition for action in machine.actions for guard in action.guards]
    trees += [effect.value for action in machine.actions for effect in action.effects]
    for tree in trees:
        said = words.spoken(tree)
        back = said
        while any(isinstance(n, Apply) and n.operator not in OPERATORS for n in walk(back)):
            back = expanded(back, words)
        assert meaning(back, words) == meaning(tree, words), mathematics.text(said)


V, W = Thing.named("v"), Thing.named("w")


@pytest.mark.parametrize(
    ("body", "node", "found"),
    [
        (on("and", true("a", T), true("b", T)), on("and", true("a", V), true("b", V)), "d(v)"),
        (on("and", true("a", T), true("b", T)), on("and", true("a", V), true("b", W)), None),
        (every(V, true("a", T, V)), every(W, true("a", V, W)), "d(v)"),
        (every(V, true("a", T, V)), every(W, true("a", W, W)), None),
        (every(V, every(W, true("a", T, V, W))), every(V, every(W, true("a", T, W, V))), None),
        (on("and", a, true("b", T)), on("and", true("a", after=True), true("b", V)), None),
        (
            on("and", a, true("b", T)),
            on("and", true("a", after=True), true("b", V, after=True)),
            "d′(v)",
        ),
        (on("==", a, true("a", T, after=True)), on("==", a, true("a", V)), None),
    ],
)
def test_a_definition_is_found_only_where_it_stands(
    body: Node,
    node: Node,
    found: str | None,
) -> None:
    applied = Definition("d", (T,), "", body, "", 0).applied(node)
    assert (None if applied is None else mathematics.text(applied)) == found


def test_that_something_changes_is_one_word() -> None:
    machine = MODELS["hybrid"].machine
    words = Words(machine)
    (claim,) = (claim for claim in machine.claims if claim.name == "nothing_stutters")
    assert "changes" in mathematics.text(words.spoken(claim.condition))


def test_what_is_there_for_the_reader_only_is_found_in_the_source() -> None:
    said = docstrings.members(CacheState)
    assert list(said) == [state.name for state in CacheState]
    assert said["TAIL"].startswith("Uncompressed tail (未压缩尾部)")


def test_every_file_is_current() -> None:
    assert [page.name for page in files.pages() if page.stale] == []


@pytest.mark.parametrize("machine", sections.all_machines(), ids=lambda machine: machine.name)
def test_every_clause_is_there_with_its_sentence(machine: Machine) -> None:
    chapter = README[README.index(f"### Actions of {machine.name}\n") :]
    clauses: list[Action | Property] = [*machine.actions, *machine.claims]
    for each in clauses:
        name = stem(each) if isinstance(each, Property) else each.name
        head = re.search(rf"^#### {each.clause} {name}\b.*\n\n(.*)", chapter, re.MULTILINE)
        assert head is not None, f"{each.clause} {name}"
        assert head[1] == f"**{prose(each.sentence)}**"
        if isinstance(each, Property) and each.way:
            assert re.search(rf"^{each.way}  ", chapter[head.end() :], re.MULTILINE), each.name
    for variable in machine.state.variables:
        assert re.search(rf"^\| `{variable}[`\[]", README, re.MULTILINE)


def test_every_guard_is_named_in_its_action() -> None:
    for machine in sections.all_machines():
        for action in machine.actions:
            start = README.index(f"\n#### {action.clause} {action.name}")
            clause = README[start : README.index("\neffects\n", start)]
            for guard in action.guards:
                assert re.search(rf"^  {guard.name}  ", clause, re.MULTILINE), guard.name


def test_every_model_and_state_is_there() -> None:
    for model in MODELS.values():
        assert f"| `{model.name}` |" in README
    for state in CacheState:
        assert f"{state.value} | `{state.name}` |" in README


def test_how_often_features_are_explored_together_is_counted() -> None:
    machine = MODELS["homogeneous"].machine
    told = list(features.together(machine, (MODELS["homogeneous"], MODELS["hybrid"])))
    assert told[1].splitlines() == [
        "|  | `hash_only` | `aborts` |",
        "| --- | --- | --- |",
        "| `hash_only` | 1 | 1 |",
        "| `aborts` |  | 2 |",
    ]
    (alone,) = features.together(machine, (MODELS["hybrid"],))
    assert alone.startswith("Switched on in no model that must be PROVED: `hash_only`")


def test_checks_are_listed_by_their_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    def whole_block(fork: int, block: int) -> bool:
        """A hit ends on a block.

        Half a block is no block (D-1).
        """
        return fork % block == 0

    def bytes_(fork: int) -> bool:
        """Bytes lie where kernels look."""
        return fork > 0

    package = importlib.import_module("fivestate.spec.reuse")
    monkeypatch.setattr(package, "CHECKS", [("H-4", bytes_), ("H-1", whole_block)], raising=False)
    told = "\n".join(sections.checks())
    assert told.index("H-1 whole_block(fork, block)") < told.index("H-4 bytes_(fork)")
    assert "**A hit ends on a block.**" in told
    assert "(D-1)" not in told
    assert "[D-1](DECISIONS.md#d-1)" in told


def test_a_changed_sentence_makes_the_book_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    (page,) = files.pages()
    assert not page.stale
    monkeypatch.setattr(actions.trim.function, "__doc__", "Let go of everything.")
    monkeypatch.delitem(SEQUENCE.__dict__, "actions")
    (page,) = files.pages()
    assert page.stale
    assert "+**Let go of everything.**" in list(page.differences())


def test_a_weaker_guard_makes_the_book_stale() -> None:
    told = README.replace("whole  (i + 1) · RATIO ≤ verified", "whole  (i + 1) · RATIO ≤ written")
    assert told != README
    assert files.render(told, tuple(sections.SECTIONS), "spec/README.md") == README


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ("<!-- book: states -->", "<!-- book: stats -->", "no section 'stats'; did you mean"),
        ("<!-- book: states -->", "", "section 'states' stands there 0 times"),
        ("<!-- book: models -->", "<!-- book: states -->", "section 'states' stands there 2 times"),
    ],
)
def test_a_wrong_marker_is_named(was: str, becomes: str, says: str) -> None:
    with pytest.raises(ModelError, match=re.escape(says)):
        files.render(README.replace(was, becomes), tuple(sections.SECTIONS), "spec/README.md")


def test_the_order_of_a_hash_is_not_in_it() -> None:
    code = "from fivestate.checker.book.files import pages; print(pages()[0].rendered, end='')"
    for seed in ("0", "1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            check=True,
            encoding="utf-8",
        )
        assert done.stdout == README, seed


def test_the_steps_taken_by_hand_are_those() -> None:
    (session,) = re.findall(r"```python\n(>>>.*?)```", README, re.DOTALL)
    test = doctest.DocTestParser().get_doctest(session, {}, "README", "spec/README.md", 0)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


def test_every_decision_has_its_parts_and_every_mention_its_decision() -> None:
    parts = re.split(r"^## ", DECISIONS, flags=re.MULTILINE)[1:]
    numbers = [int(part[2 : part.index(" ")]) for part in parts]
    assert numbers == sorted(set(numbers))
    for part in parts:
        assert re.findall(r"^- \*\*(\w+)\*\*", part, re.MULTILINE) == [
            *("Open", "Sources", "Decided", "Why", "Costs", "Checked"),
        ], part[:40]
    sources = [*SPEC.rglob("*.py"), *SPEC.rglob("*.md")]
    mentioned = {
        int(number)
        for file in sources
        for number in re.findall(r"\bD-(\d+)\b", file.read_text("utf-8"))
    }
    assert mentioned <= set(numbers)


def test_every_name_a_decision_gives_in_code_is_there() -> None:
    """What stands in a "Checked" line as code is a file or a word of the specification."""
    everything = (
        "\n".join(file.read_text("utf-8") for file in SPEC.rglob("*.py")) + "fivestate check"
    )
    for line in re.findall(r"^- \*\*Checked\*\*(.*(?:\n  .*)*)", DECISIONS, re.MULTILINE):
        for name in re.findall(r"`([^`]+)`", line):
            known = (SPEC.parent / name).exists() if "/" in name else name in everything
            assert known, name


@pytest.fixture
def _registered() -> None:
    if all(command.callback is not book for command in app.registered_commands):
        app.command()(book)


@pytest.mark.usefixtures("_registered")
def test_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["book"]) == 0
    assert capsys.readouterr().out == README


@pytest.mark.usefixtures("_registered")
def test_the_command_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["book", "--check"]) == 0
    assert capsys.readouterr().out.startswith("ok: ")


@pytest.mark.usefixtures("_registered")
def test_the_command_finds_a_stale_file(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(actions.trim.function, "__doc__", "Let go of everything.")
    monkeypatch.delitem(SEQUENCE.__dict__, "actions")
    assert run(["book", "--check"]) == 1
    told = capsys.readouterr().out
    assert "+**Let go of everything.**" in told
    assert told.endswith("stale: spec/README.md; rewrite it with: fivestate book --write\n")


@pytest.mark.usefixtures("_registered")
def test_the_command_writes(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    path = tmp_path / "README.md"
    path.write_text(re.sub(r"\*\*Let go.*\*\*", "", README), "utf-8")
    monkeypatch.setattr(files, "_path", lambda _: path)
    assert run(["book", "--write"]) == 0
    assert path.read_text("utf-8") == README
    assert run(["book", "--write"]) == 0
    assert capsys.readouterr().out.startswith("written: spec/README.md\nok: ")


@pytest.mark.usefixtures("_registered")
def test_the_command_does_not_write_into_what_is_installed(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "checkout", lambda: None)
    assert run(["book", "--write"]) == 64
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "needs a checkout" in told


@pytest.mark.usefixtures("_registered")
def test_the_command_does_one_thing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["book", "--check", "--write"]) == 64
    assert "not both" in capsys.readouterr().err


def test_a_model_must_hold_or_fail() -> None:
    assert {model.name for model in (*HOLDS, *LARGE, *FAILS)} == set(MODELS)
