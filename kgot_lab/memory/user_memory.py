"""A memory of what users say: add messages, recall, correct, forget and erase."""

from __future__ import annotations

import asyncio
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from kgot_lab.arguments import check_arguments
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import BadInput, NotInstalled, require, require_count, require_known, short_repr
from kgot_lab.io.processes import Closing
from kgot_lab.io.times import utc_now
from kgot_lab.llm import connect
from kgot_lab.llm.structured import checked_reply
from kgot_lab.memory import tables as sql
from kgot_lab.memory.agent import CopyHolder, LearningMemory, TurnOutcome, UserTurn
from kgot_lab.memory.claims.claim import ASKED, ENDED, NO_FACTS, SAID, Claim, ErasureCounts, Span, digest
from kgot_lab.memory.claims.claims import Claims, open_claims
from kgot_lab.memory.english.messages import MessageReader, ReadSentence
from kgot_lab.memory.english.parts import ME, Statement
from kgot_lab.memory.english.relations import (
    ANY,
    canonical_relation,
    is_one_of_several,
    is_single,
    relations,
    relations_by,
)
from kgot_lab.memory.extraction import Extraction, SourcedSentence, facts_prompt, split_grounded
from kgot_lab.memory.sentences import LIGHT_STEMS, Sentence, SentenceIndex, word_stems
from kgot_lab.memory.tables import OwnedTables
from kgot_lab.stores.tables.history import ChangeEffect, ChangeLogEntry
from kgot_lab.text.cleaning import (
    checked_text,
    estimate_tokens,
    format_count,
    printable_line,
    replace_surrogates,
)
from kgot_lab.text.words import name_tokens, stem
from kgot_lab.types import LLM, Prompt, Triple

_ROLES = ("user", "assistant", "system", "developer", "tool", "function")
_MOMENT = timedelta(microseconds=1)  # the least time between a beginning and an end
_YEAR = timedelta(days=365)  # "in May" may be told together with what ended then
_TIMES = frozenset(
    ("at", "time", "timestamp", "date", "created_at", "created")
)  # names of the time of a message
_COUNTS = frozenset("one two three four five six seven eight nine ten".split())


Messages = str | Mapping[str, Any] | Iterable[Mapping[str, Any]]


class Recalled(NamedTuple):
    """A sentence that a question recalls: the line for a prompt, its source, its facts, and why it was chosen."""

    line: str
    source: str
    facts: tuple[Triple, ...]
    ended: tuple[Triple, ...]
    why: str


class Recollection(tuple[Recalled, ...]):
    """What a question recalls, best first. As a text, one line each, for a prompt."""

    def __str__(self) -> str:
        return "\n".join(each.line for each in self)


@dataclass(frozen=True)
class Added:
    """What a memory learned from messages: facts, facts that ended, and the number of sentences kept.

    `changes` has a number for each message that was new, by which it can be undone. `unread` is the number of
    sentences in which no facts are read, since they are not in English, and `dropped` of the lines of a model's
    replies that are no facts, or none that the sentence states.
    """

    changes: tuple[int, ...]
    facts: tuple[Triple, ...] = ()
    ended: tuple[Triple, ...] = ()
    sentences: int = 0
    unread: int = 0
    dropped: int = 0

    def __str__(self) -> str:
        if not self.changes:
            return "nothing was changed: it says nothing, is known, or was forgotten or undone"
        number, count = ", ".join(map(str, self.changes)), format_count(self.sentences, "sentence")
        if self.unread:
            count += f", {self.unread} not in English, of which no facts are read"
        elif not self.facts and not self.ended:
            count += ", in which no fact is found"
        if self.dropped:
            count += f"; dropped of the model's reply: {format_count(self.dropped, 'line')} that state no fact of it"
        ended = (f"ended: {fact}" for fact in self.ended)
        return "\n".join([f"change {number}: {count}", *map(str, self.facts), *ended])


