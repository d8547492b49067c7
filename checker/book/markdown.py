"""Small pieces of Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DECISIONS = "DECISIONS.md"


def prose(text: str) -> str:
    """Return a docstring's text as a paragraph: what would be a tag is not, decisions are links."""
    plain = " ".join(text.split()).replace("``", "`").replace("<", "&lt;")
    return re.sub(r"\bD-(\d+)\b", rf"[D-\1]({DECISIONS}#d-\1)", plain)


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a docstring; its last line, the source, is one of its own."""
    body, source, rest = text.partition("Source:")
    found = [prose(part) for part in body.split("\n\n") if part.strip()]
    return [*found, f"*{prose(source + rest)}*"] if source else found


def code(line: str) -> str:
    """Return a line as code."""
    return f"`{line}`"


def fenced(lines: Iterable[str], language: str = "text") -> str:
    """Return lines as a block of code."""
    return "\n".join([f"```{language}", *lines, "```"])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    body = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, row)) + " |" for row in body)


def anchor(clause: str) -> str:
    """Return the place that ``#a-13`` leads to."""
    return f'<a id="{clause.lower()}"></a>'


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")
