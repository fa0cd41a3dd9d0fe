"""Question sets by name, and which of their questions are asked."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kgot_lab.benchmark.questions.question import QuestionSet, own_questions
from kgot_lab.benchmark.questions.sets import (
    frames,
    gaia,
    hotpotqa,
    musique,
    musique_dev,
    own_hub,
    simpleqa,
    twowiki,
)
from kgot_lab.errors import BadInput, UnknownName, require_count

BUNDLED_SETS: Mapping[str, Callable[[], QuestionSet]] = {
    "hotpotqa": hotpotqa, "2wiki": twowiki, "musique": musique, "musique-498": musique_dev, "simpleqa": simpleqa, "frames": frames,
}  # fmt: skip
GAIA = "gaia"
DUMMY = 5  # questions of a first try
LOCKED = "locked"  # questions that are for the last measurement


@contextmanager
def opened_questions(name: str) -> Iterator[QuestionSet]:
    """A set by its name, or from a file of JSON lines; what it must put on disk is gone afterwards. Raises
    UnknownName and BadInput.
    """
    if name in BUNDLED_SETS:
        yield BUNDLED_SETS[name]()
    elif name == GAIA:
        hub = own_hub()
        with TemporaryDirectory(prefix="kgot_lab_") as files:
            yield gaia(hub, Path(files))
    elif Path(name).is_file():
        yield own_questions(Path(name))
    elif re.search(r"[/\\]|\.\w+$", name):
        raise BadInput(
            f"there is no file {name}: a question set is a file of JSON lines, or one of {', '.join([*BUNDLED_SETS, GAIA])}"
        )
    else:
        raise UnknownName("question set", name, [*BUNDLED_SETS, GAIA, "FILE.jsonl"])


@dataclass(frozen=True)
class Selection:
    """Which questions of a set are asked: of a part and a level, a sample drawn by seed, then the first so
    many.
    """

    part: str = ""  # "": all but the locked ones; "all": those too
    level: str = ""
    sample: float = 1.0  # a share
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.sample <= 1:
            raise BadInput(
                f"a sample is a share of the questions, above 0 and up to 1, as .1 for a tenth, not {self.sample:g}"
            )
        if self.limit is not None:
            require_count(self.limit, 1, "limit", "a run asks that many questions")

    def of(self, questions: QuestionSet) -> QuestionSet:
        """The questions asked, in the order of the set; raises UnknownName and BadInput where nothing is
        left.
        """
        parts, chosen = questions.parts or {}, questions.questions
        if self.part not in {"", "all", *parts}:
            raise UnknownName("part", self.part, ["all", *parts])
        if self.part in parts:
            chosen = [question for question in chosen if question.id in set(parts[self.part])]
        elif not self.part:
            chosen = [question for question in chosen if question.id not in set(parts.get(LOCKED, ()))]
        if self.level:
            levels = {question.level for question in chosen} - {""}
            if not levels:
                raise BadInput(f"the questions of {questions.name} have no levels")
            if not (
                named := {level for level in levels if self.level in (level, *re.findall(r"\d+", level))}
            ):
                raise UnknownName("level", self.level, levels)
            chosen = [question for question in chosen if question.level in named]
        ids = [question.id for question in chosen]
        if self.sample < 1:
            drawn = set(random.Random(self.seed).sample(ids, max(1, round(self.sample * len(ids)))))
            ids = [id for id in ids if id in drawn]
        if not ids:
            raise BadInput(f"no question of {questions.name} is left to ask")
        return questions.only(ids[: self.limit])
