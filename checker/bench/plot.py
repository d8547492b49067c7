"""The plot of growth: time and memory against size, on logarithmic axes, as PNG and SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fivestate.checker.bench.costs import BYTES_ALLOWED
from fivestate.checker.bench.growth import Point

NAME = "growth"
FORMATS = ("png", "svg")

_COLOURS = ("#0b6e99", "#c1440e")
_GREY, _DARK = "#8a8a8a", "#333333"
_STYLE: dict[Any, Any] = {  # its keys have a type of their own, but not in every version
    "font.family": "sans-serif",
    "font.size": 9.5,
    "text.color": _DARK,
    "axes.labelcolor": _DARK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _GREY,
    "xtick.color": _DARK,
    "ytick.color": _DARK,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "svg.fonttype": "none",
    "svg.hashsalt": NAME,
}
_MARGINS = {"left": 0.05, "right": 0.885, "bottom": 0.13, "top": 0.9, "wspace": 0.45}
_MEGABYTE = 1e6
_SPARE = 1.6
"""An axis ends so many times beyond the outermost points."""

_Figure = Callable[[Point], float]


def draw(points: Sequence[Point], folder: Path) -> None:
    """Draw the points into ``growth.png`` and ``growth.svg`` of a folder."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(10.6, 4.4), dpi=160)
        left, right = figure.subplots(1, 2)
        figure.subplots_adjust(**_MARGINS)
        _time(left, points)
        _memory(right, [point for point in points if point.grown_bytes])
        for form in FORMATS:
            metadata = {"Date": None} if form == "svg" else None
            figure.savefig(folder / f"{NAME}.{form}", metadata=metadata)


def _time(axes: Axes, points: Sequence[Point]) -> None:
    axes.set_title("Time of a search, in seconds", loc="left", fontweight="bold", pad=12)
    axes.set_xlabel("transitions")
    _lines(axes, points, lambda point: point.transitions, lambda point: point.seconds)
    _reference(axes, 1e-6, "1 million/s")
    _reference(axes, 1e-7, "10 million/s")


def _memory(axes: Axes, points: Sequence[Point]) -> None:
    axes.set_title("Memory the process grows by, in MB", loc="left", fontweight="bold", pad=12)
    axes.set_xlabel("distinct states")
    _lines(axes, points, lambda point: point.distinct, lambda point: point.grown_bytes / _MEGABYTE)
    _reference(axes, BYTES_ALLOWED / _MEGABYTE, f"{BYTES_ALLOWED} bytes/state")


def _lines(axes: Axes, points: Sequence[Point], across: _Figure, up: _Figure) -> None:
    """Draw a line for each series, with its name and its largest model at the end."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda figure, _: f"{figure:,g}")
    ends: list[tuple[float, float, str, str]] = []
    for series, colour in zip(dict.fromkeys(p.series for p in points), _COLOURS, strict=False):
        mine = [point for point in points if point.series == series]
        places = [across(point) for point in mine], [up(point) for point in mine]
        axes.plot(*places, "o-", color=colour, markersize=4.5, linewidth=1.6, clip_on=False)
        ends.append((places[1][-1], places[0][-1], f"{series},\n{mine[-1].model}", colour))
    for number, (height, end, label, colour) in enumerate(sorted(ends, reverse=True)):
        upper = number == 0  # two lines may end near each other
        axes.annotate(
            label,
            (end, height),
            xytext=(9, -4 if upper else 4),
            textcoords="offset points",
            color=colour,
            va="bottom" if upper else "top",
        )
    for limits, of in ((axes.set_xlim, across), (axes.set_ylim, up)):
        figures = [of(point) for point in points]
        if figures:
            limits(min(figures) / _SPARE, max(figures) * _SPARE)


def _reference(axes: Axes, slope: float, label: str) -> None:
    """Draw a thin line of what grows in proportion, named below its lower end."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    start, end = max(left, low / slope), min(right, high / slope)
    if start >= end:
        return
    ends = [start, end]
    axes.plot(ends, [slope * each for each in ends], color=_GREY, linewidth=0.8, zorder=0)
    (x0, y0), (x1, y1) = axes.transData.transform([(each, slope * each) for each in ends])
    at = start * (end / start) ** 0.04
    axes.annotate(
        label,
        (at, slope * at),
        xytext=(3, -3),
        textcoords="offset points",
        color=_GREY,
        fontsize=8.5,
        va="top",
        rotation=math.degrees(math.atan2(y1 - y0, x1 - x0)),
        rotation_mode="anchor",
    )
