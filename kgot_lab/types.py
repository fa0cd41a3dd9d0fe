"""Types shared by all packages, as frozen values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from datetime import datetime
from math import isfinite
from numbers import Real
from operator import add
from typing import Any, NamedTuple, Protocol, overload, runtime_checkable

from kgot_lab.arguments import (
    CheckedRecord,
    check_arguments,
    check_fields,
    check_names,
    is_plain_text,
    require_words,
)
from kgot_lab.errors import BadInput, require, require_count, require_probability, require_unique, short_repr

_HITS_PRINTED = 5  # hits of a ranking that are printed
Json = Any  # text, number, bool, None, or lists and dicts of these
STATEMENT_SECONDS = 5.0  # default time limit of a statement, or of one run of Python in a sandbox


# --- graphs ---


@check_names
@dataclass(frozen=True)
class Node:
    """A node of a graph: its id, its labels (types), and its properties."""

    id: str
    labels: tuple[str, ...] = ()
    properties: Mapping[str, Json] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        # most have these very types, and the full check takes longer than to make the node
        labels = self.labels
        is_exact = type(self.id) is str and type(labels) is tuple and type(self.properties) is dict
        if (
            is_exact
            and self.id.strip()
            and (not labels or (len(labels) == 1 and type(labels[0]) is str and labels[0].strip()))
        ):
            return
        if not is_exact or {*map(type, labels)} != {str}:
            check_fields(self)
            object.__setattr__(self, "labels", tuple(self.labels))
        require_words("the id and each label of a node", self.id, *self.labels)
        if len(set(self.labels)) < len(self.labels):
            raise BadInput(f"node {short_repr(self.id)} has a label twice: {short_repr(self.labels)}")

    @property
    def text(self) -> str:
        """The display text of the node: its text, description or name, or else its id."""
        for key in ("text", "description", "name"):
            if self.properties.get(key):
                return str(self.properties[key])
        return self.id


@check_names
@dataclass(frozen=True)
class Edge:
    """A typed relation from one node to another. `key` distinguishes parallel edges of one type."""

    source: str
    type: str
    target: str
    properties: Mapping[str, Json] = field(default_factory=dict, hash=False)
    key: str = ""

    def __post_init__(self) -> None:
        texts_are_exact = type(self.source) is type(self.type) is type(self.target) is type(self.key) is str
        if not texts_are_exact or type(self.properties) is not dict:
            check_fields(self)
        if not (self.source.strip() and self.type.strip() and self.target.strip()):
            require_words("the source, type and target of an edge", self.source, self.type, self.target)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The key of the edge: source, type, target, key."""
        return self.source, self.type, self.target, self.key


@check_names
@dataclass(frozen=True, repr=False)
class Triple:
    """Subject, relation, object: the smallest statement a graph can hold.

    Two triples are equal if these three are. A memory also records the confidence (0 to 1), the conversation
    turn that stated it, and when it was learnt. Raises BadInput for parts of other types, and blank ones.
    """

    subject: str
    relation: str
    object: str
    confidence: float = field(default=1.0, compare=False)
    source_turn: int | None = field(default=None, compare=False)
    created_at: datetime | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not all(isinstance(part, str) for part in self.identity):
            problem = "a triple is (subject, relation, object), three texts"
            raise BadInput(f"{problem}, not {short_repr(self.identity)}")
        require_words("the subject, relation and object of a triple", *self.identity)
        sure = require_probability(self.confidence, "the confidence of a triple")
        object.__setattr__(self, "confidence", sure)
        if self.source_turn is not None:
            require_count(self.source_turn, 0, "the source_turn of a triple", maximum=2**62)
        require(self.created_at, (datetime, type(None)), "the created_at of a triple is a datetime")

    @property
    def identity(self) -> tuple[str, str, str]:
        """The compared parts: subject, relation, object."""
        return self.subject, self.relation, self.object

    def __repr__(self) -> str:
        values = {
            attribute.name: getattr(self, attribute.name)
            for attribute in fields(self)
            if attribute.compare or getattr(self, attribute.name) != attribute.default
        }
        return f"Triple({', '.join(f'{name}={value!r}' for name, value in values.items())})"

    def __str__(self) -> str:
        return f"{self.subject} --[{self.relation}]--> {self.object}"