class Memory(Closing, LearningMemory):
    """The memory of one user in a file of claims. Users of one file never see each other.

    What is added is kept sentence by sentence, with the facts that rules read in it (English only; see
    `MessageReader`). A stated end, or a new value of a relation with a single one, ends the earlier fact; both
    stay, with their dates. Nothing else ends a fact. A model finds the facts of sentences in other languages, which
    end nothing. Raises BadInput, StoreUnavailable and StoreDamaged.
    """

    @check_arguments
    def __init__(
        self, claims: Claims, user: str, *, embedder: Embedder | None = None, model: LLM | str | None = None
    ) -> None:
        self.user = user
        self._model = None if model is None else connect(model)
        self.claims = Claims(
            OwnedTables(claims.storage, user), accept_from=claims.accept_from, now=claims.now
        )
        self._reader = MessageReader()
        self._index = SentenceIndex(self.claims.storage, user, embedder)
        self._keepers: list[CopyHolder] = []

    def __repr__(self) -> str:
        return f"<Memory of {self.user!r} in {self.claims.storage!r}>"

    def close(self) -> None:
        """Close the file."""
        self.claims.close()

    # --- adding ---

    @check_arguments
    def add(self, messages: Messages, *, at: datetime | None = None) -> Added:
        """Learn what the messages of the user state: all of them, or none if one is refused.

        Messages are dictionaries with "role" and "content", as in the OpenAI API, or a text of the user. Those of
        other roles teach nothing. A message may have its own time, "at", a datetime or a text in ISO 8601; `at`
        is the time of the others, now by default. A message that is known already changes nothing, and each new
        one is a change of its own.
        """
        given = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        require(given, Iterable, "messages are a text, or a list of dictionaries")
        given = [given] if isinstance(given, Mapping) else list(given)
        now = self.claims.query_time(at)
        checked = [_check_message(message, now) for message in given]
        clock = self.claims.now()
        if late := [time for _, _, time in checked if time - clock > timedelta(days=1)]:  # clocks differ
            raise BadInput(f"a message of {late[0].isoformat()} is not said yet: give the time when it was")
        said = ((text, time) for role, text, time in checked if role == "user" and text.strip())
        told = {f"{self.user}/{time.isoformat()}/{digest(text)[:8]}": (text, time) for text, time in said}
        new = {source: message for source, message in told.items() if not self.claims.from_source(source)}
        read = self._reader.read(list(new.values()))
        if (model := self._model) is not None:
            read = [
                [self._read_by_model(model, sentence, time) for sentence in sentences]
                for sentences, (_, time) in zip(read, new.values(), strict=True)
            ]
        added, unread, dropped, facts, ended, changes = 0, 0, 0, list[Triple](), list[Triple](), list[int]()
        with self.claims.storage.changing():
            for (source, (_, time)), sentences in zip(new.items(), read, strict=True):
                if self.claims.from_source(source):  # another program was first
                    continue
                claims = self._claims_of(sentences, time, source)
                learnt = self.claims.learn(claims, by=self.user)
                changes += [] if learnt.change is None else [learnt.change]
                added += len(sentences)
                unread += sum(not sentence.is_read for sentence in sentences)
                dropped += sum(sentence.dropped for sentence in sentences)
                facts += [c.fact for c in claims if c.kind == "stated" and c.fact.relation not in NO_FACTS]
                ended += [c.fact for c in claims if c.kind == "ended"]
        unique = tuple(dict.fromkeys(facts)), tuple(dict.fromkeys(ended))
        return Added(tuple(changes), *unique, added, unread, dropped)

    def _read_by_model(self, model: LLM, sentence: ReadSentence, at: datetime) -> ReadSentence:
        """Return a sentence with the facts that the model finds, if it is in a language that the rules do not read."""
        if sentence.is_read:
            return sentence
        speaker = self.user[:1].upper() + self.user[1:]
        titled = SourcedSentence(sentence.text, speaker, "", 0)  # the model is told who speaks
        reply = checked_reply(model, Prompt(facts_prompt(str(titled)), max_tokens=120))
        facts, _ = split_grounded(replace_surrogates(reply.text), [titled])
        found = []
        for fact, _ in facts:
            # a name: a small model also takes clauses
            if all(word[0].isupper() for word in fact.subject.split()):
                subject = ME if fact.subject == speaker else fact.subject
                found.append(Statement(subject, canonical_relation(fact.relation), fact.object, at))
        dropped = sum(map(bool, map(str.strip, reply.text.splitlines()))) - len(found)
        return replace(sentence, statements=tuple(found), is_read=True, dropped=dropped)

    def _claims_of(self, sentences: Sequence[ReadSentence], at: datetime, source: str) -> list[Claim]:
        """Return the claims that a message makes, with the ends of facts that are open before it."""
        claims: list[Claim] = []

        def claim(fact: Triple, sentence: ReadSentence, since: datetime, kind: str = "stated") -> None:
            span = Span(sentence.start, sentence.end, sentence.text)
            claims.append(Claim(fact, source, span, self.user, kind, valid_from=since))

        named = (fact for fact in self._index.open_facts(at, "relation", "name") if fact.relation == "name")
        names = {fact.object.casefold(): fact.subject for fact in named}
        open_facts = self._facts_before(at, sentences, names)
        known_later = {fact for fact, began in open_facts.items() if began > at}
        for sentence in sentences:
            said, relations_ended = ASKED if sentence.is_question else SAID, set[str]()
            claim(Triple(self.user, said, sentence.text), sentence, at)
            for statement in sentence.statements:
                subject, value = (self._resolve(p, names) for p in (statement.subject, statement.object))
                since = statement.since
                if statement.kind == "ended":
                    known = {f: began for f, began in open_facts.items() if f not in known_later}
                    ended = _find_ended(statement, subject, value, known, names)
                    relations_ended |= {fact.relation for fact in ended}
                    whose = "" if subject == self.user else subject
                    what = f"{whose} {value}".replace(f"{self.user}'s ", "").strip()
                    if not ended and not statement.relation and what:
                        claim(Triple(self.user, ENDED, what), sentence, since)
                else:
                    if ANY in statement.relations and len(relations_ended) == 1:  # "switched from Acme to it"
                        (relation,) = relations_ended
                        statement = replace(statement, relation=relation, single=is_single(relation))
                    value = value if value == self.user else statement.object
                    if statement.relation == "name":
                        names[value.casefold()] = subject
                    fact = Triple(subject, statement.relation, value)
                    ended = _replaced(statement, fact, open_facts)
                    claim(fact, sentence, since)
                    later = [open_facts.pop(other) for other in list(ended) if open_facts[other] > since]
                    ended = [other for other in ended if other in open_facts]
                    if later:  # it was so before what is known
                        claim(fact, sentence, max(min(later), since + _MOMENT), "ended")
                    else:
                        open_facts[fact] = since
                # what ended before ends by this too, in case that what ended it is forgotten
                if statement.kind == "stated":
                    past = self._index.open_facts(None, "subject", subject)
                    closed = {f: began for f, began in past.items() if f not in open_facts and began < since}
                    for other in _replaced(statement, Triple(subject, statement.relation, value), closed):
                        claim(other, sentence, since, "ended")
                for fact in ended:
                    if statement.kind == "ended" and since < open_facts[fact] - _YEAR:  # of an earlier time
                        continue
                    claim(fact, sentence, max(since, open_facts.pop(fact) + _MOMENT), "ended")
                    if fact.relation == "name":  # of a husband who is none any more
                        names.pop(fact.object.casefold(), None)
        stated = (each for each in claims if each.kind == "stated" and each.fact.relation not in NO_FACTS)
        told = {each.fact: each.valid_from or at for each in stated}
        return [*claims, *self._ends_told_before(told, at, names)]

    def _ends_told_before(
        self, told: Mapping[Triple, datetime], at: datetime, names: Mapping[str, str]
    ) -> Iterator[Claim]:
        """Yield the ends of facts that are told late: according to messages of later times that are known already."""
        later = self._index.ends_after(at)
        read = MessageReader().read([(sentence.text, sentence.told) for sentence in later])
        for known, sentences in zip(later, read, strict=True):
            span = Span(known.start, known.start + len(known.text), known.text)
            statements = (each for sentence in sentences for each in sentence.statements)
            for statement in (each for each in statements if each.kind == "ended"):
                subject, value = (self._resolve(p, names) for p in (statement.subject, statement.object))
                for fact in _find_ended(statement, subject, value, told, names):
                    end = max(statement.since, told[fact] + _MOMENT)
                    yield Claim(fact, known.source, span, self.user, "ended", valid_from=end)

    def _facts_before(
        self, at: datetime, sentences: Sequence[ReadSentence], names: Mapping[str, str]
    ) -> dict[Triple, datetime]:
        """Return the facts that are true at a time, each with its beginning, and that sentences may end."""
        statements = [statement for sentence in sentences for statement in sentence.statements]
        ends = (each for each in statements if each.kind == "ended" and ANY in each.relations)
        if not all(word_stems(each.object) for each in ends):  # someone died: what names them ends
            return self._index.open_facts(at)
        found: dict[Triple, datetime] = {}
        subjects = {self._resolve(statement.subject, names) for statement in statements}
        if any(not {ANY, "partner"}.isdisjoint(each.relations) for each in statements):
            subjects |= _partners_of(self.user)
        for subject in subjects:
            found |= self._index.open_facts(at, "subject", subject)
        return found

    def _resolve(self, name: str, names: Mapping[str, str]) -> str:
        """Return the name under which someone is kept, whom the user may call by another."""
        name = name.replace(ME, self.user)
        return names.get(name.casefold(), name)

    # --- recalling ---

    @check_arguments
    def recall(self, question: str, *, at: datetime | None = None, tokens: int = 300) -> Recollection:
        """Return the sentences that a question needs, best first, up to about `tokens`.

        Ranked by meaning (if there is an embedder), by shared words, and by the relations that the question asks
        about, later before earlier. Each line has the day on which it was said, until when its facts were true,
        and, with a question mark, what a later sentence seems to tell again. With `at`, only what was said until then
        is recalled, with what had ended by then, even if that was told later.
        """
        checked_text(question, "a question")
        require_count(tokens, 1, "tokens")
        at = self.claims.query_time(at)
        found, used = list[Recalled](), 0
        query = self._index.embed(question)
        with self.claims.storage.reading():
            for sentence, why in self._index.rank(question, query, at, most=tokens):
                line = _format_line(sentence, at)
                used += estimate_tokens(line)
                if used > tokens:
                    break
                ended = tuple(sentence.ends(at))
                facts = tuple(fact for fact in sentence.facts if fact not in ended)
                found.append(Recalled(line, sentence.source, facts, ended, why))
        return Recollection(found)

    async def aadd(self, messages: Messages, *, at: datetime | None = None) -> Added:
        """Learn what messages state as `add` does, without blocking the event loop."""
        return await asyncio.to_thread(self.add, messages, at=at)

    async def arecall(self, question: str, *, at: datetime | None = None, tokens: int = 300) -> Recollection:
        """Return the sentences that a question needs as `recall` does, without blocking the event loop."""
        return await asyncio.to_thread(self.recall, question, at=at, tokens=tokens)

    def facts(self, at: datetime | None = None) -> tuple[Triple, ...]:
        """Return the facts that are true at a time, now by default, in the order of the sentences that tell them."""
        at = self.claims.query_time(at)
        return tuple(fact for fact, began in self._index.open_facts(at).items() if began <= at)

    # --- as the memory of an Agent ---

    def extract(self, text: str, *, repairs: int = 1) -> Extraction:
        """Extract nothing: messages are read by rules when they are stored."""
        return Extraction()

    def store_statements(self, turn: UserTurn, extraction: Extraction) -> TurnOutcome:
        """Add a message to an agent."""
        added = self.add(turn.text, at=turn.at)
        return TurnOutcome(added.facts, added.facts)

    def turn_context(
        self, turn: UserTurn, keywords: Sequence[str], *, without: Set[Triple] = frozenset()
    ) -> str:
        """Return what a message recalls of those before it, as lines."""
        return str(self.recall(turn.text, at=turn.at - _MOMENT))

    def held_facts(self, noted: Iterable[Triple], turn: UserTurn) -> Set[Triple]:
        """Return those of some triples that are true when a message is answered."""
        return self._index.open_facts(turn.at).keys() & set(noted)

    def register_copies(self, keeper: CopyHolder) -> None:
        """Register an object that keeps copies, to be notified of what is forgotten and erased.

        An Agent registers itself. An undo does not restore the copies.
        """
        self._keepers.append(keeper)

    def count(self) -> int:
        """Return the number of facts that are true now."""
        return len(self.facts())

    # --- correcting, forgetting, erasing ---

    @check_arguments
    def correct(self, fact: Triple, object: str) -> Added:
        """Replace the object of a fact from its beginning on. `undo` takes that back."""
        now = self.claims.query_time()
        since = self._index.open_facts(now).get(fact)
        if since is None:
            problem = f"the memory of {self.user!r} does not hold {short_repr(str(fact))}"
            raise BadInput(f"{problem}: `facts` lists what it holds")
        if object == fact.object:
            raise BadInput(f"{short_repr(str(fact))} is what it holds: give another object")
        relation = fact.relation.replace("_", " ")
        text = f"Correction: {fact.subject} {relation} {object}, not {fact.object}."
        source, span = f"{self.user}/{now.isoformat()}/correction", Span(0, len(text), text)
        told = [
            Claim(Triple(self.user, SAID, text), source, span, self.user, valid_from=now),
            Claim(Triple(self.user, ENDED, fact.object), source, span, self.user, valid_from=now),
            Claim(Triple(fact.subject, fact.relation, object), source, span, self.user, valid_from=since),
            *(
                Claim(each, source, span, self.user, "ended", valid_from=since + _MOMENT)
                for each in (fact, *self._corrected_before(fact, since))
            ),
        ]
        learnt = self.claims.learn(told, by=self.user, action="correct")
        changes = () if learnt.change is None else (learnt.change,)
        return Added(changes, (told[2].fact,), (fact,), 1)

    def _corrected_before(self, fact: Triple, since: datetime) -> set[Triple]:
        """Return what earlier corrections replaced by a fact: another correction stands without them too."""
        first, then = (
            self.claims.as_of(valid=at).facts(fact.subject, fact.relation) for at in (since, since + _MOMENT)
        )
        return set(first) - set(then)

    @check_arguments
    def forget(self, what: Triple | str) -> ChangeEffect:
        """Retract the messages that state a fact, or a message by its source or by words of it. `undo` brings it back.

        Of several messages the last change is returned. Raises BadInput if there is none, or if more than one has
        the words.
        """
        messages = self._messages(what, self.claims.supports_of)
        with self._notify_copies(self._said_in(messages)):
            return [self.claims.retract_source(source, by=self.user) for source in messages][-1]

    def _messages(
        self, what: Triple | str, claims_on: Callable[[Triple], tuple[Claim, ...]], *, whole: bool = False
    ) -> list[str]:
        """Return the sources of the claims on a fact, or of the message that is named."""
        if isinstance(what, str):
            return [self.source_of(what, whole=whole)]
        if not (sources := {claim.source for claim in claims_on(what)}):
            raise self._unsaid(what)
        return sorted(sources)

    def source_of(self, words: str, *, whole: bool = False) -> str:
        """Return the source of a message by words of it, or with `whole` by a whole sentence; or the source itself.

        Case and punctuation do not matter. Raises BadInput unless one message has the words.
        """
        if self.claims.from_source(words):
            return words
        wanted, said = " ".join(name_tokens(words)), defaultdict[str, list[str]](list)
        with self.claims.storage.reading():
            for sentence in self._index.sentences():
                said[sentence.source].append(" ".join(name_tokens(sentence.text)))
        found = [source for source, texts in said.items() if wanted in (*texts, " ".join(texts))]
        if not found and not whole:
            found = [source for source, texts in said.items() if f" {wanted} " in f" {' '.join(texts)} "]
        if not wanted or not found:
            raise self._unsaid(words)
        if len(found) > 1:
            problem = f"{len(found)} messages of {self.user!r} have the words {short_repr(words)}"
            raise BadInput(f"{problem}: give more of them, or one of the sources {', '.join(found[:3])}")
        return found[0]

    def _unsaid(self, what: Triple | str) -> BadInput:
        problem = f"{self.user!r} has said nothing that is, or states, {short_repr(str(what))}"
        return BadInput(f"{problem}: `facts` lists what holds, and `recall` what was said")

    def undo(self, change: int) -> ChangeEffect:
        """Undo a change of this user, by its number."""
        return self.claims.undo(change, by=self.user)

    def history(self) -> tuple[ChangeLogEntry, ...]:
        """Return the changes of this user, first one first."""
        return self.claims.log()

    @check_arguments
    def erase(self, what: Triple | str | None = None) -> ErasureCounts:
        """Erase the messages that state a fact, a message by its source or a sentence of it, or else all of this user.

        Messages that say that the fact ended, and forgotten ones, are erased with it, and the vectors of all their
        sentences leave the embedder's cache. This cannot be undone. Raises BadInput if there is no such message.
        """
        messages = (
            self.claims.sources() if what is None else self._messages(what, self.claims.claims_on, whole=True)
        )
        said = self._said_in(messages)
        with self._notify_copies(None):
            if what is not None:
                erased = [self.claims.erase_source(source, by=self.user) for source in messages][-1]
            else:
                with self.claims.storage.changing():
                    self.claims.storage.rows(sql.FORGET_AUTHOR, {"who": self.user})
                erased = self.claims.erase_claims(sql.ALL_CLAIMS, dict, by="")
        self._index.forget_vectors(said)
        return erased

    def _said_in(self, messages: Iterable[str]) -> list[str]:
        """Return the sentences of some messages."""
        claims = (claim for source in messages for claim in self.claims.from_source(source))
        return [claim.fact.object for claim in claims if claim.fact.relation in (SAID, ASKED)]

    @contextmanager
    def _notify_copies(self, said: Collection[str] | None) -> Iterator[None]:
        try:
            yield
        finally:  # also if another process still reads the file: its bytes are removed later, the copies now
            held = self.facts() if self._keepers else ()
            for keeper in self._keepers:
                keeper.let_go(said, held.__contains__)


