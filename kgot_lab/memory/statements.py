"""Read by rules what a message in English states: facts, and facts that ended, clause by clause.

spaCy parses the message. Questions, quotations, conditions, wishes and plans state no fact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from kgot_lab.analogy.linguistic import parse_english
from kgot_lab.memory.clauses import (
    FIRST_PERSON,
    POSSESSIVES,
    Clause,
    is_question,
    plain_sentence,
    split_clauses,
)
from kgot_lab.memory.relations import ANY, is_single, relations, relations_by, word_list
from kgot_lab.memory.times import TIME_WORDS, find_time
from kgot_lab.text.function_words import detect_language
from kgot_lab.text.words import text_sentences

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


@dataclass(frozen=True)
class ReadSentence:
    """A sentence of a message, its position there, and what it states. A question states nothing."""

    text: str
    start: int
    end: int
    statements: tuple[Statement, ...] = ()
    is_question: bool = False


_WHAT = r"(?:the |my |our )?(?P<{0}>[\w'.-]+(?: [\w'.-]+){{0,3}}?)(?= (?:today|yesterday|on|last|this|and|for|so|now)\b|[,;!]|\.?$)"
_OCCASION = "(?:day|shift|week|class|lesson|practice|rehearsal|session|round|season|month)s?"
_LAST_TIME = re.compile(
    rf"(?:^|\bwas |\bis )(?:(?:my|the) )?(?:last|final) {_OCCASION} (?:at|with|of|in|for) {_WHAT.format('what')}"
    rf"|\b(?:never again|no more|good ?bye|zero|done with) {_WHAT.format('other')}",
    re.I,
)
_FIRST_TIME = re.compile(rf"^(?:(?:my|the) )?first {_OCCASION} (?:at|with) {_WHAT.format('what')}", re.I)
_NOT_ANY_MORE = re.compile(
    r"\b(?:not|no longer) (?:an? )?(?P<what>[\w' -]+?)(?: any ?more| any ?longer|$)", re.I
)
_LET_GO = re.compile(
    r"^(?:(?P<what>[A-Z][\w'.-]+(?: [A-Z][\w'.-]+)*)|\w+) (?:just |finally )?let (?:me|us) go\b", re.M
)
_UNTIL = re.compile(
    r"\b(?:until|till|til) (?:(?:last|this|early|mid|late|the|start|end|beginning|of) )*(?:january|february|march|april|may|june|july"
    r"|august|september|october|november|december|spring|summer|autumn|fall|winter|year|month|week|yesterday|recently|\d{4})\b",
    re.I,
)
_OBJECTS = frozenset(("dobj", "pobj", "acomp", "attr"))
_ENDED_ADVERB = re.compile(r"\b(?:any ?more|any ?longer|no longer|no more)\b", re.I)
_FOR_GOOD = re.compile(r"\bfor (?:good|ever|the last time)\b", re.I)
_FOR_NOW = re.compile(  # "left early", "left at 5": for the day
    r"\b(?:early|late|at (?:\d|noon|night|lunch|home|one|two|three|four|five|six|seven|eight|nine|ten|half)|today at|tonight"
    r"|by (?:accident|mistake)|this (?:morning|afternoon|evening)|o'clock|(?:be|come|go) back|for an? \w+"
    r"|for (?:lunch|the day|the night))\b",
    re.I,
)
_ADDING = re.compile(
    r"\b(?:also|too|as well|unpaid|on \w+days|weekends|volunteer|another|second|third|besides|on the side|part[- ]time)\b",
    re.I,
)
_SOON = re.compile(r"\b(?:next|tomorrow|soon)\b", re.I)
_LONG_AGO = re.compile(
    r"\bwhen (?:i|we) (?:was|were) |\bas an? (?:child|kid|boy|girl|baby|teenager|student)\b", re.I
)
_ALLERGIC = re.compile(r"\b(?:allergic|intolerant) to (?P<what>[\w' ]+)", re.I)
_STATES_TO = {  # "allergic to nuts"
    "allergic": "allergic_to", "intolerant": "allergic_to", "married": "partner", "engaged": "partner",
}  # fmt: skip
_NEARLY = frozenset("almost nearly barely hardly maybe perhaps possibly probably".split())
_FORMER = frozenset("old former previous last".split())
_EXCHANGING = frozenset("trade swap exchange replace".split())
_CHANGING = frozenset("change switch swap".split())
_PARTICLES = frozenset("away up out off down over in back".split())
_PRONOUNS = frozenset("he she it they him her them".split())
_CLITIC = re.compile(r"'\w+")  # "ve" and "s" are words of other languages
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PHONE = re.compile(r"\+?\d[\d ()/-]{5,}\d")
_REACH_ME = r"(?:reach|call|text|write(?: to)?|email|mail|message) me\b"
_MY_PHONE = re.compile(
    rf"(?:\bmy |^)(?:new |mobile |cell |phone )*(?:number|phone|mobile|cell)\b|\b{_REACH_ME}", re.I
)
_MY_EMAIL = re.compile(rf"(?:\bmy |^)(?:new )?e-?mail\b|\b{_REACH_ME}", re.I)
_RESTRICTED = re.compile(  # not over as a whole: "I no longer work late", "I stopped eating meat on Mondays"
    r"\b(?:on \w+days?|weekends?|evenings?|mornings?|nights|late|after \d\w*|before|when|while|during|with breakfast"
    r"|at (?:work|home|night|midnight|\d+)|for (?:a|an|the|my|her|his|now|lent)|lent)\b",
    re.I,
)


class MessageReader:
    """Reads messages one after the other, and remembers whom "she" or "it" stands for.

    Raises NotInstalled without spaCy.
    """

    def __init__(self) -> None:
        self._topic = ""

    def read(self, messages: Sequence[tuple[str, datetime]]) -> list[list[ReadSentence]]:
        """Return the sentences of each message, given with its time, with what each states."""
        spans = [_spans(text) for text, _ in messages]
        documents = iter(parse_english([plain_sentence(sentence) for each in spans for sentence, *_ in each]))
        return [
            [self._read(*span, next(documents), at) for span in of_message]
            for (_, at), of_message in zip(messages, spans, strict=True)
        ]

    def _read(self, text: str, start: int, end: int, document: Any, at: datetime) -> ReadSentence:
        if is_question(document):
            return ReadSentence(text, start, end, is_question=True)
        if detect_language([_CLITIC.sub("", document.text)]) != "en":
            return ReadSentence(text, start, end)
        statements = list(_read_contacts(document.text, at))
        for part in document.sents:
            for clause in split_clauses(part) if not is_question(part) else ():
                reader = _ClauseReader(clause, at, self._topic)
                statements += reader.read()
                self._topic = reader.topic
        whole = (
            each
            for each in statements
            if each.subject.strip() and (each.object.strip() or each.kind == "ended")
        )
        return ReadSentence(text, start, end, tuple(whole))


def _spans(text: str) -> list[tuple[str, int, int]]:
    """Return the sentences of a text with their positions."""
    spans, place = [], 0
    for sentence in text_sentences(text, "any script"):
        start = max(text.find(sentence, place), place)
        place = min(start + len(sentence), len(text))
        spans.append((sentence, start, place))
    return spans


def _read_contacts(text: str, at: datetime) -> Iterator[Statement]:
    """Yield the addresses at which the speaker can be reached."""
    if (email := _EMAIL.search(text)) and _MY_EMAIL.search(text):
        yield Statement(ME, "email", email[0], at, single=True)
    if (phone := _PHONE.search(text)) and _MY_PHONE.search(text):
        yield Statement(ME, "phone", phone[0], at, single=True)


class _ClauseReader:
    """Reads the statements of one clause."""

    def __init__(self, clause: Clause, at: datetime, topic: str) -> None:
        self.clause, self.text, self.topic, self.at = clause, clause.text, topic, at
        # of "had to sell it" and "started working there" the verb is the second one
        self.finite = self.verb = clause.verb
        inner = next((child for child in clause.verb.children if child.dep_ == "xcomp"), None)
        self.is_beginning = clause.verb.lemma_ in {"start", "begin"} and inner is not None
        has_to = clause.verb.lemma_ in {"have", "manage"} and inner is not None and inner.tag_ == "VB"
        if self.is_beginning or has_to:
            self.verb = inner
        children = (*self.finite.children, *self.verb.children)
        self.children = [
            child for child in dict.fromkeys(children) if child in clause.tokens and child != self.verb
        ]
        self.direct = self._direct()
        self.preps = list(self._find_preps())

    def read(self) -> list[Statement]:
        """Return what the clause states."""
        if self.clause.is_unreal:
            return []
        if found := list(self._read_phrase()):
            return found
        subject = self._subject()
        hedges = {child.lower_ for child in self.children if child.dep_ == "advmod"} & _NEARLY
        is_known = bool(subject) or self._object_is_me()
        if not is_known or hedges or self.verb.pos_ not in {"VERB", "AUX"}:
            return []
        found = list(self._read_end(subject))
        is_both = {"from", "to"} <= {prep for prep, _ in self.preps} or bool(self._relation_lost())
        if subject and (not found or is_both):
            found += self._read_fact(subject)
        self.topic = next((name for _, name in self._people() if name not in ("", ME)), self.topic)
        return [*found, *self._read_names()]

    # --- the parts of the clause ---

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
            if inner is not None and not any(c.dep_ == "pobj" for c in child.children):  # "out of"
                words, prep = f"{words} {inner.lower_}", inner
            if prep.dep_ in {"prep", "agent", "dative"} and not _is_time(child):
                yield from ((words, noun) for noun in prep.children if noun.dep_ in {"pobj", "pcomp"})

    def _keys(self) -> Iterator[tuple[str, Any]]:
        """Yield the verb with each preposition and what follows, and with its direct object."""
        lemma = self.verb.lemma_.lower()
        if self.direct is not None:  # "part ways with", "be gone"
            direct = self.direct.lower_
            if lemma == "be":
                yield f"be {direct}", None
            yield from ((f"{lemma} {direct} {prep}", noun) for prep, noun in self.preps)
        particles = [
            child.lower_
            for child in self.children
            if child.dep_ == "prt" or (child.lower_ in _PARTICLES and not list(child.children))
        ]
        for verb in (f"{lemma} {' '.join(particles)}", lemma) if particles else (lemma,):
            yield from ((f"{verb} {prep}", noun) for prep, noun in self.preps)
            yield verb, self.direct

    def _subject(self) -> str:
        """Return the name of the subject, which is the speaker where there is none, or "" of a request."""
        token = self.clause.subject
        if self.verb.lemma_ in {"call", "name"} and any(c.lower_ in FIRST_PERSON for c in self.children):
            return ME
        if self.finite.tag_ == "VB" and token not in self.clause.tokens:
            return ""
        return ME if token is None else self._name(token)

    def _name(self, token: Any) -> str:
        """Return the name of what a noun or pronoun stands for, "" if that is unknown."""
        word = token.lower_
        if word in FIRST_PERSON:
            return ME
        if token.pos_ == "PRON":
            earlier = [name for other, name in self._people() if other.i < token.i]
            return (earlier or [self.topic])[-1] if word in _PRONOUNS else ""
        if role := _role_of(token):
            name = _name_beside(token)
            kind = role.lemma_.lower()
            is_one_of_several = name and kind in word_list("several")  # "my sister Mia" and another
            return name if is_one_of_several else f"{ME}'s {kind}"
        is_bare = not any(child.dep_ in {"det", "poss", "amod", "nummod"} for child in token.children)
        if token.tag_ == "NN" and is_bare and token.lemma_.lower() in word_list("people"):  # "coach is Ben"
            return f"{ME}'s {token.lemma_.lower()}"
        return self._phrase(token)

    def _people(self) -> list[tuple[Any, str]]:
        """Return the people and animals that the clause names."""
        people = word_list("people")
        nouns = (t for t in self.clause.tokens if t.ent_type_ == "PERSON" or t.lemma_.lower() in people)
        found = ((token, token.lemma_.lower()) for token in nouns if token.pos_ in {"NOUN", "PROPN"})
        return [(t, f"{ME}'s {lemma}" if t.pos_ == "NOUN" else self._name(t)) for t, lemma in found]

    def _phrase(self, token: Any) -> str:
        """Return the words of a noun phrase without determiners, times, and what other clauses add."""
        left_out = set()
        for child in token.subtree:
            adds = child.head == token and child.dep_ in {"relcl", "advcl", "cc", "conj", "appos"}
            is_name = child.dep_ == "appos" and child.pos_ == "PROPN"
            if child != token and (
                (adds and not is_name) or (child.dep_ in {"npadvmod", "prep"} and _is_time(child))
            ):
                left_out |= set(child.subtree)
        tokens = [t for t in token.subtree if t not in left_out and t in self.clause.tokens]
        while tokens and (tokens[0].dep_ == "det" or tokens[0].lower_ in POSSESSIVES or tokens[0].is_punct):
            del tokens[0]
        while tokens and tokens[-1].is_punct:
            del tokens[-1]
        return " ".join("".join(t.text_with_ws for t in tokens).split())

    def _time(self) -> datetime:
        """Return the time that the clause names, or that of the message."""
        return find_time(self.text, self.at, future=self._is_planned()) or self.at

    def _is_planned(self) -> bool:
        is_going = self.verb.lemma_ == "go" and any(child.dep_ == "xcomp" for child in self.children)
        return self.verb.tag_ == "VBG" and (is_going or bool(_SOON.search(self.text)))

    def _is_negated(self) -> bool:
        return any(child.dep_ == "neg" or child.lower_ == "no" for child in self.children)

    # --- what ended ---

    def _read_phrase(self) -> Iterator[Statement]:
        """Yield what phrases state that need no verb: "last day at Acme", "allergic to nuts"."""
        time = min(self._time(), self.at)
        whole = self.verb.sent.text
        if self.verb.lemma_ == "let" and (found := _LET_GO.search(whole)) and not _FOR_NOW.search(whole):
            yield Statement(ME, "", found["what"] or "", time, "ended", ("works_at",))
        elif found := _LAST_TIME.search(self.text):
            yield Statement(ME, "", found["what"] or found["other"], time, "ended", (ANY,))
        elif found := _FIRST_TIME.search(self.text):
            yield Statement(ME, "works_at", found["what"], time, single=True)
        elif self.clause.subject is None and (found := _ALLERGIC.search(self.text)):
            yield Statement(ME, "allergic_to", found["what"], time)
        is_over = self.clause.subject is None and bool(_ENDED_ADVERB.search(self.text))
        if is_over and (found := _NOT_ANY_MORE.search(self.text)):
            yield Statement(ME, "", found["what"], time, "ended", (ANY,))

    def _read_end(self, subject: str) -> Iterator[Statement]:
        """Yield what the clause says is over."""
        time = self._time() if self._is_planned() else min(self._time(), self.at)
        inner = next((child for child in self.children if child.dep_ == "xcomp"), None)

        def ended(value: str, relations: tuple[str, ...], of: str = subject) -> Statement:
            return Statement(of, "", value, time, "ended", relations)

        is_no_more = bool(_ENDED_ADVERB.search(self.text))
        if self.verb.lemma_ == "use" and self.verb.tag_ == "VBD" and inner is not None:  # "used to smoke"
            words = (t for t in inner.subtree if t.dep_ not in {"aux", "neg"} and t.ent_type_ != "DATE")
            yield ended(" ".join(token.text for token in words), (ANY,))
        elif is_no_more and _RESTRICTED.search(self.text):
            return
        elif is_no_more and (self._is_negated() or "no longer" in self.text.lower()):
            relation, noun = self._relation()
            stated = _relations_stated_by(self.verb) if noun is None else ()
            if stated:  # "I don't work there anymore"
                yield ended("", stated)
            elif noun is None and self.verb.lemma_ == "be":  # "the band is no more"
                yield ended("", (ANY,))
            else:
                possible = ANY if relation in {"is", "is_with"} else relation
                yield ended(self._phrase(noun) if noun is not None else self.verb.lemma_, (possible,))
        elif _UNTIL.search(self.text) and (
            self._was() or self.verb.tag_ == "VBN"
        ):  # "I worked at Acme until March"
            relation, noun = self._relation()
            if noun is not None and relation in relations():
                yield ended(self._phrase(noun), (relation,))
        elif self._is_negated() or not self._is_past() or self._is_for_now():
            return
        elif _FOR_GOOD.search(self.text):
            objects = [token for token in self.clause.tokens if token.dep_ in {"dobj", "pobj"}]
            nouns = [token for token in objects if token.lower_ not in {"good", "time"}]
            yield ended(self._phrase(nouns[-1]) if nouns else "", (ANY,))
        elif self.verb.lemma_ in _CHANGING and (old := [noun for prep, noun in self.preps if prep == "from"]):
            yield ended(self._phrase(old[0]), (ANY,))
        elif relation := self._relation_lost():
            giver = self.clause.subject if self._object_is_me() else None
            is_named = giver is not None and giver.pos_ == "PROPN"
            yield ended(
                self._phrase(giver) if is_named else "", (relation,), subject if giver is None else ME
            )
        else:
            yield from self._read_ending_verb(inner, ended)

    def _is_for_now(self) -> bool:
        is_exchange = self.verb.lemma_ in _EXCHANGING  # "for a Tesla"
        return not is_exchange and bool(_FOR_NOW.search(self.text))

    def _object_is_me(self) -> bool:
        is_object = any(child.lower_ in {"me", "us"} and child.dep_ == "dobj" for child in self.children)
        return is_object and {prep for prep, _ in self.preps} <= {
            "from",
            "for",
        }  # not "left me at the airport"

    def _relation_lost(self) -> str:
        """Return the relation that ended by what another did to the speaker, or in which a state says that nobody is."""
        key = ""
        if self._object_is_me():  # "fired me"
            key = " ".join(
                [self.verb.lemma_, *(child.lower_ for child in self.children if child.dep_ == "prt")]
            )
        elif self.verb.lemma_ == "be" and not self._was() and self.direct is not None:  # "is single"
            key = self.direct.lower_ if self.direct.dep_ == "acomp" else ""
        return next(iter(relations_by("lost").get(key, ())), "")

    def _read_ending_verb(self, inner: Any, ended: Callable[..., Statement]) -> Iterator[Statement]:
        """Yield what a verb of the table says is over: its object, its subject, or what a gerund after it does."""
        gerund = inner if inner is not None and inner.tag_ == "VBG" else None
        for key, noun in self._keys():
            possible = relations_by("ends").get(key, ())
            possible = (*possible, ANY) if key in word_list("ends") else possible
            is_alone = noun is None and gerund is None and not self._is_passive()
            if possible and (not is_alone or self._ends_alone(key)):
                if not self._ends_in_part(key, noun, ANY in possible):
                    yield self._ended_by(key, noun, gerund, possible, ended)
                return

    def _ends_in_part(self, key: str, noun: Any, is_any: bool) -> bool:
        """Return whether a verb of the table ends nothing as a whole here."""
        if noun is not None and any(child.lower_ in {"a", "an", "some"} for child in noun.children):
            return True
        if key in word_list("deaths"):
            return noun is not None and bool(self.preps)  # "put him down on the sofa"
        named = self.clause.subject if noun is None else noun
        if key in word_list("used up") and named is not None and not _noun_of_relation(named):
            return named.pos_ != "PROPN" or key == "close"  # "finished my coffee", "closed Vim"
        return is_any and bool(_RESTRICTED.search(self.text))

    def _is_passive(self) -> bool:
        subject = self.clause.subject
        return subject is not None and subject.dep_ == "nsubjpass" and subject.lower_ not in FIRST_PERSON

    def _ends_alone(self, key: str) -> bool:
        """Return whether a verb ends something without an object: "Rex died", "we broke up", but not "I stopped"."""
        is_of_two = relations_by("ends").get(key) == ("partner",)  # not "we split up at the station"
        return key not in word_list("transitive") and not (is_of_two and self.preps)

    def _ended_by(
        self, key: str, noun: Any, gerund: Any, possible: tuple[str, ...], ended: Callable[..., Statement]
    ) -> Statement:
        subject = self.clause.subject
        owned = subject if noun is None else noun
        role = _noun_of_relation(owned)
        words = [*owned.subtree, *(other for _, other in self.preps)] if role else []
        kinds = [t for t in words if t.pos_ == "PROPN" or t.dep_ == "compound"]
        if role and (kinds or noun is None):  # "my contract with Acme ran out", "my nut allergy is gone"
            relations = (ANY,) if kinds else relations_by("nouns").get(role, ())
            return ended(self._phrase(kinds[-1]) if kinds else "", relations, ME)
        if noun is not None:
            name = self._name(noun) if _role_of(noun) else self._phrase(noun)
            return ended("", (ANY,), name) if key in word_list("deaths") else ended(name, possible)
        if gerund is not None:
            objects = [
                t for t in gerund.subtree if t.dep_ in _OBJECTS and t.ent_type_ not in {"DATE", "TIME"}
            ]
            stated = _relations_stated_by(gerund)
            if objects or not stated:
                return ended(self._phrase(objects[0]) if objects else gerund.lemma_, possible)
            return ended("", stated)  # "stopped working there"
        if subject is not None and self._is_passive() and possible != ("partner",):
            return ended(self._name(subject) if _role_of(subject) else self._phrase(subject), possible, ME)
        if subject is not None and any(c.dep_ == "conj" and c.lower_ == "i" for c in subject.children):
            return ended(self._phrase(subject), possible, ME)  # "Sam and I broke up"
        return ended("", possible)

    def _is_past(self) -> bool:
        return self.finite.tag_ in {"VBD", "VBN"} or self.verb.lemma_ == "be"

    def _was(self) -> bool:
        """Return whether the clause is of the past, and not perfect."""
        auxiliaries = [child for child in self.children if child.dep_ == "aux"]
        is_perfect = any(child.lemma_ == "have" for child in auxiliaries)
        return not is_perfect and "VBD" in {token.tag_ for token in (self.finite, *auxiliaries)}

    # --- what is stated ---

    def _read_fact(self, subject: str) -> Iterator[Statement]:
        """Yield the fact that the clause states of its subject."""
        new = [noun for prep, noun in self.preps if prep in {"to", "for"}]
        if self.verb.lemma_ in _CHANGING and new:  # "changed my major to biology", "switched to tea"
            role = "" if self.direct is None else self.direct.lemma_.lower()
            named = self._fact_of_noun(role, new[0]) if role else None
            yield named or self._fact(subject, f"{self.verb.lemma_}_to", self._phrase(new[0]))
            return
        relation, noun = self._relation()
        if noun is None or not self._states(relation, noun):
            return
        if subject.startswith(f"{ME}'s ") and self.verb.lemma_ in {"be", "spell"}:
            if fact := self._fact_of_person(subject, noun):
                yield fact
        elif value := self._phrase(noun):
            yield self._fact(subject, f"not_{relation}" if self._is_negated() else relation, value)

    def _states(self, relation: str, noun: Any) -> bool:
        """Return whether the clause states its relation as true now: not of the past, planned, or restricted."""
        begins = self.is_beginning or any(key in relations_by("begins") for key, _ in self._keys())
        is_past = self._was()
        if begins:  # "I moved to Rome when I was five", "I start on Monday", "I moved to the sofa"
            is_state = any(key in relations_by("states") for key, _ in self._keys())  # "I subscribe to it"
            is_still_to_come = self.finite.tag_ in {"VBP", "VBZ"} and not is_state
            is_of_a_thing = relation == "lives_in" and (noun.pos_ != "PROPN" or self.direct is not None)
            if is_still_to_come or is_of_a_thing or (is_past and _LONG_AGO.search(self.verb.sent.text)):
                return False
        elif is_past or self._is_planned():
            return False
        if self._is_negated() and (_ENDED_ADVERB.search(self.text) or _RESTRICTED.search(self.text)):
            return False
        return relation not in {"phone", "email"} and (relation != "name" or noun.pos_ == "PROPN")

    def _fact(self, subject: str, relation: str, value: str, *, single: bool = False) -> Statement:
        replaces = (single or is_single(relation)) and not _ADDING.search(self.text)
        return Statement(subject, relation, value, self._time(), single=replaces)

    def _fact_of_person(self, subject: str, noun: Any) -> Statement | None:
        """Return what "my NOUN is VALUE" or "she is VALUE" states."""
        role, value = subject.removeprefix(f"{ME}'s "), self._phrase(noun)
        is_pronoun = self.clause.subject is not None and self.clause.subject.pos_ == "PRON"
        if role in word_list("people") and (noun.pos_ != "PROPN" or is_pronoun):
            return self._fact(subject, "name" if noun.pos_ == "PROPN" else "is", value)
        known = relations_by("nouns").get(role, ())
        kinds = (
            [] if self.clause.subject is None else [child.lower_ for child in self.clause.subject.children]
        )
        if not _FORMER.isdisjoint(kinds) or not {"phone", "email"}.isdisjoint(known):
            return None
        if ("name" in known and noun.pos_ != "PROPN") or (
            known and noun.pos_ in {"ADJ", "ADV", "ADP", "VERB"}
        ):
            return None
        return self._fact_of_noun(role, noun)

    def _fact_of_noun(self, role: str, noun: Any) -> Statement:
        """Return what "my NOUN is VALUE" states of the speaker."""
        known = relations_by("nouns").get(role)
        token, single = self.clause.subject, role not in word_list("several")
        kinds = [] if token is None else [c.lower_ for c in token.children if c.dep_ in {"amod", "compound"}]
        kinds = [kind for kind in kinds if kind not in {"new", "current"}]
        if token is not None and any(child.dep_ in {"prep", "acl", "relcl"} for child in token.children):
            single = False  # "my favourite film of this year"
        relation = "_".join([*kinds, role]) if kinds or not known else known[0]
        return self._fact(ME, relation, self._phrase(noun), single=single)

    def _read_names(self) -> Iterator[Statement]:
        """Yield the names of "my sister Mia" and "my dog Rex"."""
        for token in self.clause.tokens:
            role, name = _role_of(token), _name_beside(token)
            if not name and self.verb.lemma_ == "have" and token == self.direct:  # "a cat named Mia"
                named = (
                    c
                    for child in token.children
                    if child.lower_ in {"named", "called"}
                    for c in child.children
                )
                role, name = token, " ".join(c.text for c in named if c.pos_ == "PROPN")
            if role is not None and name:
                kind = role.lemma_.lower()
                if kind in word_list("several"):
                    yield Statement(ME, kind, name, self.at)
                elif kind in word_list("people"):
                    yield Statement(f"{ME}'s {kind}", "name", name, self.at, single=True)

    def _relation(self) -> tuple[str, Any]:
        """Return the relation of the clause, and the token of its object or None."""
        by_verb = {**relations_by("begins"), **relations_by("states")}
        for key, noun in self._keys():
            if noun is None or (key.startswith("do ") and noun.pos_ != "PROPN"):  # "do Spanish at home"
                continue
            if key in by_verb:
                is_company = key == "join" and noun.pos_ == "PROPN"
                return "works_at" if is_company else by_verb[key][-1 if key == "join" else 0], noun
        verb, prep = self.verb.lemma_.lower(), self.preps[0] if self.preps else ("", None)
        if verb == "be":
            word = "" if self.direct is None else self.direct.lower_
            if word in _STATES_TO and self.preps:
                return _STATES_TO[word], self.preps[-1][1]
            if self.direct is not None or prep[1] is None:
                return "is", self.direct
            is_today = re.search(r"\b(?:today|tonight)\b", self.text)
            is_employer = prep[0] == "at" and prep[1].pos_ == "PROPN" and not is_today
            return "works_at" if is_employer else f"is_{prep[0].replace(' ', '_')}", prep[1]
        if self.direct is not None or prep[1] is None:
            return next(self._keys())[0].split()[0] if not self.preps else verb, self.direct
        return f"{verb}_{prep[0].replace(' ', '_')}", prep[1]


def _relations_stated_by(verb: Any) -> tuple[str, ...]:
    """Return the relations that a verb states with some preposition."""
    states = relations_by("states").items()
    return tuple(dict.fromkeys(names[0] for key, names in states if key.split()[0] == verb.lemma_))


def _role_of(token: Any) -> Any:
    """Return the noun that says what someone is to the speaker: of "my sister", "my dog Rex". None without one."""
    if not any(child.dep_ == "poss" and child.lower_ in POSSESSIVES for child in token.children):
        return None
    if token.pos_ == "NOUN":
        return token
    people = word_list("people")
    return next(
        (c for c in token.children if c.dep_ in {"compound", "nmod"} and c.lemma_.lower() in people), None
    )


def _name_beside(token: Any) -> str:
    """Return the name in "my sister Mia" or "my dog Rex", "" without one."""
    if token.pos_ == "PROPN":
        names = (t.text for t in token.subtree if t.pos_ == "PROPN")
        return "" if _role_of(token) is None else " ".join(names)
    name = next((child for child in token.children if child.dep_ == "appos" and child.pos_ == "PROPN"), None)
    return "" if name is None else " ".join(t.text for t in (*name.lefts, name) if t.pos_ == "PROPN")


def _noun_of_relation(token: Any) -> str:
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


def _is_time(token: Any) -> bool:
    """Return whether a phrase names a time."""
    words = [t for t in token.subtree if t.pos_ in {"NOUN", "PROPN", "NUM", "ADV"}]
    return bool(words) and all(t.ent_type_ in {"DATE", "TIME"} or t.lower_ in TIME_WORDS for t in words)
