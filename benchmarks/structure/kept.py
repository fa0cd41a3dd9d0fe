"""What the results of the structure benchmark say, by set and system: shares of right answers, gains over
the best control, edges.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.structure.analogies import SPLITS
from benchmarks.structure.answered import graded
from benchmarks.structure.tables import FITTED, AnswersOfSystems, best_control, kept, parts_of
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.measures import Scores
from kgot_lab.evaluation.significance import compare, holm
from kgot_lab.types import Json

_BY_MODEL = "skeletons of"  # in the names of sets that only some systems answered


@dataclass(frozen=True, repr=False)
class KeptAnswers:
    """The sets of questions that were answered, by name, and what each system said of them."""

    sets: Mapping[str, AnswersOfSystems]

    @classmethod
    def of(cls, folder: Path | str) -> KeptAnswers:
        """All results of a folder such as benchmarks/results/structure; raises BadInput for a broken one, or
        where there is none.
        """
        found = {some.name: (some, said) for some, said in kept(Path(folder))}
        if not found:
            raise BadInput(f"{folder} holds no answers; name the folder that has `answers` in it")
        return cls(found)

    def scores(self, name: str, system: str) -> Scores:
        """Every question of a set, judged; raises UnknownName for a set or a system that is not kept."""
        if name not in self.sets:
            raise UnknownName("set of questions", name, self.sets)
        asked, said = self.sets[name]
        if system not in said:
            raise UnknownName("system", system, said)
        return graded(said[system], asked)

    def accuracy(self, name: str, system: str) -> float:
        """The share of a set's questions that a system got right; raises UnknownName."""
        return self.scores(name, system).mean("accuracy")

    def by_cell(self, data: str, system: str) -> dict[str, float]:
        """The share right in each of the four cells drawn from some data, and in the matched questions;
        raises UnknownName.
        """
        drawn = self.scores(f"{data} cells", system)
        cells = self.sets[f"{data} cells"][0].cells
        shares = {cell: drawn.only(ids).mean("accuracy") for cell, ids in cells.items()}
        return shares | {"matched": self.accuracy(f"{data} matched", system)}

    def gains(self, system: str) -> list[dict[str, Json]]:
        """A row for each set that all systems answered: the gain over the best control, p corrected for all
        rows by Holm.

        A system that learns meets controls that learn as well; the best is that of the dev questions.
        Raises UnknownName.
        """
        rows = [self._gain(name, system) for name in sorted(self.sets) if _BY_MODEL not in name]
        corrected = holm([row["p"] for row in rows])
        return [
            row | {"p": round(row["p"], 4), "p Holm": round(p, 4)}
            for row, p in zip(rows, corrected, strict=True)
        ]

    def _gain(self, name: str, system: str) -> dict[str, Json]:
        asked, said = self.sets[name]
        rival = best_control(asked, said, fitted=system.startswith(FITTED))
        own, other = self.scores(name, system), self.scores(name, rival)
        row = compare({system: own, rival: other}, rival, "accuracy")[system]
        _, test = parts_of(asked)
        later = own.only(test).mean("accuracy") - other.only(test).mean("accuracy") if test else None
        return {
            "set": name,
            "own": round(row.own.mean, 3),
            "best control": rival,
            "gain": round(row.difference.mean, 3),
            "95 %": f"{row.difference.low:+.3f} to {row.difference.high:+.3f}",
            "p": row.p,
            "p Holm": row.p,
            "detectable": round(row.detectable, 3),
            "gain, test": "not evaluated" if later is None else round(later, 3),
        }


def sure(rows: list[dict[str, Json]]) -> dict[str, list[str]]:
    """The sets on which a gain is beyond chance after the correction, and those on which a loss is."""
    beyond = [row for row in rows if row["p Holm"] < 0.05]
    return {
        "better": [row["set"] for row in beyond if row["gain"] > 0],
        "worse": [row["set"] for row in beyond if row["gain"] < 0],
    }


def kept_edges(folder: Path | str) -> list[dict[str, Json]]:
    """How good the edges were that each system drew between all texts of a set, from `edges.jsonl.gz`; raises
    BadInput.

    `times chance` is how many times as many of them are right as of edges drawn at random.
    """
    try:
        rows = [
            json.loads(line)
            for line in gzip.decompress((Path(folder) / "edges.jsonl.gz").read_bytes()).splitlines()
        ]
    except (OSError, EOFError, ValueError) as error:
        raise BadInput(f"{folder} has no edges.jsonl.gz that can be read ({error})") from error
    return [_judged(row) for row in rows]


def _judged(row: Mapping[str, Json]) -> dict[str, Json]:
    right, analogous = len(row["right"]), row["analogous"]
    precision, prevalence = right / max(1, row["edges"]), analogous / row["pairs"]
    return {
        "set": row["set"],
        "edges by": row["system"],
        "part": SPLITS[row["part"]],
        "edges": row["edges"],
        "right": right,
        "precision": f"{precision:.2%}",
        "recall": f"{right / analogous:.0%}",
        "prevalence": f"{prevalence:.3%}",
        "times chance": round(precision / prevalence, 1),
    }
