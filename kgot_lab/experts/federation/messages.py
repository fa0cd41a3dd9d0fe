"""What stands in a question to another instance's expert, and in its answer; of either only what is sound is
taken in.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from kgot_lab.errors import BadInput
from kgot_lab.experts.expert import first_problem
from kgot_lab.text.cleaning import harmless

MOST_QUESTION, MOST_ANSWER = 20_000, 200_000  # characters
MOST_SOURCES = 200


def _check_line(text: str) -> str:
    if not text.strip() or harmless(text) != text:
        raise ValueError("it is blank, or has more than one line")
    return text


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank")
    return text


def _check_source(text: str) -> str:
    graph, _, node = text.partition(":")
    if not graph or not node:
        raise ValueError("a source is written GRAPH:NODE")
    return text


Line = Annotated[str, Field(max_length=200), AfterValidator(_check_line)]
_Source = Annotated[str, Field(max_length=500), AfterValidator(_check_line), AfterValidator(_check_source)]


class SentValue(BaseModel):
    """A value that is sent or came: frozen, with no field that is not known; raises BadInput."""

    model_config: ClassVar[ConfigDict] = {"extra": "forbid", "frozen": True}

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise BadInput(first_problem(error)) from None

    def to_json(self) -> dict[str, Any]:
        """The value as JSON has it."""
        return self.model_dump(mode="json")


class RemoteQuestion(SentValue):
    """A question to an expert, by the id that its instance knows it by."""

    expert: Line
    question: Annotated[str, Field(max_length=MOST_QUESTION), AfterValidator(_check_not_blank)]


class RemoteAnswer(SentValue):
    """What an expert answers, with the nodes it cites as GRAPH:NODE; or no answer and the reason."""

    expert: Line
    answer: Annotated[str, Field(max_length=MOST_ANSWER), AfterValidator(_check_not_blank)] | None
    sources: Annotated[tuple[_Source, ...], Field(max_length=MOST_SOURCES)] = ()
    reason: Annotated[str, Field(max_length=500)] = ""

    @model_validator(mode="after")
    def _check_reason(self) -> RemoteAnswer:
        if self.answer is not None and self.reason:
            raise ValueError("an answer has no reason")
        if self.answer is None and (self.sources or not self.reason.strip()):
            raise ValueError("without an answer there is a reason, and no source")
        return self
