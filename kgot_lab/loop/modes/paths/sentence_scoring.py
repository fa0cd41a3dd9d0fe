"""What a sentence is worth to a question: how near it is to what is asked, beside the names that the question
gives.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.loop.modes.paths.mentions import PlacedSentence
from kgot_lab.retrieval.entity_linking import capitalised, compared_name
from kgot_lab.text.words import content_words

# Fitted by logistic regression on the develop questions of the three bundled sets: does a sentence of a
# passage that is needed hold the answer? The code that fitted them stands at commit f449c983.
WORTHS = {"near": -1.64, "asked": 3.07, "early": 1.86, "dated": 0.69, "naming": 0.89, "named": -1.10}
# of a sentence beside its passage, and of a passage: 1 / its rank in what a search returned
SCALE, STANDING = (0.25, 4.5)
_WHEN = re.compile(r"\bwhen\b|\byear\b|\bdate\b|\bhow (?:many|much|old|long)\b|\bnumber\b", re.I)
_CAPITAL = re.compile(r"[\"'“(]*[^\W\d_a-z]|[\"'“(]*\d")


def without_names(question: str) -> str:
    """What a question asks beside the names in it: its words without those that begin with a capital or a
    digit, but for the first.
    """
    words = question.split()
    return " ".join(word for number, word in enumerate(words) if number == 0 or not _CAPITAL.match(word))


def worths(question: str, sentences: Sequence[PlacedSentence], embedder: Embedder | None) -> dict[str, float]:
    """What each sentence is worth by itself, by its node, wherever its passage stands: the sum of its
    `traits` times WORTHS.
    """
    told = traits(question, sentences, embedder)
    return {
        each.place: sum(weight * value for weight, value in zip(WORTHS.values(), values, strict=True))
        for each, values in zip(sentences, told, strict=True)
    }


def traits(
    question: str, sentences: Sequence[PlacedSentence], embedder: Embedder | None
) -> list[tuple[float, ...]]:
    """What tells of the worth of each sentence, in the order of WORTHS.

    near: the cosine of the question with title and sentence. asked: that of what is asked beside names with
    the sentence. early: 1 / (1 + its number in its passage). dated: whether the question asks for a date or
    number and it has a digit. naming: whether it has a name that neither question nor title has. named:
    whether the question names its title. Without an embedder the cosines are those of sets of telling words.
    """
    if not sentences:
        return []
    near = _likeness(question, [f"{each.title}. {each.text}" for each in sentences], embedder)
    asked = _likeness(without_names(question), [each.text for each in sentences], embedder)
    said, dated = f" {compared_name(question)} ", bool(_WHEN.search(question))
    return [
        (
            near[row],
            asked[row],
            1 / (1 + each.number),
            float(dated and any(map(str.isdigit, each.text))),
            float(
                any(
                    f" {name} " not in said and name not in compared_name(each.title)
                    for name in capitalised(each.text)
                )
            ),
            float(f" {compared_name(each.title)} " in said),
        )
        for row, each in enumerate(sentences)
    ]


def _likeness(wanted: str, texts: Sequence[str], embedder: Embedder | None) -> list[float]:
    """The cosine of each text with what is wanted, of their vectors or else of their sets of telling words."""
    if embedder is not None:
        vectors = embedder.embed([wanted, *texts])
        return [float(value) for value in vectors[1:] @ vectors[0]]
    bag, bags = set(content_words(wanted)), [set(content_words(text)) for text in texts]
    return [len(bag & other) / math.sqrt(len(bag) * len(other)) if bag and other else 0.0 for other in bags]
