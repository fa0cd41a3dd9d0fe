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
from kgot_lab.loop.answer_check import question_names
from kgot_lab.loop.events import Answered, Event
from kgot_lab.loop.modes.paths.comparison import computed_answer, parse_comparison_questions
from kgot_lab.loop.modes.paths.question_form import comparison_candidates, fill_hop, hop_subjects
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
from kgot_lab.retrieval.entity_linking import NameIndex, capitalised_names, normalise_name
from kgot_lab.text.words import contains_words, name_tokens, same_answer
from kgot_lab.types import Document, Triple

# Rival values: sentences with the same words except for one position.

# the minimum share of a sentence's words, besides the value, that another contains in the same order
MIN_SHARED_WORDS = 0.7
_MAX_EXTRA_WORDS = 4  # words that another value may have more
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")


def rival_values(
    stating: Iterable[SourcedSentence], sentences: Iterable[SourcedSentence], subject: str, value: str
) -> dict[str, list[SourcedSentence]]:
    """Return the conflicting values that other documents state, each with the sentences that state it.

    A sentence conflicts if it shares at least SAME_WORDS of the words and has another value of the same kind
    in the same position. It or its title must name `subject`. Contradictions in other words are not found.
    """
    sentences = list(sentences)
    rivals: dict[str, list[SourcedSentence]] = {}
    for sentence in stating:
        for other in sentences:
            if other.source == sentence.source or contains_words(value, other.text):
                continue
            if other.title != sentence.title and not names_subject(other, subject):
                continue
            rival = rival_value(sentence.text, other.text, value)
            # else it says that of its own subject
            if rival and (other.title == sentence.title or not contains_words(rival, other.title)):
                rivals.setdefault(rival, []).append(other)
    return rivals


def rival_value(sentence: str, other_sentence: str, value: str) -> str:
    """Return what another sentence says in the position of a value.

    Returns "" if the rest of the two sentences differs too much, or if no value of the same kind is there.
    """
    words, other_words, value_words = map(_WORD.findall, (sentence, other_sentence, value))
    folded, other_folded = ([word.casefold() for word in part] for part in (words, other_words))
    start = _find_words([word.casefold() for word in value_words], folded)
    if start is None:
        return ""
    end = start + len(value_words)
    other_start, other_end, shared = 0, len(other_words), 0
    for block in SequenceMatcher(None, folded, other_folded, autojunk=False).get_matching_blocks():
        head = max(0, min(block.size, start - block.a))
        tail = max(0, min(block.size, block.a + block.size - end))
        shared += head + tail
        other_start = block.b + head if head else other_start
        other_end = min(other_end, block.b + block.size - tail) if tail else other_end
    context_size = len(words) - len(value_words)
    replacement = other_words[other_start:other_end]
    if context_size < 2 or shared < MIN_SHARED_WORDS * context_size:
        return ""
    if not 0 < len(replacement) <= len(value_words) + _MAX_EXTRA_WORDS:
        return ""
    rival = " ".join(replacement)
    is_part = set(name_tokens(rival)) <= set(name_tokens(value))
    return rival if _value_kind(rival) == _value_kind(value) and not is_part else ""


def names_subject(sentence: SourcedSentence, name: str) -> bool:
    """Return whether a sentence together with its title contains all words of a name."""
    name_words = set(name_tokens(name))
    return bool(name_words) and name_words <= set(name_tokens(f"{sentence.title} {sentence.text}"))


def _find_words(wanted: list[str], words: list[str]) -> int | None:
    starts = range(len(words) - len(wanted) + 1) if wanted else ()
    return next((start for start in starts if words[start : start + len(wanted)] == wanted), None)


def _value_kind(value: str) -> tuple[bool, bool]:
    """Return whether a value has a digit, and whether it has a capital letter."""
    return any(map(str.isdigit, value)), any(map(str.isupper, value))


# Needs of an answer: the hops of its question, the compared values, or a path of sentences to the answer.

# relations of what is missing
ANSWERED_BY, MENTIONED_BY, LEADS_TO = "is answered by", "is mentioned by", "leads to"
_MAX_RELATION_LENGTH = 60  # characters of a relation that is taken from a sentence
_ANSWER_NODE = "\0answer"  # the node of a path that is the answer


@dataclass(frozen=True)
class RunFact:
    """A fact that the answer of a run needs, with the sentences that state it.

    `rivals` holds other values in the position of its object, each with its sentences.
    """

    needed: Triple | OpenFact
    said: tuple[SourcedSentence, ...] = ()
    rivals: Mapping[str, Sequence[SourcedSentence]] = field(default_factory=dict)


