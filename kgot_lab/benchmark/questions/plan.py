"""What a run of questions was begun with, written down before the first of them, so that no folder holds two
kinds of answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kgot_lab.benchmark.questions.question import QuestionSet
from kgot_lab.errors import BadInput
from kgot_lab.io.files import write_whole
from kgot_lab.types import Json

PLAN_FILE = "plan.json"
_SHOWN = 3  # differences of two plans in one message
# what plans of earlier versions leave unsaid
_SINCE: Mapping[str, Json] = {"web": False, "mirror": "", "engine": "", "vision": ""}


@dataclass(frozen=True)
class QuestionPlan:
    """The set and its hash, which questions of it, and all that an answer depends on. A budget is no part of
    it: it may be raised.
    """

    set: str
    set_sha256: str
    questions: int
    questions_sha256: str  # of their ids, in their order
    selection: Mapping[str, Json]
    system: str
    model: str
    execution: str
    limits: Mapping[str, Json]
    tools: Sequence[str] = ()
    documents_sha256: str = ""  # of those named beside the set's own
    store: str = "in_memory"
    scored_by: str = "match"
    private: bool = False
    web: bool = False
    mirror: str = ""  # the folder in place of the web
    engine: str = ""  # that searches the web
    vision: str = ""  # the model that looks at pictures
    # date, version, machine: for people
    made: Mapping[str, Json] = field(default_factory=dict, compare=False)

    def keep(self, folder: Path) -> bool:
        """Write the plan into a folder, or see that the one there is the same: True when it was there. Raises
        BadInput: what differs.
        """
        path = folder / PLAN_FILE
        if path.exists():
            self.check(folder)
            return True
        folder.mkdir(parents=True, exist_ok=True)
        if left := [item.name for item in folder.iterdir() if not item.name.startswith(".")]:
            raise BadInput(
                f"{folder} has no {PLAN_FILE} but holds {left[0]}: name an empty folder with --folder DIR"
            )
        write_whole(
            path,
            json.dumps({"plan": 1, **self._fixed(), "made": dict(self.made)}, indent=1) + "\n",
            "the plan",
        )
        return False

    def check(self, folder: Path, *, but: Collection[str] = ()) -> None:
        """See that the plan in a folder, if there is one, is the same, but for some fields; raises BadInput:
        what differs.
        """
        if not (folder / PLAN_FILE).exists():
            return
        told = {**_SINCE, **_read(folder / PLAN_FILE)}
        there, now = (
            {name: value for name, value in each.items() if name not in but} for each in (told, self._fixed())
        )
        if differences := plan_differences(there, now):
            raise BadInput(
                f"{folder} holds answers to another plan: {format_differences(differences)}. Name another folder with --folder DIR"
            )

    def _fixed(self) -> dict[str, Json]:
        fixed = {name: value for name, value in asdict(self).items() if name != "made"}
        return dict(json.loads(json.dumps(fixed)))


def read_plan(folder: Path) -> dict[str, Json]:
    """The plan of a folder, as plain values; raises BadInput where there is none."""
    return _read(folder / PLAN_FILE)


def hash_of_ids(questions: QuestionSet) -> str:
    """A hash of the ids of questions in their order."""
    return hashlib.sha256("\n".join(question.id for question in questions.questions).encode()).hexdigest()


def _read(path: Path) -> dict[str, Json]:
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"there is no plan of a run of questions in {path.parent}: {error}") from None
    if not isinstance(plan, dict) or plan.get("plan") != 1:
        raise BadInput(f"{path} is not the plan of a run of questions")
    return plan


def plan_differences(there: Mapping[str, Json], now: Mapping[str, Json], under: str = "") -> list[str]:
    """What two plans say differently, by the names of the fields; when and where they were made is no part of
    them.
    """
    found: list[str] = []
    for name in dict.fromkeys(
        [*(name for name in now if name != "made"), *(name for name in there if name not in {"plan", "made"})]
    ):
        was, wanted = there.get(name), now.get(name)
        if isinstance(was, dict) and isinstance(wanted, dict):
            found += plan_differences(was, wanted, f"{under}{name}.")
        elif was != wanted:
            found.append(f"{under}{name} is {_told(was)} there and {_told(wanted)} now")
    return found


def format_differences(differences: Sequence[str]) -> str:
    """What a refusal says of differences: the first few, and how many more there are."""
    more = len(differences) - _SHOWN
    return "; ".join(differences[:_SHOWN]) + (f"; and {more:,} more" if more > 0 else "")


def _told(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:14]}…"
