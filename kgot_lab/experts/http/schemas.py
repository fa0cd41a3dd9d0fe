"""Request and response schemas of the REST API, with examples."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from kgot_lab.experts.expert import Expert, ExpertRetrieval
from kgot_lab.experts.neighbourhood import PositionedNode


def check_characters(text: str) -> str:
    if any(character == "\x00" or 0xD800 <= ord(character) <= 0xDFFF for character in text):
        raise ValueError("it has a character that cannot be stored: a null, or half of a surrogate pair")
    return text


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank; ask something")
    return check_characters(text)


ValidId = Annotated[str, Field(max_length=200), AfterValidator(check_characters)]
_Question = Annotated[str, Field(min_length=1, max_length=20_000), AfterValidator(_check_not_blank)]
_Id = ValidId


_STREAM_EVENT: dict[str, Any] = {  # one event of a stream, as described in OpenAPI
    "type": "object",
    "properties": {
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "description": "the event; `type` says which",
        }
    },
    "required": ["data"],
}
STREAMED: dict[int | str, Any] = {200: {"content": {"text/event-stream": {"schema": _STREAM_EVENT}}}}

_NEXT_PAGE = 'the next page, as <ADDRESS>; rel="next"; not on the last'
_LINK = {"description": _NEXT_PAGE, "schema": {"type": "string"}}
PAGED: dict[int | str, dict[str, Any]] = {200: {"headers": {"Link": _LINK}}}


class _Request(BaseModel):
    model_config: ClassVar[ConfigDict] = {"extra": "forbid"}


class ApiError(BaseModel):
    """An error: a code for programs, and a message that says what to do."""

    code: str
    message: str


class ApiErrorBody(BaseModel):
    error: ApiError


class PersonaSummary(BaseModel):
    name: str
    style: str


class ExpertSummary(BaseModel):
    """An expert in a list."""

    id: str
    name: str
    description: str
    kg_db_id: str
    kg_db_ids: list[str]
    persona: PersonaSummary
    created_at: datetime
    conversation_count: int
    last_active: datetime | None


class CreatedExpert(BaseModel):
    id: str
    name: str
    created_at: datetime


class ExpertDetails(Expert):
    """An expert with all its settings, and the weights in effect."""

    model_config: ClassVar[ConfigDict] = {"extra": "forbid", "frozen": True}
    effective_weights: dict[str, float]


class DuplicateRequest(_Request):
    """The name of a copy, and the fields that differ in it."""

    new_name: Annotated[str, Field(min_length=1, max_length=200)]
    overrides: dict[str, Any] = {}


class Deleted(BaseModel):
    deleted: bool


class DeletedExpert(Deleted):
    conversations_deleted: int


class HistoryMessage(_Request):
    role: Literal["user", "model", "assistant"]
    content: Annotated[str, Field(max_length=20_000)]


class ChatRequest(_Request):
    """A question. With a conversation's id, the server's history counts and `history` is ignored.

    `model` is a name of the server's own list. `provider` is accepted for older clients and ignored. With
    `trace`, the train of thought is sent as an event.
    """

    query: _Question
    conversation_id: _Id | None = None
    history: Annotated[list[HistoryMessage], Field(max_length=200)] = []
    provider: _Id | None = None
    model: _Id | None = None
    trace: bool = False


class ConversationSummary(BaseModel):
    id: str
    started_at: datetime
    last_message_at: datetime
    message_count: int
    preview: str


class ConversationPage(BaseModel):
    conversations: Sequence[ConversationSummary]
    total: int
    limit: int
    offset: int


class OwnedConversation(ConversationSummary):
    """A conversation in a list over all experts, with the id of its expert, which may have been deleted."""

    expert_id: str


class OwnedConversationPage(ConversationPage):
    conversations: Sequence[OwnedConversation]


class MessageDetails(BaseModel):
    id: str
    role: str
    content: str
    timestamp: datetime
    metadata: dict[str, Any]
    thumb: int | None  # the caller's rating of an answer: 1 or -1


class ConversationDetails(BaseModel):
    id: str
    expert_id: str
    started_at: datetime
    messages: list[MessageDetails]


class RatingRequest(_Request):
    """The rating of an answer: 1 or -1."""

    thumb: Literal[1, -1]


class StoredRating(BaseModel):
    kept: bool


class QueryRequest(_Request):
    query: _Question
    config: ExpertRetrieval = ExpertRetrieval()


class ImpactRequest(_Request):
    direction: Literal["forward", "backward", "both"] = "both"
    max_depth: Annotated[int, Field(ge=1, le=10)] = 3


class ComposeRequest(_Request):
    goal: _Question
    max_tools: Annotated[int, Field(ge=1, le=20)] = 5


class SimilarRequest(_Request):
    k: Annotated[int, Field(ge=1, le=200)] = 10


class NodeLimitation(BaseModel):
    """A limitation of a node, the ids of its workarounds, and whether it makes the node unusable."""

    id: str
    name: str
    description: str
    workarounds: list[str]
    blocking: bool


class EdgeSummary(BaseModel):
    source: str
    type: str
    target: str


class NodeNeighbourhood(BaseModel):
    """A node with its neighbourhood, laid out for a drawing. Total counts show how much was left out."""

    graph: str
    node: PositionedNode
    properties: dict[str, Any]
    limitations: list[NodeLimitation]
    neighbours: list[PositionedNode]
    edges: list[EdgeSummary]
    neighbours_in_all: int
    edges_in_all: int


class GraphSummary(BaseModel):
    """The size of a graph: nodes, edges, and the number of nodes of each of its most frequent types."""

    id: str
    nodes: int
    edges: int
    types: dict[str, int]


class FinishedUpload(_Request):
    """The id of an upload whose files were all sent, and the name of the graph."""

    upload: Annotated[str, Field(max_length=40)]
    name: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(check_characters)]


class DimensionSummary(BaseModel):
    name: str
    category: str
    description: str
    low_description: str
    high_description: str
    range: list[float]


class DimensionList(BaseModel):
    dimensions: list[DimensionSummary]
    total: int
    categories: dict[str, int]
