"""Marks: what was handed in, read from files that anybody could have written, as a table."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput
from kgot_lab.text.harmless import harmless
from kgot_lab.viz.exercises import HANDED_IN, Attempt, HandedIn, digest_of
from kgot_lab.viz.static.table import Sheet

_LARGEST = 1_000_000  # bytes of a file
_KEPT = 120  # characters of a name or of an exercise's name
_FORMULA = ("=", "+", "-", "@")  # what a spreadsheet takes for the beginning of a formula


@dataclass(frozen=True)
class ReaderMarks:
    """A reader's line: the name, with that of the file where another has the same name and an exercise in
    common, and the attempts.
    """

    name: str
    attempts: Mapping[str, Attempt]

    @property
    def right(self) -> int:
        """How many exercises are right."""
        return sum(each.right for each in self.attempts.values())


@dataclass(frozen=True)
class Marks:
    """A line for each reader, a column for each exercise that somebody tried."""

    lines: tuple[ReaderMarks, ...]

    @property
    def exercises(self) -> list[str]:
        """The names of the exercises, in their order."""
        return sorted({exercise for line in self.lines for exercise in line.attempts})

    def rows(self) -> list[tuple[str, ...]]:
        """Name, how many are right, and for each exercise the try at which it was right, "not yet", or
        nothing.
        """
        return [
            (line.name, str(line.right), *(_mark(line.attempts.get(each)) for each in self.exercises))
            for line in self.lines
        ]

    def table(self) -> Sheet:
        """The rows under their heads."""
        return Sheet(
            ("name", "right", *self.exercises),
            tuple(self.rows()),
            len(self.lines),
            "Marks: the try at which each was right",
        )

    def csv(self) -> str:
        """The same for a spreadsheet; a name that it would take for a formula gets an apostrophe before it."""
        told = io.StringIO()
        writer = csv.writer(told, lineterminator="\n")
        writer.writerow(("name", "right", *map(_no_formula, self.exercises)))
        writer.writerows(tuple(map(_no_formula, row)) for row in self.rows())
        return told.getvalue()


def read_hand_in(path: Path) -> HandedIn:
    """What a file says was tried; raises BadInput for one that is missing or damaged, was changed by
    accident, or is something else.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise BadInput(f"it is larger than {_LARGEST:,} bytes")
        told = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(told, dict) or told.get("handed in") != HANDED_IN:
            raise BadInput("it is no file of lab.hand_in, or one of another version")
        if told.get("digest") != digest_of(told):
            raise BadInput("its digest does not fit what it holds")
        attempts = tuple(map(_attempt, told["attempts"]))
        if not isinstance(told["name"], str) or len({each.exercise for each in attempts}) < len(attempts):
            raise BadInput("it holds an exercise twice, or no name")
    except BadInput as error:
        raise BadInput(f"{path.name} is left out: {error}") from None
    except FileNotFoundError:
        missing = "no file fits it" if any(sign in path.name for sign in "*?[") else "there is no such file"
        raise BadInput(f"{path} is left out: {missing}") from None
    except IsADirectoryError:
        raise BadInput(f"{path} is left out: it is a folder; name the files in it") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(
            f"{path.name} is left out, for it cannot be read ({type(error).__name__}): ask for it again"
        ) from None
    return HandedIn(path, _one_line(told["name"]) or "(no name)", attempts)


def gathered_marks(handed: Sequence[HandedIn]) -> Marks:
    """The marks, by name: files of one name are put together where they are about different exercises, and
    stand apart where not.
    """
    every = Counter((each.name, attempt.exercise) for each in handed for attempt in each.attempts)
    twice = {name for (name, _), count in every.items() if count > 1}
    lines: dict[str, dict[str, Attempt]] = {}
    for number, each in enumerate(handed, start=1):
        name = f"{each.name} ({_one_line(each.path.name)})" if each.name in twice else each.name
        if each.name in twice and name in lines:  # the same name of a file, from two folders
            name += f" {number}"
        lines.setdefault(name, {}).update({attempt.exercise: attempt for attempt in each.attempts})
    return Marks(tuple(ReaderMarks(name, lines[name]) for name in sorted(lines, key=str.casefold)))


def _attempt(told: Any) -> Attempt:
    exercise, answer, right, tries = (told[key] for key in ("exercise", "answer", "right", "tries"))
    kinds = (
        isinstance(exercise, str)
        and isinstance(answer, str)
        and isinstance(right, bool)
        and type(tries) is int
    )
    if not kinds or tries < 1 or not _one_line(exercise):
        raise BadInput("an attempt in it is not one")
    return Attempt(_one_line(exercise), _one_line(answer), right, tries)


def _mark(attempt: Attempt | None) -> str:
    return "" if attempt is None else f"try {attempt.tries}" if attempt.right else "not yet"


def _one_line(text: str) -> str:
    return " ".join(harmless(text).split())[:_KEPT]


def _no_formula(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
