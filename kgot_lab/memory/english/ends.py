"""Read what a clause says is over."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from kgot_lab.memory.english.clauses import FIRST_PERSON
from kgot_lab.memory.english.parts import (
    ME,
    SOON,
    STATES_TO,
    ClauseParts,
    Statement,
    apposed_names,
    listed,
    noun_of_relation,
    relations_stated_by,
    role_of,
)
from kgot_lab.memory.english.relations import ANY, relations, relations_by, word_list
from kgot_lab.memory.english.times import find_time

_AFTER = "today|yesterday|tomorrow|is|was|will|starts?|begins?|in|on|next|last|this|and|for|so|now"
_WHAT = rf"(?:the |my |our )?(?P<{{0}}>[\w'.-]+(?: [\w'.-]+){{{{0,3}}}}?)(?= (?:{_AFTER})\b|[,;!]|\.?$)"
_OCCASION = "(?:day|shift|week|class|lesson|practice|rehearsal|session|round|season|month)s?"
_LAST_TIME = re.compile(
    rf"(?:^|\bwas |\bis )(?:(?:my|the) )?(?:last|final) {_OCCASION} (?:at|with|of|in|for) {_WHAT.format('what')}"
    rf"|\b(?:never again|no more|(?:good ?)?bye|zero|done with|took (?:me|us) off) {_WHAT.format('other')}",
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
_TODAY = re.compile(r"\b(?:today|tonight|tomorrow|on \w+days?|for the \w+)\b", re.I)
_OBJECTS = frozenset(("dobj", "pobj", "acomp", "attr"))
ENDED_ADVERB = re.compile(r"\b(?:any ?more|any ?longer|no longer|no more)\b", re.I)
_FOR_GOOD = re.compile(r"\bfor (?:good|ever|the last time)\b", re.I)
_FOR_NOW = re.compile(  # "left early", "left at 5": for the day
    r"\b(?:early|late|at (?:\d|noon|night|lunch|home|one|two|three|four|five|six|seven|eight|nine|ten|half)|today at|tonight"
    r"|by (?:accident|mistake)|this (?:morning|afternoon|evening)|o'clock|(?:be|come|go) back|for an? \w+"
    r"|for (?:lunch|the day|the night))\b",
    re.I,
)
_ALLERGIC = re.compile(r"\b(?:allergic|intolerant) to (?P<what>[\w' ]+)", re.I)
_EXCHANGING = frozenset("trade swap exchange replace".split())
CHANGING = frozenset("change switch swap upgrade migrate convert defect".split())
RESTRICTED = re.compile(  # not over as a whole: "I no longer work late", "I stopped eating meat on Mondays"
    r"\b(?:on \w+days?|weekends?|evenings?|mornings?|nights|late|after \d\w*|before|when|while|during|with breakfast"
    r"|at (?:work|home|night|midnight|\d+)|for (?:a|an|the|my|her|his|now|lent)|lent)\b",
    re.I,
)


class EndReader(ClauseParts):
    """Reads what a clause says is over."""

    def _read_phrase(self) -> Iterator[Statement]:
        """Yield what phrases state that need no verb: "last day at Acme", "allergic to nuts"."""
        time = min(self._time(), self.at)
        whole = self.verb.sent.text
        if SOON.search(self.text):  # "tomorrow is my last day at Acme"
            future = find_time(self.text, self.at, future=True)
            if future is None:
                return
            time = future
        if self.verb.lemma_ == "let" and (found := _LET_GO.search(whole)) and not _FOR_NOW.search(whole):
            yield Statement(ME, "", found["what"] or "", time, "ended", ("works_at",))
        elif found := _LAST_TIME.search(self.text):
            yield Statement(ME, "", found["what"] or found["other"], time, "ended", (ANY,))
        elif found := _FIRST_TIME.search(self.text):
            if self.finite.tag_ in {"VBZ", "MD"} and not SOON.search(self.text):  # "is on Monday"
                time = find_time(self.text, self.at, future=True) or time
            yield Statement(ME, "works_at", found["what"], time, single=True)
        elif self.clause.subject is None and (found := _ALLERGIC.search(self.text)):
            yield Statement(ME, "allergic_to", found["what"], time)
        is_over = self.clause.subject is None and bool(ENDED_ADVERB.search(self.text))
        if is_over and (found := _NOT_ANY_MORE.search(self.text)):
            yield Statement(ME, "", found["what"], time, "ended", (ANY,))

    def _read_end(self, subject: str) -> Iterator[Statement]:
        """Yield what the clause says is over."""
        time = self._time() if self._is_planned() else min(self._time(), self.at)
        inner = next((child for child in self.children if child.dep_ == "xcomp"), None)

        def ended(value: str, relations: tuple[str, ...], of: str = subject) -> Statement:
            return Statement(of, "", value, time, "ended", relations)

        is_no_more = bool(ENDED_ADVERB.search(self.text))
        if self.verb.lemma_ == "use" and self.verb.tag_ == "VBD" and inner is not None:  # "used to smoke"
            states = [t for t in inner.children if t.lower_ in STATES_TO and inner.lemma_ == "be"]
            words = [t for t in inner.subtree if t.dep_ not in {"aux", "neg"} and t.ent_type_ != "DATE"]
            if states and words[-1].pos_ == "PROPN":  # "used to be married to Tom"
                yield ended(words[-1].text, (STATES_TO[states[0].lower_],))
                return
            yield ended(" ".join(token.text for token in words), (ANY,))
        elif is_no_more and RESTRICTED.search(self.text):
            return
        elif is_no_more and (self._is_negated() or "no longer" in self.text.lower()):
            relation, noun = self._relation()
            stated = relations_stated_by(self.verb) if noun is None else ()
            if stated:  # "I don't work there anymore"
                yield ended("", stated)
            elif noun is None and self.verb.lemma_ == "be":  # "the band is no more"
                yield ended("", (ANY,))
            else:
                possible = ANY if relation in {"is", "is_with"} else relation
                for each in [None] if noun is None else listed(noun):
                    yield ended(self.verb.lemma_ if each is None else self._phrase(each), (possible,))
        # "I worked at Acme until March"
        elif _UNTIL.search(self.text) and (self._was() or self.verb.tag_ == "VBN"):
            relation, noun = self._relation()
            if noun is not None and relation in relations():
                yield ended(self._phrase(noun), (relation,))
        elif self._is_negated() or not self._is_past() or self._is_for_now():
            return
        elif _FOR_GOOD.search(self.text):
            objects = [token for token in self.clause.tokens if token.dep_ in {"dobj", "pobj"}]
            nouns = [token for token in objects if token.lower_ not in {"good", "time"}]
            yield ended(self._phrase(nouns[-1]) if nouns else "", (ANY,))
        elif self.verb.lemma_ in CHANGING and (old := [noun for prep, noun in self.preps if prep == "from"]):
            yield ended(self._phrase(old[0]), (ANY,))
        elif self.verb.lemma_ in CHANGING and (ending := self._relations_changed()):  # "changed jobs"
            yield ended("", ending)
        elif relation := self._relation_lost():
            yield self._ended_by_another(relation, subject, time)
        else:
            yield from self._read_ending_verb(inner, ended)

    def _ended_by_another(self, relation: str, subject: str, time: datetime) -> Statement:
        """Return the end of "Sam left me", "Sam and I are divorced" or "I'm divorced from Sam"."""
        giver = self.clause.subject if self._object_is_me() else None
        both = [] if giver is not None or self.clause.subject is None else listed(self.clause.subject)
        with_me = [token for token in both if token.lower_ not in FIRST_PERSON] if len(both) > 1 else []
        others = [giver, *with_me, *(noun for prep, noun in self.preps if prep == "from")]
        named = [token for token in others if token is not None and token.pos_ == "PROPN"]
        name = (apposed_names(named[0]) or [self._phrase(named[0])])[0] if named else ""
        of = ME if giver is not None or with_me else subject
        return Statement(of, "", name, time, "ended", (relation,))

    def _relations_changed(self) -> tuple[str, ...]:
        """Return the relations of a plural noun that stands alone, such as "jobs" and "schools", that can end."""
        if self.direct is None or self.direct.tag_ != "NNS" or list(self.direct.children) or self.preps:
            return ()
        return tuple(
            name for name in relations_by("nouns").get(self.direct.lemma_, ()) if relations()[name].ends
        )

    def _is_for_now(self) -> bool:
        is_exchange = self.verb.lemma_ in _EXCHANGING  # "for a Tesla"
        return not is_exchange and bool(_FOR_NOW.search(self.text))

    def _object_is_me(self) -> bool:
        is_object = any(child.lower_ in {"me", "us"} and child.dep_ == "dobj" for child in self.children)
        # not "left me at the airport"
        return is_object and all(prep in {"from", "for"} for prep, _ in self.preps)

    def _relation_lost(self) -> str:
        """Return the relation that ended by what another did to the speaker, or in which a state says that nobody is."""
        key = ""
        if self._object_is_me():  # "fired me"
            particles = (child.lower_ for child in self.children if child.dep_ == "prt")
            key = " ".join([self.verb.lemma_, *particles])
        elif self.direct is not None and (  # "is single", "got divorced"
            self.verb.lemma_ == "get" or (self.verb.lemma_ == "be" and not self._was())
        ):
            key = self.direct.lower_ if self.direct.dep_ in {"acomp", "attr"} else ""
        return next(iter(relations_by("lost").get(key, ())), "")

    def _read_ending_verb(self, inner: Any, ended: Callable[..., Statement]) -> Iterator[Statement]:
        """Yield what a verb of the table says is over: its object, its subject, or what a gerund after it does."""
        gerund = inner if inner is not None and inner.tag_ == "VBG" else None
        for key, noun in self._keys():
            possible = relations_by("ends").get(key, ())
            possible = (*possible, ANY) if key in word_list("ends") else possible
            if key == "move from" and noun is not None and noun.pos_ == "PROPN":  # a firm, perhaps
                possible = (*possible, "works_at")
            is_alone = noun is None and gerund is None and not self._is_passive()
            if possible and (not is_alone or self._ends_alone(key)):
                if not self._ends_in_part(key, noun, ANY in possible):
                    for each in [None] if noun is None else listed(noun):
                        yield self._ended_by(key, each, gerund, possible, ended)
                return

    def _ends_in_part(self, key: str, noun: Any, is_any: bool) -> bool:
        """Return whether a verb of the table ends nothing as a whole here."""
        if noun is not None and any(child.lower_ in {"a", "an", "some"} for child in noun.children):
            return True
        # "left Anna at the airport", "left Anna a note"
        if key in word_list("left behind") and noun is not None:
            objects = [child for child in self.children if child.dep_ in {"dobj", "dative"}]
            return len(objects) > 1 or any(prep in {"at", "in", "on", "with", "to"} for prep, _ in self.preps)
        # "Rex is finished with his class"
        if key in word_list("used up") and noun is None and self._is_passive():
            return not noun_of_relation(self.clause.subject)
        if key in word_list("deaths"):
            return noun is not None and bool(self.preps)  # "put him down on the sofa"
        named = self.clause.subject if noun is None else noun
        if key in word_list("used up") and _TODAY.search(self.text):  # "my school is closed today"
            return True
        if key in word_list("used up") and named is not None and not noun_of_relation(named):
            return named.pos_ != "PROPN" or key == "close"  # "finished my coffee", "closed Vim"
        return is_any and bool(RESTRICTED.search(self.text))

    def _is_passive(self) -> bool:
        subject = self.clause.subject
        return subject is not None and subject.dep_ == "nsubjpass" and subject.lower_ not in FIRST_PERSON

    def _ends_alone(self, key: str) -> bool:
        """Return whether a verb ends something without an object: "Rex died", "we broke up", but not "I stopped"."""
        is_of_two = relations_by("ends").get(key) == ("partner",)  # not "we split up at the station"
        if key == "end" and noun_of_relation(self.clause.subject) in word_list("contracts"):
            return True  # "my marriage ended"
        return key not in word_list("transitive") and not (is_of_two and self.preps)

    def _ended_by(
        self, key: str, noun: Any, gerund: Any, possible: tuple[str, ...], ended: Callable[..., Statement]
    ) -> Statement:
        subject = self.clause.subject
        owned = subject if noun is None else noun
        role = noun_of_relation(owned)
        words = [*owned.subtree, *(other for _, other in self.preps)] if role else []
        kinds = [t for t in words if t.pos_ == "PROPN" or t.dep_ == "compound"]
        if role and (kinds or noun is None):  # "my contract with Acme ran out", "my nut allergy is gone"
            return ended(self._phrase(kinds[-1]) if kinds else role, (ANY,), ME)
        if noun is not None:
            name = self._name(noun) if role_of(noun) else self._phrase(noun)
            if key in word_list("successors") and subject is not None:  # "Ben took over from Ann"
                return ended(name, possible, ME)
            return ended("", (ANY,), name) if key in word_list("deaths") else ended(name, possible)
        if gerund is not None:
            words = [word for word in gerund.subtree if word.ent_type_ not in {"DATE", "TIME"}]
            objects = [word for word in words if word.dep_ in _OBJECTS]
            stated = relations_stated_by(gerund)
            if objects or not stated:
                return ended(self._phrase(objects[0]) if objects else gerund.lemma_, possible)
            return ended("", stated)  # "stopped working there"
        if subject is not None and self._is_passive() and possible != ("partner",):
            return ended(self._name(subject) if role_of(subject) else self._phrase(subject), possible, ME)
        near = () if subject is None else (*subject.children, *self.verb.children)
        if subject is not None and subject.lower_ not in FIRST_PERSON and any(n.lower_ == "i" for n in near):
            return ended(self._phrase(subject), possible, ME)  # "Sam and I broke up"
        return ended("", possible)
