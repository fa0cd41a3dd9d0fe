"""A memory of relations: a triple store, a model that extracts triples, and the context for a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Self, get_args

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import (
    BadInput,
    UnknownName,
    describe_value,
    require_count,
    require_known,
    require_probability,
)
from kgot_lab.llm import check_spec, connect
from kgot_lab.llm.adapters import as_model
from kgot_lab.memory.agent import LearningMemory, TurnOutcome, UserTurn
from kgot_lab.memory.extraction import Extraction, ExtractionMode, extract_by_schema, extract_grounded
from kgot_lab.memory.triples import TripleStore, check_triples, newest_triples
from kgot_lab.text.cleaning import printable_line
from kgot_lab.types import LLM, Json, Triple

RELATIONSHIPS_HEADING = "[Known Relationships]"


class KnowledgeGraphMemory(LearningMemory):
    """Triples in a store, extracted from texts by a model and included in the context of a model.

    `provider` is the model that extracts, `extraction_model` another in its place, or its name for `connect`.
    Without both nothing is extracted. A context holds at most `max_context_triples` of at least
    `min_confidence`. `extraction` is "schema", one call per text, or "grounded", one call per sentence, for
    small models. `aliases` renames relations, for example {"headquartered_in": "located_in"}. Without it they
    stay as the model wrote them. Raises BadInput.
    """

    def __init__(
        self,
        store: TripleStore,
        provider: LLM | None = None,
        extraction_model: str | LLM | None = None,
        max_context_triples: int = 30,
        min_confidence: float = 0.5,
        extraction: ExtractionMode = "schema",
        aliases: Mapping[str, str] | None = None,
    ):
        if isinstance(provider, str):
            remedy = f"give connect({provider!r}), or the name as extraction_model"
            raise BadInput(f"provider is a model: {remedy}")
        if isinstance(extraction_model, str):
            check_spec(extraction_model)
        elif extraction_model is not None:
            as_model(extraction_model, "extraction_model")
        if provider is not None:
            as_model(provider, "provider")
        require_count(max_context_triples, 0, "max_context_triples")
        require_known("extraction", get_args(ExtractionMode), extraction)
        self.store, self.provider, self.extraction_model = store, provider, extraction_model
        self.max_context_triples = max_context_triples
        self.min_confidence = require_probability(min_confidence, "min_confidence")
        self.extraction, self.aliases = extraction, _check_aliases(aliases)

    @cached_property
    def _extracting_model(self) -> LLM | None:
        model = self.provider if self.extraction_model is None else self.extraction_model
        return None if model is None else connect(model)

    def extract(self, text: str, *, repairs: int = 1) -> Extraction:
        """Extract triples from a text with the model, with the parts of its reply that were refused.

        An invalid reply is repaired once if `repairs` is 1. Raises LLMError if the model fails.
        """
        llm = self._extracting_model
        if llm is None or not text.strip():
            return Extraction()
        is_grounded = self.extraction == "grounded"
        found = extract_grounded(llm, text) if is_grounded else extract_by_schema(llm, text, repairs=repairs)
        return replace(found, triples=tuple(dict.fromkeys(map(self._rename_relation, found.triples))))

    def extract_triples(self, text: str) -> list[Triple]:
        """Extract the triples that a text states with the model, without storing them.

        Empty if there is no model. A reply that does not follow the schema is repaired once. Raises LLMError
        if the model fails.
        """
        return list(self.extract(text).triples)

    def update(self, triples: Iterable[Triple]) -> None:
        """Store triples, with their relations renamed by `aliases`.

        Raises BadInput for an invalid triple.
        """
        self.store.add([self._rename_relation(triple) for triple in check_triples(triples)])

    def query(self, keywords: Sequence[str], top_k: int = 20) -> list[Triple]:
        """Return the triples with enough confidence that contain any of the keywords, best first.

        See `TripleStore.search`.
        """
        return _fetch_accepted(lambda limit: self.store.search(keywords, limit), top_k, self._is_confident)

    def build_context(
        self, keywords: Sequence[str] | None = None, *, without: AbstractSet[Triple] = frozenset()
    ) -> str:
        """Format what is known for a prompt, one line each, or return "" if there is nothing.

        With keywords, these are the triples that contain them, then what is known of the objects of those, up
        to `max_context_triples`. Without, the triples that were added last. Triples in `without` are left
        out.
        """

        def accepts(triple: Triple) -> bool:
            return self._is_confident(triple) and triple not in without

        store, limit = self.store, self.max_context_triples
        if keywords is None:
            newest = _fetch_accepted(lambda wanted: newest_triples(store, wanted)[::-1], limit, accepts)
            lines = map(_format_triple, reversed(newest))
        else:
            found = dict.fromkeys(
                _fetch_accepted(lambda wanted: store.search(keywords, wanted), limit, accepts)
            )
            for triple in list(found):
                if len(found) < limit:
                    found |= dict.fromkeys(filter(accepts, store.query(subject=triple.object)))
            lines = map(_format_triple, list(found)[:limit])
        text = "\n".join(lines)
        return text and f"{RELATIONSHIPS_HEADING}\n{text}"

    def store_statements(self, turn: UserTurn, extraction: Extraction) -> TurnOutcome:
        """Store what was extracted from a message of a conversation, with its turn and time.

        A store on claims holds nothing of low confidence, which waits for review.
        """
        origin: dict[str, Any] = {"source_turn": turn.number, "created_at": turn.at}
        stated = [replace(triple, **origin) for triple in extraction.triples]
        known = self.held_facts(stated, turn)
        if stated:
            self.update(stated)
        held = self.held_facts(stated, turn)
        learnt = tuple(triple for triple in stated if triple in held)
        new = tuple(triple for triple in learnt if triple not in known)
        return TurnOutcome(learnt, new, tuple(triple for triple in stated if triple not in held))

    def turn_context(
        self, turn: UserTurn, keywords: Sequence[str], *, without: AbstractSet[Triple] = frozenset()
    ) -> str:
        """Return the context for a model that answers a message.

        See `build_context`.
        """
        return self.build_context(keywords, without=without)

    def held_facts(self, noted: Iterable[Triple], turn: UserTurn) -> AbstractSet[Triple]:
        """Return those of some triples that are in the store."""
        return {triple for triple in noted if self.store.query(*triple.identity)}

    def count(self) -> int:
        """Return the number of triples in the store."""
        return self.store.count()

    def clear(self) -> None:
        """Delete everything."""
        self.store.clear()

    def to_dict(self) -> dict[str, Json]:
        """Return settings and triples as JSON values.

        Of the extraction model only a name is included, not a model object.
        """
        return {
            "max_context_triples": self.max_context_triples,
            "min_confidence": self.min_confidence,
            "extraction": self.extraction,
            "extraction_model": self.extraction_model if isinstance(self.extraction_model, str) else None,
            "aliases": dict(self.aliases),
            "triples": [_triple_to_json(triple) for triple in self.store.all()],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Json], store: TripleStore, provider: LLM | None = None) -> Self:
        """Restore the memory that `to_dict` returned, adding its triples to a store.

        Raises BadInput if the data is invalid.
        """
        settings = {name: value for name, value in data.items() if name != "triples"}
        if unknown := sorted(set(map(str, settings)) - set(_SETTINGS)):
            raise UnknownName("setting of a memory", unknown[0], _SETTINGS)
        triples = [_triple_from_json(triple) for triple in data.get("triples", ())]
        memory = cls(store, provider, **settings)
        store.add(triples)
        return memory

    def __repr__(self) -> str:
        return f"<KnowledgeGraphMemory of {self.store!r}>"

    def _is_confident(self, triple: Triple) -> bool:
        return triple.confidence >= self.min_confidence

    def _rename_relation(self, triple: Triple) -> Triple:
        return replace(triple, relation=self.aliases.get(triple.relation, triple.relation))


_SETTINGS = ("max_context_triples", "min_confidence", "extraction", "extraction_model", "aliases")


def _fetch_accepted(
    fetch: Callable[[int], list[Triple]], limit: int, accepts: Callable[[Triple], bool]
) -> list[Triple]:
    """Return the first `limit` triples that fit.

    More are requested until there are enough that fit, since filtering the first ones may leave too few.
    """
    require_count(limit, 0, "top_k")
    requested = limit
    while True:
        found = fetch(requested)
        accepted = list(filter(accepts, found))
        if len(accepted) >= limit or len(found) < requested:
            return accepted[:limit]
        requested *= 8


def _format_triple(triple: Triple) -> str:
    """Format a triple on one line.

    Whatever its texts contain, they cannot imitate the beginning of a line of the context.
    """
    parts = " ".join(printable_line(" ".join(part.split())) for part in triple.identity)
    return f"- {parts} ({triple.confidence:.2f})"


def _triple_to_json(triple: Triple) -> dict[str, Json]:
    created = triple.created_at
    return asdict(triple) | {"created_at": created and created.isoformat(timespec="microseconds")}


def _triple_from_json(data: Json) -> Triple:
    try:
        created = data["created_at"]
        return Triple(**{**data, "created_at": None if created is None else datetime.fromisoformat(created)})
    except (KeyError, TypeError, ValueError):
        expected = "a triple of a memory has the six fields that to_dict() gives"
        raise BadInput(f"{expected}; {describe_value(data)} has not") from None


@check_arguments
def _check_aliases(aliases: Mapping[str, str] | None) -> dict[str, str]:
    if aliases is None:
        return {}
    if not all(isinstance(text, str) and text.strip() for pair in aliases.items() for text in pair):
        raise BadInput('aliases rename relations, such as {"headquartered_in": "located_in"}')
    if chains := sorted(set(aliases.values()) & set(aliases)):
        raise BadInput(f"aliases: {chains[0]!r} is a new name and has another itself; give the last one")
    return dict(aliases)
