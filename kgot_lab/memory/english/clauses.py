"""The clauses of an English sentence as spaCy parses it, and those that state nothing as a fact."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

FIRST_PERSON = frozenset("i we me us myself".split())
POSSESSIVES = frozenset("my our mine ours".split())
SUBJECTS = frozenset(("nsubj", "nsubjpass", "csubj"))
_VERBS = frozenset(("VERB", "AUX"))
_CLAUSE_LINKS = frozenset("ccomp conj advcl parataxis relcl acl dep appos pcomp".split())
FUTURE = frozenset(("will", "'ll", "shall"))
_UNREAL_VERBS = frozenset(
    "think believe wonder hope wish imagine pretend dream consider plan want suppose guess doubt fear worry expect "
    "intend decide try like fancy need".split()
)
_TELLING_VERBS = frozenset(
    "say tell claim hear read write ask reckon insist joke suggest mention announce".split()
)
_QUOTED = re.compile(r"[\"“”«»][^\"“”«»]{2,}[\"“”«»]|(?<!\w)['‘][^'’‘\n]{8,}['’](?!\w)")
_SPELLINGS = (
    (re.compile(r"’"), "'"),
    (re.compile(r"\b(i)(m|ve)\b", re.I), r"\1'\2"),
    (re.compile(r"\b(do|does|did|is|was|ca|wo)nt\b", re.I), r"\1n't"),
    (
        re.compile(
            r"(?<=[a-z])'s(?= (?:in|at|on|an?|the|not|no|now|been|gone|over|off|my|our|moved|\w+ing)\b)"
        ),
        " is",
    ),
    (re.compile(r"\bw/? (?=\w)"), "with "),
    (re.compile(r"\bu\b"), "you"),
    (re.compile(r"(?<=\w) & (?=\w)"), " and "),
    (re.compile(r"\bno longer like\b"), "no longer enjoy"),  # which it takes for a preposition
    (
        re.compile(r"\b(allergic|intolerant) to (?!(?:the|an?|my|all|any|some)\b)"),
        r"\1 to the ",
    ),  # for a verb
    (re.compile(r"(?<=\w)$"), "."),  # without it a name for a noun
)
_IS_TIMED = re.compile(r"\d|\b(?:in|since|last|from|until|on) \w", re.I)
# "and, sadly, nuts"
_ASIDE = re.compile(r"\b(and|or|but)\s*(?:, | [–—-] )([^,–—]{2,40}?)(?:,| [–—-])(?= \w)")


def plain_sentence(sentence: str) -> str:
    """Return a sentence without quotations and asides, in the spelling that the parser knows."""
    sentence = " ".join(_QUOTED.sub(_unquoted, sentence).split())
    sentence = _ASIDE.sub(lambda found: found[0] if _IS_TIMED.search(found[2]) else found[1], sentence)
    for pattern, spelling in _SPELLINGS:
        sentence = pattern.sub(spelling, sentence)
    return sentence


def _unquoted(found: re.Match[str]) -> str:
    """Return nothing in place of a quotation, and a name between quotes as it is."""
    words = found[0][1:-1].split()
    is_name = 0 < len(words) <= 2 and FIRST_PERSON.isdisjoint(map(str.casefold, words))
    return f" {' '.join(words)} " if is_name else " "


def is_question(sentence: Any) -> bool:
    """Return whether a sentence of spaCy asks something."""
    words = [token for token in sentence if not token.is_space]
    if not words or words[-1].text == "?":
        return True
    begins_with_verb = words[0].pos_ == "AUX" and words[0].tag_ in {"MD", "VBP", "VBZ", "VBD"}
    is_inverted = begins_with_verb and len(words) > 1 and words[1].dep_ in SUBJECTS
    return is_inverted or (words[0].tag_ in {"WP", "WRB"} and len(words) > 2)


@dataclass(frozen=True)
class Clause:
    """A verb with its words, its subject, and whether it is a condition, a wish, a plan or hearsay.

    `subject` is a token of spaCy, perhaps of another clause, or None.
    """

    verb: Any
    tokens: tuple[Any, ...]
    subject: Any
    is_unreal: bool

    @property
    def text(self) -> str:
        """The words of the clause."""
        return "".join(token.text_with_ws for token in self.tokens).strip()


def split_clauses(sentence: Any) -> Iterator[Clause]:
    """Yield the clauses of a sentence of spaCy: each verb that has a subject, or shares that of another."""
    subjects: dict[Any, Any] = {}  # of the verb of each clause
    for token in sentence:
        own = next((child for child in token.children if child.dep_ in SUBJECTS), None)
        is_verb = acts_as_verb(token)
        if token.dep_ == "ROOT" or (own is not None and is_verb and token.dep_ in _CLAUSE_LINKS):
            subjects[token] = own
        elif is_verb and token.dep_ in {"conj", "ccomp", "dep"} and token.head in subjects:
            before = token.nbor(-1) if token.i else token
            is_subject = before.dep_ == "conj" and before.pos_ in {"NOUN", "PROPN"}  # "in Rome and Ben works"
            subjects[token] = before if is_subject else subjects[token.head]
    for verb, subject in subjects.items():
        tokens = [token for token in verb.subtree if _verb_of(token, subjects) == verb]
        while tokens and _joins(tokens[0]):
            del tokens[0]
        while tokens and _joins(tokens[-1]):
            del tokens[-1]
        if tokens:
            yield Clause(verb, tuple(tokens), subject, _is_unreal(verb, subjects))


def acts_as_verb(token: Any) -> bool:
    """Return whether a word is a verb, as is, whatever the parser says, the second one of "I live in Rome and work at Fiat"."""
    is_joined = token.dep_ == "conj" and token.head.pos_ in _VERBS
    links = {child.dep_ for child in token.children}
    return token.pos_ in _VERBS or (is_joined and "prep" in links and links <= {"prep", "advmod", "punct"})


def _verb_of(token: Any, subjects: dict[Any, Any]) -> Any:
    while token not in subjects:
        token = token.head
    return token


def _joins(token: Any) -> bool:
    return bool(token.is_punct or token.is_space or token.dep_ == "cc")


def _is_unreal(verb: Any, subjects: dict[Any, Any]) -> bool:
    """Return whether a clause, or one that it is part of, is a condition, a wish, a plan or hearsay."""
    if verb.dep_ in {"ccomp", "xcomp", "pcomp", "acl"}:
        teller, about = subjects.get(verb.head), subjects.get(verb)
        is_mine = teller is None or teller.lower_ in FIRST_PERSON
        if verb.head.lemma_ in _UNREAL_VERBS and verb.i > verb.head.i:
            return True
        is_of_speaker = about is not None and about.lower_ in FIRST_PERSON
        if verb.head.lemma_ in _TELLING_VERBS and not is_mine and is_of_speaker:
            return True
    for token in (verb, *verb.ancestors):
        openings = {child.lower_ for child in token.children if child.dep_ in {"mark", "advmod"}}
        conditions = (mark for child in token.children if child.dep_ == "advcl" for mark in child.children)
        is_conditional = any(mark.lower_ in {"if", "unless"} for mark in conditions)
        real = {"can", "ca", *(FUTURE if token == verb else ())}
        is_modal = any(child.tag_ == "MD" and child.lower_ not in real for child in token.children)
        is_present = token.dep_ == "advcl" and token.tag_ in {"VBP", "VBZ"}
        is_awaited = is_present and not openings.isdisjoint(("until", "till", "before", "when", "once"))
        if openings & {"if", "unless", "whether"} or is_conditional or is_modal or is_awaited:
            return True
        if token.dep_ in {"ROOT", "conj", "parataxis"}:
            break
    return False
