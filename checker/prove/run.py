"""Proving: which questions theorems need, and what their answers come to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from fivestate.checker.prove.counterexample import find, met, small_models
from fivestate.checker.prove.happening import Counterexample
from fivestate.checker.prove.induction import START, Outcome
from fivestate.checker.prove.safety import CACHE, HASH_ONLY, HOMOGENEOUS, SAFETIES, Safety
from fivestate.checker.prove.solve import Answer, Asking, Interrupted, watched
from fivestate.checker.prove.theorem import VACUOUS, Result, Theorem
from fivestate.checker.prove.work import Allow, Ask, Oblige, Unit, do
from fivestate.checker.verdicts import Verdict, worst
from fivestate.spec.language.properties import Property
from fivestate.spec.models import MODELS
from fivestate.spec.reuse.geometry import Geometry

Told = Callable[[Result], None]
EMPTY = "no_obligation_is_empty"
ENOUGH = "a_hash_hit_is_enough"
NOT_ENOUGH = "a_hash_hit_is_not_enough"
REALLY = 3
"""In so many small models a counterexample is looked for that they really meet."""
DENIED = ("lease", "leased_is_ready")
"""The action and the property by which a hash hit is not enough."""


@dataclass
class Prover:
    """Proves theorems.

    Attributes:
        geometries: the geometries that theorems about every preset are proved of.
        asking: how z3 is asked.
        jobs: how many processes ask at once.
    """

    geometries: tuple[Geometry, ...]
    asking: Asking
    jobs: int = 1
    _outcomes: dict[str, list[Outcome]] = field(default_factory=dict[str, list[Outcome]])
    _allowed: dict[str, dict[str, Answer]] = field(default_factory=dict[str, dict[str, Answer]])

    def prove(self, theorems: list[Theorem], told: Told) -> list[Result]:
        """Prove theorems, tell each result as soon as it is known, and return all in order."""
        results: dict[str, Result] = {}
        for unit, payload in do(self._units(theorems), self.asking, self.jobs):
            match unit, payload:
                case Ask(name), Result():
                    results[name] = payload
                    told(payload)
                case Oblige(safety), list():
                    self._outcomes.setdefault(safety, []).extend(payload)
                case Allow(safety), dict():
                    self._allowed[safety] = payload
                case _:
                    raise TypeError(payload)
        for theorem in theorems:
            if theorem.name not in results:
                results[theorem.name] = self._result(theorem)
                told(results[theorem.name])
        return [results[theorem.name] for theorem in theorems]

    def _units(self, theorems: list[Theorem]) -> list[Unit]:
        units: list[Unit] = []
        for name in dict.fromkeys(t.safety for t in theorems if t.name != EMPTY):
            if name in {CACHE.name, HOMOGENEOUS.name}:
                places = [START, *(action.name for action in SAFETIES[name].actions)]
                units += [Oblige(name, place) for place in places]
        if any(theorem.name == EMPTY for theorem in theorems):
            units += [Allow(CACHE.name), Allow(HOMOGENEOUS.name)]
        asked = (theorem.name for theorem in theorems if theorem.questions is not None)
        return [*units, *(Ask(name, self.geometries) for name in asked)]

    def _result(self, theorem: Theorem) -> Result:
        """Return the result of a theorem that is proved by induction, or was not reached."""
        match theorem.name:
            case _ if theorem.questions is not None or self.asking.interrupted.is_set():
                return Result(theorem.name, Verdict.UNDETERMINED, 0.0, ("interrupted",))
            case name if name == EMPTY:
                return self._none_empty(theorem)
            case name if name == NOT_ENOUGH:
                return self._not_enough(theorem)
            case name if name == ENOUGH:
                outcomes = self._outcomes[HOMOGENEOUS.name]
                return self._together(theorem, HOMOGENEOUS, outcomes)
            case name:
                outcomes = [o for o in self._outcomes[CACHE.name] if o.claim == name]
                return self._together(theorem, CACHE, outcomes)

    def _together(self, theorem: Theorem, safety: Safety, outcomes: list[Outcome]) -> Result:
        seconds = sum(outcome.seconds for outcome in outcomes)
        failed = [outcome for outcome in outcomes if outcome.verdict is not Verdict.PROVED]
        if not failed:
            shaky = self.resting(safety)
            if theorem.name in shaky:
                return Result(theorem.name, Verdict.UNDETERMINED, seconds, shaky[theorem.name])
            return Result(theorem.name, Verdict.PROVED, seconds)
        verdicts: list[Verdict] = []
        lines: list[str] = []
        for outcome in failed:
            found = self._counterexample(safety, outcome)
            verdicts.append(Verdict.UNDETERMINED if found is None else Verdict.REFUTED)
            if found is None:
                lines.append(f"{outcome.place}: no answer in {self.asking.seconds:g} s")
            else:
                lines += [*found.told(), f"  {found.reachable()}"]
        return Result(theorem.name, worst(verdicts), seconds, tuple(lines))

    def resting(self, safety: Safety) -> dict[str, tuple[str, ...]]:
        """Return the invariants that are kept only as long as others are that are not."""
        failed = self._failed(safety)
        shaky: dict[str, tuple[str, ...]] = {}
        without: frozenset[str] = frozenset()
        while failed - without and not self.asking.interrupted.is_set():
            without |= failed
            places = [START, *(action.name for action in safety.actions)]
            units: list[Unit] = [Oblige(safety.name, place, without) for place in places]
            for _, payload in do(units, self.asking, self.jobs):
                for outcome in payload if isinstance(payload, list) else ():
                    name = outcome.claim
                    if outcome.verdict is not Verdict.PROVED and name not in without:
                        shaky[name] = (f"rests on {', '.join(sorted(without))}",)
            failed = without | frozenset(shaky)
        return shaky

    def _failed(self, safety: Safety) -> frozenset[str]:
        outcomes = self._outcomes.get(safety.name, [])
        return frozenset(o.claim for o in outcomes if o.verdict is not Verdict.PROVED)

    def _counterexample(self, safety: Safety, outcome: Outcome) -> Counterexample | None:
        action = {action.name: action for action in safety.actions}.get(outcome.place)
        (claim,) = (each for each in claims(safety) if each.name == outcome.claim)
        models = small_models(safety, MODELS)

        def search() -> Counterexample | None:
            real = None if action is None else met(claim, action, models[:REALLY])
            return real or find(safety, claim, action, self.asking, models)

        return self._searched(search)

    def _searched(self, search: Callable[[], Counterexample | None]) -> Counterexample | None:
        try:
            return watched(search, self.asking)
        except Interrupted:
            return None

    def _none_empty(self, theorem: Theorem) -> Result:
        lines: list[str] = []
        unknown = False
        for name, answers in self._allowed.items():
            never = SAFETIES[name].never
            unknown = unknown or Answer.UNKNOWN in answers.values()
            lines += [
                f"{name}, {action}: {VACUOUS}"
                for action, answer in answers.items()
                if answer is Answer.NO and action not in never
            ]
        verdict = Verdict.REFUTED if lines else Verdict.PROVED
        if unknown and not lines:
            verdict = Verdict.UNDETERMINED
        return Result(theorem.name, verdict, 0.0, tuple(lines))

    def _not_enough(self, theorem: Theorem) -> Result:
        place, name = DENIED
        (action,) = (a for a in HASH_ONLY.actions if a.name == place)
        (claim,) = (c for c in HASH_ONLY.invariants if c.name == name)
        model = replace(MODELS["hash-only"], refines=None)

        found = met(claim, action, [model])
        if found is None:
            return Result(theorem.name, Verdict.UNDETERMINED, 0.0, ("no counterexample was found",))
        return Result(theorem.name, Verdict.PROVED, 0.0, (*found.told(), f"  {found.reachable()}"))


def claims(safety: Safety) -> Iterator[Property]:
    """Yield everything that is proved of a machine by induction."""
    yield from safety.invariants
    yield from safety.steps
