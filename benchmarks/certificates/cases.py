"""The cases: questions as they are, without one of the passages that they need, and with a made passage that
contradicts one of those.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain as chained
from itertools import zip_longest
from typing import Literal, get_args

from benchmarks.competence.gold import GoldChain, GoldSet, GoldStep
from benchmarks.competence.worlds import World, world_of_triples, world_on_file
from kgot_lab.benchmark.comparison.plan import DRAW_SEED, drawn_samples
from kgot_lab.benchmark.questions.question import Question, QuestionSet
from kgot_lab.errors import InsufficientData, require_count
from kgot_lab.io.files import bundled_path
from kgot_lab.text.words import name_tokens
from kgot_lab.types import Document, Triple

CaseChange = Literal["whole", "without", "contradicted"]
CASE_CHANGES: tuple[CaseChange, ...] = get_args(CaseChange)
_WORDS = 5  # of an object that another can take the place of: a longer one is no name or date
MADE = "made:"  # how the id of a passage begins that nobody wrote


@dataclass(frozen=True)
class TriedSet:
    """Questions with their passages, and the chains of facts that answer them, each fact with the sentence
    that says it.
    """

    questions: QuestionSet
    gold: GoldSet

    @staticmethod
    def of_world(world: World, name: str) -> TriedSet:
        """A made-up world as a set of questions."""
        questions = [Question(chain.id, chain.question, chain.answer) for chain in world.gold.chains]
        return TriedSet(QuestionSet(list(world.documents), questions, name), world.gold)


@dataclass(frozen=True)
class CertificateCase:
    """A question of a set under a change: the id of the passage that is hidden, or the one that is made, and
    the gold fact it is about.
    """

    set: str
    change: CaseChange
    question: Question
    hidden: str = ""
    made: Document | None = None
    about: Triple | None = None

    @property
    def key(self) -> str:
        """What tells it from all others."""
        return f"{self.set}/{self.change}/{self.question.id}"


def tried_sets() -> dict[str, TriedSet]:
    """The questions of the comparison of systems whose facts are all known with a sentence each: of
    2WikiMultiHopQA and MuSiQue.
    """
    drawn = drawn_samples()
    worlds = {
        "2wiki": world_of_triples(bundled_path("2wiki-1000"), bundled_path("2wiki-fastgraphrag-101")),
        "musique-498": world_on_file(bundled_path("musique-498")),
    }
    return {name: TriedSet(drawn[name], world.gold) for name, world in worlds.items()}


def certificate_cases(
    sets: Mapping[str, TriedSet], *, without: int = 100, contradicted: int = 50, seed: int = DRAW_SEED
) -> list[CertificateCase]:
    """So many questions, each whole and without one gold passage, the first so many of those that allow it
    contradicted as well.

    The sets take turns, and the passage is drawn by seed. Left out are questions whose answer is yes or no,
    which stands in no sentence. The changes of a question follow each other, so that what is stopped has
    pairs. Raises BadInput, InsufficientData where the sets have fewer.
    """
    require_count(without, 1, "without")
    require_count(contradicted, 0, "contradicted")
    drawn = random.Random(seed)
    found: list[CertificateCase] = []
    asked = made = 0
    turns = zip_longest(*(_askable(name, each) for name, each in sets.items()))
    for name, question, steps in filter(None, chained.from_iterable(turns)):
        if asked == without:
            break
        asked += 1
        step, passage = drawn.choice(steps)
        found.append(CertificateCase(name, "whole", question))
        found.append(CertificateCase(name, "without", question, hidden=passage.id, about=step.fact))
        others = [other for chain in sets[name].gold.chains for other in chain.steps]
        contradiction = contradicting(step, question, others, drawn) if made < contradicted else None
        if contradiction is not None:
            made += 1
            found.append(CertificateCase(name, "contradicted", question, made=contradiction, about=step.fact))
    if asked < without or made < contradicted:
        raise InsufficientData(
            f"the sets have {asked} questions of {without} that were asked for, and {made} contradictions of {contradicted}"
        )
    return found


def contradicting(
    step: GoldStep, question: Question, others: Sequence[GoldStep], drawn: random.Random
) -> Document | None:
    """A passage of one sentence, that of a gold fact with another object of the same kind; None where none
    fits.

    It is that of another fact with the same relation, where there is one, else of the same form: figures for
    figures, a name for a name. What is neither a name nor has a figure is not contradicted.
    """
    said, object = step.sentence, step.fact.object
    if len(name_tokens(object)) > _WORDS or not (_form(object)[1] or any(map(str.isdigit, object))):
        return None
    there = re.compile(rf"(?<!\w){re.escape(object)}(?!\w)", re.I)
    taken = set(name_tokens(f"{question.text} {question.answer} {' '.join(question.aliases)} {said}"))
    same = [other.fact.object for other in others if other.fact.relation == step.fact.relation]
    alike = [other.fact.object for other in others]
    for pool in (same, alike):
        fit = sorted(
            {other for other in pool if _form(other) == _form(object) and not set(name_tokens(other)) & taken}
        )
        if fit and there.search(said):
            other: str = drawn.choice(fit)
            return Document(f"{MADE}{question.id}", other.join(there.split(said)), step.title)
    return None


def digest_of_cases(cases: Sequence[CertificateCase]) -> str:
    """A hash of all cases, in their order, with the passages that are made."""
    told = [
        [case.key, case.question.text, case.hidden, asdict(case.made) if case.made else None]
        for case in cases
    ]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


_Askable = tuple[str, Question, list[tuple[GoldStep, Document]]]


def _askable(name: str, tried: TriedSet) -> Iterator[_Askable]:
    """The questions of a set, in its order, whose chains are known, each step with its passage."""
    chains: Mapping[str, GoldChain] = {chain.id: chain for chain in tried.gold.chains}
    by_title: dict[str, list[Document]] = {}
    for document in tried.questions.documents:
        by_title.setdefault(document.title, []).append(document)
    for question in tried.questions.questions:
        known = chains.get(question.id)
        if known is None or question.answer.casefold() in {"yes", "no"}:
            continue
        steps = [(step, _passage(step, by_title.get(step.title, ()))) for step in known.steps]
        whole = [(step, passage) for step, passage in steps if passage is not None]
        if len(whole) == len(steps):
            yield (
                name,
                replace(question, gold=tuple(dict.fromkeys(passage.id for _, passage in whole))),
                whole,
            )


def _passage(step: GoldStep, documents: Sequence[Document]) -> Document | None:
    return next(
        (document for document in documents if step.sentence in " ".join(document.text.split())), None
    )


def _form(object: str) -> tuple[str, bool]:
    """The form of an object: figures and words as signs, and whether it begins with a capital; a name of any
    length is one word.
    """
    signs = re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", object))
    return (signs if "0" in signs else "a"), object[:1].isupper()
