"""The long chats of BEAM and their questions, read from a folder of one's own: the package holds none of
their texts.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from kgot_lab.errors import BadInput
from kgot_lab.types import Document, Json, Query

CHATS_FILE, ASKED_FILE = "chats.jsonl.gz", "questions.jsonl.gz"
ABSTENTION = "abstention"  # the ability that asks for what no turn says
_TURN = {
    "chat_id": str,
    "turn_id": int,
    "session": int,
    "time": str,
    "role": str,
    "text": str,
    "in_short": bool,
    "locked": bool,
}
_ASKED = {"_id": str, "chat_id": str, "ability": str, "question": str, "evidence": list, "locked": bool}


@dataclass(frozen=True)
class ChatTurn:
    """A message of a chat: its id, its place, session and day, who said it, and its text."""

    id: str
    number: int
    session: int
    day: str
    by_user: bool
    text: str

    @property
    def document(self) -> Document:
        """The turn as what is searched."""
        return Document(self.id, self.text)


@dataclass(frozen=True)
class ChatQuestion:
    """A question on a chat, the ability it is to test, and the ids of the turns that hold its evidence; none
    where there is none.
    """

    id: str
    ability: str
    text: str
    evidence: frozenset[str]

    @property
    def query(self) -> Query:
        """The question as it is put to a search, which does not see the ability."""
        return Query(self.text, self.id)


@dataclass(frozen=True)
class LongChat:
    """A chat as the questions were written from it, shortened where the source shortened it, with its
    questions.
    """

    id: str
    held_out: bool
    turns: tuple[ChatTurn, ...]
    questions: tuple[ChatQuestion, ...]


def read_chats(folder: Path) -> tuple[LongChat, ...]:
    """The chats of a folder with chats.jsonl.gz and questions.jsonl.gz, each with the messages marked
    `in_short`.

    Raises BadInput for a folder without them, for a row that lacks something, and where the rows break what
    the data are known for: turns numbered from 0 without a gap, user and assistant in turn, days that never
    go back, and evidence that is in the shortened chat.
    """
    rows, asked = defaultdict[str, list[Json]](list), defaultdict[str, list[Json]](list)
    for row in _rows(folder / CHATS_FILE, _TURN):
        rows[row["chat_id"]].append(row)
    for row in _rows(folder / ASKED_FILE, _ASKED):
        asked[row["chat_id"]].append(row)
    if strange := sorted(set(asked) ^ set(rows)):
        raise BadInput(
            f"{folder}: the chat {strange[0]} has turns without questions, or questions without turns"
        )
    return tuple(
        _chat(name, sorted(some, key=lambda row: int(row["turn_id"])), asked[name])
        for name, some in sorted(rows.items())
    )


def data_digest(folder: Path) -> str:
    """SHA-256 of both files of a folder as they are unpacked."""
    digest = hashlib.sha256()
    for name in (CHATS_FILE, ASKED_FILE):
        digest.update(_unpacked(folder / name))
    return digest.hexdigest()


def _chat(name: str, rows: Sequence[Json], asked: Sequence[Json]) -> LongChat:
    _check(name, rows, asked)
    short = [row for row in rows if row["in_short"]]
    turns = tuple(
        ChatTurn(
            _turn_id(name, row["turn_id"]),
            row["turn_id"],
            row["session"],
            row["time"],
            row["role"] == "user",
            row["text"],
        )
        for row in short
    )
    known = {turn.id for turn in turns}
    questions = []
    for row in asked:
        evidence = frozenset(_turn_id(name, number) for number in row["evidence"])
        if not evidence <= known:
            raise BadInput(
                f"question {row['_id']} has evidence that is no turn of the shortened chat {name}: {min(evidence - known)}"
            )
        questions.append(ChatQuestion(row["_id"], row["ability"], row["question"], evidence))
    return LongChat(name, bool(rows[0]["locked"]), turns, tuple(questions))


def _check(name: str, rows: Sequence[Json], asked: Sequence[Json]) -> None:
    """Raise BadInput where a chat breaks what the data are known for."""
    if [row["turn_id"] for row in rows] != list(range(len(rows))):
        raise BadInput(f"the turns of chat {name} are not numbered from 0 without a gap")
    if any((row["role"] == "user") == bool(row["turn_id"] % 2) for row in rows):
        raise BadInput(f"in chat {name} user and assistant do not take turns, the user first")
    if any(later["time"] < earlier["time"] for earlier, later in pairwise(rows)):
        raise BadInput(f"in chat {name} the days of the sessions go back")
    if any(later["in_short"] > earlier["in_short"] for earlier, later in pairwise(rows)):
        raise BadInput(f"the shortened chat {name} is not the beginning of the whole")
    if len({row["locked"] for row in [*rows, *asked]}) > 1:
        raise BadInput(
            f"chat {name} is held out in part; a chat is held out with its questions or not at all"
        )


def _turn_id(chat: str, number: object) -> str:
    return f"{chat}-{number:04}"  # as wide as any chat is long, so that ids in order are turns in order


def _rows(path: Path, shape: dict[str, type]) -> list[Json]:
    rows = []
    for number, line in enumerate(_unpacked(path).splitlines(), start=1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise BadInput(f"{path}, line {number}: not JSON ({error})") from None
        if not isinstance(row, dict) or (
            lacking := [name for name, kind in shape.items() if not isinstance(row.get(name), kind)]
        ):
            raise BadInput(
                f"{path}, line {number}: no row of BEAM, which holds {', '.join(shape)}; wrong is {lacking[0]}"
            )
        rows.append(row)
    return rows


def _unpacked(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        told = (error.strerror or error) if isinstance(error, OSError) else error
        raise BadInput(
            f"{path.parent} is no folder of BEAM: {path.name}: {told}. Name the one with {CHATS_FILE} and {ASKED_FILE}"
        ) from None
