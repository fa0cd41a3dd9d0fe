"""What a reader tried at the exercises of this session, and one small file of it to hand in."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput, require
from kgot_lab.io.files import write_whole
from kgot_lab.text.counted import counted
from kgot_lab.text.harmless import harmless

HANDED_IN = 1  # the version of the file
_LONGEST_NAME, _LONGEST_ANSWER = 80, 200  # characters
_MOST_PARTS = 50  # of a collection
_NOT_PROOF = (
    "The digest shows accidental damage. It is no proof: whoever can edit this file can work out another."
)


@dataclass(frozen=True)
class Attempt:
    """What was tried at an exercise: the last answer as text, whether one was right, and at which try, or how
    many there were.

    A right answer stays right, and what is tried after it does not count. The same answer twice is one try.
    """

    exercise: str
    answer: str
    right: bool
    tries: int


@dataclass(frozen=True)
class HandedIn:
    """The file that was written, and what stands in it; as text a line for each exercise."""

    path: Path
    name: str
    attempts: tuple[Attempt, ...]

    def __repr__(self) -> str:
        solved = sum(each.right for each in self.attempts)
        lines = [
            f"{self.path.name}: {self.name}, {solved} of {counted(len(self.attempts), 'exercise')} right"
        ]
        lines += [
            f"  {each.exercise}  {'right' if each.right else 'not yet'}, {counted(each.tries, 'try', 'tries')}"
            for each in self.attempts
        ]
        return "\n".join(lines)


_attempts: dict[str, Attempt] = {}
_named: dict[
    str, tuple[str, str]
] = {}  # what each exercise of this session is known by besides its name: its seal and its hint


def note_name(exercise: str, known_by: tuple[str, str]) -> None:
    """Keep which exercise has a name; raises BadInput when another one has it, since the tries of both would
    be counted as one's.
    """
    if _named.setdefault(exercise, known_by) != known_by:
        raise BadInput(
            f"two exercises are called {exercise!r}, and their tries would be counted as one's: give each a name of its own"
            " (if you changed its hint or its answer, start the kernel anew)"
        )


def note_attempt(exercise: str, answer: Any, *, right: bool) -> None:
    """Keep an answer to an exercise for `hand_in`."""
    told = _as_text(answer)
    before = _attempts.get(exercise)
    if before is None:
        _attempts[exercise] = Attempt(exercise, told, right, 1)
    elif not before.right and (right or told != before.answer):
        _attempts[exercise] = replace(before, answer=told, right=right, tries=before.tries + 1)


def hand_in(name: str, *, folder: str | Path = ".", again: bool = False) -> HandedIn:
    """Write what this session tried at the exercises as one file of JSON in a folder, named after the reader
    and the notebooks.

    It holds the name, and for each exercise the last answer, whether one was right, and the tries; nothing of
    the computer. It is not proof against cheating. Raises BadInput for a name without a letter or digit,
    where nothing was tried, and where the file is there already unless `again` is true.
    """
    require(name, str, "a name is a text, such as 'Ada Lovelace'")
    name = " ".join(harmless(name).split())
    plain = re.sub(r"\W+", "-", name.casefold()).strip("-_")
    if not re.search(r"\w", plain) or len(name) > _LONGEST_NAME:
        raise BadInput(
            f"a name has letters or digits, and at most {_LONGEST_NAME} of them: lab.hand_in('Ada Lovelace')"
        )
    attempts = tuple(sorted(_attempts.values(), key=lambda each: each.exercise))
    if not attempts:
        raise BadInput(
            "no exercise was tried since the kernel was started: put answers in the place of the dots, run their cells, and hand in"
        )
    notebooks = sorted({each.exercise.partition(".")[0] for each in attempts})
    path = Path(folder) / f"{plain}_{'_'.join(notebooks)}.json"
    if path.exists() and not again:
        raise BadInput(
            f"{path.name} is there already and stays as it is: hand_in({name!r}, again=True) writes it anew"
        )
    content = {
        "handed in": HANDED_IN,
        "name": name,
        "attempts": [asdict(each) for each in attempts],
        "note": _NOT_PROOF,
    }
    told = json.dumps({**content, "digest": digest_of(content)}, indent=1, ensure_ascii=False) + "\n"
    return HandedIn(write_whole(path, told, "what is handed in"), name, attempts)


def digest_of(content: Mapping[str, Any]) -> str:
    """A digest of what a file holds besides its digest, by which damage is noticed."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _as_text(answer: Any, depth: int = 0) -> str:
    """An answer as short text; of what is neither text, number nor a small collection of such only its kind:
    no place in memory.
    """
    if isinstance(answer, str):
        return _shortened(harmless(answer))
    if (
        answer is None
        or isinstance(answer, bool | float)
        or (isinstance(answer, int) and abs(answer) < 10**50)
    ):
        return str(answer)
    if isinstance(answer, list | tuple | set | frozenset) and len(answer) <= _MOST_PARTS and depth < 2:
        parts = [_as_text(each, depth + 1) for each in answer]
        if isinstance(answer, set | frozenset):
            return _shortened(f"{{{', '.join(sorted(parts))}}}")
        return _shortened(f"[{', '.join(parts)}]" if isinstance(answer, list) else f"({', '.join(parts)})")
    return type(answer).__name__


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_ANSWER else text[: _LONGEST_ANSWER - 1] + "…"