def _replaced(statement: Statement, fact: Triple, open_facts: Mapping[Triple, datetime]) -> list[Triple]:
    """Return the open facts that a new one replaces: another value of a single relation, or what it denies."""
    denied = fact.relation[4:] if fact.relation.startswith("not_") else f"not_{fact.relation}"
    replaces = statement.single and not is_one_of_several(fact.subject.rpartition("'s ")[2])
    replaced, value = fact.relation if replaces else None, fact.object.casefold()
    is_known = replaces and fact.relation in relations()
    without = relations()[fact.relation].lost if is_known else ()  # "is single"

    def is_replaced(other: Triple) -> bool:
        known = other.object.casefold()
        is_without = other.relation == "is" and known in without
        return is_without or other.relation == (denied if known == value else replaced)

    return [other for other in open_facts if other.subject == fact.subject and is_replaced(other)]


def _find_ended(
    statement: Statement,
    subject: str,
    value: str,
    open_facts: Mapping[Triple, datetime],
    names: Mapping[str, str],
) -> list[Triple]:
    """Return the open facts that a statement ends.

    These are facts of the same subject that have the head of what ended, and each name and number of it, or
    whose relation is named by it ("my job"); or, for someone who died or something that is over, the facts that
    name it. With a partner ends what is known of the husband or wife by that noun.
    """
    found = _find_named(statement, subject, value, open_facts, names)
    if any(fact.relation == "partner" for fact in found):
        roles = _partners_of(subject)
        found += [fact for fact in open_facts if fact.subject in roles and fact not in found]
    return found