def needed_facts(run: RunMaterial) -> list[RunFact]:
    """Return the facts that the answer of a run needs, in order.

    A fact that no sentence states is included, without sentences.
    """
    facts = _hop_facts(run) or _comparison_facts(run) or _path_facts(run)
    if run.answered.forced and all(fact.said for fact in facts):
        return [*facts, _unstated_answer(run)]
    return facts


def _unstated_answer(run: RunMaterial) -> RunFact:
    """Return that the question has the answer, without a sentence that says so."""
    answer = run.answered.text.strip() or "nothing"
    return RunFact(Triple(run.question or "the question", ANSWERED_BY, answer))


# --- hops and comparisons ---


def _hop_facts(run: RunMaterial) -> list[RunFact]:
    """Return one fact for each hop of a decomposed question.

    A hop that was read as unknown, and all hops after it, are open facts. Returns an empty list if the
    question was not decomposed.
    """
    number, _ = run.first_reply("hops")
    remaining = iter([reading for reading in run.readings if reading.number > number])
    answers: list[str] = []
    facts: list[RunFact] = []
    for hop in run.hops:
        question, names = fill_hop(hop, answers), hop_subjects(hop, answers)
        follows_open = len(answers) < len(facts)
        reading = None if follows_open else next(remaining, None)
        if reading is None or reading.question != question or reading.problem or not reading.answer:
            facts.append(
                RunFact(OpenFact(hop) if follows_open else OpenFact(question, names[-1] if names else ""))
            )
            continue
        subject = names[-1] if names else _common_title(reading) or question
        facts.append(_read_fact(run, subject, question, reading))
        answers.append(reading.answer)
    if not facts or len(answers) < len(facts) or same_answer(answers[-1], run.answered.text):
        return facts
    return [*facts[:-1], _with_final_answer(run, facts[-1])]


def _comparison_facts(run: RunMaterial) -> list[RunFact]:
    """Return what was read about each of two things, if the answer follows from comparing them."""
    number, reply = run.first_reply("compared")
    if number < 0:
        return []
    titles = NameIndex(Document(title, "", title) for title in run.titles(number))
    mentioned = list(dict.fromkeys(titles[name][0] for name in titles.find_names(run.question, cased=False)))
    things = comparison_candidates(run.question, mentioned)
    remaining = iter([reading for reading in run.readings if reading.number > number])
    values: list[list[str]] = []
    facts: list[RunFact] = []
    for thing, questions in zip(things, parse_comparison_questions(reply, things), strict=False):
        texts: list[str] = []
        for pattern in questions:
            question, name = pattern, thing
            if texts and "#1" in pattern:
                question, name = pattern.replace("#1", texts[0]), texts[0]
            reading = next(remaining, None)
            if reading is None or reading.question != question or reading.problem:
                return []
            texts.append(reading.answer)
            facts.append(_read_fact(run, name, question, reading))
        values.append(texts)
    if computed_answer(run.question, things, values) != run.answered.text:
        return []
    return facts


def _read_fact(run: RunMaterial, subject: str, relation: str, reading: PathReading) -> RunFact:
    """Return an answer that was read, as a fact with its supporting sentences and its rival values.

    The supporting sentences are those shown that contain the answer, and all others that name the subject and
    contain it.
    """
    shown = [sentence for sentence in reading.shown if contains_words(reading.answer, sentence.text)]
    stating = _stating_sentences(run, shown, subject, reading.answer)
    rivals = rival_values(stating, run.all_sentences, subject, reading.answer)
    return RunFact(Triple(subject, relation, reading.answer), stating, rivals)


def _with_final_answer(run: RunMaterial, last: RunFact) -> RunFact:
    """Return the last hop with the final answer as its object and the answer read there as a rival."""
    assert isinstance(last.needed, Triple)
    needed = Triple(last.needed.subject, last.needed.relation, run.answered.text)
    stating = _stating_sentences(run, [], needed.subject, needed.object)
    return RunFact(needed, stating, {**last.rivals, last.needed.object: last.said})


def _common_title(reading: PathReading) -> str:
    """Return the title of the sentences shown, or "" if they have several titles."""
    titles = {sentence.title for sentence in reading.shown}
    return titles.pop() if len(titles) == 1 else ""


def _stating_sentences(
    run: RunMaterial, shown: Iterable[SourcedSentence], subject: str, value: str
) -> tuple[SourcedSentence, ...]:
    """Return the sentences shown, followed by all that name a subject and contain a value."""
    named = (s for s in run.all_sentences if contains_words(value, s.text) and names_subject(s, subject))
    return tuple(dict.fromkeys([*shown, *named]))


