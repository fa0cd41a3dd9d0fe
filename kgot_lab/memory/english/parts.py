"""A statement, and the parts of a clause in which statements are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from kgot_lab.memory.english.clauses import FIRST_PERSON, FUTURE, POSSESSIVES, SUBJECTS, Clause
from kgot_lab.memory.english.relations import is_one_of_several, is_person, relations_by, word_list
from kgot_lab.memory.english.times import TIME_WORDS, find_time

ME = "\0me"  # stands for the speaker, whose name the memory knows


@dataclass(frozen=True)
class Statement:
    """A fact that a clause states, or ("ended") what is over according to it since a time.

    Of what ended `subject` and `object` are what the clause names, `object` may be "", and `relations` are those
    that it may be about. A `single` fact replaces what was stated before of its subject and relation.
    """

    subject: str
    relation: str
    object: str
    since: datetime
    kind: Literal["stated", "ended"] = "stated"
    relations: tuple[str, ...] = ()
    single: bool = False


SOON = re.compile(r"\b(?:next|tomorrow|soon)\b", re.I)
STATES_TO = {  # "allergic to nuts"
    "allergic": "allergic_to", "intolerant": "allergic_to", "married": "partner", "engaged": "partner",
}  # fmt: skip
_PARTICLES = frozenset("away up out off down over in back".split())
_PRONOUNS = frozenset("he she it him her".split())
_FORMER = frozenset("former previous late ex then".split())
# before what was done: "had to sell", "ended up selling", "got round to selling"
_ACHIEVED = {"have": "VB", "manage": "VB", "end": "VBG", "get": "VBG"}
_OLDEST = 120  # years
IS_JOB = re.compile(r"\b(?:jobs?|employer|career|team|(?:year|month)s? (?:at|with)|as (?:an?|the))\b", re.I)
# as one joins what one does not work for
_SIGNED_UP = re.compile(r"\b(?:yesterday|today|this \w+|last (?:night|week)|(?:to|for) \w+|too|also)\b", re.I)


class ClauseParts:
    """The parts of a clause: its verb, subject, object and prepositions, and when it is true."""

    def __init__(self, clause: Clause, at: datetime, topic: str) -> None:
        self.clause, self.text, self.topic, self.at = clause, clause.text, topic, at
        # of "had to sell it" and "started working there" the verb is the second one
        self.finite = self.verb = clause.verb
        lemma = clause.verb.lemma_
        inner = next((token for token in clause.tokens if _is_second_verb(token, clause.verb)), None)
        self.is_beginning = lemma in {"start", "begin"} and inner is not None
        is_achieved = inner is not None and inner.tag_ == _ACHIEVED.get(lemma)
        is_going = lemma == "go" and clause.verb.tag_ == "VBG" and inner is not None
        self.is_future = is_going or any(child.lower_ in FUTURE for child in clause.verb.children)
        if self.is_beginning or is_achieved or is_going:
            self.verb = inner
        children = (*self.finite.children, *self.verb.children)
        self.children = [
            child for child in dict.fromkeys(children) if child in clause.tokens and child != self.verb
        ]
        self.direct = self._direct()
        self.preps = list(self._find_preps())

    def _direct(self) -> Any:
        """Return the token of the direct object or complement of the verb, or None."""
        for link in ("dobj", "attr", "acomp", "oprd"):
            for child in self.children:
                if child.dep_ == link and child.lower_ not in TIME_WORDS and child.lower_ not in FIRST_PERSON:
                    return child
        return None

    def _find_preps(self) -> Iterator[tuple[str, Any]]:
        """Yield the prepositions of the verb and of its object with what follows each, without times."""
        of_object = [] if self.direct is None else [c for c in self.direct.children if c.dep_ == "prep"]
        for child in (*self.children, *of_object):
            words, prep = child.lower_, child
            inner = next((c for c in child.children if c.dep_ == "prep"), None)
            has_object = any(c.dep_ == "pobj" for c in child.children)
            # "out of"
            if inner is not None and child.dep_ in {"prep", "prt", "advmod"} and not has_object:
                words, prep = f"{words} {inner.lower_}", inner
            if prep.dep_ in {"prep", "agent", "dative"} and not is_time(child):
                preps = (prep, *(c for c in prep.children if c.dep_ == "conj"))  # "at Siemens and at Bosch"
                for noun in (n for each in preps for n in each.children if n.dep_ in {"pobj", "pcomp"}):
                    yield words, noun
                    yield from self._nested_preps(noun)

    def _nested_preps(self, noun: Any) -> Iterator[tuple[str, Any]]:
        """Yield the prepositions of a noun that state a relation with the verb: of "work as a nurse at Acme", "at"."""
        known = (relations_by("states"), relations_by("begins"))
        for prep in noun.children:
            key = f"{self.verb.lemma_} {prep.lower_}"
            if prep.dep_ == "prep" and any(key in keys for keys in known):
                yield from ((prep.lower_, inner) for inner in prep.children if inner.dep_ == "pobj")

    def _keys(self) -> Iterator[tuple[str, Any]]:
        """Yield the verb with each preposition and what follows, and with its direct object."""
        lemma = self.verb.lemma_.lower()
        if self.direct is not None:  # "part ways with", "be gone"
            direct = self.direct.lower_
            if lemma == "be":
                yield f"be {direct}", None
            yield f"{lemma} {direct}", None  # "get the sack"
            yield from ((f"{lemma} {direct} {prep}", noun) for prep, noun in self.preps)
        particles = [
            child.lower_
            for child in self.children
            if child.dep_ == "prt" or (child.lower_ in _PARTICLES and not list(child.children))
        ]
        verbs = [" ".join([lemma, *particles])] if particles else []
        for verb in verbs if particles == ["up"] else [*verbs, lemma]:
            yield from ((f"{verb} {prep}", noun) for prep, noun in self.preps)
            yield verb, self.direct

    def _subjects(self) -> list[str]:
        """Return the names of the subjects: the speaker where there is none, and "" of a request."""
        token = self.clause.subject
        if self.verb.lemma_ in {"call", "name"} and any(c.lower_ in FIRST_PERSON for c in self.children):
            return [ME]
        if self.finite.tag_ == "VB" and token not in self.clause.tokens:
            return [""]
        return [ME] if token is None else [self._name(each) for each in listed(token)]

    def _name(self, token: Any) -> str:
        """Return the name of what a noun or pronoun stands for, "" if that is unknown."""
        word = token.lower_
        if word in FIRST_PERSON:
            return ME
        if token.pos_ == "PRON":
            earlier = [name for other, name in self._people() if other.i < token.i]
            return (earlier or [self.topic])[-1] if word in _PRONOUNS else ""
        if role := role_of(token):
            names = apposed_names(token)
            kind = kind_of(role)
            is_another_too = names and is_one_of_several(kind)  # "my sister Mia" and another
            return names[0] if is_another_too else f"{ME}'s {kind}"
        if token.lower_ == "name" and (owners := [c for c in token.children if role_of(c)]):
            return self._name(owners[0])  # "my sister's name"
        is_bare = not any(child.dep_ in {"det", "poss", "amod", "nummod"} for child in token.children)
        if token.tag_ == "NN" and is_bare and is_person(token.lemma_.lower()):  # "coach is Ben"
            return f"{ME}'s {token.lemma_.lower()}"
        possessors = (child for child in token.children if child.dep_ == "poss" and child.pos_ == "PRON")
        is_of_another = any(owner.lower_ not in POSSESSIVES for owner in possessors) or "whose" in {
            child.lower_ for child in token.children
        }
        return "" if is_of_another else self._phrase(token)  # not "his wife"

    def _people(self) -> list[tuple[Any, str]]:
        """Return the people and animals that the clause names."""
        nouns = (t for t in self.clause.tokens if t.ent_type_ == "PERSON" or is_person(t.lemma_.lower()))
        found = ((token, kind_of(token)) for token in nouns if token.pos_ in {"NOUN", "PROPN"})
        return [(t, f"{ME}'s {lemma}" if t.pos_ == "NOUN" else self._name(t)) for t, lemma in found]

    def _phrase(self, token: Any) -> str:
        """Return the words of a noun phrase without determiners, times, and what other clauses add."""
        left_out = set()
        nested = [inner.head for _, inner in self._nested_preps(token)]
        for child in token.subtree:
            adds = child.head == token and child.dep_ in {"relcl", "advcl", "cc", "conj", "appos"}
            is_name = child.dep_ == "appos" and child.pos_ == "PROPN"
            after_comma = child.left_edge.i > token.i and child.left_edge.nbor(-1).text == ","
            is_aside = child.dep_ in {"prep", "advmod"} and after_comma  # "vegan, by the way"
            is_aside |= child.dep_ in {"npadvmod", "prep"} and is_time(child)
            if child in nested or (child != token and ((adds and not is_name) or is_aside)):
                left_out |= set(child.subtree)
            elif adds and token.pos_ != "PROPN":  # "my daughter, Nika, and a son"
                names = {child, *(t for t in child.lefts if t.pos_ == "PROPN")}
                left_out |= {t for t in child.subtree if t not in names}
                left_out |= {t for t in token.children if t.is_punct and t.i < child.i}
        tokens = [t for t in token.subtree if t not in left_out and t in self.clause.tokens]
        while tokens and (tokens[0].dep_ == "det" or tokens[0].lower_ in POSSESSIVES or tokens[0].is_punct):
            del tokens[0]
        while tokens and tokens[-1].is_punct:
            del tokens[-1]
        text = "".join(t.text_with_ws if t.nbor(1) in tokens else f"{t.text} " for t in tokens[:-1])
        text = " ".join((text + tokens[-1].text).split()) if tokens else ""
        return text.partition(", not ")[0]  # "in Braga, not Porto"

    def _time(self) -> datetime:
        """Return the time that the clause names, or that of the message."""
        return find_time(self.text, self.at, future=self._is_planned()) or self.at

    def _is_planned(self) -> bool:
        """Return whether the clause tells of the future: "I start in June", "I'm moving", "I'll join"."""
        begins = self._begins() and not self._was()
        states_too = any(key in relations_by("states") for key, _ in self._keys())  # "I subscribe to it"
        is_present = self.finite.tag_ in {"VBP", "VBZ"} and (self.is_beginning or not states_too)
        is_moving = self.finite.tag_ == "VBG" and (begins or bool(SOON.search(self.text)))
        return self.is_future or is_moving or (is_present and begins)

    def _begins(self) -> bool:
        return self.is_beginning or any(key in relations_by("begins") for key, _ in self._keys())

    def _is_negated(self) -> bool:
        # "have no dog"
        has_no = self.direct is not None and any(child.lower_ == "no" for child in self.direct.children)
        return has_no or any(child.dep_ == "neg" for child in self.children)

    def _is_past(self) -> bool:
        is_past = self.finite.tag_ in {"VBD", "VBN"} or self.finite.lower_ in {"quit", "split"}
        return is_past or self.verb.lemma_ == "be"

    def _was(self) -> bool:
        """Return whether the clause is of the past, and not perfect."""
        auxiliaries = [child for child in self.children if child.dep_ == "aux"]
        is_perfect = any(child.lemma_ == "have" for child in auxiliaries)
        return not is_perfect and "VBD" in {token.tag_ for token in (self.finite, *auxiliaries)}

    def _relation(self) -> tuple[str, Any]:
        """Return the first relation of the clause, and the token of its object or None."""
        return next(iter(self._relations().items()))

    def _relations(self) -> dict[str, Any]:
        """Return the relations of the clause, each with the token of its object or None: those of the table, or one."""
        by_verb, found = {**relations_by("begins"), **relations_by("states")}, dict[str, Any]()
        direct = "" if self.direct is None else self.direct.lower_
        for key, noun in self._keys():
            if noun is None or (key.startswith("do ") and noun.pos_ != "PROPN"):  # "do Spanish at home"
                continue
            if key in by_verb:
                if direct in key.split()[1:]:  # "get job at"
                    return {by_verb[key][0]: noun}
                relation = by_verb[key][-1 if key == "join" and not self._is_company(noun) else 0]
                if relation == "lives_in" and key.startswith("move") and noun.lower_ in word_list("moved to"):
                    relation = "move_to"  # Linux
                if relation not in found or (self._is_name(noun) and not self._is_name(found[relation])):
                    found[relation] = noun  # Rome, of "in a flat in Rome"
        return found or dict([self._other_relation()])

    def _is_company(self, noun: Any) -> bool:
        """Return whether one works for what one joins: not if it is one of several, or joined to do something."""
        if not noun.text[0].isupper():
            return "works_at" in relations_by("nouns").get(noun.lemma_.lower(), ())
        is_alone = len(listed(noun)) == 1 and not any(child.dep_ == "det" for child in noun.children)
        return bool(IS_JOB.search(self.text)) or (is_alone and not _SIGNED_UP.search(self.text))

    def _is_name(self, noun: Any) -> bool:
        """Return whether a noun is a name, which in a message without capitals may be any noun that stands alone."""
        is_bare = not any(child.dep_ in {"det", "poss", "amod", "nummod"} for child in noun.children)
        return noun.pos_ == "PROPN" or (self.text.islower() and is_bare)

    def _is_age(self, number: Any) -> bool:
        """Return whether a number is the age of the subject: "I'm 34", but not "I'm 12 in the queue"."""
        subject, is_someone = self.clause.subject, self.clause.subject is None
        if subject is not None:
            is_bare = not any(child.dep_ in {"det", "poss"} for child in subject.children)
            role = (role_of(subject) or subject).lemma_.lower()
            is_pronoun = subject.lower_ in FIRST_PERSON | _PRONOUNS - {"it"}
            is_someone = (
                is_pronoun or (subject.pos_ == "PROPN" and is_bare) or role == "age" or is_person(role)
            )
        is_of_more = any(child.dep_ == "prep" and not is_time(child) for child in number.children)
        is_too_much = number.text.isdigit() and not 0 < int(number.text) <= _OLDEST
        return bool(number.like_num) and is_someone and not is_of_more and not is_too_much

    def _other_relation(self) -> tuple[str, Any]:
        """Return the relation of a clause that states none of the table, and the token of its object or None."""
        verb, prep = self.verb.lemma_.lower(), self.preps[0] if self.preps else ("", None)
        if verb == "be":
            word = "" if self.direct is None else self.direct.lower_
            years = [] if self.direct is None else [t for t in self.direct.subtree if t.like_num]
            if word == "old" and any(t.lemma_ in {"day", "week", "month"} for t in self.direct.subtree):
                return "age", None  # not in years
            is_age = bool(years) and (word == "old" or self.direct in years) and self._is_age(years[0])
            if is_age and self.text.split()[-1] not in {"today", "tonight"}:
                return "age", years[0]
            if word in STATES_TO and self.preps:
                return STATES_TO[word], self.preps[-1][1]
            if self.direct is not None or prep[1] is None:
                return "is", self.direct
            is_today = re.search(r"\b(?:today|tonight)\b", self.text)
            is_employer = prep[0] == "at" and prep[1].pos_ == "PROPN" and not is_today
            return "works_at" if is_employer else f"is_{prep[0].replace(' ', '_')}", prep[1]
        if self.direct is not None or prep[1] is None:
            return next(self._keys())[0].split()[0] if not self.preps else verb, self.direct
        return f"{verb}_{prep[0].replace(' ', '_')}", prep[1]


def _is_second_verb(token: Any, verb: Any) -> bool:
    is_after_to = token.dep_ == "pcomp" and token.head.head.lower_ in {"round", "around"}
    return is_after_to or (token.dep_ == "xcomp" and token.head == verb)


def relations_stated_by(verb: Any) -> tuple[str, ...]:
    """Return the relations that a verb states with some preposition."""
    states = relations_by("states").items()
    return tuple(dict.fromkeys(names[0] for key, names in states if key.split()[0] == verb.lemma_))


def role_of(token: Any) -> Any:
    """Return the noun that says what someone is to the speaker: of "my sister", "my dog Rex". None without one."""
    if not any(child.dep_ == "poss" and child.lower_ in POSSESSIVES for child in token.children):
        return None
    if token.pos_ == "NOUN" or is_person(token.lemma_.lower()):
        return token
    kinds = (child for child in token.children if child.dep_ in {"compound", "nmod"})
    return next((kind for kind in kinds if is_person(kind.lemma_.lower())), None)


def kind_of(role: Any) -> str:
    """Return the noun of a role, of a person with what says that it is over: "former boss", "late husband"."""
    noun = str(role.lemma_.lower())
    words = [child.lower_ for child in role.children if child.lower_ in _FORMER and is_person(noun)]
    return " ".join([*words, noun])


def apposed_names(token: Any) -> list[str]:
    """Return the name in "my sister Mia" or "my dog Rex", or those in "my cats, Miso and Tofu"."""
    if token.pos_ == "PROPN":
        return (
            [] if role_of(token) is None else [" ".join(t.text for t in token.subtree if t.pos_ == "PROPN")]
        )
    first = next((child for child in token.children if child.dep_ in {"appos", "acl"}), None)
    if first is not None and first.lower_ in {"named", "called"}:  # "a cat named Mia"
        first = next((child for child in first.children if child.dep_ in {"oprd", "dobj"}), None)
    if first is None or first.pos_ != "PROPN":
        return []
    names = listed(first) if token.tag_ == "NNS" else [first]
    return [" ".join(t.text for t in (*name.lefts, name) if t.pos_ == "PROPN") for name in names]


def listed(noun: Any) -> list[Any]:
    """Return a noun with those listed after it: of "tea, milk and juice" three, of "tea but not milk" one."""
    is_subject = noun.dep_ in SUBJECTS
    names = [child for child in noun.children if child.dep_ == "appos"]
    conjuncts = [*noun.conjuncts, *(c for name in names for c in name.conjuncts if c.pos_ == "NOUN")]
    others = [c for c in conjuncts if c.i > noun.i and (is_subject or not _is_followed_by_verb(c))]
    is_named_place = (noun.pos_, noun.dep_) == ("PROPN", "pobj")
    kinds = {"PROPN", "PRON"} | (set() if is_named_place else {noun.pos_, "NOUN"})
    links = {c.lower_ for each in (noun, *names, *others) for c in each.children if c.dep_ in {"cc", "neg"}}
    is_list = bool(links) and links <= {"and", "or"}  # not "Lyon, France"
    return [noun, *(other for other in others if is_list and other.pos_ in kinds)]


def _is_followed_by_verb(noun: Any) -> bool:
    """Return whether a noun begins a clause of its own: "I live in Rome and Ben lives in Oslo"."""
    after = noun.right_edge.i + 1
    return after < len(noun.doc) and noun.doc[after].tag_ in {"VBZ", "VBP", "VBD", "MD"}


def noun_of_relation(token: Any) -> str:
    """Return the noun of "my contract" or "the engagement" if a relation has it, else ""."""
    if token is None or token.pos_ != "NOUN":
        return ""
    noun = token.lemma_.lower()
    is_of_relation = noun in relations_by("nouns")
    if not is_of_relation and noun not in word_list("contracts"):
        return ""
    owners = {child.lower_ for child in token.children if child.dep_ in {"poss", "det"}}
    allowed = POSSESSIVES | {"the"} if is_of_relation else POSSESSIVES
    return noun if owners & allowed or (is_of_relation and not owners) else ""


def is_time(token: Any) -> bool:
    """Return whether a phrase names a time."""
    words = [t for t in token.subtree if t.pos_ in {"NOUN", "PROPN", "NUM", "ADV"}]
    return bool(words) and all(t.ent_type_ in {"DATE", "TIME"} or t.lower_ in TIME_WORDS for t in words)
