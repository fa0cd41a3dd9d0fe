"""Notebook exercises: a cell in which the reader writes an answer, and the reply "right" or "not yet"."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from kgot_lab.arguments import check_arguments, parse_json, require_path
from kgot_lab.errors import BadInput, require, require_amount, short_repr
from kgot_lab.evaluation.tables import escape_formula
from kgot_lab.io.files import write_atomically
from kgot_lab.text.cleaning import format_count, printable_line, replace_surrogates
from kgot_lab.viz.live import is_for_pages, placeholder
from kgot_lab.viz.static.markup import concat, element, shorten
from kgot_lab.viz.static.table import Sheet, sheet

# The attempts at the exercises of this session, and a small file of them to hand in.

HAND_IN_VERSION = 1  # version of the file format
_MAX_NAME_LENGTH, _MAX_ANSWER_LENGTH = 80, 200  # characters
_MAX_PARTS = 50  # of a collection
_DIGEST_NOTE = "The digest shows accidental damage. It is no proof: who edits this file can make another."


@dataclass(frozen=True)
class Attempt:
    """The attempts at an exercise: the last answer as text, whether one was right, and their number.

    If one was right, the number is the one at which it was. A right answer stays right, and later attempts do
    not count. The same answer twice is one attempt.
    """

    exercise: str
    answer: str
    right: bool
    tries: int


@dataclass(frozen=True)
class HandIn:
    """The file that was written and its content. As text it has a line for each exercise."""

    path: Path
    name: str
    attempts: tuple[Attempt, ...]

    def __repr__(self) -> str:
        solved = sum(attempt.right for attempt in self.attempts)
        count = format_count(len(self.attempts), "exercise")
        head = f"{self.path.name}: {self.name}, {solved} of {count} right"
        lines = (
            f"  {attempt.exercise}  {'right' if attempt.right else 'not yet'}, {format_count(attempt.tries, 'try', 'tries')}"
            for attempt in self.attempts
        )
        return "\n".join([head, *lines])


_attempts: dict[str, Attempt] = {}
# the seal and hint of each named exercise of this session
_exercise_keys: dict[str, tuple[str, str]] = {}


def register_exercise(exercise: str, key: tuple[str, str]) -> None:
    """Register the name of an exercise.

    Raises BadInput if another exercise has this name, since the attempts at both would be counted together.
    """
    if _exercise_keys.setdefault(exercise, key) != key:
        raise BadInput(
            f"two exercises are called {exercise!r}, and their tries would be counted as one's: give each a name of its own"
            " (if you changed its hint or its answer, start the kernel again)"
        )


def record_attempt(exercise: str, answer: Any, *, right: bool) -> None:
    """Record an answer to an exercise for `hand_in`."""
    answer_text = _format_answer(answer)
    previous = _attempts.get(exercise)
    if previous is None:
        _attempts[exercise] = Attempt(exercise, answer_text, right, 1)
    elif not previous.right and (right or answer_text != previous.answer):
        _attempts[exercise] = replace(previous, answer=answer_text, right=right, tries=previous.tries + 1)


@check_arguments
def hand_in(name: str, *, folder: str | Path = ".", again: bool = False) -> HandIn:
    """Write the attempts of this session as a JSON file named after the reader and the notebooks.

    It has the name, and for each exercise the last answer, whether one was right, and the number of attempts.
    It has no information about the computer, and does not prevent cheating. Raises BadInput if the name has
    no letter or digit or is too long, if nothing was attempted, or if the file exists and `again` is false.
    """
    name = " ".join(printable_line(name).split())
    slug = re.sub(r"\W+", "-", name.casefold()).strip("-_")
    if not re.search(r"\w", slug) or len(name) > _MAX_NAME_LENGTH:
        raise BadInput(f"a name has 1 to {_MAX_NAME_LENGTH} letters or digits: lab.hand_in('Ada Lovelace')")
    attempts = tuple(sorted(_attempts.values(), key=lambda attempt: attempt.exercise))
    if not attempts:
        problem = "no exercise was tried since the kernel was started"
        raise BadInput(f"{problem}: put answers in the place of the dots, run their cells, and hand in")
    notebooks = sorted({attempt.exercise.partition(".")[0] for attempt in attempts})
    path = Path(folder) / f"{slug}_{'_'.join(notebooks)}.json"
    if path.exists() and not again:
        problem = f"{path.name} is there and stays as it is"
        raise BadInput(f"{problem}: hand_in({name!r}, again=True) writes it again")
    answers = [asdict(attempt) for attempt in attempts]
    content = {"handed in": HAND_IN_VERSION, "name": name, "attempts": answers, "note": _DIGEST_NOTE}
    text = (
        replace_surrogates(
            json.dumps({**content, "digest": content_digest(content)}, indent=1, ensure_ascii=False)
        )
        + "\n"
    )
    return HandIn(write_atomically(path, text, "what is handed in"), name, attempts)


def content_digest(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 digest of a file's content without its "digest" entry, to detect damage."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _format_answer(answer: Any, depth: int = 0) -> str:
    """Format an answer as short text.

    Anything but a text, a number or a small collection of these is given by its type name, so that no memory
    address appears.
    """
    if isinstance(answer, str):
        return shorten(printable_line(answer), _MAX_ANSWER_LENGTH)
    is_small_integer = isinstance(answer, int) and abs(answer) < 10**50
    if is_small_integer or isinstance(answer, bool | float | None):
        return str(answer)
    if isinstance(answer, list | tuple | set | frozenset) and len(answer) <= _MAX_PARTS and depth < 2:
        parts = [_format_answer(part, depth + 1) for part in answer]
        if isinstance(answer, set | frozenset):
            text = f"{{{', '.join(sorted(parts))}}}"
        else:
            text = f"[{', '.join(parts)}]" if isinstance(answer, list) else f"({', '.join(parts)})"
        return shorten(text, _MAX_ANSWER_LENGTH)
    return type(answer).__name__


_SEAL = "sealed:"
_NEEDS_PYTHON = "This answer is worked out, or tried, by Python: open the notebook in Jupyter to check yours."
_DIGITS = 3  # significant digits of a sealed number: .6667 and 2/3 are the same answer
_NONE_ANSWER = (
    "this answer is None, the value of a call that only shows something; it does not count as a try"
)
_BLANK = "not yet: replace the three dots with your answer, and run the cell again"


@dataclass(frozen=True)
class Assessment:
    """The reply to an answer, true if the answer is right. On a page without Python it is an answer box."""

    right: bool
    said: str
    seal: str = field(default="", repr=False)
    hint: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        return self.said

    def _repr_html_(self) -> str | None:
        if not is_for_pages():
            return None
        if not self.seal:
            return concat([element("pre", self.said), element("p", _NEEDS_PYTHON, class_="small")])
        key = hashlib.sha256(f"{self.seal} {self.hint}".encode()).hexdigest()[:12]
        data = {"view": "answer", "seal": self.seal, "hint": self.hint, "stands_for": key}
        return concat([element("pre", self.said, data_picture=key), placeholder(data)])


@check_arguments
def exercise(answer: Any, right: Any, *, hint: str = "", within: float = 0.005, name: str = "") -> Assessment:
    """Check an answer and show "right" or "not yet", without revealing the right one.

    The placeholder `...` is "not yet". `right` is the right answer, computed in the cell; or a function that
    returns whether an answer is right; or a sealed answer from `sealed`. Texts are compared without case and
    outer spaces, collections without order, and numbers within `within`. An answer that cannot be compared is
    "not yet", with the error and the hint.

    Attempts at an exercise with a `name` are recorded for `hand_in`, except `...` and a None that is not
    right. Raises BadInput if a seal is not one of `sealed`, or if the name belongs to another exercise, with
    another seal or hint.
    """
    require_amount(within, "within")
    require_path(name or "exercise", "name")  # a file is named after it
    if "/" in name:
        raise BadInput(f"a file is named after an exercise, so its name has no slash: {short_repr(name)}")
    is_sealed = isinstance(right, str) and right.startswith(_SEAL)
    if is_sealed and not re.fullmatch("[0-9a-f]{16}", right.removeprefix(_SEAL)):
        raise BadInput("this seal is not whole: make it again with sealed(the right answer)")
    box = (right if is_sealed else ""), hint
    if name:
        register_exercise(name, box)
    if answer is ...:
        return Assessment(False, _BLANK, *box)
    try:
        is_right, problem = _is_right(answer, right, within), ""
    except Exception as error:  # an invalid answer must not stop "run all cells"
        is_right, problem = False, f"this answer cannot be compared ({type(error).__name__}: {error})"
    is_right = is_right.item() if hasattr(is_right, "item") else is_right  # of NumPy
    require(is_right, (bool, int), "the function of an exercise, `right`, returns True or False")
    if answer is None and not is_right:
        problem = _NONE_ANSWER
    elif name:
        record_attempt(name, answer, right=is_right)
    note = "; ".join(filter(None, (problem, hint)))
    if is_right:
        return Assessment(True, "right", *box)
    return Assessment(False, f"not yet: {note}" if note else "not yet", *box)


def sealed(answer: Any) -> str:
    """Hash a right answer, so that a reader of the cell cannot see it.

    Returns "sealed:" and a digest. Numbers are rounded to three significant digits.
    """
    return _SEAL + hashlib.sha256(_normalize(answer).encode()).hexdigest()[:16]


def _is_right(answer: Any, right: Any, within: float) -> Any:
    if isinstance(right, str) and right.startswith(_SEAL):
        return sealed(answer) == right
    if callable(right):
        judge: Callable[[Any], Any] = right
        return judge(answer)
    if _is_number(answer) and _is_number(right):
        return math.isclose(float(answer), float(right), rel_tol=1e-9, abs_tol=within)
    return _normalize(answer) == _normalize(right)


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool | str | Collection) and hasattr(value, "__float__")


def _normalize(value: Any) -> str:
    """Normalize a value to text, so that equal answers give equal texts.

    Case, outer spaces, order and the last digits are ignored.
    """
    if isinstance(value, str):
        return repr(" ".join(value.split()).casefold())
    if _is_number(value):
        return f"{float(value):.{_DIGITS}g}"
    if isinstance(value, Mapping):
        return repr(sorted((_normalize(key), _normalize(item)) for key, item in value.items()))
    return repr(sorted(map(_normalize, value))) if isinstance(value, Collection) else repr(value)


# Marks: a table of what was handed in. The files are untrusted input.

_MAX_FILE_SIZE = 1_000_000  # bytes of a file
_MAX_STORED_NAME = 120  # maximum characters of a reader's or an exercise's name


@dataclass(frozen=True)
class Marks:
    """The attempts of each reader by exercise. A column is an exercise that somebody attempted.

    If another reader has the same name and an exercise in common, the name includes that of the file.
    """

    readers: Mapping[str, Mapping[str, Attempt]]

    @property
    def exercises(self) -> list[str]:
        """The names of the exercises, in order."""
        return sorted({exercise for attempts in self.readers.values() for exercise in attempts})

    def rows(self) -> list[tuple[str, ...]]:
        """Return a row for each reader: name, number right, and a mark for each exercise.

        The mark is the attempt at which the answer was right, "not yet", or empty.
        """
        columns = self.exercises
        return [
            (
                name,
                str(sum(each.right for each in tried.values())),
                *map(_format_mark, map(tried.get, columns)),
            )
            for name, tried in self.readers.items()
        ]

    def table(self) -> Sheet:
        """Return the rows as a table with a header."""
        columns = ("name", "right", *self.exercises)
        return sheet(columns, self.rows(), "Marks: the try at which each was right")

    def csv(self) -> str:
        """Return the rows as CSV.

        A cell that a spreadsheet would read as a formula gets a leading apostrophe.
        """
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(("name", "right", *map(escape_formula, self.exercises)))
        writer.writerows(tuple(map(escape_formula, row)) for row in self.rows())
        return buffer.getvalue()


def read_hand_in(path: Path) -> HandIn:
    """Read the attempts in a hand-in file.

    Raises BadInput if the file is missing, too large, damaged, accidentally changed, or not a hand-in file.
    """
    try:
        if path.stat().st_size > _MAX_FILE_SIZE:
            raise BadInput(f"it is larger than {_MAX_FILE_SIZE:,} bytes")
        content = parse_json(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("handed in") != HAND_IN_VERSION:
            raise BadInput("it is no file of lab.hand_in, or one of another version")
        if content.get("digest") != content_digest(content):
            raise BadInput("its digest does not fit what it holds")
        attempts = tuple(map(_parse_attempt, content["attempts"]))
        exercises = {attempt.exercise for attempt in attempts}
        if not isinstance(content["name"], str) or len(exercises) < len(attempts):
            raise BadInput("it holds an exercise twice, or no name")
    except BadInput as error:
        raise BadInput(f"{path.name} is left out: {error}") from None
    except FileNotFoundError:
        is_pattern = any(wildcard in path.name for wildcard in "*?[")
        missing = "no file fits it" if is_pattern else "there is no such file"
        raise BadInput(f"{path} is left out: {missing}") from None
    except IsADirectoryError:
        raise BadInput(f"{path} is left out: it is a folder; name the files in it") from None
    except OSError as error:
        raise BadInput(f"{path.name} is left out: it cannot be read ({error.strerror or error})") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        reason = "it is damaged, or no file of lab.hand_in: ask its writer for another"
        raise BadInput(f"{path.name} is left out: {reason}") from None
    return HandIn(path, _clean_line(content["name"]) or "(no name)", attempts)


def collect_marks(handed: Sequence[HandIn]) -> Marks:
    """Collect the marks by name.

    Files with the same name are merged if they are about different exercises, and kept as separate lines
    otherwise.
    """
    counts = Counter((file.name, attempt.exercise) for file in handed for attempt in file.attempts)
    duplicates = {name for (name, _), count in counts.items() if count > 1}
    lines: dict[str, dict[str, Attempt]] = {}
    for number, file in enumerate(handed, start=1):
        name = f"{file.name} ({_clean_line(file.path.name)})" if file.name in duplicates else file.name
        if file.name in duplicates and name in lines:  # the same file name in two folders
            name += f" {number}"
        lines.setdefault(name, {}).update({attempt.exercise: attempt for attempt in file.attempts})
    return Marks({name: lines[name] for name in sorted(lines, key=str.casefold)})


def _parse_attempt(content: Any) -> Attempt:
    exercise, answer, right, tries = (content[key] for key in ("exercise", "answer", "right", "tries"))
    kinds = [type(value) for value in (exercise, answer, right, tries)]
    if kinds != [str, str, bool, int] or tries < 1 or not _clean_line(exercise):
        raise BadInput("an attempt in it is not one")
    return Attempt(_clean_line(exercise), _clean_line(answer), right, tries)


def _format_mark(attempt: Attempt | None) -> str:
    return "" if attempt is None else f"try {attempt.tries}" if attempt.right else "not yet"


def _clean_line(text: str) -> str:
    return " ".join(printable_line(text).split())[:_MAX_STORED_NAME]