# --- paths ---


@dataclass(frozen=True)
class _PathLink:
    """A sentence or a typed fact, with the nodes that it joins and their spellings.

    A fact has a relation too.
    """

    nodes: Mapping[str, str]
    said: tuple[SourcedSentence, ...]
    relation: str = ""


def _path_facts(run: RunMaterial) -> list[RunFact]:
    """Return the facts on the path from the names in the question to the answer.

    A name that no sentence mentions, a missing link and an unsupported answer are facts without sentences.
    """
    answer = run.answered.text.strip()
    if not answer or not any(contains_words(answer, sentence.text) for sentence in run.path_sentences):
        return [*_missing_names(run), _unstated_answer(run)]
    named = {normalise_name(name): name for name in question_names(run.question, run.titles())}
    unnamed = _missing_names(run)
    # the answer is one of the named things: each must be mentioned
    if any(_same_name(name, answer) for name in named.values()):
        missing = [fact.needed for fact in unnamed]
        present = [name for name in named.values() if OpenFact(MENTIONED_BY, name) not in missing]
        return [*unnamed, *(_mention_fact(run, name) for name in present)]
    links = [*_fact_links(run, named, answer), *_sentence_links(run, named, answer)]
    facts: dict[Triple | OpenFact, RunFact] = {fact.needed: fact for fact in unnamed}
    for key, name in named.items():
        if OpenFact(MENTIONED_BY, name) in facts:
            continue
        for fact in _shortest_path(run, key, name, links):
            facts.setdefault(fact.needed, fact)
    if facts:
        return list(facts.values())
    asked = Triple(run.question or "the question", ANSWERED_BY, answer)
    return [RunFact(asked, tuple(s for s in run.path_sentences if contains_words(answer, s.text)))]


def _missing_names(run: RunMaterial) -> list[RunFact]:
    """Return the names of the question that no sentence of the path mentions."""
    names = question_names(run.question, run.titles())
    return [RunFact(OpenFact(MENTIONED_BY, name)) for name in names if not _naming_sentences(run, name)]


def _naming_sentences(run: RunMaterial, name: str) -> tuple[SourcedSentence, ...]:
    """Return the sentences of the path that name it, with or without what its parentheses add."""
    subject = name.split("(")[0]
    return tuple(sentence for sentence in run.path_sentences if names_subject(sentence, subject))


def _mention_fact(run: RunMaterial, name: str) -> RunFact:
    """Return the fact that sentences of the path mention a name."""
    stating = _naming_sentences(run, name)
    return RunFact(Triple(name, MENTIONED_BY, stating[0].title or stating[0].source or name), stating)


def _same_name(name: str, answer: str) -> bool:
    return normalise_name(answer) in (normalise_name(name), normalise_name(name.split("(")[0]))


def _shortest_path(run: RunMaterial, key: str, name: str, links: Sequence[_PathLink]) -> list[RunFact]:
    """Return the facts on the shortest way from a name to the answer, or the missing link."""
    answer = run.answered.text.strip()
    previous: dict[str, tuple[str, _PathLink]] = {}
    queue, visited = [key], {key}
    for node in queue:
        for link in (candidate for candidate in links if node in candidate.nodes):
            for other in link.nodes:
                if other not in visited:
                    previous[other] = node, link
                    visited.add(other)
                    queue.append(other)
    if _ANSWER_NODE not in previous:
        return [RunFact(Triple(name, LEADS_TO, answer))]
    facts: list[RunFact] = []
    node = _ANSWER_NODE
    while node in previous:
        earlier, link = previous[node]
        start = name if earlier == key else link.nodes[earlier]
        end = answer if node == _ANSWER_NODE else link.nodes[node]
        facts.insert(0, _link_fact(run, start, end, link))
        node = earlier
    return facts


def _link_fact(run: RunMaterial, start: str, end: str, link: _PathLink) -> RunFact:
    stating = _stating_sentences(run, link.said, start, end)
    relation = link.relation or _relation_between(link.said[0], start, end)
    rivals = rival_values(stating, run.all_sentences, start, end)
    return RunFact(Triple(start, relation, end), stating, rivals)


def _fact_links(run: RunMaterial, names: Mapping[str, str], answer: str) -> Iterator[_PathLink]:
    """Yield the typed facts as links."""
    for edge in run.path_facts:
        texts = {support.sentence for support in supports_of(edge.properties)}
        nodes = {normalise_name(end): end for end in (edge.source, edge.target)}
        nodes |= {key: name for key, name in names.items() if any(key in end for end in nodes)}
        if any(contains_words(answer, end) for end in (edge.source, edge.target)):
            nodes[_ANSWER_NODE] = answer
        if stating := tuple(sentence for sentence in run.all_sentences if sentence.text in texts):
            yield _PathLink(nodes, stating, edge.type)


