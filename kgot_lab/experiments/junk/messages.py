"""The messages that a memory is taught by: drawn from long chats, of one's own file, or made up with their
facts.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kgot_lab.errors import BadInput, TooLittle, require_count
from kgot_lab.experiments.beam.chats import LongChat
from kgot_lab.experiments.competence.extracting import SimulatedExtractor
from kgot_lab.experiments.competence.simulated import Competence
from kgot_lab.experiments.competence.worlds import chain_world
from kgot_lab.types import Json

MESSAGES_DRAWN, DRAWN_BY = 100, 16  # how many, and the seed


@dataclass(frozen=True)
class SaidMessage:
    """What a user said, and an id that tells it from the others."""

    id: str
    text: str = field(repr=False)


def messages_of_chats(
    chats: Sequence[LongChat], many: int = MESSAGES_DRAWN, *, seed: int = DRAWN_BY
) -> list[SaidMessage]:
    """Some messages of users, drawn by seed from the open chats; the locked ones are not looked at. Raises
    TooLittle for too few.
    """
    require_count(many, 1, "many")
    said = [
        SaidMessage(turn.id, turn.text)
        for chat in chats
        if not chat.locked
        for turn in chat.turns
        if turn.by_user and turn.text.strip()
    ]
    if len(said) < many:
        raise TooLittle(f"the open chats have {len(said)} messages of users, and {many} were asked for")
    return sorted(random.Random(seed).sample(said, many), key=lambda each: each.id)


def messages_of_file(path: Path, many: int | None = None) -> list[SaidMessage]:
    """The first so many messages of a file of JSON lines, each an object with "text", and "id" where it has
    one. Raises BadInput.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"the messages {path} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    found: dict[str, SaidMessage] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            message = _message(line, number, path)
            if message.id in found:
                raise BadInput(f"{path}, line {number}: another message has the id {message.id!r}")
            found[message.id] = message
    if not found:
        raise BadInput(
            f'{path} holds no message: a line is {{"text": "Ada lives in Paris."}}, with an "id" where it has one'
        )
    return list(found.values())[:many]


def made_up_messages(many: int, competence: Competence) -> tuple[list[SaidMessage], SimulatedExtractor]:
    """Messages of two pages each of a made-up world, and a simulated model that knows their facts and errs at
    set rates.
    """
    require_count(many, 1, "many")
    world = chain_world(many, 1)  # a chain of one fact has two pages
    gold = {
        step.sentence: step.fact
        for step in (*(step for chain in world.gold.chains for step in chain.steps), *world.gold.besides)
    }
    texts = [
        f"{first.text} {second.text}"
        for first, second in zip(world.documents[::2], world.documents[1::2], strict=True)
    ]
    said = {text: [fact for sentence, fact in gold.items() if sentence in text] for text in texts}
    names = sorted({end for fact in gold.values() for end in (fact.subject, fact.object)})
    messages = [SaidMessage(f"made-up {number}", text) for number, text in enumerate(texts, start=1)]
    return messages, SimulatedExtractor(said, competence, names=names)


def digest_of_messages(messages: Sequence[SaidMessage]) -> str:
    """A hash of all messages, in their order."""
    return hashlib.sha256(json.dumps([[each.id, each.text] for each in messages]).encode()).hexdigest()


def _message(line: str, number: int, path: Path) -> SaidMessage:
    try:
        row: Json = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}, line {number}: not JSON ({error})") from None
    text, id = (row.get("text"), row.get("id", f"line {number}")) if isinstance(row, dict) else (None, "")
    if not isinstance(text, str) or not text.strip() or not isinstance(id, str | int) or not str(id).strip():
        raise BadInput(
            f'{path}, line {number}: no message, which is {{"text": "…"}}, with an "id" where it has one'
        )
    return SaidMessage(str(id), text)
