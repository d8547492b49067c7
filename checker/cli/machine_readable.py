"""What a program reads: JSON, and JUnit XML for a CI that shows test results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from fivestate.checker.verdicts import Verdict

if TYPE_CHECKING:
    from fivestate.checker.judge import Judgement, Report


def to_json(reports: list[Report]) -> str:
    """Return the reports as JSON; the keys are part of the command line's promise."""
    return json.dumps({"models": [_model(report) for report in reports]}, indent=2) + "\n"


def to_junit(reports: list[Report]) -> str:
    """Return the reports as JUnit XML: a suite a model, a case a property.

    REFUTED is a failure, with its story; UNDETERMINED an error, so that no CI takes it for proof.
    """
    root = ET.Element("testsuites", name="fivestate check")
    for report in reports:
        verdicts = [judgement.verdict for judgement in report.judgements]
        suite = ET.SubElement(
            root,
            "testsuite",
            name=report.model.name,
            tests=str(len(verdicts)),
            failures=str(verdicts.count(Verdict.REFUTED)),
            errors=str(verdicts.count(Verdict.UNDETERMINED)),
            time=f"{report.exploration.seconds:.3f}",
        )
        for judgement in report.judgements:
            _case(suite, report, judgement)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _model(report: Report) -> dict[str, Any]:
    found = report.exploration
    return {
        "name": report.model.name,
        "settings": list(report.model.changes),
        "verdict": report.verdict,
        "distinct": found.distinct,
        "transitions": found.transitions,
        "depth": found.depth,
        "seconds": round(found.seconds, 3),
        "engine": found.engine,
        "stopped": found.stopped,
        "properties": [_property(judgement) for judgement in report.judgements],
    }


def _property(judgement: Judgement) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": judgement.clause,
        "name": judgement.name,
        "kind": judgement.kind,
        "verdict": judgement.verdict,
    }
    story = judgement.story
    if story is not None and judgement.verdict is Verdict.REFUTED:
        shown["story"] = {
            "detail": story.detail,
            "steps": [line.step for line in story.lines],
            "replay": story.replay,
        }
    return shown


def _case(suite: ET.Element, report: Report, judgement: Judgement) -> None:
    name = f"{judgement.clause} {judgement.name}"
    case = ET.SubElement(suite, "testcase", classname=report.model.name, name=name)
    if judgement.verdict is Verdict.PROVED:
        return
    if judgement.verdict is Verdict.UNDETERMINED:
        ET.SubElement(case, "error", message=f"UNDETERMINED: {report.exploration.stopped}")
        return
    failure = ET.SubElement(case, "failure", message=judgement.sentence)
    if judgement.story is not None:
        failure.text = "\n".join(line.step for line in judgement.story.lines)