def _sentence_links(run: RunMaterial, names: Mapping[str, str], answer: str) -> Iterator[_PathLink]:
    """Yield the sentences of the path as links between their title and the names in them."""
    titles = NameIndex(Document(title, "", title) for title in run.titles())
    for sentence in run.path_sentences:
        # West Chicago, Illinois is called West Chicago
        short_title = sentence.title.split("(")[0].split(",")[0].strip()
        nodes = {normalise_name(title): title for title in (sentence.title, short_title) if title}
        nodes |= {key: name for key, name in names.items() if names_subject(sentence, name.split("(")[0])}
        found_titles = [title for name in titles.find_names(sentence.text) for title in titles[name]]
        nodes |= {normalise_name(title): title for title in found_titles}
        for key in capitalised_names(sentence.text):
            if not contains_words(key, answer):
                nodes.setdefault(key, key.title())
        if contains_words(answer, sentence.text):
            nodes[_ANSWER_NODE] = answer
        yield _PathLink(nodes, (sentence,))


def _relation_between(sentence: SourcedSentence, start: str, end: str) -> str:
    """Return the words between two names in a sentence, as the relation of the first to the second.

    An arrow marks the reverse order.
    """
    text, folded = sentence.text, sentence.text.casefold()
    start_at, end_at = folded.find(start.casefold()), folded.find(end.casefold())
    if start_at >= 0 and end_at >= 0:
        first, last = (start_at + len(start), end_at) if start_at < end_at else (end_at + len(end), start_at)
        words = text[first:last].strip(" ,.;:")
        return _truncate(words) if start_at < end_at else f"← {_truncate(words)}"
    return _truncate(text[:end_at].strip(" ,.;:")) if end_at > 0 else "is said with"


def _truncate(words: str) -> str:
    words = " ".join(words.split()) or "is said with"
    is_short = len(words) <= _MAX_RELATION_LENGTH
    return words if is_short else f"… {words[-_MAX_RELATION_LENGTH:].partition(' ')[2]}"


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
        run, (Trace, Iterable), "a certificate is of a finished run, as load_run(path) gives, or its events"
    )
    needs = needed_facts(RunMaterial(run.events if isinstance(run, Trace) else tuple(run)))
    with closing(SQLiteClaims()) as storage:
        claims = Claims(storage)
        claims.learn(claim for fact in needs for claim in claims_of_fact(fact))
        for fact in needs:
            if fact.rivals:
                claims.declare(fact.needed.relation, "single")
        return certify(claims, [fact.needed for fact in needs], at=at or _start_time(run), rules=rules)


def certified_events(events: Iterable[Event], certificate: Certificate) -> list[Event]:
    """Return the events of a run with its answer as the certificate allows it to be shown.

    For a withheld answer, its evidence is removed too. Earlier events are unchanged.
    """
    return [_hedged_answer(event, certificate) if isinstance(event, Answered) else event for event in events]


def _hedged_answer(answered: Answered, certificate: Certificate) -> Answered:
    shown = replace(answered, text=hedge_answer(answered.text, certificate))
    if certificate.ruling != "withheld":
        return shown
    return replace(shown, forced=False, evidence=(), passages=(), supports=(), likelihood=None)


def claims_of_fact(fact: RunFact) -> list[Claim]:
    """Return the claims of the sentences that state a needed fact or a rival value."""
    if not isinstance(fact.needed, Triple):
        return []
    subject, relation, _ = fact.needed.identity
    stated = {fact.needed.object: fact.said, **fact.rivals}
    return [_claim(Triple(subject, relation, value), s) for value, said in stated.items() for s in said]


def _claim(fact: Triple, sentence: SourcedSentence) -> Claim:
    text = sentence.text.translate(_NUL)
    source = (sentence.source or sentence.title or "a text without a name").translate(_NUL)
    return Claim(fact, source, Span(0, len(text), text), said_by=sentence.title.translate(_NUL))


def _start_time(run: Trace | Iterable[Event]) -> datetime | None:
    """Return the start time of a recorded run, in UTC if it names no time zone, or None if it is not
    recorded.
    """
    try:
        start = datetime.fromisoformat(run.created) if isinstance(run, Trace) else None
    except ValueError:
        return None
    return start if start is None or start.tzinfo else start.replace(tzinfo=UTC)
