"""The tables of benchmarks/structure.py, derived from its receipts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kgot_lab.evaluation.analogies import CHOICES, Choices, choices
from kgot_lab.evaluation.answered import Answers, by_group, graded, load_answers, load_choices
from kgot_lab.evaluation.measures import Scores
from kgot_lab.evaluation.significance import Numbers, counts, holm, interval, sign_flip_p, smallest_detectable
from kgot_lab.evaluation.tables import Cell, Grid, decimal, signed

RESULTS = Path(__file__).parent / "results" / "structure"
ANSWERS, CELLS = RESULTS / "answers", RESULTS / "questions"
SEARCHES, EDGES, MAPPINGS = (RESULTS / f"{name}.jsonl" for name in ("searches", "edges", "mappings"))
EXPECTED = {"aligned": False, "fitted surface + aligned": True}  # named beforehand, and whether fitted controls count against it
CHANCE = 0.25
FITTED = "fitted"


# --- receipts ---------------------------------------------------------------------------------------------------------


def answered_sets() -> Iterator[tuple[Choices, dict[str, Answers]]]:
    """Each set that was answered, with what the systems said."""
    for path in sorted(ANSWERS.glob("*.jsonl.gz"), key=lambda path: (path.name.removesuffix(".jsonl.gz") not in CHOICES, path.name)):
        name = path.name.removesuffix(".jsonl.gz")
        asked = choices(name) if name in CHOICES else load_choices(CELLS / path.name)
        for some in (asked, asked.develop):  # before the locked questions are opened there are answers to the others only
            if len(some.questions) == answers_in(path):
                yield some, load_answers(path, some)
                break


def answers_in(path: Path) -> int:
    """How many questions a receipt answers."""
    import gzip

    with gzip.open(path, "rt", encoding="utf-8") as lines:
        next(lines)
        return len({json.loads(line)["question"] for line in lines})


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- questions --------------------------------------------------------------------------------------------------------


def accuracies(some: Choices, said: Mapping[str, Answers]) -> Grid:
    """Every system: accuracy over all questions with interval, on either part, by cell, and which wrong choices it takes."""
    scored = {name: graded(answers, some) for name, answers in said.items()}
    kinds = sorted({measure for scores in scored.values() for measure in scores.values} - {"accuracy"})
    cells = some.cells
    best = max(scores.mean("accuracy") for scores in scored.values())
    rows = []
    for name, scores in sorted(scored.items(), key=lambda each: -each[1].mean("accuracy")):
        own = interval(list(scores.per_query("accuracy").values()))
        parts = [decimal(scores.only(ids).mean("accuracy")) if ids else "" for ids in parts_of(some)]
        inside = [decimal(scores.only(ids).mean("accuracy")) for ids in cells.values()]
        taken = [decimal(scores.mean(kind)) for kind in kinds]
        first = (
            Cell(name),
            Cell(said[name].kind),
            Cell(decimal(own.mean), own.mean >= best),
            Cell(f"{decimal(own.low)} to {decimal(own.high)}"),
        )
        rows.append((*first, *map(Cell, [*parts, *inside, *taken])))
    sizes = [f"{cell} ({len(ids)})" for cell, ids in cells.items()]
    columns = ("system", "kind", "accuracy", "95 %", "develop", "locked", *sizes, *kinds)
    return Grid(f"{some.name}: {len(some.questions)} questions, {len(parts_of(some)[1])} of them locked", columns, tuple(rows))


def parts_of(some: Choices) -> tuple[list[str], list[str]]:
    """The ids of the develop and of the locked questions."""
    ids = [question.id for question in some.questions]
    return [id for id in ids if id not in some.locked], [id for id in ids if id in some.locked]


def best_control(some: Choices, said: Mapping[str, Answers], *, fitted: bool) -> str:
    """The control, or the surface itself, that does best on the develop questions, ties by name."""
    develop, _ = parts_of(some)
    names = [name for name, each in said.items() if each.kind != "structure" and (fitted or not name.startswith(FITTED))]
    return min(names, key=lambda name: (-graded(said[name], some).only(develop).mean("accuracy"), name))


def gaps(some: Choices, one: Scores, other: Scores) -> dict[str, Numbers]:
    """The paired differences in accuracy: over all questions, over the locked ones, and over groups of questions."""
    ids = [question.id for question in some.questions]
    _, locked = parts_of(some)

    def gap(a: Scores, b: Scores, some_ids: Sequence[str]) -> Numbers:
        first, second = a.per_query("accuracy"), b.per_query("accuracy")
        return np.array([first[id] - second[id] for id in some_ids])

    groups = by_group(one, some), by_group(other, some)
    return {"all": gap(one, other, ids), "locked": gap(one, other, locked), "groups": gap(*groups, list(groups[0].per_query("accuracy")))}


def primary(system: str, sets: Sequence[tuple[Choices, Mapping[str, Answers]]]) -> Grid:
    """A system named beforehand against the best control on each set; the p-values are one family."""
    lines, ps = [], []
    for some, said in sets:
        rival = best_control(some, said, fitted=EXPECTED[system])
        one, other = graded(said[system], some), graded(said[rival], some)
        found = gaps(some, one, other)
        lines.append((some, rival, one, other, found))
        ps.append(sign_flip_p(found["all"]))
    rows = []
    for (some, rival, one, other, found), p, corrected in zip(lines, ps, holm(ps), strict=True):
        own, locked = interval(found["all"]), found["locked"]
        sure = own.low > 0
        apart = f"{signed(locked.mean())} [{signed(interval(locked).low)}, {signed(interval(locked).high)}]" if len(locked) > 1 else ""
        wins, ties, losses = counts(found["all"])
        cells = (
            some.name, rival, decimal(one.mean("accuracy")), decimal(other.mean("accuracy")), signed(own.mean),
            f"{signed(own.low)} to {signed(own.high)}", tell(p), tell(corrected), tell(sign_flip_p(found["groups"])), apart,
            f"{wins}/{ties}/{losses}", decimal(smallest_detectable(found["all"])),
        )  # fmt: skip
        rows.append(tuple(Cell(text, sure and number == 4) for number, text in enumerate(cells)))
    columns = (
        "set",
        "best control",
        "own",
        "control",
        "difference",
        "95 %",
        "p",
        "p Holm",
        "p by group",
        "locked",
        "wins/ties/losses",
        "detectable",
    )
    return Grid(f"{system} against the best control on the develop part", columns, tuple(rows))


def cell_floor(sets: Sequence[tuple[Choices, Mapping[str, Answers]]]) -> Grid:
    """The cell in which each system does worst, for each set drawn in four cells; above chance only if its interval is."""
    drawn = [(some, said) for some, said in sets if len(some.cells) == 4]
    names = list(drawn[0][1]) if drawn else []
    rows = []
    for name in names:
        cells = [Cell(name)]
        for some, said in drawn:
            by = graded(said[name], some)
            worst = min(some.cells.values(), key=lambda ids: by.only(ids).mean("accuracy"))
            own = interval(list(by.only(worst).per_query("accuracy").values()))
            cell = next(cell for cell, ids in some.cells.items() if ids == worst)
            cells.append(Cell(f"{decimal(own.mean)} [{decimal(own.low)}, {decimal(own.high)}] {cell}", own.low > CHANCE))
        rows.append(tuple(cells))
    return Grid("The worst of the four cells; chance is .25", ("system", *(some.name for some, _ in drawn)), tuple(rows))


# --- searches, edges, mappings ----------------------------------------------------------------------------------------


def searches() -> Iterator[Grid]:
    """Every search: MAP with interval, and the paired difference in MAP from the surface."""
    rows = rows_of(SEARCHES)
    for name in dict.fromkeys(row["set"] for row in rows):
        by: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            if row["set"] == name:
                by.setdefault(row["system"], []).append(row)
        base = np.array([row["map"] for row in by["surface"]])
        lines = []
        for system, own in sorted(by.items(), key=lambda each: -np.mean([row["map"] for row in each[1]])):
            found = np.array([row["map"] for row in own])
            gap, mean = interval(found - base), interval(found)
            means = [decimal(float(np.mean([row[measure] for row in own]))) for measure in ("mrr", "recall@1", "recall@10")]
            locked = [row["map"] for row in own if row["locked"]]
            span, apart = f"{decimal(mean.low)} to {decimal(mean.high)}", decimal(float(np.mean(locked))) if locked else ""
            against = f"{signed(gap.mean)} [{signed(gap.low)}, {signed(gap.high)}]"
            cells = (system, own[0]["kind"], decimal(mean.mean), span, *means, apart, against)
            lines.append(tuple(map(Cell, cells)))
        columns = ("system", "kind", "map", "95 %", "mrr", "recall@1", "recall@10", "map, locked", "map minus surface")
        yield Grid(f"{name}: {len(base)} queries", columns, tuple(lines))


def edges() -> Iterator[Grid]:
    """Edges over all texts of a set: how many, how many right, and how much better than by lot."""
    rows = rows_of(EDGES)
    for name in dict.fromkeys(row["set"] for row in rows):
        some = [row for row in rows if row["set"] == name]
        lines = []
        for row in some:
            right, drawn = len(row["right"]), row["edges"]
            sure = interval(np.r_[np.ones(right), np.zeros(drawn - right)]) if drawn > 1 else None
            prevalence = row["analogous"] / row["pairs"]
            precision = right / drawn if drawn else 0.0
            span = f"{decimal(sure.low)} to {decimal(sure.high)}" if sure else ""
            rule = ", ".join(map(str, row.get("thresholds", [])))
            cells = (
                row["system"],
                row["part"],
                rule,
                f"{drawn:,}",
                f"{right:,}",
                decimal(precision),
                span,
                decimal(right / row["analogous"]),
                f"{precision / prevalence:.1f}",
            )
            lines.append(tuple(map(Cell, cells)))
        told = ", ".join(dict.fromkeys(f"{row['part']} {row['analogous']:,} of {row['pairs']:,} pairs" for row in some))
        columns = ("system", "part", "thresholds", "edges", "right", "precision", "95 %", "recall", "times lot")
        yield Grid(f"{name}; analogous are: {told}", columns, tuple(lines))


def mappings() -> Grid:
    """The share of terms mapped rightly, by pair of systems, against the surface."""
    rows = rows_of(MAPPINGS)
    by: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by.setdefault(row["system"], []).append(row)
    base = np.array([row["right"] for row in by["surface"]])
    lines = []
    for system, own in by.items():
        found = np.array([row["right"] for row in own])
        mean, gap = interval(found), interval(found - base)
        locked = [row["right"] for row in own if row["locked"]]
        apart = decimal(float(np.mean(locked))) if locked else ""
        cells = (
            system,
            own[0]["kind"],
            decimal(mean.mean),
            f"{decimal(mean.low)} to {decimal(mean.high)}",
            apart,
            f"{signed(gap.mean)} [{signed(gap.low)}, {signed(gap.high)}]",
        )
        lines.append(tuple(map(Cell, cells)))
    by_lot = float(np.mean([1 / row["terms"] for row in by["surface"]]))
    columns = ("system", "kind", "right", "95 %", "locked", "minus surface")
    return Grid(f"scan-analogies: {len(base)} pairs of systems, words mapped one to one; by lot {decimal(by_lot)}", columns, tuple(lines))


# --- the report -------------------------------------------------------------------------------------------------------


def grids() -> Iterator[Grid]:
    """All tables, the ones that decide first."""
    sets = list(answered_sets())
    plain = [(some, said) for some, said in sets if "skeletons of" not in some.name]
    for system in EXPECTED:
        yield primary(system, plain)
    yield cell_floor(plain)
    yield from (accuracies(some, said) for some, said in sets)
    yield from searches()
    yield from edges()
    yield mappings()


SHOWN = ("surface", "minus surface", "noun veto, masked", "skeleton, masked", "delta, as specified", "delta, verified", "aligned")
FLOORS = ("surface", "minus surface", "noun veto", "delta, as specified", "delta, verified", "aligned", "fitted surface + aligned")


def summary() -> str:
    """What the README shows: accuracies on every set, the gain over the best control, and the worst cells."""
    sets = [(some, said) for some, said in answered_sets() if "skeletons of" not in some.name]
    names = (*SHOWN, FITTED + " surface", FITTED + " surface + aligned")
    lines = [f"| accuracy | {' | '.join(names)} | gain over the best control | on locked ones |", "|---|" + "---:|" * (len(names) + 2)]
    for some, said in sets:
        if len(some.cells) == 4:
            continue
        means = [decimal(graded(said[name], some).mean("accuracy")) for name in names]
        rival = best_control(some, said, fitted=True)
        found = gaps(some, graded(said[names[-1]], some), graded(said[rival], some))
        whole, locked = (told(found[part]) if len(found[part]) > 1 else "" for part in ("all", "locked"))
        lines.append(f"| {some.name} ({len(some.questions)}) | {' | '.join(means)} | {whole} ({rival}) | {locked} |")
    floor = cell_floor(sets)
    kept = [row for row in floor.rows if row[0].text in FLOORS]
    cells = [f"| the worst of four cells | {' | '.join(floor.columns[1:])} |", "|---|" + "---:|" * (len(floor.columns) - 1)]
    cells += [f"| {' | '.join(cell.text for cell in row)} |" for row in kept]
    return "\n".join(lines) + "\n\n" + "\n".join(cells)


def told(gap: Numbers) -> str:
    """A mean difference and its interval."""
    own = interval(gap)
    return f"{signed(own.mean)} [{signed(own.low)}, {signed(own.high)}]"


def show() -> None:
    """Print all tables and write them as Markdown."""
    found = list(grids())
    for grid in found:
        print(grid.text, end="\n\n")
    (RESULTS / "report.md").write_text("\n\n".join(grid.markdown for grid in found) + "\n", encoding="utf-8")


def tell(p: float) -> str:
    return "<.001" if p < 0.001 else decimal(p)
