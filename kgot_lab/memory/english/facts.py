"""Read the facts that a clause states, and those that it ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kgot_lab.memory.english.clauses import acts_as_verb
from kgot_lab.memory.english.ends import CHANGING, ENDED_ADVERB, RESTRICTED, EndReader
from kgot_lab.memory.english.parts import (
    IS_JOB,
    ME,
    Statement,
    apposed_names,
    kind_of,
    listed,
    noun_of_relation,
    role_of,
)
from kgot_lab.memory.english.relations import (
    ANY,
    is_former_partner,
    is_one_of_several,
    is_person,
    is_single,
    relations_by,
)
from kgot_lab.memory.english.times import TIME_WORDS, find_time

_ADDING = re.compile(
    r"\b(?:also|too|as well|unpaid|on \w+days|weekends|volunteer|another|second|third|besides|on the side|part[- ]time)\b",
    re.I,
)
_LONG_AGO = re.compile(
    r"\bwhen (?:i|we) (?:was|were) |\bas an? (?:child|kid|boy|girl|baby|teenager|student)\b", re.I
)
_NAMED = frozenset("lives_in works_at studies_at partner".split())  # relations to what has a name
_OF_NAMES = frozenset("works_at studies_at".split())  # whose names may have an "and"
_FOR_A_WHILE = re.compile(
    r"\b(?:today|tonight|this \w+|for (?:a|an|the|one|two|three|some|\d+) \w+|for now|temporarily|at the moment|on an? \w+)\b",
    re.I,
)
_QUALIFIED = re.compile(
    r"\b(?:yet|because|today|tonight|right now|who|which|that|when|if|unless|much|always|often|every|just|only)\b",
    re.I,
)
_FICTION = re.compile(
    r"^(?:imagine|suppose|pretend|say|what if)\b|\bin (?:the|my|a|this) (?:game|dream|film|movie|book|novel|story|show|series|play|head)\b"
    r"|\b(?:as a joke|(?:just )?kidding|jk|said (?:nobody|no one)|i lied)\b"
    # words of somebody else, or a text to work on: "> I live …", "Bob: I live …", "Translate: I live …"
    r"|^> ?|^(?!.*\b(?:update|news|ps|note|fyi|btw|edit|info|correction|summary|profile|about me|my \w+)\s*:)"
    r"[^:]{2,60}: (?=(?:i|my|we|our)\b)",
    re.I,
)
_ON_A_DAY = re.compile(r"\bon \w+day\b", re.I)
_NEARLY = frozenset("almost nearly barely hardly maybe perhaps possibly probably".split())
_FORMER = frozenset("old former previous last".split())


class ClauseReader(EndReader):
    """Reads the statements of a clause."""

    def read(self) -> list[Statement]:
        """Return what the clause states."""
        if self.clause.is_unreal or _FICTION.search(self.verb.sent.text):
            return []
        if found := list(self._read_phrase()):
            return found
        subjects = self._subjects()
        hedges = {child.lower_ for child in self.children if child.dep_ == "advmod"} & _NEARLY
        jobs = list(self._read_job())
        is_known = subjects[0].casefold() not in {"", *TIME_WORDS} or self._object_is_me() or bool(jobs)
        if not is_known or hedges or not acts_as_verb(self.verb):
            return []
        ends = () if self.is_future else (end for subject in subjects for end in self._read_end(subject))
        found = list(dict.fromkeys(ends))
        is_both = {"from", "to"} <= {prep for prep, _ in self.preps} or bool(self._relation_lost())
        if not found or is_both:
            found += (fact for subject in filter(None, subjects) for fact in self._read_fact(subject))
        self.topic = next((name for _, name in self._people() if name not in ("", ME)), self.topic)
        found += jobs
        over = [each for each in found if each.kind == "ended"]
        return [*found, *(name for name in self._read_names() if not _is_over(name, over))]

    def _read_job(self) -> Iterator[Statement]:
        """Yield the job of "Lego hired me", "they hired me at Lego" and "my new job at Lego starts in June"."""
        subject, is_present = self.clause.subject, self.is_future or self.finite.tag_ in {"VBP", "VBZ"}
        particles = (child.lower_ for child in self.children if child.dep_ == "prt")
        gained = relations_by("gained").get(" ".join([self.verb.lemma_, *particles]), ())
        is_mine = any(child.lower_ in {"me", "us"} and child.dep_ == "dobj" for child in self.children)
        places = [noun for prep, noun in self.preps if prep == "at"]
        if subject is None or self._is_negated():
            return
        if gained and is_mine and not is_present:
            places = places or [subject] if subject.pos_ == "PROPN" else places
        elif self.verb.lemma_ in {"start", "begin"} and noun_of_relation(subject):
            gained = relations_by("nouns").get(subject.lemma_.lower(), ())
            preps = (child for child in subject.children if child.lower_ in {"at", "with"})
            places = [noun for prep in preps for noun in prep.children if noun.dep_ == "pobj"]
        else:
            return
        time = find_time(self.text, self.at, future=is_present)
        if places and gained[:1] == ("works_at",) and not (is_present and (time is None or time <= self.at)):
            is_other = _ADDING.search(self.text)
            yield Statement(ME, "works_at", self._phrase(places[0]), time or self.at, single=not is_other)

    def _read_fact(self, subject: str) -> Iterator[Statement]:
        """Yield the fact that the clause states of its subject."""
        new = [noun for prep, noun in self.preps if prep in {"to", "for"}]
        if self.verb.lemma_ in CHANGING and new:  # "changed my major to biology", "switched to tea"
            role = "" if self.direct is None else self.direct.lemma_.lower()
            named = self._fact_of_noun(role, new[0]) if role else None
            preps = [prep for prep in new[0].children if prep.lower_ in {"at", "with"}]
            if (
                not role and preps and new[0].lemma_.lower() in relations_by("nouns")
            ):  # "to a new job at Acme"
                new = [noun for prep in preps for noun in prep.children if noun.dep_ == "pobj"] or new
                named = self._fact(subject, "works_at", self._phrase(new[0]))
            yield named or self._fact_of_change(subject, f"{self.verb.lemma_}_to", new[0])
            return
        both = [] if self.clause.subject is None else listed(self.clause.subject)
        if subject == ME and len(both) > 1 and not self._was() and self._states_of_two():
            names = [token for token in both if token.pos_ == "PROPN"]
            yield from (self._fact(ME, "partner", self._phrase(name)) for name in names)
        for relation, noun in self._relations().items():
            if noun is not None and self._states(relation, noun):
                nouns = listed(noun)
                if relation in _OF_NAMES and all(each.pos_ == "PROPN" for each in nouns):
                    nouns = [noun]  # "Marks and Spencer"
                for number, each in enumerate(nouns):
                    is_change = self.verb.lemma_ == "move" and any(prep == "from" for prep, _ in self.preps)
                    read = self._fact_of_change if is_change else self._fact_of
                    fact = read(subject, relation, each)
                    # the first of a list replaces what was before, not the others
                    if fact is not None and fact.object:
                        yield replace(fact, single=fact.single and not number)

    def _states_of_two(self) -> bool:
        """Return whether the clause says of two that they are partners: "Karim and I are engaged"."""
        words = {self.verb.lemma_, "" if self.direct is None else self.direct.lower_}
        return bool(words & {"marry", "engage", "engaged", "married"}) and not self._is_negated()

    def _fact_of_change(self, subject: str, relation: str, noun: Any) -> Statement:
        """Return what "switched to Acme", or "moved from Acme to Borealis", states.

        After "from" it has the relation of what is over, if the memory knows that; else a firm to which one switches
        at a time, or moves from another, is taken for an employer.
        """
        old = [other for prep, other in self.preps if prep == "from"]
        firms = [token for token in (noun, *old) if token.ent_type_ == "ORG" and token.text[0].isupper()]
        is_dated = find_time(self.text, self.at) is not None
        is_alone = {prep for prep, _ in self.preps} <= {"from", "to", "as", "after"} and subject == ME
        is_of_firms = len(firms) == 1 + len(old) if relation == "lives_in" else bool(firms)
        is_job = bool(IS_JOB.search(self.text))
        if is_alone and is_of_firms and (old or is_dated or is_job):
            relation = "works_at"
        fact = self._fact(subject, relation, self._phrase(noun))
        single = fact.single and (bool(old) or is_job or relation != "works_at")  # it may be a bank
        return replace(fact, single=single, relations=(ANY,) if old else ())

    def _fact_of(self, subject: str, relation: str, noun: Any) -> Statement | None:
        """Return the fact that relates the subject to a noun."""
        role = subject.removeprefix(f"{ME}'s ")
        is_described = relation in {"is", "age", "name", "spell"} or not is_person(role)
        if role != subject and self.verb.lemma_ in {"be", "spell"} and is_described:
            return self._fact_of_person(subject, noun)
        is_partner = "partner" in relations_by("nouns").get(role, ())
        if relation == "name" and is_partner:  # "my boyfriend is called Dan"
            subject, relation = ME, "partner"
        elif relation == "name" and is_one_of_several(role) and self.clause.subject.tag_ == "NNS":
            subject, relation = ME, role  # "my brothers are called Kofi and Kwame"
        if relation == "has" and noun.tag_ == "NNS" and apposed_names(noun):  # "two cats, Pepper and Salt"
            return self._fact(subject, relation, " ".join(t.text for t in (*noun.lefts, noun)))
        is_denied = self._is_negated() and self.verb.lemma_ != "stand"  # "can't stand it"
        names = listed(noun) if relation in _OF_NAMES else [noun]
        is_of_names = all(each.pos_ == "PROPN" for each in names)
        value = " and ".join(map(self._phrase, names if is_of_names else [noun]))
        return self._fact(subject, f"not_{relation}" if is_denied else relation, value)

    def _states(self, relation: str, noun: Any) -> bool:
        """Return whether the clause states its relation as true now: not of the past, planned, or restricted."""
        is_past, is_planned = self._was(), self._is_planned()
        if self._begins():  # "I moved to Rome when I was five", "I moved to the sofa"
            is_of_a_thing = relation == "lives_in" and self.direct is not None
            if is_of_a_thing or (is_past and _LONG_AGO.search(self.verb.sent.text)):
                return False
        elif is_past or (is_planned and not (self.is_future and relation in _NAMED)):
            return False
        if is_planned and (self._time() <= self.at or _QUALIFIED.search(self.text)):  # nobody knows when
            return False
        if relation == "age":
            return self._is_age(noun)
        if noun.pos_ == "PRON":  # "the car that I bought"
            return False
        if self.verb.lemma_ == "get" and noun.dep_ == "acomp":  # "got divorced"
            return False
        if relation in _NAMED and not self._is_name(noun):  # "my flat is a mess", "date every page"
            return relation == "works_at"
        if self._is_negated():
            others, limits = [n for _, n in self.preps if n != noun], (ENDED_ADVERB, RESTRICTED, _QUALIFIED)
            if others or any(limit.search(self.verb.sent.text) for limit in limits):
                return False
        if self.verb.lemma_ == "call" and noun.dep_ == "dobj":  # "I call Tom"
            return False
        return relation not in {"phone", "email"} and (relation != "name" or noun.pos_ == "PROPN")

    def _fact(self, subject: str, relation: str, value: str, *, single: bool = False) -> Statement:
        replaces = (single or is_single(relation)) and not _ADDING.search(self.text)
        if relation in _NAMED:
            begins = self._begins()
            is_name = self.text.islower() or any(word[0].isupper() for word in value.split())
            is_vague = self.verb.lemma_ == "join" and not IS_JOB.search(self.text) and self._time() == self.at
            is_shift = is_vague or (self._is_planned() and bool(_ON_A_DAY.search(self.text)))
            replaces = (
                replaces and is_name and (begins or not _FOR_A_WHILE.search(self.text)) and not is_shift
            )
        return Statement(subject, relation, value, self._time(), single=replaces)

    def _fact_of_person(self, subject: str, noun: Any) -> Statement | None:
        """Return what "my NOUN is VALUE" or "she is VALUE" states."""
        role, value = subject.removeprefix(f"{ME}'s "), self._phrase(noun)
        is_pronoun = self.clause.subject is not None and self.clause.subject.pos_ == "PRON"
        if is_person(role) and self._is_age(noun):
            return self._fact(subject, "age", value)
        if is_person(role) and (noun.pos_ != "PROPN" or is_pronoun):
            return self._fact(subject, "name" if noun.pos_ == "PROPN" else "is", value)
        known = relations_by("nouns").get(role, ())
        words = self.clause.subject.children if self.clause.subject is not None else ()
        is_former = any(word.lower_ in _FORMER for word in words)
        is_no_name = "name" in known and noun.pos_ != "PROPN"
        is_no_noun = bool(known) and noun.pos_ in {"ADJ", "ADV", "ADP", "VERB"}
        is_no_fact = is_former or is_no_name or is_no_noun or not {"phone", "email"}.isdisjoint(known)
        return None if is_no_fact else self._fact_of_noun(role, noun)

    def _fact_of_noun(self, role: str, noun: Any) -> Statement:
        """Return what "my NOUN is VALUE" states of the speaker."""
        known = relations_by("nouns").get(role)
        token, single = self.clause.subject, not is_one_of_several(role)
        kinds = [] if token is None else [c.lower_ for c in token.children if c.dep_ in {"amod", "compound"}]
        kinds = [kind for kind in kinds if kind not in {"new", "current"}]
        if token is not None and any(child.dep_ in {"prep", "acl", "relcl"} for child in token.children):
            single = False  # "my favourite film of this year"
        relation = "_".join([*kinds, role]) if kinds or not known else known[0]
        return self._fact(ME, relation, self._phrase(noun), single=single)

    def _read_names(self) -> Iterator[Statement]:
        """Yield the names of "my sister Mia" and "my dog Rex"."""
        had = listed(self.direct) if self.verb.lemma_ == "have" and self.direct is not None else []
        for token in self.clause.tokens:
            role = token if token in had else role_of(token)
            for name in [] if role is None else apposed_names(token) or self._names_described(token):
                kind = kind_of(role)
                if is_one_of_several(kind):
                    yield Statement(ME, kind.replace(" ", "_"), name, self.at)
                elif "partner" in relations_by("nouns").get(kind, ()):
                    yield Statement(ME, "partner", name, self.at, single=True)
                elif is_former_partner(kind):
                    yield Statement(ME, "former", name, self.at, "ended", ("partner",))
                if is_person(kind) and not is_one_of_several(kind):
                    yield Statement(f"{ME}'s {kind}", "name", name, self.at, single=True)

    def _names_described(self, token: Any) -> list[str]:
        """Return the name in "Mia is my sister"."""
        subject, kind = self.clause.subject, kind_of(token)
        if token.dep_ != "attr" or not is_person(kind) or subject is None or self._is_negated():
            return []
        is_former = is_former_partner(kind)
        is_name = subject.pos_ == "PROPN" or (is_former and subject.tag_ == "NN" and not list(subject.lefts))
        return [self._phrase(subject)] if is_name and (is_former or not self._was()) else []


def _is_over(name: Statement, ends: list[Statement]) -> bool:
    """Return whether one of some ends is that of the partner whom a clause names."""
    is_partner = name.relation == "partner" or "partner" in relations_by("nouns").get(
        name.subject.removeprefix(f"{ME}'s "), ()
    )
    is_named = any(name.object in (end.object, end.subject) or "partner" in end.relations for end in ends)
    return name.kind == "stated" and is_partner and is_named
