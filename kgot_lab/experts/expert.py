"""The configuration of an expert (KG-OS, section 8).

It has graphs, persona, retrieval, playbooks, filters and the effects of goal words.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from kgot_lab.errors import BadInput, LabError
from kgot_lab.kgos.methods.search.configuration import GoalMapping, RetrievalConfig
from kgot_lab.llm.structured import field_problem
from kgot_lab.retrieval.fusion import Weights

SCHEMA_VERSION = 1
GRAPH_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MAX_TEXT_LENGTH, _MAX_LIST_LENGTH = 20_000, 100


def _check_not_blank(text: str) -> str:
    """Validate a text that is stored and shown.

    It must not be blank, nor contain lone surrogates or control characters other than tabs and line ends.
    """
    if not text.strip():
        raise ValueError("it is blank")
    return _check_characters(text)


def _check_characters(text: str) -> str:
    if any((ord(c) < 32 and c not in "\t\n\r") or 0xD800 <= ord(c) <= 0xDFFF or c == "\x7f" for c in text):
        raise ValueError("it has control characters, or half of a surrogate pair")
    return text


def _check_graph_id(text: str) -> str:
    if not GRAPH_ID.fullmatch(text):
        raise ValueError("the id of a graph is letters, digits, dots, dashes and underscores, at most 100")
    return text


_Name = Annotated[str, Field(max_length=200), AfterValidator(_check_not_blank)]
_Text = Annotated[str, Field(max_length=_MAX_TEXT_LENGTH), AfterValidator(_check_characters)]
_ShortText = Annotated[str, Field(max_length=100), AfterValidator(_check_not_blank)]
_GraphId = Annotated[str, AfterValidator(_check_graph_id)]
_Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
_Method = Literal["hybrid", "intent"]
_GraphWeight = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
_ShortTexts = Annotated[tuple[_ShortText, ...], Field(max_length=_MAX_LIST_LENGTH)]


class ExpertPart(BaseModel):
    """Base of all parts of an expert: frozen, and without unknown fields."""

    model_config: ClassVar[ConfigDict] = {"extra": "forbid", "frozen": True}


class Persona(ExpertPart):
    """How an expert speaks: its name, its instructions, its style and its greeting."""

    name: _Name
    instructions: _Text = ""
    style: _ShortText = "professional"
    greeting: _Text = ""


class ExpertRetrieval(ExpertPart):
    """How an expert searches. Weights are divided by their sum."""

    methods: Annotated[tuple[_Method, ...], Field(min_length=1, max_length=2)] = ("hybrid", "intent")
    alpha: _Weight = 0.35
    beta: _Weight = 0.40
    gamma: _Weight = 0.15
    delta: _Weight = 0.10
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    expand_depth: Annotated[int, Field(ge=0, le=3)] = 1
    boost_types: _ShortTexts | None = None

    def search_config(self) -> RetrievalConfig:
        """Return how a graph is searched."""
        fields = {name: getattr(self, name) for name in ("methods", "limit", "expand_depth", "boost_types")}
        return RetrievalConfig(weights=Weights(self.alpha, self.beta, self.gamma, self.delta), **fields)


class DimensionBound(ExpertPart):
    """The range of a node's dimension, bounds included."""

    min: Annotated[float, Field(allow_inf_nan=False)] | None = None
    max: Annotated[float, Field(allow_inf_nan=False)] | None = None
    exact: Annotated[float, Field(allow_inf_nan=False)] | None = None


class ExpertGoal(ExpertPart):
    """The effects of a goal word.

    These are edge types to follow, and dimensions that count in intent retrieval.
    """

    boost_types: _ShortTexts = ()
    dimension_boosts: _ShortTexts = ()


class CrossEdge(ExpertPart):
    """An edge between two graphs of an expert. Its ends are written GRAPH:NODE."""

    source: _Name
    type: _ShortText
    target: _Name


