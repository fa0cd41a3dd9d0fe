"""What is written down before a benchmark runs, so that no choice can follow the results."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from kgot_lab.errors import BadInput, UnknownName, described_value, require, require_count, shortly
from kgot_lab.evaluation.measures import MEASURES, depth
from kgot_lab.evaluation.runs import BY_ID, TIES
from kgot_lab.evaluation.significance import ROUNDS
from kgot_lab.io.files import read_regular_text, write_whole
from kgot_lab.types import Json

MARGIN = 0.02  # of the primary measure; fixed before the first run


@dataclass(frozen=True)
class Plan:
    """The baseline every system is compared with, the measure that decides, all measures, and how chance is
    judged.

    Systems that are tuned are tuned for the primary measure; `margin` is how much better by it a lane has to
    make a fusion on the tuning split for the gate to let it in. `ties`: a rule of runs.TIES. `rounds` and
    `seed` are those of the tests and the bootstrap. `expected` is the system that the develop queries speak
    for, named before the locked ones are opened. `assumed`: nobody gave a plan, these are the defaults.
    Raises BadInput for what no benchmark can follow, UnknownName for a measure or a rule.
    """

    baseline: str
    primary: str = "recall@5"
    measures: tuple[str, ...] = MEASURES
    ties: str = BY_ID
    rounds: int = ROUNDS
    seed: int = 0
    margin: float = MARGIN
    expected: str = ""
    assumed: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        for what, name in (
            ("baseline", self.baseline),
            ("primary measure", self.primary),
            ("system expected best", self.expected),
        ):
            require(name, str, f"the {what} of a plan is named by a text")
        if not isinstance(self.measures, tuple | list) or not all(
            isinstance(measure, str) for measure in self.measures
        ):
            raise BadInput(
                f"the measures of a plan are a list of names, as ('recall@5', 'mrr'), not {shortly(self.measures)}"
            )
        # a list would not equal what is read from a file
        object.__setattr__(self, "measures", tuple(self.measures))
        if self.primary not in self.measures:
            raise BadInput(
                f"the primary measure {self.primary!r} is not among the measures of the plan: {', '.join(self.measures)}"
            )
        for measure in self.measures:
            depth(measure)
        if self.ties not in TIES:
            raise UnknownName("rule for ties", self.ties, TIES)
        if (
            isinstance(self.margin, bool)
            or not isinstance(self.margin, int | float)
            or not (0 <= self.margin < math.inf)
        ):
            raise BadInput(
                f"the margin of a plan is a number of 0 or more, not {described_value(self.margin)}"
            )
        require_count(self.rounds, 1, "rounds", "chance is judged by so many random draws")
        require_count(self.seed, 0, "seed")
        require(self.assumed, bool, "assumed is True or False")

    def __str__(self) -> str:
        chance = f"{self.rounds:,} rounds, seed {self.seed}"
        parts = (
            f"baseline {self.baseline}",
            f"primary measure {self.primary}",
            f"ties {self.ties}",
            chance,
            f"margin {self.margin}",
        )
        best = [f"expected best {self.expected}"] * bool(self.expected)
        whose = "No plan was given; these defaults were written" if self.assumed else "Written"
        return f"{whose} down before the run: {', '.join([*parts, *best])}"

    def as_json(self) -> dict[str, Json]:
        """The plan as JSON values; that nobody gave it stands there only where it is so."""
        values = asdict(self) | {"measures": list(self.measures)}
        return (
            values if self.assumed else {name: value for name, value in values.items() if name != "assumed"}
        )

    def write_down(self, path: Path) -> None:
        """Save the plan before anything is measured; one that is there is left alone. Raises BadInput where
        it is another one.
        """
        if not path.exists():
            self.save(path)
            return
        there, own = Plan.load(path), self.as_json()
        other = [
            f"{name} is {value} there and {own[name]} now"
            for name, value in there.as_json().items()
            if own.get(name, value) != value
        ]
        if there != self:
            raise BadInput(
                f"{path} holds another plan ({'; '.join(other)}), and a plan is not changed afterwards; name another folder"
            )

    def save(self, path: Path) -> None:
        """Write the plan as JSON; raises BadInput where it cannot be written."""
        write_whole(path, json.dumps(self.as_json(), indent=1) + "\n", "the plan")

    @staticmethod
    def load(path: Path) -> Plan:
        """Read what `save` wrote; raises BadInput."""
        try:
            read = json.loads(read_regular_text(path))
        except (OSError, ValueError, RecursionError) as error:
            raise BadInput(
                f"{path.name} does not hold the plan of a benchmark ({error}); write one with Plan(...).save(path)"
            ) from error
        known = {field.name for field in fields(Plan)}
        if not isinstance(read, Mapping) or "baseline" not in read or not set(read) <= known:
            raise BadInput(
                f"{path.name} does not hold the plan of a benchmark; its names are {', '.join(sorted(known))}"
            )
        try:
            return Plan(**read)
        except BadInput as error:
            raise BadInput(f"{path.name} does not hold a plan that can be followed: {error}") from None
