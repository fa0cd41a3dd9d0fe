"""Questions to an expert and what came of them: which answers failed, and how one knows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kgot_lab.experts.repository import ChatMessage, ExpertTables

FAILURES = ("thumbs down", "does not know", "false citations", "nothing retrieved")
_DOES_NOT_KNOW = re.compile(
    r"\b(i|we) (do not|don['’]?t|cannot|can['’]?t|could not|couldn['’]?t|am unable to|['’]m unable to) (know|say|tell|answer|find)\b"
    r"|\bi have no (information|knowledge|data)\b"
    r"|\b(graph|context|sources?|material)\b[^.!?\n]{0,40}\b(does|do|did) ?(not|n['’]t) "
    r"(say|tell|know|hold|contain|cover|mention|include|answer)\b"
    r"|\b(graph|context)\b[^.!?\n]{0,30}\b(holds|contains|has|says|knows) nothing\b"
    r"|\bnothing (in|of) the (knowledge )?(graph|context)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class QuestionRecord:
    """A question and what came of it: the nodes of one graph that were told and cited, best first, false
    citations, and a thumb or None.
    """

    message: str  # the id of the answer
    question: str
    answer: str = ""
    told: tuple[str, ...] = ()
    cited: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    thumb: int | None = None
    intent: str = ""

    @property
    def failures(self) -> tuple[str, ...]:
        """In which of the four ways the answer failed; a thumb up says that it did not, whatever else."""
        if self.thumb == 1:
            return ()
        signs = (self.thumb == -1, admits_not_knowing(self.answer), bool(self.false), not self.told)
        return tuple(name for name, there in zip(FAILURES, signs, strict=True) if there)


def admits_not_knowing(answer: str) -> bool:
    """Whether an answer says, in English, that it does not know or that the graph does not say it."""
    return _DOES_NOT_KNOW.search(answer) is not None


def question_records(
    messages: Sequence[ChatMessage], thumbs: Mapping[str, int], graph: str
) -> tuple[QuestionRecord, ...]:
    """The questions of a conversation with what came of them, as one graph of the expert has it; `thumbs` are
    by the id of the answer.

    An answer that was stopped, or that a model failed to give, says nothing of the graph and is left out.
    """
    found = []
    for before, answer in pairwise(messages):
        about = answer.metadata
        if (
            (before.role, answer.role) != ("user", "assistant")
            or about.get("failed")
            or about.get("stopped")
            or "trace" not in about
        ):
            continue
        nodes = [each["id"] for each in about["trace"]["nodes"] if each["told"] and each["graph"] == graph]
        cited = tuple(each["id"] for each in about.get("citations", ()) if each["graph"] == graph)
        false = tuple(about.get("false_citations", ()))
        thumb, intent = thumbs.get(answer.id), str(about.get("intent") or "")
        found.append(
            QuestionRecord(
                answer.id, before.content, answer.content, tuple(nodes), cited, false, thumb, intent
            )
        )
    return tuple(found)


def questions_of(
    tables: ExpertTables, expert: str, owner: str, graph: str, *, most: int = 200
) -> tuple[QuestionRecord, ...]:
    """The questions of somebody to an expert, of at most so many conversations, the last first.

    What several people asked is the sum of these; whoever joins them shows the words of one to whoever reads
    the report.
    """
    thumbs = {each.message: each.thumb for each in tables.judged(expert) if each.thumb is not None}
    talks, _ = tables.conversations(expert, owner, limit=most)
    return tuple(each for talk in talks for each in question_records(tables.messages(talk.id), thumbs, graph))