class ExpertConfig(ExpertPart):  # 16 fields: the JSON form of an expert
    """All settings of an expert. `kg_db_ids` take precedence over `kg_db_id`.

    `graph_weights` are the weights of the graphs, 1 by default. `models` maps a task (chat) to the name of a
    model of the server. With `answers_in` "sentences", a model must write sentences that each name a source
    from the prompt, which makes small models cite. The model has to support a JSON schema. With `off_topic`
    "decline", no model is called if the nodes found share no word with the question, and the expert says so.
    `delegates_to` names experts of other instances, PEER/EXPERT, that are asked when its own graphs hardly
    cover a question.
    """

    schema_version: Literal[1] = 1
    name: _Name
    description: _Text = ""
    kg_db_id: _GraphId | None = None
    kg_db_ids: Annotated[tuple[_GraphId, ...], Field(max_length=20)] = ()
    graph_weights: Annotated[dict[_GraphId, _GraphWeight], Field(max_length=20)] = {}
    cross_edges: Annotated[tuple[CrossEdge, ...], Field(max_length=1000)] = ()
    persona: Persona
    retrieval: ExpertRetrieval = ExpertRetrieval()
    dimension_filters: Annotated[dict[_ShortText, DimensionBound], Field(max_length=_MAX_LIST_LENGTH)] = {}
    playbook_skills: _ShortTexts = ()
    custom_goal_mappings: Annotated[dict[_ShortText, ExpertGoal], Field(max_length=_MAX_LIST_LENGTH)] = {}
    delegates_to: Annotated[tuple[_ShortText, ...], Field(max_length=20)] = ()
    answers_in: Literal["prose", "sentences"] = "prose"
    off_topic: Literal["answer", "decline"] = "answer"
    models: Annotated[dict[Literal["chat"], _ShortText], Field(max_length=1)] = {}

    @model_validator(mode="after")
    def _check_consistency(self) -> ExpertConfig:
        if not self.graphs:
            raise ValueError("an expert knows at least one graph: kg_db_id, or kg_db_ids")
        if len(set(self.graphs)) < len(self.graphs):
            raise ValueError("kg_db_ids names a graph twice")
        for name in self.graph_weights:
            if name not in self.graphs:
                raise ValueError(f"graph_weights: {name} is none of its graphs, {', '.join(self.graphs)}")
        for edge in self.cross_edges:
            for end in (edge.source, edge.target):
                if end.partition(":")[0] not in self.graphs:
                    graphs = ", ".join(self.graphs)
                    raise ValueError(f"cross_edges: {end[:60]!r} begins with none of its graphs, {graphs}")
        try:
            self.search_config()
        except LabError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def graphs(self) -> tuple[str, ...]:
        """The ids of its graphs, in order."""
        return self.kg_db_ids or ((self.kg_db_id,) if self.kg_db_id else ())

    @property
    def digest(self) -> str:
        """A hash of all settings, 16 hexadecimal digits."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    def search_config(self) -> RetrievalConfig:
        """Return the configuration for `intent_search`.

        Raises BadInput and UnknownName if a setting is invalid.
        """
        bounds, goals = self.dimension_filters.items(), self.custom_goal_mappings.items()
        return replace(
            self.retrieval.search_config(),
            dimension_filters={name: bound.model_dump(exclude_none=True) for name, bound in bounds},
            goal_mappings={
                word: GoalMapping(goal.boost_types, goal.dimension_boosts) for word, goal in goals
            },
        )


class Expert(ExpertConfig):
    """A stored expert, with its id and the times of its creation and last change."""

    id: str
    created_at: datetime
    updated_at: datetime

    @property
    def config(self) -> ExpertConfig:
        """Its settings, without the stored id and times."""
        fields = self.model_dump(exclude={"id", "created_at", "updated_at"}, exclude_unset=True)
        return ExpertConfig.model_validate(fields)


def expert_config(data: object) -> ExpertConfig:
    """Validate a configuration given as a JSON mapping.

    Raises BadInput with the field that is wrong and what is expected.
    """
    if not isinstance(data, Mapping):
        raise BadInput("an expert is a JSON object with name, persona and kg_db_id")
    try:
        return ExpertConfig.model_validate(dict(data))
    except ValidationError as error:
        raise BadInput(describe_first_error(error, ExpertConfig.model_fields)) from None


def describe_first_error(error: ValidationError, known: Iterable[str] = ()) -> str:
    """Describe the first field that is wrong, and why, but never its value, which may hold anything."""
    return ": ".join(filter(None, field_problem(error, known)))


def changed_config(config: ExpertConfig, change: object) -> ExpertConfig:
    """Apply a partial change to a configuration.

    Objects are merged field by field, lists are replaced, and null removes a field. Raises BadInput if the
    change or its result is invalid.
    """
    if not isinstance(change, Mapping):
        raise BadInput("a change of an expert is a JSON object with the fields that change")
    return expert_config(merge_patch(json.loads(config.model_dump_json(exclude_unset=True)), change))


def merge_patch(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two JSON objects by JSON Merge Patch (RFC 7396)."""
    result = dict(document)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            current = result.get(name)
            result[name] = merge_patch(current if isinstance(current, Mapping) else {}, value)
        else:
            result[name] = value
    return result


def slugify(text: str) -> str:
    """Convert a name to a part of an id: lower-case ASCII letters and digits, joined by underscores.

    Returns "expert" if nothing is left.
    """
    return re.sub(r"[^a-z0-9]+", "_", text.casefold()).strip("_")[:60].strip("_") or "expert"
