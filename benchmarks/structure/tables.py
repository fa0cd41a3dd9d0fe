"""Answers of the structure benchmark as tables: accuracies, the gain over the best control, and the worst of
the four cells.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.structure.analogies import CHOICES, Choices, choices
from benchmarks.structure.answered import Answers, by_group, graded, load_answers, load_choices
from kgot_lab.evaluation.measures import Scores
from kgot_lab.evaluation.significance import (
    Numbers,
    holm,
    interval,
    sign_flip_p,
    smallest_detectable,
    wins_ties_losses,
)
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_p_value, format_signed

# a set of questions, and what each system said of them
AnswersOfSystems = tuple[Choices, Mapping[str, Answers]]
CHANCE = 0.25
FITTED = "fitted"  # what the names of systems that learn begin with


def kept(folder: Path) -> list[AnswersOfSystems]:
    """Each set that was answered, with what the systems said: the results in `folder/answers`, and questions
    drawn in `folder/questions`.

    Where the test questions have not been evaluated yet, only the others are there. Raises BadInput for a
    broken result.
    """
    found: list[AnswersOfSystems] = []
    paths = (folder / "answers").glob("*.jsonl.gz")
    for path in sorted(
        paths, key=lambda path: (path.name.removesuffix(".jsonl.gz") not in CHOICES, path.name)
    ):
        name = path.name.removesuffix(".jsonl.gz")
        asked = choices(name) if name in CHOICES else load_choices(folder / "questions" / path.name)
        some = asked if answers_in(path) == len(asked.questions) else asked.dev
        found.append((some, load_answers(path, some)))
    return found


def answers_in(path: Path) -> int:
    """How many questions a result answers."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        next(lines)
        return len({json.loads(line)["question"] for line in lines})


def accuracies(some: Choices, said: Mapping[str, Answers]) -> Grid:
    """Every system: accuracy over all questions with interval, on either part, by cell, and which wrong
    choices it takes.
    """
    scored = {name: graded(answers, some) for name, answers in said.items()}
    kinds = sorted({measure for scores in scored.values() for measure in scores.values} - {"accuracy"})
    cells = some.cells
    best = max(scores.mean("accuracy") for scores in scored.values())
    rows = []
    for name, scores in sorted(scored.items(), key=lambda each: -each[1].mean("accuracy")):
        own = interval(list(scores.per_query("accuracy").values()))
        parts = [format_decimal(scores.only(ids).mean("accuracy")) if ids else "" for ids in parts_of(some)]
        inside = [format_decimal(scores.only(ids).mean("accuracy")) for ids in cells.values()]
        taken = [format_decimal(scores.mean(kind)) for kind in kinds]
        first = (
            Cell(name),
            Cell(said[name].kind),
            Cell(format_decimal(own.mean), own.mean >= best),
            Cell(f"{format_decimal(own.low)} to {format_decimal(own.high)}"),
        )
        rows.append((*first, *map(Cell, [*parts, *inside, *taken])))
    sizes = [f"{cell} ({len(ids)})" for cell, ids in cells.items()]
    columns = ("system", "kind", "accuracy", "95 %", "dev", "test", *sizes, *kinds)
    return Grid(
        f"{some.name}: {len(some.questions)} questions, {len(parts_of(some)[1])} of them held out",
        columns,
        tuple(rows),
    )


def parts_of(some: Choices) -> tuple[list[str], list[str]]:
    """The ids of the dev and of the test questions."""
    ids = [question.id for question in some.questions]
    return [id for id in ids if id not in some.test_ids], [id for id in ids if id in some.test_ids]


def best_control(some: Choices, said: Mapping[str, Answers], *, fitted: bool) -> str:
    """The control, or the surface itself, that does best on the dev questions, ties by name."""
    dev, _ = parts_of(some)
    names = [
        name
        for name, each in said.items()
        if each.kind != "structure" and (fitted or not name.startswith(FITTED))
    ]
    return min(names, key=lambda name: (-graded(said[name], some).only(dev).mean("accuracy"), name))


def gaps(some: Choices, one: Scores, other: Scores) -> dict[str, Numbers]:
    """The paired differences in accuracy: over all questions, over the test ones, and over groups of
    questions.
    """
    ids = [question.id for question in some.questions]
    _, test = parts_of(some)

    def gap(a: Scores, b: Scores, some_ids: Sequence[str]) -> Numbers:
        first, second = a.per_query("accuracy"), b.per_query("accuracy")
        return np.array([first[id] - second[id] for id in some_ids])

    groups = by_group(one, some), by_group(other, some)
    return {
        "all": gap(one, other, ids),
        "test": gap(one, other, test),
        "groups": gap(*groups, list(groups[0].per_query("accuracy"))),
    }


def gains(system: str, sets: Sequence[AnswersOfSystems], *, fitted: bool) -> Grid:
    """A system against the best control on each set, a fitted one too if it may be `fitted`; the p-values are
    one family.
    """
    lines, ps = [], []
    for some, said in sets:
        rival = best_control(some, said, fitted=fitted)
        one, other = graded(said[system], some), graded(said[rival], some)
        found = gaps(some, one, other)
        lines.append((some, rival, one, other, found))
        ps.append(sign_flip_p(found["all"]))
    rows = []
    for (some, rival, one, other, found), p, corrected in zip(lines, ps, holm(ps), strict=True):
        own, test = interval(found["all"]), found["test"]
        sure = own.low > 0
        apart = (
            f"{format_signed(test.mean())} [{format_signed(interval(test).low)}, {format_signed(interval(test).high)}]"
            if len(test) > 1
            else ""
        )
        wins, ties, losses = wins_ties_losses(found["all"])
        cells = (
            some.name, rival, format_decimal(one.mean("accuracy")), format_decimal(other.mean("accuracy")), format_signed(own.mean),
            f"{format_signed(own.low)} to {format_signed(own.high)}", format_p_value(p), format_p_value(corrected),
            format_p_value(sign_flip_p(found["groups"])), apart,
            f"{wins}/{ties}/{losses}", format_decimal(smallest_detectable(found["all"])),
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
        "test",
        "wins/ties/losses",
        "detectable",
    )
    return Grid(f"{system} against the best control on the dev part", columns, tuple(rows))


def worst_cells(sets: Sequence[AnswersOfSystems]) -> Grid:
    """The cell in which each system does worst, for each set drawn in four cells; above chance only if its
    interval is.
    """
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
            cells.append(
                Cell(
                    f"{format_decimal(own.mean)} [{format_decimal(own.low)}, {format_decimal(own.high)}] {cell}",
                    own.low > CHANCE,
                )
            )
        rows.append(tuple(cells))
    return Grid(
        "The worst of the four cells; chance is .25",
        ("system", *(some.name for some, _ in drawn)),
        tuple(rows),
    )