def _partners_of(name: str) -> set[str]:
    return {f"{name}'s {noun}" for noun in relations()["partner"].nouns}


def _find_named(
    statement: Statement,
    subject: str,
    value: str,
    open_facts: Mapping[Triple, datetime],
    names: Mapping[str, str],
) -> list[Triple]:
    own = [fact for fact in open_facts if fact.subject == subject]
    owner = value.rpartition("'s ")[0]
    if owner and owner != subject and value not in names.values():  # "sold my brother's guitar"
        return []
    any_relation, nouns = ANY in statement.relations, relations_by("nouns")
    bare = value.rpartition("'s ")[2]
    if word_stems(bare):
        alias = {word for name, person in names.items() if person == value for word in word_stems(name)}
        words = re.findall(r"\w+", value)
        exact = {word.casefold() for word in words if word[0].isupper() or word[0].isdigit()}
        head = set(name_tokens(re.split(r" (?:of|in|at|for|with|on|to)\b", bare)[0])[-1:])
        exact |= head
        exact |= set(name_tokens(bare)) & _COUNTS | set(name_tokens(bare.partition(" of ")[2]))
        needed = set(map(stem, exact)) - LIGHT_STEMS

        def is_named(fact: Triple) -> bool:
            text = f"{fact.relation} {fact.object}".replace("_", " ")
            # one leaves the town of one's work, and not the work
            if "lives_in" in statement.relations and text.startswith("work"):
                text = re.split(r" (?:in|near) ", text)[0]
            known = word_stems(text)
            return (bool(needed) and needed <= known) or bool(alias & known)

        named = [f for f in own if is_named(f)]
        ending = statement.relations
        fitting = [f for f in named if any_relation or f.relation in ending or f.relation not in relations()]
        roles = {name for word in head for name in nouns.get(word, ())}
        possible = roles if any_relation else roles & set(statement.relations)
        return fitting or [fact for fact in own if fact.relation in possible]
    if not any_relation:
        return [fact for fact in own if fact.relation in statement.relations]
    gone = word_stems(statement.subject.removeprefix(f"{ME}'s "))
    is_someone = statement.subject != ME and bool(gone)
    naming = (
        f for f in open_facts if f.subject == subject or gone <= word_stems(f.object) or {f.relation} == gone
    )
    return list(naming) if is_someone else []


