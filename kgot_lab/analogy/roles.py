"""Who does what in a sentence, as events with roles; and which filler of a role answers to which in two
tellings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

SpacyToken = Any  # of spaCy, which may be missing
SOMETHING = "something"
NAME_TAGS = frozenset({"NOUN", "PROPN"})
DENIALS = frozenset("no not n't never nobody nothing none neither nor nowhere without hardly cannot".split())
# where a form of "be" is the verb, not a helper
PREDICATES = frozenset({"ROOT", "ccomp", "advcl", "conj", "relcl"})
SUBJECTS = frozenset({"nsubj", "csubj", "expl"})
OBJECTS = frozenset({"dobj", "attr", "nsubjpass", "csubjpass"})
COMPLEMENTS = frozenset({"prt", "acomp", "oprd", "advmod"})


@dataclass(frozen=True)
class Role:
    """One role of an event: "subject", "object" or a preposition, and the head noun that fills it, "" for a
    pronoun or a clause.
    """

    name: str
    noun: str


@dataclass(frozen=True)
class Predication:
    """A verb with what belongs to it. A passive is told as the active: what is done to is the object, "by"
    names the subject.
    """

    verb: str  # as in a dictionary
    roles: tuple[Role, ...]
    words: tuple[str, ...]  # particles, complements and adverbs, as in a dictionary
    denied: bool
    sentence: int  # which sentence of the text tells it, from 0

    @property
    def line(self) -> str:
        """The event without its nouns: "something not flow back to something"."""
        return self._said(lambda role: SOMETHING)

    @property
    def phrase(self) -> str:
        """The event with its nouns: "water not flow back to river"."""
        return self._said(lambda role: role.noun or "…")

    def _said(self, filler: Any) -> str:
        named = {role.name: filler(role) for role in self.roles}
        subject, thing = named.pop("subject", ""), named.pop("object", "")
        rest = [f"{preposition} {noun}" for preposition, noun in named.items()]
        return " ".join(filter(None, (subject, "not" * self.denied, self.verb, *self.words, thing, *rest)))


def events_in(tokens: Sequence[SpacyToken], sentence: int) -> Iterator[Predication]:
    """The events that some tokens of one sentence tell, in their order; what lies outside these tokens is not
    told.
    """
    within = {token.i for token in tokens}
    for token in tokens:
        if token.pos_ == "VERB" or (token.pos_ == "AUX" and token.dep_ in PREDICATES):
            children = [child for child in token.children if child.i in within]
            words = tuple(child.lemma_.lower() for child in children if _describes(child))
            yield Predication(
                token.lemma_.lower(), tuple(_roles(token, children)), words, denies(children), sentence
            )


def _describes(token: SpacyToken) -> bool:
    return token.dep_ in COMPLEMENTS and token.lower_ not in DENIALS and not token.ent_type_


def denies(tokens: Iterable[SpacyToken]) -> bool:
    """Whether one of some tokens is a word of denial."""
    return any(token.dep_ == "neg" or token.lower_ in DENIALS for token in tokens)


def _roles(verb: SpacyToken, children: Sequence[SpacyToken]) -> Iterator[Role]:
    """The roles of a verb, each name once: of two fillers the first."""
    seen = set()
    for name, filler in _fillers(verb, children):
        if name not in seen:
            seen.add(name)
            yield Role(name, filler.lemma_.lower() if filler.pos_ in NAME_TAGS else "")


def _fillers(verb: SpacyToken, children: Sequence[SpacyToken]) -> Iterator[tuple[str, SpacyToken]]:
    for child in children:
        if child.dep_ in SUBJECTS:
            yield "subject", _meant(child, verb)
        elif child.dep_ in OBJECTS:
            yield "object", _meant(child, verb)
        elif child.dep_ == "dative" and child.pos_ != "ADP":
            yield "to", child
        elif child.dep_ in {"prep", "agent", "dative"}:
            for noun in child.children:
                if noun.dep_ == "pobj":
                    yield "subject" if child.dep_ == "agent" else child.lemma_.lower(), noun


def _meant(filler: SpacyToken, verb: SpacyToken) -> SpacyToken:
    """What a filler stands for: "which" in a relative clause is the noun that the clause is about."""
    return verb.head if verb.dep_ == "relcl" and filler.tag_ in {"WDT", "WP"} else filler


@dataclass(frozen=True)
class Counterpart:
    """A noun of one text and the noun that fills the same role in the other, with how often; `agrees` if the
    one-to-one mapping has it.
    """

    source: str
    target: str
    times: int
    agrees: bool


@dataclass(frozen=True)
class RoleMap:
    """Which noun answers to which, most often first."""

    counterparts: tuple[Counterpart, ...] = ()

    @property
    def votes(self) -> int:
        """How many roles are filled on both sides of the aligned events."""
        return sum(each.times for each in self.counterparts)

    @property
    def same(self) -> int:
        """How many of these are filled by the same noun on both sides."""
        return sum(each.times for each in self.counterparts if each.source == each.target)

    @property
    def consistency(self) -> float:
        """The share of votes that agree with a mapping of one noun to one noun, as analogy asks for; 1
        without votes.

        Source of the demand: one-to-one correspondence in Gentner, Structure-mapping, Cognitive Science 7
        (1983).
        """
        return (
            sum(each.times for each in self.counterparts if each.agrees) / self.votes if self.votes else 1.0
        )


def role_map(pairs: Iterable[tuple[Predication, Predication]]) -> RoleMap:
    """The mapping of nouns that aligned events imply: subject to subject, object to object, preposition to
    the same preposition.

    Each shared role is a vote. The one-to-one mapping takes the pairs with most votes first, equal ones by
    name (greedy).
    """
    votes: Counter[tuple[str, str]] = Counter()
    for one, other in pairs:
        theirs = {role.name: role.noun for role in other.roles if role.noun}
        votes.update(
            (role.noun, theirs[role.name]) for role in one.roles if role.noun and role.name in theirs
        )
    sources: set[str] = set()
    targets: set[str] = set()
    found = []
    for (source, target), times in sorted(votes.items(), key=lambda vote: (-vote[1], vote[0])):
        agrees = source not in sources and target not in targets
        if agrees:
            sources.add(source)
            targets.add(target)
        found.append(Counterpart(source, target, times, agrees))
    return RoleMap(tuple(found))
