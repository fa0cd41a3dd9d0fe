"""What the results say: recall by ability, the memory beside the best control, and whether a first score
tells what no turn says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.beam.chats import ABSTENTION
from benchmarks.beam.measuring import (
    AIMED_AT,
    BEST_CONTROL,
    CHAT_PARTS,
    EVIDENCE_FILE,
    OPEN_CHATS,
    TEST_CHATS,
    chat_results,
    system_names,
)
from benchmarks.beam.systems import CHAT_CONTROLS, OF_USER, TURN_MEMORY
from benchmarks.roc import roc_area
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.measures import Scores, score
from kgot_lab.evaluation.results import load_results
from kgot_lab.evaluation.runs import Run
from kgot_lab.evaluation.significance import Estimate, holm, interval, sign_flip_p, wins_ties_losses
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_p_value, format_signed

_MEASURES = ("recall@5", "recall@10")
_ALL = "all"


@dataclass(frozen=True)
class AbilityGap:
    """The memory less a control on the questions of an ability: the paired difference, its p, that after
    Holm, and how many differ.
    """

    ability: str
    difference: Estimate
    p: float
    p_holm: float
    wins: int
    losses: int


@dataclass(frozen=True)
class ChatFindings:
    """The runs of a part of the chats, "open", "test" or "all", with the evidence that they are scored
    against.
    """

    part: str
    runs: Mapping[str, Run]
    evidence: Mapping[str, tuple[str, frozenset[str]]]  # ability and turns by question

    @cached_property
    def scores(self) -> Mapping[str, Scores]:
        """Recall@5 and @10 of each system on each question with evidence."""
        qrels = {query: dict.fromkeys(turns, 1) for query, (_, turns) in self.evidence.items() if turns}
        return {name: score(made, qrels, _MEASURES) for name, made in self.runs.items()}

    @property
    def abilities(self) -> list[str]:
        """The abilities whose questions have evidence, by name."""
        return sorted({ability for ability, turns in self.evidence.values() if turns})

    def of_ability(self, ability: str) -> list[str]:
        """The questions of an ability, or of all, that have evidence."""
        return [query for query, (each, turns) in self.evidence.items() if turns and ability in (each, _ALL)]

    def mean(self, system: str, ability: str, measure: str) -> Estimate:
        """What a system reaches on the questions of an ability, with its bootstrap interval."""
        values = self.scores[system].per_query(measure)
        return interval([values[query] for query in self.of_ability(ability)])

    def share(self, system: str, ability: str, measure: str) -> float:
        """The mean alone."""
        return self.scores[system].only(self.of_ability(ability)).mean(measure)

    def gaps(self, control: str, measure: str) -> list[AbilityGap]:
        """The memory less a control on each ability and on all; Holm over the two that are aimed at, and
        apart over the others.
        """
        own, other = (self.scores[name].per_query(measure) for name in (TURN_MEMORY, control))
        rows = {
            ability: [own[query] - other[query] for query in self.of_ability(ability)]
            for ability in (*self.abilities, _ALL)
        }
        ps = {ability: sign_flip_p(row) for ability, row in rows.items()}
        families = [
            [row for row in rows if (row in AIMED_AT) == aimed and row != _ALL] for aimed in (True, False)
        ]
        corrected = {_ALL: ps[_ALL]}
        for family in families:
            corrected |= dict(zip(family, holm([ps[each] for each in family]), strict=True))
        found = []
        for ability, row in rows.items():
            wins, _, losses = wins_ties_losses(row)
            found.append(AbilityGap(ability, interval(row), ps[ability], corrected[ability], wins, losses))
        return found

    def abstention_area(self, system: str) -> tuple[float, int, int]:
        """The area under the curve of the first scores, questions with an answer against those without; how
        many of each.
        """
        sure = {
            query: hits[0].score if hits else 0.0
            for query, hits in self.runs[system].hits.items()
            if query in self.evidence
        }
        known = [value for query, value in sure.items() if self.evidence[query][0] != ABSTENTION]
        unknown = [value for query, value in sure.items() if self.evidence[query][0] == ABSTENTION]
        return roc_area(known, unknown), len(known), len(unknown)


def chat_findings(folder: Path, part: str = _ALL) -> ChatFindings:
    """What a folder holds of a part of the chats; raises BadInput for a folder without results of it."""
    wanted = [each for each in CHAT_PARTS if part in (each, _ALL)]
    try:
        told = json.loads((folder / EVIDENCE_FILE).read_text(encoding="utf-8"))
        runs = {
            name: _together([load_results(chat_results(folder, each, name)) for each in wanted])
            for name in system_names()
        }
    except OSError as error:
        raise BadInput(f"{folder} holds no results of the {part} chats: {error}") from None
    asked = next(iter(runs.values())).hits
    evidence = {
        query: (row["ability"], frozenset(row["evidence"])) for query, row in told.items() if query in asked
    }
    return ChatFindings(part, runs, evidence)


def _together(runs: list[Run]) -> Run:
    first = runs[0]
    hits = {query: found for run in runs for query, found in run.hits.items()}
    return Run(first.system, first.description, first.dataset, first.kept, hits)


# --- tables ---


def chat_grids(folder: Path) -> list[Grid]:
    """All tables of what a folder holds; the test chats come first once they were opened."""
    opened = any((folder / CHAT_PARTS[TEST_CHATS]).glob("*.jsonl.gz"))
    found = [
        chat_findings(folder, part) for part in ((TEST_CHATS, _ALL, OPEN_CHATS) if opened else (OPEN_CHATS,))
    ]
    grids = []
    for part in found:
        grids += [_gaps_grid(part, control) for control in (BEST_CONTROL, f"bm25{OF_USER}")]
    for part in found:
        grids += [_recall_grid(part, measure) for measure in _MEASURES]
    return [*grids, *(_abstention_grid(part) for part in found)]


def chat_report(grids: Sequence[Grid]) -> str:
    """The tables as a page in Markdown."""
    return "\n\n".join(["# Turns of long chats (BEAM)", *(grid.markdown for grid in grids)])


def _gaps_grid(found: ChatFindings, control: str) -> Grid:
    columns = (
        "ability",
        "n",
        "R@5",
        "R@10",
        "R@5, difference [95 %]",
        "p",
        "p Holm",
        "won/lost",
        "R@10, difference [95 %]",
        "p Holm",
    )
    rows = []
    for five, ten in zip(found.gaps(control, "recall@5"), found.gaps(control, "recall@10"), strict=True):
        own = (found.mean(TURN_MEMORY, five.ability, measure) for measure in _MEASURES)
        cells = (
            five.ability + " (aimed at)" * (five.ability in AIMED_AT), str(five.difference.n), *map(_spanned, own),
            _gap(five.difference), format_p_value(five.p), format_p_value(five.p_holm), f"{five.wins}/{five.losses}",
            _gap(ten.difference), format_p_value(ten.p_holm),
        )  # fmt: skip
        rows.append(tuple(map(Cell, cells)))
    return Grid(f"{TURN_MEMORY} − {control}, {found.part} chats", columns, tuple(rows))


def _recall_grid(found: ChatFindings, measure: str) -> Grid:
    shown = [*found.abilities, _ALL]
    names = [f"{name}{of}" for of in ("", OF_USER) for name in CHAT_CONTROLS]
    systems = [*names, *(name for name in system_names() if name not in names)]
    rows = [
        (
            Cell(system, system == TURN_MEMORY),
            *(Cell(format_decimal(found.share(system, ability, measure))) for ability in shown),
        )
        for system in systems
    ]
    counted = tuple(f"{ability} ({len(found.of_ability(ability))})" for ability in shown)
    return Grid(f"{measure}, {found.part} chats", ("system", *counted), tuple(rows))


def _abstention_grid(found: ChatFindings) -> Grid:
    names = [*(f"{name}{of}" for of in ("", OF_USER) for name in CHAT_CONTROLS), TURN_MEMORY]
    rows = [(name, *found.abstention_area(name)) for name in names]
    title = f"Abstention, {found.part} chats: area under the curve by the first score (.500 tells nothing)"
    cells = tuple(
        (Cell(name), Cell(format_decimal(area)), Cell(str(known)), Cell(str(unknown)))
        for name, area, known, unknown in rows
    )
    return Grid(title, ("system", "area", "questions with an answer", "without"), cells)


def _spanned(estimate: Estimate) -> str:
    return (
        f"{format_decimal(estimate.mean)} [{format_decimal(estimate.low)}, {format_decimal(estimate.high)}]"
    )


def _gap(estimate: Estimate) -> str:
    return f"{format_signed(estimate.mean)} [{format_signed(estimate.low)}, {format_signed(estimate.high)}]"