def _check_message(message: Any, now: datetime) -> tuple[str, str, datetime]:
    """Return the role, text and time of a message. Raises BadInput if it is none."""
    others = (
        [name for name in message if str(name).casefold() in _TIMES] if isinstance(message, Mapping) else []
    )
    if others and "at" not in others:
        raise BadInput(f'the time of a message is "at", not {others[0]!r}')
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        expected = 'a message is a dictionary such as {"role": "user", "content": "I live in Porto."}'
        raise BadInput(f"{expected}, not {short_repr(message)}")
    role = message["role"].casefold()
    require_known("role of a message", _ROLES, role)
    content: Any = message.get("content")
    if isinstance(content, list):  # the parts of a message: texts, and pictures, which are not read
        for part in content:
            require(part, Mapping, "a part of a message is a dictionary")
            require(part.get("text", ""), str, "the text of a part of a message is a text")
        if others := [part for part in content if "text" not in part]:
            kind = short_repr(others[0].get("type", [*others[0]]))
            warnings.warn(f"a part of a message that is no text ({kind}) is not read", stacklevel=2)
        content = " ".join(part.get("text", "") for part in content)
    if content is None and role != "user":  # an assistant that calls a tool
        content = ""
    text = checked_text(content, "the content of a message", blank=True)
    time = message.get("at", now)
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time)
        except ValueError:
            expected = "the time of a message is such as 2026-05-01T18:00+02:00"
            raise BadInput(f"{expected}, not {short_repr(time)}") from None
    if not isinstance(time, datetime) or time.utcoffset() is None:
        raise BadInput(f"the time of a message has a time zone, unlike {short_repr(time)}")
    return role, text, time.astimezone(UTC)


