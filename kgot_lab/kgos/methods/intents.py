"""The fourteen intents: their triggers, the methods that they select, and the nodes that they are about."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import require, require_amount, require_count, require_known
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.schemas.dimensions import Bounds, validate_bounds

Purpose = Literal["goal", "capability", "composition", "impact", "comparison", "exploration", "search"]


@dataclass(frozen=True)
class IntentRule:
    """An intent: its triggers, the method that it selects, and the types, edges and dimensions of its nodes.

    Phrases and words are those of KG-OS, section 6. The rest is ours except for cost_optimization, the only
    intent for which section 7 says how nodes are scored. A node of one of `types`, or
    with one of the words in its name, has 1. One with an edge of one of `edges` from or to such a node has
    .7. One within the bounds of a dimension has .5, which is a bonus and not a filter.
    """

    phrases: tuple[str, ...]
    words: tuple[str, ...]
    purpose: Purpose
    types: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()
    dimensions: Mapping[str, Bounds] | None = None


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _intent_rule(row: Mapping[str, Any]) -> IntentRule:
    lists = {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
    dimensions = validate_bounds(row["dimensions"]) if "dimensions" in row else None
    return IntentRule(**lists, purpose=row["purpose"], dimensions=dimensions)


INTENTS: Mapping[str, IntentRule] = {name: _intent_rule(row) for name, row in _TABLES["intents"].items()}
PURPOSES: Mapping[Purpose, tuple[str, ...]] = {
    purpose: tuple(phrases) for purpose, phrases in _TABLES["purposes"].items()
}


# Classify a query by the phrases and words of fourteen intents (KG-OS, method 8).

_PHRASE_SCORE, _WORD_SCORE, _DEFAULT_THRESHOLD, _MAX_INTENTS = 1.0, 0.3, 0.3, 3
_WORD_PATTERN = re.compile(r"[^\W_]+")


class Intent(NamedTuple):
    """An intent that a query may have: its score, and the phrases and words that gave it."""

    name: str
    score: float
    phrases: tuple[str, ...]
    words: tuple[str, ...]
    boost: float = 0.0

    @property
    def confidence(self) -> float:
        """The score, at most 1."""
        return min(1.0, self.score)


@dataclass(frozen=True, repr=False)
class Intents(MethodResult):
    """The likeliest intents of a query, best first, and its purpose. Without an intent it is a search."""

    query: str
    intents: tuple[Intent, ...]
    purpose: Purpose
    why: tuple[str, ...]

    COLUMNS = ("intent", "score", "confidence", "phrases", "words", "boost")

    @property
    def title(self) -> str:
        return f"intents of {self.query!r}: {self.best.name if self.best else 'none'}, purpose {self.purpose}"

    @property
    def best(self) -> Intent | None:
        """The likeliest intent, or None if none reached the threshold."""
        return self.intents[0] if self.intents else None

    @property
    def ids(self) -> list[str]:
        """Empty, since the result is about a query and not a graph."""
        return []

    def rows(self) -> Sequence[tuple[object, ...]]:
        return [(intent[0], intent.score, intent.confidence, *intent[2:]) for intent in self.intents]


@check_arguments
def classify_intent(
    query: str,
    *,
    threshold: float = _DEFAULT_THRESHOLD,
    most: int = _MAX_INTENTS,
    boosts: Mapping[str, float] | None = None,
) -> Intents:
    """Classify a query by intent: 1 for each phrase it holds, .3 for each word, plus boosts.

    Intents with a score of at least `threshold` are returned. A phrase counts anywhere in the text, a word
    only as a whole word, also with a plural s, and each once. Ties are in the order of INTENTS. `boosts` maps
    intents to what the mode of an application adds. Raises BadInput, and UnknownName for an unknown intent.
    """
    require_amount(threshold, "threshold")
    require_count(most, 1, "most", "it is how many intents are kept")
    text = query.lower().replace("’", "'")
    found_words = _WORD_PATTERN.findall(text)
    words_in_query = dict.fromkeys(key for word in found_words for key in (word, word.removesuffix("s")))
    added = _validate_boosts(boosts) if boosts else {}
    scored = []
    for name, rule in INTENTS.items():
        phrases = tuple(phrase for phrase in rule.phrases if phrase in text)
        words, boost = tuple(word for word in words_in_query if word in rule.words), added.get(name, 0.0)
        if phrases or words or name in added:
            score = round(_PHRASE_SCORE * len(phrases) + _WORD_SCORE * len(words) + boost, 9)
            scored.append(Intent(name, score, phrases, words, boost))
    selected = sorted((i for i in scored if i.score >= threshold), key=lambda i: -i.score)[:most]
    purpose, purpose_reason = _determine_purpose(text, selected)
    why = (*_explain_intents(scored, selected, threshold, most), purpose_reason)
    return Intents(query, tuple(selected), purpose, why)


def _determine_purpose(text: str, selected: Sequence[Intent]) -> tuple[Purpose, str]:
    """Return the purpose that the query states, else that of the likeliest intent, else a search."""
    of_intent = INTENTS[selected[0].name].purpose if selected else "search"
    pairs = ((purpose, phrase) for purpose, phrases in PURPOSES.items() for phrase in phrases)
    stated, phrase = next((pair for pair in pairs if re.search(rf"\b{pair[1]}\b", text)), (of_intent, ""))
    if phrase and (stated == "capability" or of_intent in ("search", "goal")):
        return stated, f"purpose {stated}: the query says {phrase!r}"
    why = f"that of {selected[0].name}" if selected else "no intent, and no phrase that says one"
    return of_intent, f"purpose {of_intent}: {why}"


def _explain_intents(
    scored: Sequence[Intent], selected: Sequence[Intent], threshold: float, most: int
) -> list[str]:
    if not scored:
        return ["no phrase and no word of the fourteen intents is in the query"]
    below = [f"{each.name} {each.score:g}" for each in scored if each.score < threshold]
    cut = [each.name for each in scored if each.score >= threshold and each not in selected]
    return ([f"below the threshold of {threshold:g}: {', '.join(below)}"] if below else []) + (
        [f"not among the best {most}: {', '.join(cut)}"] if cut else []
    )


def _validate_boosts(boosts: Mapping[str, float]) -> Mapping[str, float]:
    require(boosts, Mapping, "boosts are a dictionary of numbers by intent")
    for name, value in boosts.items():
        require_known("intent", INTENTS, name)
        require_amount(value, f"the boost of {name}")
    return boosts
