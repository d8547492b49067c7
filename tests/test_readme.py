"""The README says what is so: its code, its diagram, its session and its story."""

from __future__ import annotations

import inspect
import re
import threading
from pathlib import Path

import pytest

from fivestate.checker.engines import python
from fivestate.checker.exploration import Limits
from fivestate.checker.export import mermaid
from fivestate.checker.judge import check
from fivestate.spec.allocator.invariants import sound
from fivestate.spec.allocator.requests import lease
from fivestate.spec.language import Refused, Run
from fivestate.spec.models import HOLDS, MODELS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    """Return the fenced code blocks of a language, without their indentation."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return [inspect.cleandoc(indent + body) for indent, body in found]


@pytest.mark.parametrize("text", [README, CHINESE])
@pytest.mark.parametrize("function", [lease.function, sound.function])
def test_code_is_shown_as_it_stands_in_the_source(text: str, function: object) -> None:
    source = inspect.getsource(function)  # type: ignore[arg-type]  # a function
    assert source.strip() in text


def test_the_diagram_is_what_the_model_really_does() -> None:
    explored = python.explore(MODELS["index"], Limits(), threading.Event(), edges=True)
    [diagram] = blocks("mermaid")
    assert diagram.strip() == mermaid.life(explored, "device").strip()
    [chinese] = blocks("mermaid", CHINESE)
    assert chinese == diagram


def test_the_story_is_the_one_that_is_told() -> None:
    report = check(MODELS["hash-only"], python.explore)
    story = report.refuted[0].story
    assert story is not None
    shown = re.findall(r"^  \d\. (A-\d+) +(\w+\([^)]*\))", README, re.MULTILINE)
    assert shown == [(line.clause, line.step) for line in story.lines]
    counts = f"{report.exploration.distinct} distinct states"
    assert counts in README
    assert f"{report.exploration.transitions} transitions" in README


def test_the_number_of_models_is_right() -> None:
    for text in (README, CHINESE):
        assert f"{len(HOLDS)} models PROVED" in text


def test_the_session_runs() -> None:
    [session] = [block for block in blocks("python") if "run.enabled()" in block]
    *steps, refused = session.splitlines()
    scope: dict[str, object] = {}
    exec("\n".join(steps), scope)  # noqa: S102 -- the README's own lines
    assert isinstance(scope["run"], Run)
    with pytest.raises(Refused, match="guard 'hit' is false"):
        exec(refused, scope)  # noqa: S102 -- the README's own line


def test_the_second_prompt_of_the_example_hits() -> None:
    [example] = [block for block in blocks("python") if "impl.cache import" in block]
    *lines, last = example.splitlines()
    scope: dict[str, object] = {}
    exec("\n".join(lines), scope)  # noqa: S102 -- the README's own lines
    shown, said = last.split("#")
    kind, resume = eval(shown, scope)  # noqa: S307 -- the README's own line
    assert f"{kind.name}, {resume}" == said.strip()


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md", "CHANGELOG.md"])
def test_links_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_every_clause_that_is_named_exists() -> None:
    names = {claim.name for model in MODELS.values() for claim in model.machine.claims}
    names |= {action.name for model in MODELS.values() for action in model.machine.actions}
    table = README[README.index("## What holds") : README.index("A cell's life")]
    for name in re.findall(r"`([a-z_]+)`", table):
        assert name in names, name