def _format_line(sentence: Sentence, at: datetime) -> str:
    """Format a sentence for a prompt: when it was said, and what of it is no longer so."""
    text = printable_line(" ".join(sentence.text.split()))
    notes = [
        f"until {end:%Y-%m-%d}: {f.relation.replace('_', ' ')} {f.object}"
        for f, end in sentence.ends(at).items()
    ]
    if sentence.later is not None and sentence.later.told <= at:
        notes.append(f"until {sentence.later.told:%Y-%m-%d}? {sentence.later.text}")
    asked = " (asked)" if sentence.is_question else ""
    return f"- {sentence.told:%Y-%m-%d}: {text}{asked}" + (
        f" ({printable_line('; '.join(notes))})" if notes else ""
    )


@check_arguments
def open_memory(
    place: Path | str = ":memory:",
    *,
    user: str = "user",
    embedder: Embedder | str | None = "minilm",
    new: bool = True,
    now: Callable[[], datetime] = utc_now,
    model: LLM | str | None = None,
) -> Memory:
    """Open the memory of a user in an SQLite file, in memory (":memory:"), or in PostgreSQL by address.

    `embedder` finds by meaning: one of `lab.embedder`, or "minilm", which is left out if it is not installed.
    With None, recall goes by words. A file is created if there is none and `new` is true. `model`, or its name, finds
    the facts of sentences in other languages than English. Raises BadInput, StoreUnavailable,
    StoreDamaged or NotInstalled, and what is added with a model LLMError.
    """
    if "/" in checked_text(user, "the name of a user"):
        raise BadInput(f'the name of a user has no "/", and {short_repr(user)} has')
    if isinstance(embedder, str):
        require_known("embedder of a memory", ("minilm",), embedder)
        with suppress(NotInstalled):
            return Memory(open_claims(place, new=new, now=now), user, embedder=minilm(), model=model)
        embedder = None
    return Memory(open_claims(place, new=new, now=now), user, embedder=embedder, model=model)
