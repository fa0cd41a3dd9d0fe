"""A memory is taught by messages, each on file as counts when it is done, so that it goes on after a stop; no
text is kept.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from kgot_lab.benchmark.questions.plan import plan_differences, told_differences
from kgot_lab.errors import BadInput, BadReply, LLMError, words_of
from kgot_lab.experiments.junk.grounds import ground_of
from kgot_lab.experiments.junk.messages import SaidMessage, digest_of_messages
from kgot_lab.io.atomic_write import write_whole
from kgot_lab.llm.structured import RecordedCall, noting_calls
from kgot_lab.loop.trace import made_by
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.conversation import ClaimMemory
from kgot_lab.memory.extraction import ExtractionMode
from kgot_lab.memory.tables.sqlite import SQLiteClaims
from kgot_lab.memory.turn_records import UserTurn
from kgot_lab.types import LLM, Json

TAUGHT_WAYS: tuple[ExtractionMode, ...] = ("schema", "grounded")
JUNK_RECEIPTS, JUNK_PLAN = "receipts.json", "plan.json"
_KIND = "how much of what a memory writes is junk"
_SAID_AT = datetime(
    2026, 1, 1, tzinfo=UTC
)  # a message without a date of its own says nothing of when it was said
_IN_A_ROW = 5  # messages without a reply before it stops: then it is the model's server and not the message


@dataclass(frozen=True)
class JunkReceipt:
    """What came of a message taught one way: what it cost, and how many facts were refused, and written, by
    what the message has for them.

    `waiting` of those written are not believed before review. `failed` names the error where the reply was no
    list of facts.
    """

    id: str
    way: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    refused: int
    said: int
    another_relation: int
    no_sentence: int
    waiting: int
    tokens_not_read: int
    failed: str = ""

    @property
    def written(self) -> int:
        """How many facts the memory took, those that wait for review too."""
        return self.said + self.another_relation + self.no_sentence


@dataclass(frozen=True)
class JunkTrial:
    """Messages, the ways in which a model takes facts from them, and the folder that keeps what came of it."""

    messages: Sequence[SaidMessage]
    folder: Path
    llm: LLM
    ways: Sequence[ExtractionMode] = TAUGHT_WAYS
    clock: Callable[[], float] = field(default=time.monotonic)

    def missing(self) -> list[tuple[SaidMessage, ExtractionMode]]:
        """The messages and ways that are not on file; all ways of a message follow each other, so that what
        is stopped has pairs.
        """
        there = {(receipt.id, receipt.way) for receipt in junk_receipts(self.folder)}
        return [
            (message, way) for message in self.messages for way in self.ways if (message.id, way) not in there
        ]

    def receipts(self, minutes: float | None = None) -> Iterator[JunkReceipt]:
        """Teach what is missing, each as it is on file; no message is begun once the minutes are over.

        A model that gives no reply is asked again the next time. Raises BadInput for another plan in the
        folder, LLMError where five messages in a row have no reply.
        """
        self.keep_plan()
        kept, began, in_a_row = list(junk_receipts(self.folder)), self.clock(), 0
        for message, way in self.missing():
            if minutes is not None and self.clock() - began >= 60 * minutes:
                return
            try:
                receipt = taught(self.llm, message, way)
            except LLMError as error:
                in_a_row += 1
                if in_a_row == _IN_A_ROW:
                    raise LLMError(
                        f"{in_a_row} messages in a row had no reply, so it stops; the last one: {words_of(error)}"
                    ) from error
                continue
            in_a_row = 0
            kept.append(receipt)
            lines = ",\n".join(json.dumps(asdict(each)) for each in kept)
            write_whole(self.folder / JUNK_RECEIPTS, f"[\n{lines}\n]\n", "the receipts")
            yield receipt

    def keep_plan(self) -> None:
        """Write the plan, or see that the one in the folder is the same; raises BadInput: what differs."""
        told: Json = {
            "plan": 1, "kind": _KIND, "messages": len(self.messages), "messages_sha256": digest_of_messages(self.messages),
            "model": {"name": self.llm.name, **made_by(self.llm)},
        }  # fmt: skip
        path = self.folder / JUNK_PLAN
        if not path.exists():
            write_whole(path, json.dumps(told, indent=1, ensure_ascii=False) + "\n", "the plan")
            write_whole(self.folder / ".gitignore", ".lock*\n", "what git ignores")
        elif differences := plan_differences(junk_plan(self.folder), told):
            raise BadInput(
                f"{self.folder} holds receipts of another plan: {told_differences(differences)}. Name another folder with --folder DIR"
            )


def taught(llm: LLM, message: SaidMessage, way: ExtractionMode) -> JunkReceipt:
    """What comes of teaching a memory of its own a message, as an agent does, with one reply and none mended;
    raises LLMError.
    """
    calls: list[RecordedCall] = []
    began = time.monotonic()
    with closing(SQLiteClaims()) as storage, noting_calls(calls):
        memory = ClaimMemory(Claims(storage), llm, session="junk", extraction=way)
        told = UserTurn(message.id, 1, message.text, "user", _SAID_AT)
        try:
            found, failed = memory.extracted(message.text, repairs=0), ""
        except BadReply as error:
            found, failed = None, type(error).__name__
        noted = memory.keep(told, found) if found is not None else None
    written = (*noted.learnt, *noted.waiting) if noted is not None else ()
    grounds = Counter(ground_of(fact, message.text) for fact in written)
    return JunkReceipt(
        message.id, way, len(calls), sum(call.usage.prompt_tokens for call in calls), sum(call.usage.completion_tokens for call in calls),
        round(time.monotonic() - began, 2), len(found.refused) if found is not None else 0, grounds["said"], grounds["another relation"],
        grounds["no sentence"], len(noted.waiting) if noted is not None else 0, found.left_out if found is not None else 0, failed,
    )  # fmt: skip


def junk_plan(folder: Path) -> dict[str, Json]:
    """The plan of a folder as plain values; raises BadInput where there is none."""
    try:
        plan = json.loads((folder / JUNK_PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"there is no plan of messages in {folder}: {error}") from None
    if not isinstance(plan, dict) or plan.get("kind") != _KIND:
        raise BadInput(
            f"{folder / JUNK_PLAN} is not the plan of messages: name another folder with --folder DIR"
        )
    return plan


def junk_receipts(folder: Path) -> list[JunkReceipt]:
    """The receipts on file, none where there is no file; raises BadInput for one that holds something else."""
    path = folder / JUNK_RECEIPTS
    if not path.exists():
        return []
    try:
        return [JunkReceipt(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(
            f"{path} does not hold receipts of messages ({error}): restore a copy, or put it away"
        ) from None
