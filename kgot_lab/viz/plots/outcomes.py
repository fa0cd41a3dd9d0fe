"""What became of the questions that several systems answered: how many were right, and how many steps the
loop took.

An answer is a row of a receipt of benchmarks/questions/question_answering.py: `em` and `f1` (SQuAD's
measures, 0 to 1), the answer itself, and of the loop `forced` (no read gave rows, so it is a guess),
`out_of_steps` (reading was forced) and `steps`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.significance import Estimate, interval, share
from kgot_lab.evaluation.tables import decimal
from kgot_lab.types import Json
from kgot_lab.viz.plots.figure import (
    Pen,
    Plot,
    counted_bars,
    legend_below,
    nothing,
    plot,
    plot_drawing,
    short_label,
    stacked,
    whole_numbers,
)

_Rows: TypeAlias = Sequence[Mapping[str, Json]]
_Answers: TypeAlias = Mapping[str, Iterable[Mapping[str, Json]]] | Iterable[Path | str]

OUTCOMES = {  # in this order along a bar
    "right": Pen("#009E73"),
    "right, forced": Pen("#56B4E9", hatch="////"),
    "partly right": Pen("#F0E442", hatch="----"),
    "no answer": Pen("#FFFFFF"),
    "wrong": Pen("#D55E00", hatch="xxxx"),
    "wrong, forced": Pen("#CC79A7", hatch="++++"),
}
ENDS = {"right": OUTCOMES["right"], "partly right": OUTCOMES["partly right"], "not right": OUTCOMES["wrong"]}
EXACT, WORDS = Pen("#222222", "o"), Pen("#0072B2", "s")


def outcomes(answers: _Answers, *, by: str = "") -> Plot:
    """What became of the questions of each system, beside its share of exact answers and its F1, with 95 %
    intervals.

    `answers` are rows by system, or the paths of receipts; `by` names a field (as "type") whose values get
    bars of their own. Right is an exact match, partly right a part of its words; forced means that steps ran
    out or the answer is a guess. Exact answers have Wilson's interval, F1 a bootstrap one. Raises BadInput
    for rows that lack a measure, UnknownName for a field that none has.
    """
    groups = _groups(_answers(answers), by)
    if not groups:
        return nothing("there are no answers to judge")
    counts = {name: Counter(map(outcome, rows)) for name, rows in groups.items()}
    parts = {kind: [counts[name][kind] for name in groups] for kind in OUTCOMES}
    with plot_drawing(9.4, 1.15 + 0.4 * len(groups), columns=2) as (figure, (bars, dots)):
        stacked(bars, list(groups), parts, OUTCOMES)
        counted_bars(
            bars, [len(rows) for rows in groups.values()], [str(len(rows)) for rows in groups.values()]
        )
        bars.set_xlabel("questions")
        whole_numbers(bars.xaxis)
        for pen, measure, shift in ((EXACT, "em", -0.14), (WORDS, "f1", 0.14)):
            for place, rows in enumerate(groups.values()):
                own = _estimate(rows, measure)
                reach = [[own.mean - own.low], [own.high - own.mean]]
                label = (
                    {"em": "share of exact answers", "f1": "F1 of the words"}[measure] if not place else None
                )
                look = {
                    "fmt": pen.marker,
                    "color": pen.colour,
                    "markersize": 6,
                    "capsize": 2,
                    "elinewidth": 1,
                }
                dots.errorbar([own.mean], [place + shift], xerr=reach, label=label, **look)
        dots.set(
            xlim=(0, 1),
            ylim=bars.get_ylim(),
            xlabel="mean, 95 % interval",
            yticks=range(len(groups)),
            yticklabels=[""] * len(groups),
        )
        dots.tick_params(axis="y", length=0)
        legend_below(figure)
        return plot(figure, _told(groups), [_row(name, rows, counts[name]) for name, rows in groups.items()])


def steps(answers: _Answers) -> Plot:
    """How many INSERT steps the loop took for an answer, and how the answers of each number of steps turned
    out.
    """
    systems = {
        name: [row for row in rows if row.get("steps") is not None]
        for name, rows in _answers(answers).items()
    }
    taken = {(name, row["steps"]) for name, rows in systems.items() for row in rows}
    if not taken:
        return nothing("none of these answers says how many steps it took: only those of the loop do")
    several = len({name for name, _ in taken}) > 1
    groups = {key: [row for row in systems[key[0]] if row["steps"] == key[1]] for key in sorted(taken)}
    bars = [f"{name}: {number}" * several or f"{number} step{'s' * (number != 1)}" for name, number in groups]
    ends = [Counter(_end(row) for row in rows) for rows in groups.values()]
    rows = [
        {"system": key[0], "steps": key[1], **{end: some[end] for end in ENDS}}
        for key, some in zip(groups, ends, strict=True)
    ]
    with plot_drawing(7.6, 1.05 + 0.38 * len(groups)) as (figure, [axes]):
        stacked(axes, bars, {end: [some[end] for some in ends] for end in ENDS}, ENDS)
        counted_bars(axes, [some.total() for some in ends], [str(some.total()) for some in ends])
        axes.set_xlabel("questions")
        whole_numbers(axes.xaxis)
        legend_below(figure)
        told = ", ".join(
            f"{bar}: {some['right']} of {some.total()} right" for bar, some in zip(bars, ends, strict=True)
        )
        return plot(figure, f"Steps taken for an answer. {told}.", rows)


def outcome(row: Mapping[str, Json]) -> str:
    """Which of the six outcomes a row is; raises BadInput where it lacks `em`, `f1` or `answer`."""
    try:
        exact, words, said = float(row["em"]), float(row["f1"]), str(row["answer"]).strip()
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"an answer needs numbers em and f1, and its text as answer; this one has a problem with {error}"
        ) from None
    forced = ", forced" if row.get("forced") or row.get("out_of_steps") else ""
    if exact == 1:
        return f"right{forced}"
    if not said:
        return "no answer"
    return "partly right" if words > 0 else f"wrong{forced}"


def read_answers(path: Path | str) -> tuple[str, _Rows]:
    """The name of a system and its answers, from a receipt of JSON lines with a head; raises BadInput."""
    path = Path(path)
    try:
        head, *rows = map(json.loads, path.read_text(encoding="utf-8").rstrip("\n").split("\n"))
        return str(head["system"]), rows
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"{path.name} is no receipt of answers, a head with the system and a row for each question: {error!r}"
        ) from None


# --- parts
# ------------------------------------------------------------------------------------------------------------


def _answers(answers: _Answers) -> dict[str, _Rows]:
    if isinstance(answers, Mapping):
        return {str(name): list(rows) for name, rows in answers.items()}
    read: dict[str, _Rows] = {}
    for path in sorted(map(str, [answers] if isinstance(answers, str | Path) else answers)):
        name, rows = read_answers(path)
        if name in read:
            raise BadInput(
                f"two of these receipts are of {name}; give their rows as a dictionary, each under a name of its own"
            )
        read[name] = rows
    return read


def _groups(systems: Mapping[str, _Rows], by: str) -> dict[str, _Rows]:
    """The rows of each bar: of a system, or of a system and a value of the field `by`."""
    full = {name: rows for name, rows in systems.items() if rows}
    if not by:
        return full
    fields = {field for rows in full.values() for row in rows for field in row}
    if full and by not in fields:
        raise UnknownName("field", by, fields)
    groups: dict[str, _Rows] = {}
    for name, rows in full.items():
        for value in sorted({str(row.get(by, "")) for row in rows}):
            groups[f"{name}, {value}"] = [row for row in rows if str(row.get(by, "")) == value]
    return groups


def _estimate(rows: _Rows, measure: str) -> Estimate:
    values = [float(row[measure]) for row in rows]
    if measure == "em":
        return share(sum(value == 1 for value in values), len(values))
    if len(values) < 2:
        return Estimate(values[0], values[0], values[0], 1)
    return interval(values)


def _end(row: Mapping[str, Json]) -> str:
    kind = outcome(row)
    return "right" if kind.startswith("right") else kind if kind == "partly right" else "not right"


def _row(name: str, rows: _Rows, counts: Counter[str]) -> dict[str, Json]:
    """The counts of a system, and what the reference tells: right of those attempted, and the harmonic mean
    of that and right of all.
    """
    right, attempted = counts["right"] + counts["right, forced"], len(rows) - counts["no answer"]
    of_attempted = right / attempted if attempted else 0.0
    both = 2 * right / (len(rows) + attempted)
    exact, words = _estimate(rows, "em"), _estimate(rows, "f1")
    spans = {"exact": exact.mean, "exact, low": exact.low, "exact, high": exact.high}
    spans |= {"F1 of words": words.mean, "F1, low": words.low, "F1, high": words.high}
    means = {
        "right of all": right / len(rows),
        "right of attempted": of_attempted,
        "harmonic mean of both": both,
    }
    return {
        "system": short_label(name),
        "questions": len(rows),
        **{kind: counts[kind] for kind in OUTCOMES},
        **spans,
        **means,
    }


def _told(groups: Mapping[str, _Rows]) -> str:
    said = []
    for name, rows in groups.items():
        right = sum(_end(row) == "right" for row in rows)
        said.append(f"{name} {right} of {len(rows)} right, F1 {decimal(_estimate(rows, 'f1').mean)}")
    return f"What became of the answers: {'; '.join(said)}."
