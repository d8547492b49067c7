"""The native engine beside Spin, on models that exist in both notations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from fivestate.checker.bench import ours, pan, searches
from fivestate.checker.bench.rows import Row
from fivestate.checker.bench.timing import Tell, Timed, best_of
from fivestate.checker.bench.two_phase import two_phase
from fivestate.checker.engines.native import prepare
from fivestate.checker.export import promela
from fivestate.spec.language.model import Model


@dataclass(frozen=True)
class Subject:
    """A model in our language and in Promela.

    Attributes:
        title: what it is called in a row.
        model: ours.
        promela: Spin's.
        defined: what ``promela`` leaves open, such as ``N=8``.
    """

    title: str
    model: Model
    promela: str
    defined: tuple[str, ...] = ()


def exported(model: Model) -> Subject:
    """Return a model and what we export it as, with its properties."""
    text = promela.export(model, properties=True)
    return Subject(f"{model.name} with its properties", model, text)


def by_hand(parties: int) -> Subject:
    """Return two-phase commit as one writes it in either notation."""
    text = resources.files("fivestate.checker.bench").joinpath("two_phase.pml").read_text("utf-8")
    title = f"two-phase-{parties}, both by hand"
    return Subject(title, two_phase(parties), text, (f"N={parties}",))


class Spin:
    """The faster of Spin's two searches of a subject.

    Attributes:
        order: which it is.
        megabytes: what it used, its hash table included.
    """

    def __init__(self, subject: Subject, folder: Path, tell: Tell) -> None:
        tell(f"compiling {subject.model.name}")
        self.counted = ours.native(prepare(subject.model, 1))
        self.order, self.megabytes, least = "", 0.0, 0.0
        for order in pan.ORDERS:
            tell(f"compiling and trying Spin {order} on {subject.model.name}")
            verifier = pan.build(
                subject.promela,
                folder / order.replace(" ", "-"),
                order,
                self.counted.distinct,
                subject.defined,
            )
            found = self._checked(verifier)
            if not self.order or found.spent.cpu < least:
                self.order, self.verifier, least = order, verifier, found.spent.cpu
                self.megabytes = found.search.memory_mb

    def run(self) -> Timed:
        """Search once more."""
        return self._checked(self.verifier).spent

    def _checked(self, verifier: pan.Verifier) -> pan.Verified:
        found = pan.run(verifier)
        search = found.search
        ours.must_agree(self.counted, "Spin", search.distinct, search.transitions)
        return found


def rows(subject: Subject, spin: Spin, workers: int, rounds: int, tell: Tell) -> Iterator[Row]:
    """Yield how much faster we are.

    Raises:
        BenchError: Spin counts differently.
        SpinError: Spin gave no answer that can be used.
    """
    many, one = prepare(subject.model, workers), prepare(subject.model, 1)
    runs = {
        "native": searches.native(many, spin.counted),
        "native, 1 thread": searches.native(one, spin.counted),
        f"Spin {spin.order}": spin.run,
    }
    best = best_of(rounds, runs, lambda now: tell(f"{subject.title}, {now}"))
    yield from searches.speeds(
        subject.title, spin.counted.distinct, best, f"Spin {spin.order}", workers
    )
