"""What is written down before a benchmark runs, so that no choice can follow the results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from kgot_lab.errors import BadInput
from kgot_lab.evaluation.measures import MEASURES
from kgot_lab.evaluation.significance import ROUNDS
from kgot_lab.types import Json


@dataclass(frozen=True)
class Plan:
    """The baseline every system is compared with, the measure that decides, all measures, and how chance is judged.

    `margin` is how much worse than the best a lane may make a fusion on the tuning split before the gate refuses it; `expected` is the
    system that the develop queries speak for, named before the locked ones are opened.
    """

    baseline: str
    primary: str = "recall@5"
    measures: tuple[str, ...] = MEASURES
    ties: str = "by document id"
    rounds: int = ROUNDS
    seed: int = 0
    margin: float = 0.02
    expected: str = ""

    def __post_init__(self) -> None:
        if self.primary not in self.measures:
            raise BadInput(f"the primary measure {self.primary!r} is not among the measures of the plan: {', '.join(self.measures)}")

    def __str__(self) -> str:
        chance = f"{self.rounds:,} rounds, seed {self.seed}"
        parts = f"baseline {self.baseline}", f"primary measure {self.primary}", f"ties {self.ties}", chance, f"margin {self.margin}"
        best = [f"expected best {self.expected}"] * bool(self.expected)
        return f"Written down before the run: {', '.join([*parts, *best])}"

    def as_json(self) -> dict[str, Json]:
        """The plan as JSON values."""
        return asdict(self) | {"measures": list(self.measures)}

    def save(self, path: Path) -> None:
        """Write the plan as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.as_json(), indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def load(path: Path) -> Plan:
        """Read what `save` wrote; raises BadInput."""
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BadInput(f"{path.name} does not hold the plan of a benchmark ({error}); write one with Plan(...).save(path)") from error
        known = {field.name for field in fields(Plan)}
        if not isinstance(read, Mapping) or "baseline" not in read or not set(read) <= known:
            raise BadInput(f"{path.name} does not hold the plan of a benchmark; its names are {', '.join(sorted(known))}")
        return Plan(**{**read, "measures": tuple(read.get("measures", MEASURES))})