@check_arguments
@dataclass(frozen=True)
class Diff:
    """The exact changes of one write, with old values, so that it can be applied, drawn and undone.

    A changed node or edge is a pair (before, after). Removing a node lists its edges among the removed ones.
    """

    added_nodes: tuple[Node, ...] = ()
    removed_nodes: tuple[Node, ...] = ()
    changed_nodes: tuple[tuple[Node, Node], ...] = ()
    added_edges: tuple[Edge, ...] = ()
    removed_edges: tuple[Edge, ...] = ()
    changed_edges: tuple[tuple[Edge, Edge], ...] = ()

    def __post_init__(self) -> None:
        for kind, pairs in ((Node, self.changed_nodes), (Edge, self.changed_edges)):
            for pair in pairs:
                if not isinstance(pair, tuple) or [isinstance(part, kind) for part in pair] != [True, True]:
                    expected = "a changed node or edge is a pair (before, after)"
                    raise BadInput(f"{expected}, not {short_repr(pair)}")

    @property
    def written_nodes(self) -> tuple[Node, ...]:
        """The added nodes, and the changed ones as they are now."""
        return (*self.added_nodes, *(after for _, after in self.changed_nodes))

    @property
    def written_edges(self) -> tuple[Edge, ...]:
        """The added edges, and the changed ones as they are now."""
        return (*self.added_edges, *(after for _, after in self.changed_edges))

    def __bool__(self) -> bool:
        return any(vars(self).values())

    def __str__(self) -> str:
        parts = (
            ("+{} node", self.added_nodes), ("-{} node", self.removed_nodes), ("~{} node", self.changed_nodes),
            ("+{} edge", self.added_edges), ("-{} edge", self.removed_edges), ("~{} edge", self.changed_edges),
        )  # fmt: skip
        changes = [
            template.format(len(items)) + "s" * (len(items) != 1) for template, items in parts if items
        ]
        return ", ".join(changes) or "nothing changed"


Rows = tuple[Json, ...]


# --- documents and rankings ---


@dataclass(frozen=True)
class Document(CheckedRecord):
    """A text one can find: its id, title and words."""

    id: str
    text: str
    title: str = ""


@dataclass(frozen=True)
class Query(CheckedRecord):
    """A question put to a retriever."""

    text: str
    id: str = ""


class Hit(NamedTuple):
    """A retrieved document with its score. Higher is better."""

    id: str
    score: float


class HitColumns(Sequence[Hit]):
    """Hits stored as NumPy columns, best first: row indices into `ids`, and scores.

    Hit objects are created on access. Long rankings of the same documents are joined by rows, without work
    for each hit. Equal to the tuple of the same hits.
    """

    __slots__ = ("ids", "rows", "scores")

    def __init__(self, ids: Sequence[str], rows: Any, scores: Any) -> None:
        self.ids, self.rows, self.scores = ids, rows, scores

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> HitColumns: ...
    def __getitem__(self, index: int | slice) -> Hit | HitColumns:
        if isinstance(index, slice):
            return HitColumns(self.ids, self.rows[index], self.scores[index])
        return Hit(self.ids[self.rows[index]], float(self.scores[index]))

    def __iter__(self) -> Iterator[Hit]:
        return map(Hit, map(self.ids.__getitem__, self.rows.tolist()), self.scores.tolist())

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (HitColumns, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type, tuple[tuple[Hit, ...]]]:
        return tuple, (tuple(self),)


