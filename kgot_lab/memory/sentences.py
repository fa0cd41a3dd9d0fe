"""The sentences that a user said, with their facts and ends, and a search over them."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from itertools import takewhile
from typing import Any

import numpy as np

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import without_cache
from kgot_lab.io.times import from_micros, from_micros_or_none
from kgot_lab.memory import tables as sql
from kgot_lab.memory.claims.claim import ASKED, ENDED, SAID
from kgot_lab.memory.claims.justification import (
    ActiveClaim,
    claims_deciding,
    read_active_claims,
    read_aliases,
)
from kgot_lab.memory.english.clauses import plain_sentence
from kgot_lab.memory.english.relations import is_person, question_stems, relations
from kgot_lab.memory.tables import ClaimStorage
from kgot_lab.stores.tables.history import LAST_CHANGE
from kgot_lab.text.words import SEARCH_STOP_WORDS, name_tokens, stem
from kgot_lab.types import Triple

LIGHT_STEMS = frozenset(
    map(stem, "the a an my our new old to of in at for with and from it that this there".split())
)
_QUESTION_WORDS = frozenset(
    "what when where which who whom whose why how do does did has have had am is are was be he she his her i me my you "
    "your we our us mine myself tell know about should can could would".split()
)
# Words of a sentence that may tell something again; what it tells again is the sentence before that is nearest in meaning.
_ANEW = re.compile(
    r"\b(?:instead|these days|as of|from (?:now|today|this|next|.{3,12} on)\b|until further notice|first (?:day|shift)|correction"
    r"|scrap that|changed|switched|swapped|replaced|traded|renamed|meant|spelled|since (?:today|yesterday))\b",
    re.I,
)
# or if they share a word
_PERHAPS_ANEW = re.compile(r"\b(?:(?<!for )now(?!here| you)|actually|sorry|new)\b", re.I)
_MEASURE = re.compile(  # "4th floor", "92 kilos", "14:35", "thursday"
    r"\b(?:(?P<number>\d+(?:[.,:]\d+)*)(?:st|nd|rd|th)?[ -]?(?P<unit>(?!(?:days?|weeks?|months?|years?|times?)\b)[a-z]{2,})?"
    r"|(?P<weekday>mon|tues|wednes|thurs|fri|satur|sun)days?)\b",
    re.I,
)
_EVENT = re.compile(r"\b(?:today|tonight|yesterday|this (?:morning|evening)|last|ago|just)\b", re.I)
_FIRST_PERSON = frozenset("i we me us my our mine ours".split())
_OWN = 0.2  # score of a fact of the user that has the relation asked about
_NEAR_ENOUGH = 0.24  # cosine of all-MiniLM, chosen on the development half of the endings
_NEAR = 0.45  # of what another number tells again
_OPENING_WORDS = 4  # where someone else would be named whom a sentence is about
_YEAR = 365 * 86_400  # seconds


def measures(text: str) -> dict[str, set[str]]:
    """Return the numbers of a text by what they count, times of a day by "", and weekdays."""
    found = defaultdict[str, set[str]](set)
    for each in _MEASURE.finditer(text):
        if each["weekday"]:
            found["weekday"].add(each["weekday"].casefold())
        elif each["unit"] or ":" in each["number"]:
            found[stem(each["unit"].casefold()) if each["unit"] else ""].add(each["number"])
    return found


def word_stems(text: str) -> set[str]:
    """Return the stems of the words of a text that are not merely grammatical."""
    return {stem(word) for word in name_tokens(text.replace("_", " "))} - LIGHT_STEMS


@dataclass(eq=False)
class Sentence:
    """A sentence that a user said, with the facts it states and what ended according to it."""

    text: str
    source: str
    told: datetime
    start: int = 0
    is_question: bool = False
    facts: dict[Triple, ActiveClaim] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    later: Sentence | None = None  # says that something of this one ended, or seems to tell it again
    number: int = -1  # among all, in the order of time

    @cached_property
    def stems(self) -> set[str]:
        """The stems of its words."""
        return word_stems(self.text)

    def may_replace(self, earlier: Sentence) -> bool:
        """Return whether this may replace what an earlier sentence of another message says, by the facts of both."""
        told = {(fact.subject, fact.relation) for fact in self.facts}
        known = {(fact.subject, fact.relation) for fact in earlier.facts}
        is_other = bool(told and known) and not told & known and all(name in relations() for _, name in known)
        return earlier.source != self.source and not is_other

    def ends(self, at: datetime) -> dict[Triple, datetime]:
        """Return the facts that are no longer true at a time, with their ends."""
        ends = ((fact, from_micros_or_none(claim.valid_until)) for fact, claim in self.facts.items())
        return {fact: end for fact, end in ends if end is not None and end <= at}

    @property
    def over(self) -> float:
        """The time, in seconds, from which none of its facts is true any more: infinity if it has no fact."""
        ends = [claim.valid_until for claim in self.facts.values()]
        times = [float("inf") if end is None else from_micros(end).timestamp() for end in ends]
        return max(times, default=float("inf"))


class SentenceIndex:
    """The sentences of a user in the order of time, and a search over them.

    What the claims have learned since is read before each use, and everything again after another change. A
    thread that uses what it returns does so within `storage.reading()`, which excludes the others.
    """

    def __init__(self, storage: ClaimStorage, user: str, embedder: Embedder | None) -> None:
        self._storage, self._user, self._embedder = storage, user, embedder
        self._clear()

    def _clear(self) -> None:
        self._last = 0  # the change up to which the claims were read
        self._by_place: dict[tuple[str, int], Sentence] = {}
        self._by_claim: dict[str, Sentence] = {}
        self._sentences: list[Sentence] = []
        # the sentences that state something of a subject, or with a relation
        self._stating: dict[tuple[str, str], dict[Sentence, None]] = defaultdict(dict)
        self._ranking = _Ranking(self._user)
        self._vectors = np.empty((0, 0), dtype=np.float32)  # of as many sentences as were embedded
        self._computed: dict[str, Any] = {}  # vectors of sentences to come

    # --- reading ---

    def sentences(self) -> list[Sentence]:
        """Return what was said, in the order of time, with the facts that are believed."""
        with self._storage.reading():
            last = next(iter(self._storage.rows(LAST_CHANGE)), (0,))[0]
            if last == self._last:
                return self._sentences
            since, names = {"known": self._last}, read_aliases(self._storage)
            if self._last and {("learn",), ("correct",)}.issuperset(
                self._storage.rows(sql.ACTIONS_SINCE, since)
            ):
                facts = names.canonical_facts(self._storage.rows(sql.FACTS_LEARNT_SINCE, since))
                active = claims_deciding(self._storage, names, facts)
                new = [claim.id for claim in active if claim.id not in self._by_claim]
                spans = self._storage.rows(sql.SPANS, {"claims": new})
            else:
                self._clear()
                active = read_active_claims(self._storage, names)
                spans = self._storage.rows(sql.ALL_SPANS)
        new_sentences = self._place(active, {id: span for id, *span in spans})
        if self._sentences and new_sentences and new_sentences[0].told < self._sentences[-1].told:
            self._clear()  # what is told late is put between others
            return self.sentences()
        self._last = last
        for sentence in new_sentences:
            self._link_what_ended(sentence)
            sentence.number = len(self._sentences)
            self._sentences.append(sentence)
            self._ranking.add(sentence)
        return self._sentences

    def _place(self, active: Iterable[ActiveClaim], spans: Mapping[str, Sequence[Any]]) -> list[Sentence]:
        """Put claims into their sentences, and return the sentences that are new, in the order of time."""
        found: list[Sentence] = []
        # a sentence itself comes before its facts, as it has the time
        for claim in sorted(active, key=lambda each: (each.fact.relation not in (SAID, ASKED), each.id)):
            fact = claim.fact
            is_sentence = fact.relation in (SAID, ASKED) and fact.subject == self._user
            if (sentence := self._by_claim.get(claim.id)) is None:
                start, text = spans[claim.id]
                place = claim.source, start or 0
                if (sentence := self._by_place.get(place)) is None:
                    told = from_micros(claim.valid_from or 0)
                    words = fact.object if is_sentence else text or " ".join(fact.identity)
                    is_asked = is_sentence and fact.relation == ASKED
                    sentence = Sentence(words, claim.source, told, place[1], is_asked)
                    self._by_place[place] = sentence
                    found.append(sentence)
                self._by_claim[claim.id] = sentence
                if fact.relation == ENDED:
                    sentence.ended.append(fact.object)
            if not is_sentence and fact.relation != ENDED:
                sentence.facts[fact] = claim
                for key in (("subject", fact.subject), ("relation", fact.relation)):
                    self._stating[key][sentence] = None
                if sentence.number >= 0:
                    self._ranking.set_end(sentence)
        return sorted(found, key=lambda each: each.told)

    def _link_what_ended(self, sentence: Sentence) -> None:
        """Link to a sentence the earlier ones of what ended according to it, though no fact of theirs did."""
        for words in map(word_stems, sentence.ended):
            for earlier in self._sentences:
                others = (fact.subject for fact in earlier.facts if fact.subject != self._user)
                is_own = all(words & word_stems(subject) for subject in others)
                if words and is_own and words <= earlier.stems:
                    earlier.later = sentence

    def open_facts(self, at: datetime | None, part: str = "", text: str = "") -> dict[Triple, datetime]:
        """Return the facts that are true at a time, or ever, each with its beginning.

        With `part`, "subject" or "relation", only those of sentences with a fact whose part this is.
        """
        found: dict[Triple, datetime] = {}
        with self._storage.reading():
            sentences: Iterable[Sentence] = self.sentences()
            for sentence in self._stating.get((part, text), ()) if part else sentences:
                ended = {} if at is None else sentence.ends(at)
                for fact, claim in sentence.facts.items():
                    if fact not in ended:
                        began = claim.valid_from
                        found[fact] = sentence.told if began is None else from_micros(began)
        return found

    def ends_after(self, at: datetime) -> list[Sentence]:
        """Return the sentences said after a time that state the end of something that was not known."""
        later = takewhile(lambda each: each.told > at, reversed(self.sentences()))
        return [each for each in later if each.ended][::-1]

    # --- search ---

    def embed(self, question: str) -> Any:
        """Return the vector of a question, and compute those of new sentences, while others may use the storage.

        That of the question is stored in no cache. None without an embedder.
        """
        if self._embedder is None:
            return None
        with self._storage.reading():
            new = [sentence.text for sentence in self.sentences()[len(self._vectors) :]]
        (query,) = without_cache(self._embedder).embed([question])
        self._computed |= dict(zip(new, self._embedder.embed(new), strict=True)) if new else {}
        return query

    def forget_vectors(self, texts: Sequence[str]) -> None:
        """Delete the vectors of texts from the cache of the embedder."""
        self._computed.clear()
        if (forget := getattr(self._embedder, "forget", None)) is not None:
            forget(texts)

    def rank(self, question: str, query: Any, at: datetime, most: int) -> list[tuple[Sentence, str]]:
        """Return the sentences said until a time that fit a question best, best first, each with why, at most `most`.

        `query` is what `embed` returns of the question.
        """
        if not (sentences := self.sentences()):
            return []
        near = np.zeros(len(sentences))
        if self._embedder is not None:
            self._embed_sentences(self._embedder)
            near = self._vectors @ query
        tokens = name_tokens(question)
        words = {stem(word) for word in tokens if word not in SEARCH_STOP_WORDS | _QUESTION_WORDS}
        is_own = not _FIRST_PERSON.isdisjoint(tokens) and not any(map(is_person, tokens))
        best = self._ranking.best(words, near, at, most, is_own=is_own)
        return [(sentences[number], why) for number, why in best]

    def _embed_sentences(self, embedder: Embedder) -> None:
        """Take the vectors of the sentences that have none, and link those that tell something again."""
        known = len(self._vectors)
        if new := self._sentences[known:]:
            texts, self._computed, computed = [sentence.text for sentence in new], {}, self._computed
            if missing := [text for text in texts if text not in computed]:
                computed |= dict(zip(missing, embedder.embed(missing), strict=True))
            vectors = np.asarray([computed[text] for text in texts], dtype=np.float32)
            self._vectors = np.concatenate([self._vectors, vectors]) if known else vectors
            for number, sentence in enumerate(new, known):
                self._link_what_is_anew(number, sentence)

    def _link_what_is_anew(self, number: int, sentence: Sentence) -> None:
        """Link to a sentence the earlier one, of another message, that it seems to tell again."""
        is_about_another = any(map(is_person, name_tokens(sentence.text)[:_OPENING_WORDS]))
        if not number or sentence.is_question or is_about_another:
            return
        text = plain_sentence(sentence.text)  # without quotations
        is_anew, perhaps, told = _ANEW.search(text), _PERHAPS_ANEW.search(text), measures(text)
        if not is_anew and not perhaps and not told:
            return
        near = self._vectors[:number] @ self._vectors[number]
        near[[k for k in range(number) if not sentence.may_replace(self._sentences[k])]] = 0
        best, nearness = self._sentences[int(near.argmax())], near.max()
        shared = {
            word for word in sentence.stems & best.stems if len(word) > 2 and word not in SEARCH_STOP_WORDS
        }
        known = {} if _EVENT.search(best.text) else measures(best.text)
        others = [unit for unit, numbers in told.items() if numbers.isdisjoint(known.get(unit, numbers))]
        is_remeasured = nearness >= _NEAR and (others != ["weekday"] or shared) and bool(others)
        is_retold = nearness >= _NEAR_ENOUGH and (is_anew or (perhaps and shared))
        if best.later is None and (is_remeasured or is_retold):
            best.later = sentence


class _Ranking:
    """Scores of sentences for questions. The arrays have a number for each sentence."""

    def __init__(self, user: str) -> None:
        self._user = user
        self._told, self._over = array("d"), array("d")
        self._is_question, self._is_about_user = array("b"), array("b")
        self._by_stem = defaultdict[str, "array[int]"](partial(array, "q"))
        # by relation, and whether it is one of the user
        self._by_relation = defaultdict[tuple[str, bool], "array[int]"](partial(array, "q"))

    def add(self, sentence: Sentence) -> None:
        """Add the next sentence."""
        self._told.append(sentence.told.timestamp())
        self._over.append(sentence.over)
        self._is_question.append(sentence.is_question)
        self._is_about_user.append(any(fact.subject == self._user for fact in sentence.facts))
        named = (word_stems(f"{fact.subject} {fact.relation}") for fact in sentence.facts)
        for word in sentence.stems.union(*named):
            self._by_stem[word].append(sentence.number)
        for fact in sentence.facts:
            self._by_relation[fact.relation, fact.subject == self._user].append(sentence.number)

    def set_end(self, sentence: Sentence) -> None:
        """Note from when on nothing is true any more that a sentence states."""
        self._over[sentence.number] = sentence.over

    def best(
        self, words: Set[str], near: Any, at: datetime, most: int, *, is_own: bool = False
    ) -> list[tuple[int, str]]:
        """Return the numbers of the sentences said until a time that score best, each with the reasons.

        `words` are the stems of the question, and `near` has its cosine similarity with each sentence. If it `is_own`,
        it asks about the user, and what has the relation of another comes later.
        """
        shared, is_of_relation, own = (np.zeros(len(near), dtype=kind) for kind in (float, bool, float))
        for word in words & self._by_stem.keys():
            shared[np.frombuffer(self._by_stem[word], int)] += 1 / len(words)
        for (relation, is_of_user), numbers in self._by_relation.items():
            if not question_stems(relation).isdisjoint(words):
                is_of_relation[np.frombuffer(numbers, int)] = True
                if is_own and is_of_user:
                    own[np.frombuffer(numbers, int)] = _OWN
        told, over, now = np.frombuffer(self._told), np.frombuffer(self._over), at.timestamp()
        is_general = np.frombuffer(self._is_about_user, bool) & (not words)  # "what do you know of me?"
        score = (
            near + 0.3 * shared + 0.1 * is_of_relation + own + 0.3 * is_general - 0.02 * (now - told) / _YEAR
        )
        score -= 0.2 * (over <= now) + 0.4 * np.frombuffer(self._is_question, bool)
        score[told > now] = -np.inf
        best = np.argpartition(-score, most)[:most] if most < len(score) else np.arange(len(score))
        found = []
        for number in sorted(best[score[best] > -np.inf], key=lambda k: (-score[k], k)):
            reasons = {
                "shared words": shared[number],
                "the relation asked about": is_of_relation[number],
                f"meaning ({near[number]:.2f})": near[number],
            }
            why = ", ".join(reason for reason, is_found in reasons.items() if is_found)
            found.append((int(number), why or "told last"))
        return found
