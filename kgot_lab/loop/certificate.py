"""Certificates of runs: the claims that an answer needs, the sentences that state them, and what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import zip_longest

from kgot_lab.errors import BadInput
from kgot_lab.graph.changes import Support, supports_of
from kgot_lab.loop.answer_check import question_names
from kgot_lab.loop.events import Answered, Asked, Event, Parsed
from kgot_lab.loop.insert import sourced_sentences
from kgot_lab.loop.modes.paths.question_form import fill_hop, hop_subjects, parse_hops
from kgot_lab.loop.modes.paths.values import is_no_answer, parse_yes_no
from kgot_lab.loop.state import State, state_after
from kgot_lab.loop.trace import Trace, events_of
from kgot_lab.memory.claims.certificate import (
    Certificate,
    CertifiedFact,
    FactState,
    hedge_answer,
)
from kgot_lab.memory.claims.claim import Claim, Span
from kgot_lab.memory.extraction import SourcedSentence
from kgot_lab.retrieval.entity_linking import capitalised_names
from kgot_lab.sandbox.python.helpers import SAYS_SENTENCE
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.text.words import contains_words, name_tokens, same_answer
from kgot_lab.types import Triple

ANSWERED_BY = "is answered by"  # relation of a question to an answer that was not checked
_NOT_CHECKED = "whether the sentences that it cites say it was not checked"
_NOT_CONTAINED = "no sentence that it cites contains the answer"
_Sentences = Sequence[SourcedSentence]
_NUL = str.maketrans({"\0": "\ufffd"})


def certificate_of_run(run: Trace | Iterable[Event], *, at: datetime | None = None) -> Certificate:
    """Certify the answer of a finished run by its own chain and its check.

    The facts are the hops of its question, if the cited sentences contain their answers and the last one is
    the answer of the run, and the answer itself. It is missing if its check refused it or no cited sentence
    contains it, and unsure if the check was unsure or not made. Raises BadInput for a run without an answer.
    """
    events = events_of(run)
    state = state_after(events)
    if state.answer is None:
        problem = "a certificate is of a run with an answer"
        raise BadInput(f"{problem}: give a finished run, as load_run returns it")
    seen = tuple(_seen_sentences(state))
    cited = tuple(dict.fromkeys(_cited_sentences(state, state.answer, seen)))
    needed = _triple(state.question or "the question", ANSWERED_BY, state.answer.text.strip() or "nothing")
    is_checked = _is_checked(events, state.answer.text)
    fact = _answer_fact(needed, state.answer, cited, seen, is_checked=is_checked)
    hops = _hop_facts(events, state.answer.text, cited, seen)
    return Certificate((*hops, fact), at or _start_time(run) or datetime.now(UTC))


def certified_answer(answered: Answered, certificate: Certificate) -> Answered:
    """Return the end of a run as its certificate allows it to be shown, without evidence if it is withheld."""
    shown = replace(answered, text=hedge_answer(answered.text, certificate), forced=False, missing="")
    if certificate.ruling != "withheld":
        return shown
    return replace(shown, evidence=(), passages=(), supports=(), likelihood=None)


# Facts: the answer, and the hops before it.


def _answer_fact(
    needed: Triple, answered: Answered, cited: _Sentences, seen: _Sentences, *, is_checked: bool
) -> CertifiedFact:
    """Return the fact that a question has an answer, stated by the cited sentences if its check says so."""
    answer, reason = answered.text.strip(), answered.missing
    stating: _Sentences = _sentences_with(answer, cited)
    # sentences that are counted do not contain their count
    if not stating and is_checked and answer.isdecimal():
        stating, reason = cited, reason or _NOT_CONTAINED
    unstated = ""
    if answered.outcome == "not in the sources" or is_no_answer(answer):
        unstated = answered.missing or "no text that was read says it"
    elif not stating:
        unstated = _NOT_CONTAINED
    elif not is_checked:
        unstated = answered.guess_reason
    if unstated:
        return CertifiedFact(needed, "missing", reason=unstated)
    if not is_checked or answered.outcome == "unsure":
        reason = reason or _NOT_CHECKED
    return _stated_fact(needed, cited, seen, reason)


def _hop_facts(
    events: Sequence[Event], answer: str, cited: _Sentences, seen: _Sentences
) -> tuple[CertifiedFact, ...]:
    """Return a fact for each hop of the question, or () if its chain does not lead to the answer.

    It leads there if the last hop was read as the answer, and the cited sentences contain the answers of all.
    """
    calls = ((i, event) for i, event in enumerate(events) if isinstance(event, Asked) and not event.cut)
    number, hops = next(((i, parse_hops(call.reply)) for i, call in calls if call.role == "hops"), (0, []))
    readings = dict(_readings(events[number:]))
    titles = [sentence.title for sentence in cited]
    answers: list[str] = []
    facts: list[CertifiedFact] = []
    for hop in hops:
        question = fill_hop(hop, answers)
        subjects = hop_subjects(hop, answers) or question_names(question, titles) or [question]
        answers.append(readings.get(question, ""))
        stating = _sentences_with(answers[-1], cited)
        if not stating:
            return ()
        facts.append(_stated_fact(_triple(subjects[-1], question, answers[-1]), stating, seen))
    return tuple(facts) if facts and same_answer(answers[-1], answer) else ()


def _readings(events: Iterable[Event]) -> Iterator[tuple[str, str]]:
    """Yield the questions that were read from sentences, with their accepted answers."""
    question = ""
    for event in events:
        if isinstance(event, Asked):
            question = event.prompt.messages[-1].text.rpartition("Question: ")[2]
        elif isinstance(event, Parsed) and not event.problem and not is_no_answer(event.text):
            yield question, event.text


def _stated_fact(needed: Triple, stating: _Sentences, seen: _Sentences, doubt: str = "") -> CertifiedFact:
    """Return a fact that sentences state: unsure if there is a doubt, contested if others state a rival.

    Each of the sentences may be needed, so that the fact rests on all of their sources.
    """
    supports = tuple(_claim(needed, sentence) for sentence in stating)
    rivals = tuple(replace(needed, object=value) for value in rival_values(stating, seen, needed.object))
    sources = tuple(dict.fromkeys(claim.source for claim in supports))
    if doubt and rivals:
        doubt += f"; others say {', '.join(rival.object for rival in rivals)}"
    state: FactState = "unsure" if doubt else "contested" if rivals else "one source"
    return CertifiedFact(needed, state, needed, supports, rivals, sources, reason=doubt)


def _triple(subject: str, relation: str, object: str) -> Triple:
    return Triple(subject.translate(_NUL), relation.translate(_NUL), object.translate(_NUL))


def _claim(fact: Triple, sentence: SourcedSentence) -> Claim:
    text, source, title = (s.translate(_NUL) for s in (sentence.text, sentence.source, sentence.title))
    return Claim(fact, source or title or "a text without a name", Span(0, len(text), text), said_by=title)


# The run: its check, the sentences that it cites, and all that it has seen.


def _is_checked(events: Iterable[Event], answer: str) -> bool:
    """Return whether the model was asked if the sentences give an answer."""
    checks = (event for event in events if isinstance(event, Asked) and event.role == "check")
    return any(check.prompt.messages[-1].text.endswith(f"\nAnswer: {answer}") for check in checks)


def _seen_sentences(state: State) -> Iterator[SourcedSentence]:
    """Yield the sentences of the initial graph and of the documents that tools returned."""
    for edge in state.start.edges:
        if edge.type == SAYS_SENTENCE:
            for support in supports_of(edge.properties):
                yield SourcedSentence(support.sentence, edge.source, support.source, 0)
    for returned in state.returns:
        if not returned.failed:
            yield from sourced_sentences(returned, "any script")


def _cited_sentences(state: State, answered: Answered, seen: _Sentences) -> Iterator[SourcedSentence]:
    """Yield the sentences that an answer cites, and its facts of the initial graph that no sentence states.

    A fact that the run wrote and no sentence states is none.
    """
    titles = {sentence.source: sentence.title for sentence in seen}
    written = {fact_of(edge) for diff in state.diffs for edge in diff.written_edges}
    for fact, supports in zip_longest(answered.evidence, answered.supports):
        for support in supports or (Support("", ""),):
            if text := support.sentence or ("" if fact in written else str(fact or "")):
                yield SourcedSentence(text, titles.get(support.source, ""), support.source, 0)


def _sentences_with(answer: str, sentences: _Sentences) -> tuple[SourcedSentence, ...]:
    """Return the sentences that contain an answer, or all of them for yes and no."""
    if parse_yes_no(answer) is not None:
        return tuple(sentences)
    return tuple(s for s in sentences if contains_words(answer, f"{s.title} {s.text}"))


def _start_time(run: Trace | Iterable[Event]) -> datetime | None:
    """Return the start time of a recorded run, in UTC if it names no time zone, or None if it is not
    recorded.
    """
    try:
        start = datetime.fromisoformat(run.created) if isinstance(run, Trace) else None
    except ValueError:
        return None
    return start if start is None or start.tzinfo else start.replace(tzinfo=UTC)


# Rival values: sentences with the same words except for the value.

_MAX_EXTRA_WORDS = 4  # words that another value may have more
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")


def rival_values(stating: _Sentences, sentences: Iterable[SourcedSentence], value: str) -> tuple[str, ...]:
    """Return the values that other documents state in the place of a value.

    Their sentence has the same words around it, and names something there or has the same title. What a
    document says of its own title is no rival. Contradictions in other words are not found.
    """
    rivals: dict[str, None] = {}
    for other in sentences:
        for sentence in stating:
            rival = "" if other.source == sentence.source else rival_value(sentence.text, other.text, value)
            if not rival:
                continue
            names = (name for name in capitalised_names(sentence.text) if not contains_words(name, value))
            is_named = any(names) and not contains_words(rival, other.title)
            if is_named or other.title == sentence.title:
                rivals[rival] = None
    return tuple(rivals)


def rival_value(sentence: str, other_sentence: str, value: str) -> str:
    """Return what another sentence says in the position of a value.

    Returns "" if the rest of the two sentences differs, or if no value of the same kind is there.
    """
    words, other_words, value_words = map(_WORD.findall, (sentence, other_sentence, value))
    folded, other_folded, wanted = (
        [w.casefold() for w in part] for part in (words, other_words, value_words)
    )
    size, spare = len(wanted), len(other_words) - len(words)
    start = next((i for i in range(len(words)) if folded[i : i + size] == wanted), None)
    if start is None or len(words) < size + 2 or not -size < spare <= _MAX_EXTRA_WORDS:
        return ""
    end = start + size + spare
    rival = " ".join(other_words[start:end])
    has_same_frame = folded[:start] + folded[start + size :] == other_folded[:start] + other_folded[end:]
    is_part = set(name_tokens(rival)) <= set(name_tokens(value))
    return rival if has_same_frame and not is_part and _value_kind(rival) == _value_kind(value) else ""


def _value_kind(value: str) -> tuple[bool, bool]:
    """Return whether a value has a digit, and whether it has a capital letter."""
    return any(map(str.isdigit, value)), any(map(str.isupper, value))
