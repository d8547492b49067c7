"""Benches of what the checker may not import: found by entry point, told in the same rows.

An entry point of the group ``fivestate.benches`` names a callable ``bench(*, quick, tell)``:
``quick`` asks for small sizes, ``tell(now)`` says what is being measured. It yields mappings: a
row ``{"what", "figure", "unit", "peer", "peer_figure", "better"}``, where ``better`` is ``more``
or ``less``; a ``{"note"}`` that one has to know to read the rows; or ``{"refuted"}``, if what is
measured computes something wrong, which ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from fivestate.checker.bench.ours import BenchError
from fivestate.checker.bench.rows import Row
from fivestate.checker.bench.timing import Tell
from fivestate.spec.language.errors import ModelError

GROUP = "fivestate.benches"

Bench = Callable[..., Iterable[Mapping[str, Any]]]
_KINDS = {"more": Row.more, "less": Row.less}


def found() -> dict[str, EntryPoint]:
    """Return all such benches by name."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=str)}


def rows(name: str, tell: Tell, notes: list[str], *, quick: bool) -> Iterator[Row]:
    """Yield the rows of a bench as they are measured; its notes are added to ``notes``.

    Raises:
        ModelError: it cannot be loaded.
        BenchError: what it measures computes something wrong.
    """
    for said in load(name)(quick=quick, tell=tell):
        if "refuted" in said:
            raise BenchError(f"bench {name}: {said['refuted']}")
        if "note" in said:
            notes.append(said["note"])
        else:
            fields = dict(said)
            yield _KINDS[fields.pop("better")](**fields)


def load(name: str) -> Bench:
    """Return a bench.

    Raises:
        ModelError: something that it imports is missing.
    """
    try:
        bench: Bench = found()[name].load()
    except ImportError as error:
        advice = "pip install 'fivestate[engine]'"
        raise ModelError(f"bench {name} cannot be loaded: {error}: {advice}") from None
    return bench
