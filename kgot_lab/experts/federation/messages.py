"""What stands in a question to another instance's expert, and in its answer; of either only what is sound is
taken in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kgot_lab.errors import BadInput, require
from kgot_lab.text.harmless import harmless

MOST_QUESTION, MOST_ANSWER = 20_000, 200_000  # characters
MOST_SOURCES = 200
_NAME, _SOURCE, _REASON = 200, 500, 500


@dataclass(frozen=True)
class RemoteQuestion:
    """A question to an expert, by the id that its instance knows it by; raises BadInput for one that is none."""

    expert: str
    question: str

    def __post_init__(self) -> None:
        single_line(self.expert, "the id of an expert", _NAME)
        require(self.question, str, "a question is a text")
        if not self.question.strip() or len(self.question) > MOST_QUESTION:
            raise BadInput(f"a question to another instance has 1 to {MOST_QUESTION:,} characters")

    def to_json(self) -> dict[str, Any]:
        """The body of its envelope."""
        return {"expert": self.expert, "question": self.question}


@dataclass(frozen=True)
class RemoteAnswer:
    """What an expert answers, with the nodes it cites as GRAPH:NODE; or no answer and the reason. Raises
    BadInput for one that is none.
    """

    expert: str
    answer: str | None
    sources: tuple[str, ...] = ()
    reason: str = ""

    def __post_init__(self) -> None:
        single_line(self.expert, "the id of an expert", _NAME)
        require(self.answer, (str, type(None)), "an answer is a text, or None")
        require(self.reason, str, "a reason is a text")
        if self.answer is not None and (
            not self.answer.strip() or len(self.answer) > MOST_ANSWER or self.reason
        ):
            raise BadInput(
                f"an answer has 1 to {MOST_ANSWER:,} characters and no reason; without an answer it is None"
            )
        if self.answer is None and (self.sources or not self.reason.strip() or len(self.reason) > _REASON):
            raise BadInput(f"without an answer there is a reason of 1 to {_REASON} characters, and no source")
        if len(self.sources) > MOST_SOURCES:
            raise BadInput(f"an answer cites at most {MOST_SOURCES} nodes")
        for source in self.sources:
            single_line(source, "a source", _SOURCE)
            graph, _, node = source.partition(":")
            if not graph or not node:
                raise BadInput("a source is written GRAPH:NODE")

    def to_json(self) -> dict[str, Any]:
        """The body of its envelope."""
        return {
            "answer": self.answer,
            "expert": self.expert,
            "reason": self.reason,
            "sources": list(self.sources),
        }


def remote_question(body: Mapping[str, Any]) -> RemoteQuestion:
    """The question in the body of an envelope; raises BadInput."""
    return RemoteQuestion(**_only(body, ("expert", "question")))


def remote_answer(body: Mapping[str, Any]) -> RemoteAnswer:
    """The answer in the body of an envelope; raises BadInput."""
    fields = _only(body, ("answer", "expert", "reason", "sources"))
    return RemoteAnswer(**fields | {"sources": texts(fields["sources"], "sources")})


def single_line(value: object, what: str, most: int) -> str:
    """A text of one line that can do nothing to what shows it; raises BadInput for any other, or a longer
    one.
    """
    if not isinstance(value, str) or not value.strip() or len(value) > most or harmless(value) != value:
        raise BadInput(f"{what} is a text of 1 to {most} characters on one line")
    return value


def texts(value: object, what: str) -> tuple[str, ...]:
    """A list of texts, as JSON has it; raises BadInput."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadInput(f"{what} are a list of texts")
    return tuple(value)


def _only(body: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    if set(body) != set(names):
        raise BadInput(f"this has {', '.join(sorted(names))}, and nothing else")
    return dict(body)