@dataclass(frozen=True)
class RetrieverReason:
    """What one retriever reported about a document.

    It holds the weight in the fusion, its own score and rank (1 is best), and its path in a graph.
    """

    retriever: str
    weight: float
    score: float
    rank: int
    path: str = ""

    def __str__(self) -> str:
        return f"{self.retriever}: score {self.score:.3g}, rank {self.rank}, weight {self.weight:.3g}" + (
            f", {self.path}" if self.path else ""
        )


@check_arguments
@dataclass(frozen=True, repr=False)
class Ranking:
    """What a retriever returns: hits from best to worst, ties broken by id.

    A fused ranking holds the rankings it was made from, with their weights (`inputs`). A graph walk records
    how it reached each document (`paths`, by id).
    """

    query: Query
    hits: Sequence[Hit]
    system: str = ""
    inputs: tuple[tuple[float, Ranking], ...] = field(default=(), compare=False, repr=False)
    paths: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.hits, HitColumns):
            _check_hits(self.hits)
            scores = [score for _, score in self.hits]
            if scores != sorted(scores, reverse=True):
                problem = (
                    f"the hits for query {short_repr(self.query.id or self.query.text)} are in another order"
                )
                raise BadInput(f"{problem} than their scores: ranked(query, scores) sorts them")

    def __repr__(self) -> str:
        system = f" by {_single_line(self.system, 60)}" if self.system else ""
        count = f"{len(self.hits):,} hit" + "s" * (len(self.hits) != 1)
        first = [
            f"{rank:3}  {hit.score:9.4g}  {_single_line(hit.id, 80)}"
            for rank, hit in enumerate(self.hits[:_HITS_PRINTED], start=1)
        ]
        omitted = (
            [f"     … and {len(self.hits) - _HITS_PRINTED:,} more"] if len(self.hits) > _HITS_PRINTED else []
        )
        return "\n".join(
            [f"<Ranking{system}: {count} for “{_single_line(self.query.text, 100)}”>", *first, *omitted]
        )

    @property
    def ids(self) -> list[str]:
        """The ids alone, from best to worst."""
        if isinstance(self.hits, HitColumns):
            return list(map(self.hits.ids.__getitem__, self.hits.rows.tolist()))
        return [hit.id for hit in self.hits]

    def why(self, id: str) -> tuple[RetrieverReason, ...]:
        """Return what each retriever below this ranking reported about a document.

        A retriever that did not find it is left out.
        """
        return self._why(id, 1.0)

    def _why(self, id: str, weight: float) -> tuple[RetrieverReason, ...]:
        if self.inputs:
            return tuple(
                reason for share, ranking in self.inputs for reason in ranking._why(id, weight * share)
            )
        for rank, hit in enumerate(self.hits, start=1):
            if hit.id == id:
                return (RetrieverReason(self.system, weight, hit.score, rank, self.paths.get(id, "")),)
        return ()


def _single_line(text: object, limit: int) -> str:
    """Format a text on one line, truncated, with control characters escaped."""
    shown = "".join(
        character if character.isprintable() else ascii(character)[1:-1]
        for character in str(text)[: limit + 1]
    )
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def are_finite(scores: Collection[object]) -> bool:
    """Return whether all these are numbers that a float can hold."""
    try:
        kinds = set(map(type, scores))
        return bool not in kinds and all(issubclass(k, Real) for k in kinds) and all(map(isfinite, scores))  # type: ignore[arg-type]
    except OverflowError:
        return False


def _check_hits(hits: Collection[tuple[str, float]]) -> None:
    """Raise BadInput unless each hit has an id of its own, which is a text, and a finite score."""
    ids = [id for id, _ in hits]
    for id in dict(zip(map(type, ids), ids, strict=True)).values():  # one of each type
        require(id, str, "the id of a document is a text")
    require_words("the id of a document", *ids)
    if not are_finite([score for _, score in hits]):
        id, score = next(hit for hit in hits if not are_finite([hit[1]]))
        raise BadInput(f"a score is a finite number; document {short_repr(id)} has {short_repr(score)}")
    require_unique(ids, "ids of a ranking")


