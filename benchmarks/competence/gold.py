"""What a simulated model answers from: questions as chains of facts, each with the sentence that says it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kgot_lab.errors import BadInput
from kgot_lab.loop.modes.paths.question_form import fill_hop
from kgot_lab.loop.render import relevance
from kgot_lab.memory.extraction import SourcedSentence
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.text.words import name_tokens, sentences
from kgot_lab.types import Document, Json, Triple


@dataclass(frozen=True)
class GoldStep:
    """A fact, the sentence that says it with its passage's title, and which earlier steps give the name that
    it is looked up by.

    `asked` is the question for it, with `#1` for what the first step gives; "": one made of its relation.
    """

    fact: Triple
    sentence: str
    title: str = ""
    after: tuple[int, ...] = ()
    asked: str = ""

    @property
    def hop(self) -> str:
        """The question for its fact, with `#1` for what the first step gives."""
        about = f"#{self.after[-1] + 1}" if self.after else self.fact.subject
        return self.asked or f"What is the {self.fact.relation} of {about}?"

    def of(self, name: str) -> str:
        """The question for its fact, asked of something else of that name."""
        given = _NUMBER.pattern if self.after else rf"\b{re.escape(self.fact.subject)}\b"
        return re.sub(given, lambda _: name, self.hop)


@dataclass(frozen=True)
class GoldChain:
    """A question, the facts that answer it in order, and its answer; raises BadInput where it has no step, or
    one rests on a later one.
    """

    question: str
    steps: tuple[GoldStep, ...]
    answer: str
    id: str = ""

    def __post_init__(self) -> None:
        if not self.steps or any(
            not 0 <= earlier < number for number, step in enumerate(self.steps) for earlier in step.after
        ):
            raise BadInput(
                f"the question {self.question!r} needs a step or more, each resting on earlier ones only"
            )

    @property
    def leaves(self) -> tuple[int, ...]:
        """The steps that no other rests on: what they give is the answer, or what it is made of."""
        used = {earlier for step in self.steps for earlier in step.after}
        return tuple(number for number in range(len(self.steps)) if number not in used)

    @property
    def hops(self) -> tuple[str, ...]:
        """The questions of its steps, in order, `#1` for what the first gives."""
        return tuple(step.hop for step in self.steps)

    @property
    def resolved(self) -> tuple[str, ...]:
        """The question of each step with the names in it that earlier ones give."""
        given = [step.fact.object for step in self.steps]
        return tuple(fill_hop(hop, given) for hop in self.hops)

    @property
    def of_each(self) -> tuple[str, ...]:
        """What is asked of each of several things that are compared, `X` for the thing and `#1` for an
        earlier answer.
        """
        if len(self.leaves) < 2:
            return ()
        branch = [self.steps[self.leaves[0]]]
        while branch[0].after:
            branch.insert(0, self.steps[branch[0].after[-1]])
        return tuple(step.of(f"#{place}" if place else "X") for place, step in enumerate(branch))


@dataclass(frozen=True)
class GoldSet:
    """All that is known of some questions: their chains, and facts of other sentences; raises BadInput where
    two questions are the same.

    `by_hop` has the steps that a question of one hop asks for, by its words.
    """

    chains: tuple[GoldChain, ...]
    besides: tuple[GoldStep, ...] = ()
    by_question: Mapping[str, GoldChain] = field(init=False, repr=False, compare=False)
    # with its title, as the loop shows it
    by_sentence: Mapping[str, tuple[Triple, ...]] = field(init=False, repr=False, compare=False)
    by_hop: Mapping[tuple[str, ...], tuple[GoldStep, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # as the loop says it
        chains = {replace_surrogates(chain.question.strip()): chain for chain in self.chains}
        if len(chains) < len(self.chains):
            raise BadInput("two chains are of the same question, so its answer is not known")
        said: dict[str, dict[Triple, None]] = {}
        for step in (*(step for chain in self.chains for step in chain.steps), *self.besides):
            said.setdefault(str(SourcedSentence(step.sentence, step.title, "", 0)), {})[step.fact] = None
        hops: dict[tuple[str, ...], list[GoldStep]] = {}
        for chain in self.chains:
            for step, resolved in zip(chain.steps, chain.resolved, strict=True):
                # as gold names it, or its page
                spelled = (resolved, step.of(step.fact.subject), step.of(step.title or step.fact.subject))
                for asked in dict.fromkeys(map(name_tokens, spelled)):
                    hops.setdefault(asked, []).append(step)
        object.__setattr__(self, "by_hop", {asked: tuple(steps) for asked, steps in hops.items()})
        object.__setattr__(self, "by_question", chains)
        object.__setattr__(self, "by_sentence", {sentence: tuple(facts) for sentence, facts in said.items()})

    def asks_so(self, question: str) -> bool:
        """Whether a question is one of the hops in its wording, of whatever name."""
        return self._wordings.fullmatch(" ".join(name_tokens(question))) is not None

    @cached_property
    def _wordings(self) -> re.Pattern[str]:
        """The hops of all chains with any name in the place of theirs."""
        asked = {" ".join(name_tokens(step.of(_ANY))) for chain in self.chains for step in chain.steps}
        return re.compile(
            "|".join(".+".join(map(re.escape, each.split(_ANY.casefold()))) for each in sorted(asked))
        )


_ANY = "anynameatall"  # in the place of a name
_NUMBER = re.compile(r"#(\d+)")


# --- from decomposed questions ---


def gold_of_parts(rows: Iterable[Mapping[str, Json]], documents: Iterable[Document]) -> GoldSet:
    """The gold of questions that are decomposed as MuSiQue has them (Trivedi et al. 2022): parts with an
    answer and a passage each.

    A question is left out where no sentence of a part's passage holds the part's answer, so that nobody could
    read it there.
    """
    by_id = {document.id: document for document in documents}
    chains = (_chain(row, by_id) for row in rows)
    return GoldSet(tuple(chain for chain in chains if chain))


_SHORT = 60  # characters of a relation made from the words of a question


def _chain(row: Mapping[str, Json], documents: Mapping[str, Document]) -> GoldChain | None:
    parts = row["decomposition"]
    steps: list[GoldStep] = []
    for part in parts:
        document = documents[part["doc_id"]]
        after = tuple(dict.fromkeys(int(number) - 1 for number in _NUMBER.findall(part["question"])))
        subject = parts[after[-1]]["answer"] if after else _named(part["question"], document)
        sentence = _saying(document, part["answer"], part.get("question_resolved", part["question"]))
        if not sentence or subject == part["answer"]:
            return None
        fact = Triple(subject, _relation(part["question"], subject), part["answer"])
        steps.append(GoldStep(fact, sentence, document.title, after, _in_words(part["question"])))
    return GoldChain(row["text"], tuple(steps), row["answer"], row["_id"])


def _named(question: str, document: Document) -> str:
    """What a question that rests on no other is about: what stands before its >>, else the passage's title if
    named, else a name in it.
    """
    if ">>" in question:
        return question.split(">>")[0].strip()
    if set(name_tokens(document.title)) <= set(name_tokens(question)):
        return document.title
    names = re.findall(r"[A-Z][\w'.-]*(?:\s+(?:of|the|de|and|[A-Z0-9][\w'.-]*))*", question.partition(" ")[2])
    return max(names, key=len, default=document.title).strip()


def _relation(question: str, subject: str) -> str:
    """The words of a question that say what is asked of its subject."""
    asked = question.split(">>")[-1] if ">>" in question else _NUMBER.sub("", question).replace(subject, "")
    return " ".join(re.findall(r"[^\W_]+", asked))[:_SHORT].strip() or "is"


def _in_words(question: str) -> str:
    """A part of a question as a question, "" where it is a name and a relation."""
    return "" if ">>" in question else f"{question.strip().rstrip('?').strip()}?"


def _saying(document: Document, answer: str, asked: str) -> str:
    """The sentence of a passage that holds an answer and most words of what is asked, "" if none holds the
    answer.
    """
    wanted = f" {' '.join(name_tokens(answer))} "
    found = [
        text
        for text in sentences(" ".join(document.text.split()))
        if wanted in f" {' '.join(name_tokens(text))} "
    ]
    scores = relevance(asked, found)
    return max(zip(scores, found, strict=True), key=lambda scored: scored[0], default=(0.0, ""))[1]


# --- from questions with their triples ---


def gold_of_triples(
    rows: Iterable[Mapping[str, Json]], documents: Iterable[Document], relevant: Mapping[str, Iterable[str]]
) -> GoldSet:
    """The gold of questions with their triples, as 2WikiMultiHopQA has them (Ho et al. 2020), and the ids of
    the passages that say them.

    A question is left out where no sentence of its passages holds a triple's object, so that nobody could
    read it there.
    """
    by_id = {document.id: document for document in documents}
    chains = (_chain_of_triples(row, [by_id[id] for id in relevant[row["_id"]]]) for row in rows)
    return GoldSet(tuple(chain for chain in chains if chain))


def _chain_of_triples(row: Mapping[str, Json], documents: Sequence[Document]) -> GoldChain | None:
    facts = [Triple(*evidence) for evidence in row["evidences"]]
    steps: list[GoldStep] = []
    for number, fact in enumerate(facts):
        name = name_tokens(fact.subject)
        # the subject's own page first
        about = sorted(documents, key=lambda document: name_tokens(document.title) != name)
        said = (
            (document, _saying(document, fact.object, f"{fact.subject} {fact.relation}"))
            for document in about
        )
        document, sentence = next(((document, text) for document, text in said if text), (None, ""))
        if document is None or fact.subject == fact.object:
            return None
        after = tuple(earlier for earlier in range(number) if name_tokens(facts[earlier].object) == name)
        steps.append(GoldStep(fact, sentence, document.title, after))
    return GoldChain(row["text"], tuple(steps), row["answer"], row["_id"])
