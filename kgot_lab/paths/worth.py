"""What a sentence is worth to a question: how near it is to what is asked, beside the names that the question gives."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.paths.mentions import PlacedSentence
from kgot_lab.retrieval.names import capitalised, compared_name
from kgot_lab.text.words import telling_words

# Fitted by logistic regression on the develop questions of the three bundled sets: does a sentence of a passage that is needed hold the
# answer? `python benchmarks/path_weights.py` fits them again and shows how well they rank questions left out.
NEAR, ASKED, EARLY, DATED, NAMING, NAMED = -1.51, 3.27, 1.95, 0.73, 0.97, -1.10
SCALE, STANDING = 0.25, 4.5  # of a sentence beside its passage, and of a passage: 1 / its rank in what a search returned
_WHEN = re.compile(r"\bwhen\b|\byear\b|\bdate\b|\bhow (?:many|much|old|long)\b|\bnumber\b", re.I)
_CAPITAL = re.compile(r"[\"'“(]*[^\W\d_a-z]|[\"'“(]*\d")


def without_names(question: str) -> str:
    """What a question asks beside the names in it: its words without those that begin with a capital or a digit, but for the first."""
    words = question.split()
    return " ".join(word for number, word in enumerate(words) if number == 0 or not _CAPITAL.match(word))


def worths(question: str, sentences: Sequence[PlacedSentence], embedder: Embedder | None) -> dict[str, float]:
    """What each sentence is worth by itself, by its node, wherever its passage stands.

    Worth = NEAR cos(question, title and sentence) + ASKED cos(what is asked beside names, sentence) + EARLY / (1 + number in its passage)
    + DATED if the question asks for a date or number and it has a digit + NAMING if it has a name that neither question nor title has
    + NAMED if the question names its title. Without an embedder the cosines are those of sets of telling words.
    """
    if not sentences:
        return {}
    near = _likeness(question, [f"{each.title}. {each.text}" for each in sentences], embedder)
    asked = _likeness(without_names(question), [each.text for each in sentences], embedder)
    said, dated = f" {compared_name(question)} ", bool(_WHEN.search(question))
    return {
        each.place: (
            NEAR * near[row]
            + ASKED * asked[row]
            + EARLY / (1 + each.number)
            + DATED * (dated and any(map(str.isdigit, each.text)))
            + NAMING * any(f" {name} " not in said and name not in compared_name(each.title) for name in capitalised(each.text))
            + NAMED * (f" {compared_name(each.title)} " in said)
        )
        for row, each in enumerate(sentences)
    }


def _likeness(wanted: str, texts: Sequence[str], embedder: Embedder | None) -> list[float]:
    """The cosine of each text with what is wanted, of their vectors or else of their sets of telling words."""
    if embedder is not None:
        vectors = embedder.embed([wanted, *texts])
        return [float(value) for value in vectors[1:] @ vectors[0]]
    bag, bags = set(telling_words(wanted)), [set(telling_words(text)) for text in texts]
    return [len(bag & other) / math.sqrt(len(bag) * len(other)) if bag and other else 0.0 for other in bags]