@check_names
def ranked(
    query: Query,
    scores: Mapping[str, float],
    system: str = "",
    *,
    inputs: tuple[tuple[float, Ranking], ...] = (),
) -> Ranking:
    """Build a ranking from scores, the best first. Ties are broken by id for reproducibility.

    Raises BadInput if `scores` is not a mapping from ids to finite numbers.
    """
    require(scores, Mapping, "ranked(query, scores) takes a dictionary {document id: score}")
    _check_hits(scores.items())
    # reverse keeps equal scores in the order of their ids
    order = sorted(sorted(scores), key=scores.__getitem__, reverse=True)
    return Ranking(query, tuple(Hit(id, float(scores[id])) for id in order), system, inputs)


# --- language models ---


@dataclass(frozen=True)
class Message(CheckedRecord):
    """One turn of a conversation. Its role is system, user or assistant.

    Images are data URLs, "data:image/png;base64,…".
    """

    role: str
    text: str
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prompt(CheckedRecord):
    """The full input of a model call. Equal prompts are equal values."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Json] | None = field(default=None, hash=False)  # JSON schema the reply must follow
    temperature: float = 0.0
    seed: int | None = None
    max_tokens: int = 512
    likelihood: bool = False  # whether to request the log-probability of the reply


@dataclass(frozen=True)
class Usage:
    """Cost of one reply: tokens, seconds of wall-clock time, US dollars."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = field(default=0.0, compare=False)  # not compared, since a replay takes another time
    cost: float = 0.0
    reasoning_tokens: int = 0  # completion tokens used for reasoning, not in the reply

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, astuple(self), astuple(other)))

    @staticmethod
    def total(usages: Iterable[Usage]) -> Usage:
        """Sum several usages."""
        return sum(usages, Usage())


@dataclass(frozen=True)
class Reply:
    """The text of a model's reply and its cost."""

    text: str
    usage: Usage = Usage()
    model: str = ""  # name of the model that answered, if it is not the requested one
    cut: bool = False  # whether it was truncated at max_tokens
    # natural log-probability of the reply, summed over its tokens; None if not requested or not reported
    logprob: float | None = None


class LLM(Protocol):
    """A model that answers a prompt. `name` goes into traces and recordings, and never contains a key."""

    @property
    def name(self) -> str: ...

    def __call__(self, prompt: Prompt) -> Reply: ...  # raises LLMError


@runtime_checkable
class FromFile(Protocol):
    """A model loaded from a local file: the SHA-256 of the file, and the engine, each "" if unknown."""

    @property
    def sha256(self) -> str: ...
    @property
    def engine(self) -> str: ...


def full_text(document: Document) -> str:
    """Return the searchable text of a document: its title, then its text."""
    return f"{document.title}. {document.text}" if document.title else document.text


def main_text(document: Document) -> str:
    """Return the text of a document, or its title if it has none."""
    return document.text or document.title


def checked_documents(documents: Iterable[Document]) -> tuple[Document, ...]:
    """Return the documents as a tuple after checking them.

    Raises BadInput if there are none, if two share an id, or if one is not a Document, has no id, or a text that
    databases refuse.
    """
    if not isinstance(documents, Iterable) or isinstance(documents, str | bytes | Mapping):
        raise BadInput(f"documents are a list of Document(id, text, title), not {short_repr(documents)}")
    documents = tuple(documents)
    for document in documents:
        require(document, Document, "each document is a Document(id, text, title)")
        if not document.id.strip():
            raise BadInput(f"the id of the document {short_repr(main_text(document))} is blank: give one")
        if not is_plain_text(f"{document.id}{document.title}{document.text}"):
            problem = "holds a NUL or half a surrogate pair, which no database and no model takes"
            raise BadInput(f"document {short_repr(document.id)} {problem}: replace it")
    if not documents:
        raise BadInput("there are no documents to search; give at least one")
    require_unique([document.id for document in documents], "document ids")
    return documents
