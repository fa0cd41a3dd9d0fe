"""Certificates of runs: what the answer needs, and whether the sentences that were read state it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import SequenceMatcher

from kgot_lab.errors import require
from kgot_lab.graph.changes import supports_of
from kgot_lab.loop.events import Answered, Event
from kgot_lab.loop.modes.paths.comparison import questions_of_each, worked_out
from kgot_lab.loop.modes.paths.question_form import comparison_candidates, filled, subjects
from kgot_lab.loop.run_material import PathReading, RunMaterial
from kgot_lab.loop.trace import Trace
from kgot_lab.memory.claims.certificate import (
    STANDARD_RULES,
    Certificate,
    CertificateRules,
    OpenFact,
    certify,
    hedge_answer,
)
from kgot_lab.memory.claims.claim import Claim, Span
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.extraction import SourcedSentence
from kgot_lab.memory.sqlite_tables import SQLiteClaims
from kgot_lab.retrieval.entity_linking import (
    CAPITALISED_RUN,
    NameIndex,
    capitalised_names,
    normalise_name,
)
from kgot_lab.text.words import LEADING_STOP_WORDS, contains_words, name_tokens, same_answer
from kgot_lab.types import Document, Triple

# Rival values: sentences with the same words except for one position.

# the minimum share of a sentence's words, besides the value, that another contains in the same order
SAME_WORDS = 0.7
_LONGER = 4  # words that another value may have more
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")


def rival_values(
    said: Iterable[SourcedSentence], known: Iterable[SourcedSentence], about: str, value: str
) -> dict[str, list[SourcedSentence]]:
    """Return the conflicting values that other documents state, each with the sentences that state it.

    A sentence conflicts if it shares at least SAME_WORDS of the words and has another value of the same kind
    in the same position. It or its title must name `about`. Contradictions in other words are not found.
    """
    known = list(known)
    found: dict[str, list[SourcedSentence]] = {}
    for each in said:
        for other in known:
            if (
                other.source == each.source
                or contains_words(value, other.text)
                or not (speaks_of(other, about) or other.title == each.title)
            ):
                continue
            rival = value_instead(each.text, other.text, value)
            # else it says that of its own subject
            if rival and (other.title == each.title or not contains_words(rival, other.title)):
                found.setdefault(rival, []).append(other)
    return found


def value_instead(said: str, other: str, value: str) -> str:
    """Return what another sentence says in the position of a value.

    Returns "" if the rest of the two sentences differs too much, or if no value of the same kind is there.
    """
    ours, theirs, wanted = _WORD.findall(said), _WORD.findall(other), _WORD.findall(value)
    small, theirs_small = ([word.casefold() for word in words] for words in (ours, theirs))
    start = _place_of([word.casefold() for word in wanted], small)
    if start is None:
        return ""
    end = start + len(wanted)
    before, after, alike = 0, len(theirs), 0
    for block in SequenceMatcher(None, small, theirs_small, autojunk=False).get_matching_blocks():
        head = max(0, min(block.size, start - block.a))
        tail = max(0, min(block.size, block.a + block.size - end))
        alike += head + tail
        before = block.b + head if head else before
        after = min(after, block.b + block.size - tail) if tail else after
    around = len(ours) - len(wanted)
    instead = theirs[before:after]
    if around < 2 or alike < SAME_WORDS * around or not 0 < len(instead) <= len(wanted) + _LONGER:
        return ""
    rival = " ".join(instead)
    return (
        rival
        if _kind(rival) == _kind(value) and not (set(name_tokens(rival)) <= set(name_tokens(value)))
        else ""
    )


def speaks_of(sentence: SourcedSentence, name: str) -> bool:
    """Return whether a sentence together with its title contains all words of a name."""
    wanted = set(name_tokens(name))
    return bool(wanted) and wanted <= set(name_tokens(f"{sentence.title} {sentence.text}"))


def _place_of(wanted: list[str], words: list[str]) -> int | None:
    places = range(len(words) - len(wanted) + 1)
    return next((at for at in places if wanted and words[at : at + len(wanted)] == wanted), None)


def _kind(value: str) -> tuple[bool, bool]:
    """Return whether a value has a digit, and whether it has a capital letter."""
    return any(map(str.isdigit, value)), any(map(str.isupper, value))


# Needs of an answer: the hops of its question, the compared values, or a path of sentences to the answer.

ANSWERED_BY, NAMED, LINKED = "is answered by", "is mentioned by", "leads to"  # relations of what is missing
_LONGEST = 60  # characters of a relation that is taken from a sentence
_ASKING = LEADING_STOP_WORDS | frozenset(
    "whose whom why does do did can could name both between among after before during if".split()
)
_ANSWER = "\0answer"  # the node of a path that is the answer


@dataclass(frozen=True)
class RunFact:
    """A fact that the answer of a run needs, with the sentences that state it.

    `rivals` holds other values in the position of its object, each with its sentences.
    """

    needed: Triple | OpenFact
    said: tuple[SourcedSentence, ...] = ()
    rivals: Mapping[str, Sequence[SourcedSentence]] = field(default_factory=dict)


def needs_of_run(run: RunMaterial) -> list[RunFact]:
    """Return the facts that the answer of a run needs, in order.

    A fact that no sentence states is included, without sentences.
    """
    facts = _of_hops(run) or _of_compared(run) or _of_path(run)
    if run.answered.forced and all(fact.said for fact in facts):
        facts = [
            *facts,
            RunFact(
                Triple(run.question or "the question", ANSWERED_BY, run.answered.text.strip() or "nothing")
            ),
        ]
    return facts


# --- hops and comparisons ---


def _of_hops(run: RunMaterial) -> list[RunFact]:
    """Return one fact for each hop of a decomposed question.

    A hop that was read as unknown, and all hops after it, are open facts. Returns an empty list if the
    question was not decomposed.
    """
    number, _ = run.replied("hops")
    later = iter([each for each in run.readings if each.number > number])
    answers: list[str] = []
    facts: list[RunFact] = []
    for hop in run.hops:
        told, about = filled(hop, answers), subjects(hop, answers)
        reading = next(later, None) if len(answers) == len(facts) else None
        if reading is None or reading.question != told or reading.problem or not reading.answer:
            open = len(answers) == len(facts)  # else a hop before it is open
            facts.append(RunFact(OpenFact(told if open else hop, about[-1] if about and open else "")))
            continue
        facts.append(_as_read(run, about[-1] if about else _title(reading) or told, told, reading))
        answers.append(reading.answer)
    if not facts or len(answers) < len(facts) or same_answer(answers[-1], run.answered.text):
        return facts
    return [*facts[:-1], _another(run, facts[-1])]


def _of_compared(run: RunMaterial) -> list[RunFact]:
    """Return what was read about each of two things, if the answer follows from comparing them."""
    number, reply = run.replied("compared")
    if number < 0:
        return []
    known = NameIndex(Document(title, "", title) for title in run.titles(number))
    named = list(dict.fromkeys(known[name][0] for name in known.find_names(run.question, cased=False)))
    things = comparison_candidates(run.question, named)
    later = iter([each for each in run.readings if each.number > number])
    values: list[list[str]] = []
    facts: list[RunFact] = []
    for thing, questions in zip(things, questions_of_each(reply, things), strict=False):
        texts: list[str] = []
        for one in questions:
            told, name = (one.replace("#1", texts[0]), texts[0]) if texts and "#1" in one else (one, thing)
            reading = next(later, None)
            if reading is None or reading.question != told or reading.problem:
                return []
            texts.append(reading.answer)
            facts.append(_as_read(run, name, told, reading))
        values.append(texts)
    if worked_out(run.question, things, values) != run.answered.text:
        return []
    return facts


def _as_read(run: RunMaterial, subject: str, asked: str, reading: PathReading) -> RunFact:
    """Return an answer that was read, as a fact with its supporting sentences and its rival values.

    The supporting sentences are those shown that contain the answer, and all others that name the subject and
    contain it.
    """
    shown = [each for each in reading.shown if contains_words(reading.answer, each.text)]
    said = _saying(run, shown, subject, reading.answer)
    rivals = rival_values(said, run.known, subject, reading.answer)
    return RunFact(Triple(subject, asked, reading.answer), said, rivals)


def _another(run: RunMaterial, last: RunFact) -> RunFact:
    """Return the last hop with the final answer as its object and the answer read there as a rival."""
    assert isinstance(last.needed, Triple)
    needed = Triple(last.needed.subject, last.needed.relation, run.answered.text)
    said = _saying(run, [], needed.subject, needed.object)
    return RunFact(needed, said, {**last.rivals, last.needed.object: last.said})


def _title(reading: PathReading) -> str:
    """Return the title of the sentences shown, or "" if they have several titles."""
    titles = {each.title for each in reading.shown}
    return titles.pop() if len(titles) == 1 else ""


def _saying(
    run: RunMaterial, shown: Iterable[SourcedSentence], subject: str, value: str
) -> tuple[SourcedSentence, ...]:
    """Return the sentences shown, followed by all that name a subject and contain a value."""
    others = (each for each in run.known if contains_words(value, each.text) and speaks_of(each, subject))
    return tuple(dict.fromkeys([*shown, *others]))


# --- paths ---


@dataclass(frozen=True)
class _PathLink:
    """A sentence or a typed fact, with the nodes that it joins and their spellings.

    A fact has a relation too.
    """

    nodes: Mapping[str, str]
    said: tuple[SourcedSentence, ...]
    relation: str = ""


def _of_path(run: RunMaterial) -> list[RunFact]:
    """Return the facts on the path from the names in the question to the answer.

    A name that no sentence mentions, a missing link and an unsupported answer are facts without sentences.
    """
    answer = run.answered.text.strip()
    if not answer or not any(contains_words(answer, each.text) for each in run.path):
        return [
            *_unnamed(run),
            RunFact(Triple(run.question or "the question", ANSWERED_BY, answer or "nothing")),
        ]
    named = {normalise_name(name): name for name in question_names(run.question, run.titles())}
    unnamed = _unnamed(run)
    # the answer is one of the named things: each must be mentioned
    if any(_same_name(name, answer) for name in named.values()):
        return [
            *unnamed,
            *(
                _told_of(run, name)
                for name in named.values()
                if OpenFact(NAMED, name) not in [each.needed for each in unnamed]
            ),
        ]
    links = [*_typed(run, named, answer), *_spoken(run, named, answer)]
    facts: dict[Triple | OpenFact, RunFact] = {fact.needed: fact for fact in unnamed}
    for key, name in named.items():
        if OpenFact(NAMED, name) in facts:
            continue
        for fact in _steps(run, key, name, links):
            facts.setdefault(fact.needed, fact)
    if facts:
        return list(facts.values())
    asked = Triple(run.question or "the question", ANSWERED_BY, answer)
    return [RunFact(asked, tuple(each for each in run.path if contains_words(answer, each.text)))]


def question_names(question: str, titles: Iterable[str]) -> list[str]:
    """Return the names in a question, spelled as there.

    These are the titles that it mentions, and sequences of capitalised words outside those titles.
    """
    known = NameIndex(Document(title, "", title) for title in titles)
    found = {name: known[name][0] for name in known.find_names(question)}
    for run in CAPITALISED_RUN.finditer(question):
        words = run.group().split()
        while words and normalise_name(words[0]) in _ASKING:
            words = words[1:]
        name = " ".join(words).removesuffix("'s").removesuffix("’s").rstrip(".,'’")
        key = normalise_name(name)
        if (
            len(key) > 2
            and key in capitalised_names(name)
            and not any(key in other or other in key for other in found)
        ):
            found[key] = name
    return list(found.values())


def _unnamed(run: RunMaterial) -> list[RunFact]:
    """Return the names of the question that no sentence of the path mentions."""
    asked = question_names(run.question, run.titles())
    return [
        RunFact(OpenFact(NAMED, name))
        for name in asked
        if not any(speaks_of(each, name.split("(")[0]) for each in run.path)
    ]


def _told_of(run: RunMaterial, name: str) -> RunFact:
    """Return the fact that sentences of the path mention a name."""
    said = tuple(each for each in run.path if speaks_of(each, name.split("(")[0]))
    return RunFact(Triple(name, NAMED, said[0].title or said[0].source or name), said)


def _same_name(name: str, answer: str) -> bool:
    return normalise_name(answer) in (normalise_name(name), normalise_name(name.split("(")[0]))


def _steps(run: RunMaterial, key: str, name: str, links: Sequence[_PathLink]) -> list[RunFact]:
    """Return the facts on the shortest way from a name to the answer, or the missing link."""
    answer = run.answered.text.strip()
    back: dict[str, tuple[str, _PathLink]] = {}
    queue, seen = [key], {key}
    for node in queue:
        for link in (each for each in links if node in each.nodes):
            for other in link.nodes:
                if other not in seen:
                    back[other] = node, link
                    seen.add(other)
                    queue.append(other)
    if _ANSWER not in back:
        return [RunFact(Triple(name, LINKED, answer))]
    found: list[RunFact] = []
    node = _ANSWER
    while node in back:
        before, link = back[node]
        found.insert(
            0,
            _step(
                run,
                name if before == key else link.nodes[before],
                answer if node == _ANSWER else link.nodes[node],
                link,
            ),
        )
        node = before
    return found


def _step(run: RunMaterial, start: str, end: str, link: _PathLink) -> RunFact:
    said = _saying(run, link.said, start, end)
    relation = link.relation or _between(link.said[0], start, end)
    return RunFact(Triple(start, relation, end), said, rival_values(said, run.known, start, end))


def _typed(run: RunMaterial, named: Mapping[str, str], answer: str) -> Iterator[_PathLink]:
    """Yield the typed facts as links."""
    for edge in run.facts:
        texts = {support.sentence for support in supports_of(edge.properties)}
        nodes = {normalise_name(end): end for end in (edge.source, edge.target)}
        nodes |= {key: name for key, name in named.items() if any(key in end for end in nodes)}
        nodes |= (
            {_ANSWER: answer}
            if any(contains_words(answer, end) for end in (edge.source, edge.target))
            else {}
        )
        if said := tuple(each for each in run.known if each.text in texts):
            yield _PathLink(nodes, said, edge.type)


def _spoken(run: RunMaterial, named: Mapping[str, str], answer: str) -> Iterator[_PathLink]:
    """Yield the sentences of the path as links between their title and the names in them."""
    known = NameIndex(Document(title, "", title) for title in run.titles())
    for each in run.path:
        # West Chicago, Illinois is called West Chicago
        short = each.title.split("(")[0].split(",")[0].strip()
        nodes = {normalise_name(title): title for title in (each.title, short) if title}
        nodes |= {key: name for key, name in named.items() if speaks_of(each, name.split("(")[0])}
        nodes |= {
            normalise_name(title): title for name in known.find_names(each.text) for title in known[name]
        }
        nodes |= {
            key: key.title()
            for key in capitalised_names(each.text)
            if key not in nodes and not contains_words(key, answer)
        }
        nodes |= {_ANSWER: answer} if contains_words(answer, each.text) else {}
        yield _PathLink(nodes, (each,))


def _between(sentence: SourcedSentence, start: str, end: str) -> str:
    """Return the words between two names in a sentence, as the relation of the first to the second.

    An arrow marks the reverse order.
    """
    text, low = sentence.text, sentence.text.casefold()
    at, of = low.find(start.casefold()), low.find(end.casefold())
    if at >= 0 and of >= 0:
        first, last = (at + len(start), of) if at < of else (of + len(end), at)
        words = text[first:last].strip(" ,.;:")
        return _short(words) if at < of else f"← {_short(words)}"
    return _short(text[:of].strip(" ,.;:")) if of > 0 else "is said with"


def _short(words: str) -> str:
    words = " ".join(words.split()) or "is said with"
    return words if len(words) <= _LONGEST else f"… {words[-_LONGEST:].partition(' ')[2]}"


# Certification: sentences as claims in a memory of their own, and the state of the needed facts there.

_NUL = str.maketrans({"\0": "\ufffd"})


def certificate_of_run(
    run: Trace | Iterable[Event], *, rules: CertificateRules = STANDARD_RULES, at: datetime | None = None
) -> Certificate:
    """Certify the answer of a finished run.

    Checks what the answer needs against the sentences that its tools returned and its initial graph. A fact
    that a sentence states becomes a claim of that sentence's document. An answer that no sentence contains
    never passes. Raises BadInput for a run without an answer.
    """
    require(
        run,
        (Trace, Iterable),
        "what is certified is a finished run, as load_run(path) gives it, or its events",
    )
    needs = needs_of_run(RunMaterial(run.events if isinstance(run, Trace) else tuple(run)))
    with closing(SQLiteClaims()) as storage:
        claims = Claims(storage)
        claims.learn(claim for fact in needs for claim in claims_of_fact(fact))
        for fact in needs:
            if fact.rivals:
                claims.declare(fact.needed.relation, "single")
        return certify(claims, [fact.needed for fact in needs], at=at or _begun(run), rules=rules)


def certified_text(events: Iterable[Event], certificate: Certificate) -> list[Event]:
    """Return the events of a run with its answer as the certificate allows it to be shown.

    For a withheld answer, its evidence is removed too. Earlier events are unchanged.
    """
    return [_told(event, certificate) if isinstance(event, Answered) else event for event in events]


def _told(answered: Answered, certificate: Certificate) -> Answered:
    told = replace(answered, text=hedge_answer(answered.text, certificate))
    return (
        told
        if certificate.ruling != "withheld"
        else replace(told, forced=False, evidence=(), passages=(), supports=(), likelihood=None)
    )


def claims_of_fact(fact: RunFact) -> list[Claim]:
    """Return the claims of the sentences that state a needed fact or a rival value."""
    if not isinstance(fact.needed, Triple):
        return []
    subject, relation, _ = fact.needed.identity
    by_object = {fact.needed.object: fact.said, **fact.rivals}
    return [
        _claim(Triple(subject, relation, object), each) for object, said in by_object.items() for each in said
    ]


def _claim(fact: Triple, said: SourcedSentence) -> Claim:
    text = said.text.translate(_NUL)
    source = (said.source or said.title or "a text without a name").translate(_NUL)
    return Claim(fact, source, Span(0, len(text), text), said_by=said.title.translate(_NUL))


def _begun(run: Trace | Iterable[Event]) -> datetime | None:
    """Return the start time of a recorded run, in UTC if it names no time zone, or None if it is not
    recorded.
    """
    try:
        begun = datetime.fromisoformat(run.created) if isinstance(run, Trace) else None
    except ValueError:
        return None
    return begun if begun is None or begun.tzinfo else begun.replace(tzinfo=UTC)
