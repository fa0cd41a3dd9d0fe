"""Whether a sentence of a text says a fact: a check by words, which asks no model and gives the same each
time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from kgot_lab.memory.extraction import SPEAKER, SourcedSentence, is_grounded_in
from kgot_lab.text.words import content_words, name_tokens, sentences
from kgot_lab.types import Triple

FactGround = Literal["said", "another relation", "no sentence"]
_FIRST_PERSON = frozenset("i im ive id ill me my mine myself we us our ours".split())


def ground_of(fact: Triple, text: str) -> FactGround:
    """What a text has for a fact: a sentence that names both ends and its relation, one that names the ends
    alone, or none.

    Ends are named as in `is_grounded_in`; the speaker is named by a sentence with I. A relation is
    named where all its telling words stand in the sentence, so one in other words ("works_at" for "is
    employed by") counts as another.
    """
    naming = [sentence for sentence in sentences(" ".join(text.split())) if _names_ends(fact, sentence)]
    asked = set(content_words(" ".join(name_tokens(fact.relation))))
    if any(asked <= set(content_words(sentence)) for sentence in naming):
        return "said"
    return "another relation" if naming else "no sentence"


def _names_ends(fact: Triple, sentence: str) -> bool:
    ends = [end for end in (fact.subject, fact.object) if end.casefold() != SPEAKER]
    if len(ends) == 2:
        return is_grounded_in(SourcedSentence(sentence, "", "", 0), fact)
    if not ends or _FIRST_PERSON.isdisjoint(name_tokens(sentence.replace("'", "").replace("’", ""))):
        return False
    return is_grounded_in(SourcedSentence(sentence, "", "", 0), replace(fact, subject="", object=ends[0]))
