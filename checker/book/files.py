"""The files of the book: what is written by hand, and what is rendered between its markers."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import fivestate.spec
from fivestate.checker.book.sections import SECTIONS
from fivestate.spec.language.errors import ModelError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = {"spec/README.md": tuple(SECTIONS)}
"""Each file of the book, and the sections it must have."""

MARKED = re.compile(
    r"(?P<open><!-- book: (?P<name>(?!end )[a-z ]+) -->\n)(?P<body>.*?)"
    r"(?P<close><!-- book: end -->)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Page:
    """A file of the book, as it is and as it should be."""

    name: str
    path: Path
    text: str
    rendered: str

    @property
    def stale(self) -> bool:
        """Whether the file says something else than the specification."""
        return self.text != self.rendered

    def differences(self) -> Iterator[str]:
        """Yield the lines of a unified diff from the file to what it should be."""
        return difflib.unified_diff(
            self.text.splitlines(),
            self.rendered.splitlines(),
            self.name,
            f"{self.name} (rendered)",
            lineterm="",
            n=1,
        )


def pages() -> list[Page]:
    """Render every file of the book.

    Raises:
        ModelError: a file is missing, or its markers are not what they should be.
    """
    return [_page(name, sections) for name, sections in FILES.items()]


def checkout() -> Path | None:
    """Return the root of the checkout that runs, or nothing where an installed wheel does."""
    root = Path(fivestate.spec.__file__).resolve().parents[1]
    return root if (root / "pyproject.toml").is_file() else None


def render(text: str, sections: tuple[str, ...], name: str) -> str:
    """Return ``text`` with every section between its markers rendered anew.

    Raises:
        ModelError: a section is unknown, is missing or stands twice; the message names it.
    """
    found = [match["name"] for match in MARKED.finditer(text)]
    for section in found:
        if section not in SECTIONS:
            raise ModelError(f"{name}: no section {section!r}; {did_you_mean(section, SECTIONS)}")
    for section in sections:
        if found.count(section) != 1:
            raise ModelError(
                f"{name}: section {section!r} stands there {found.count(section)} times: write "
                f"<!-- book: {section} --> and <!-- book: end --> once",
            )
    return MARKED.sub(_rendered, text)


def _page(name: str, sections: tuple[str, ...]) -> Page:
    path = _path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from None
    return Page(name, path, text, render(text, sections, name))


def _path(name: str) -> Path:
    return Path(fivestate.spec.__file__).resolve().parents[1] / name


def _rendered(match: re.Match[str]) -> str:
    body = "\n\n".join(SECTIONS[match["name"]]())
    return (
        f"{match['open']}\n{body}\n\n{match['close']}" if body else match["open"] + match["close"]
    )
