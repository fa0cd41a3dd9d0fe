"""A simulated model: it answers each prompt of the loop from gold, with errors at rates that are set.

It stands above the loop, whose prompts and shapes it reads; tests of the loop and lessons import it from
here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from benchmarks.competence.asked import Asking, PromptReader, situation_of
from benchmarks.competence.draws import drawn_by_hash
from benchmarks.competence.gold import GoldChain, GoldSet
from benchmarks.competence.plain_facts import PLAIN_FACTS
from benchmarks.competence.texts import NoGold, misread_names, told_answer
from benchmarks.recall.growth import synthetic_word
from kgot_lab.errors import BadInput, require_count
from kgot_lab.llm.presets import FREE
from kgot_lab.loop.events import ToolCall
from kgot_lab.loop.limits import PATHS
from kgot_lab.loop.render import join_lines
from kgot_lab.stores.cypher.dialect import CYPHER
from kgot_lab.stores.embedded_store import PYTHON, fact_of
from kgot_lab.stores.protocol import Dialect
from kgot_lab.stores.sparql.dialect import SPARQL
from kgot_lab.text.words import canonical_answer
from kgot_lab.types import Edge, Json, Prompt, Reply, Triple, Usage

# the mode without the check of answers, which a simulated model does not make
UNCHECKED = PATHS.but(preset="paths", check_answers=False, typed_facts=True, wide_tokens=320)

DIALECTS = (PYTHON, CYPHER, SPARQL, PLAIN_FACTS)
UNANSWERED = "unknown"  # what it answers where the facts do not give the answer
LIKELY, UNLIKELY = 0.9, 0.1  # what it says of answers that it read rightly, and of others
_BREAK = " )"  # what no language of a store takes at the end of a statement
_MOST_NAMES = 4  # that a reply of names may hold


@dataclass(frozen=True)
class Competence:
    """How often a simulated model errs, each rate from 0 to 1, and the seed that its errors are drawn from;
    raises BadInput.

    vote: a vote says the other of INSERT and RETRIEVE. missed: a fact that stands in what is shown is not
    written. invented: a fact that is written names a made-up thing in place of the true one. broken: a
    statement is one that no store takes. read: a statement, or the names in its place, reads past the fact
    that gives the answer; or of a text, another name in it is taken. split: the last of the hops of a
    question, or of what is asked of each of two things, is left out. assured: an answer that was not read
    rightly looks as likely as one that was; it is told apart from it otherwise.
    """

    vote: float = 0.0
    missed: float = 0.0
    invented: float = 0.0
    broken: float = 0.0
    read: float = 0.0
    split: float = 0.0
    assured: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        require_count(self.seed, 0, "the seed of a competence")
        for name in ERROR_RATES:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise BadInput(f"the rate of errors {name!r} must be between 0 and 1, not {value!r}")

    def errs(self, rate: str, *where: str) -> bool:
        """Whether an error of a rate is drawn somewhere: for the same seed and the same texts always the
        same.
        """
        chance = getattr(self, rate)
        return bool(chance) and drawn_by_hash(str(self.seed), rate, *where) < chance

    def __str__(self) -> str:
        rates = (f"{name}={getattr(self, name):g}".replace("=0.", "=.") for name in ERROR_RATES)
        return ",".join((*rates, f"seed={self.seed}"))


ERROR_RATES = tuple(field.name for field in fields(Competence) if field.name != "seed")


class Simulated:
    """A model that knows the gold of some questions, sees what its prompts show and no more, and errs at set
    rates.

    A fact is known only where the graph in the prompt or the rows hold it, and can be written only where its
    sentence is shown. An error is drawn from a hash of the seed, the question, what is asked and where, and
    of the prompt's seed where its temperature is above 0: the same prompt has the same reply, and two runs
    share their errors as far as they share their prompts. Raises LLMError for questions that the gold does
    not have, and prompts that the loop does not make.

    An answer read from a text is right where the text holds all it rests on. Asked how likely it holds it,
    the model says LIKELY of such an answer and UNLIKELY of any other, but LIKELY of so many of these as
    `assured` says. Two texts that differ are two draws of errors.
    """

    price = FREE

    def __init__(
        self, gold: GoldSet, competence: Competence | None = None, *, dialects: Sequence[Dialect] = DIALECTS
    ):
        self.competence = competence or Competence()
        self.name = f"simulated:{self.competence}"
        self._gold, self._reader = gold, _prompts_in(tuple(dialects))
        self._replies: Mapping[str, Callable[[Asking, Prompt], Json]] = {
            "vote": self._vote, "vote by names": self._look, "merge": self._merged, "tools": self._calls, "next names": self._next,
            "write": self._statements, "extract": self._lines, "mend": self._mended, "read again": self._read, "read": self._read,
            "forced read": self._read, "names": self._names, "arithmetic?": lambda *_: {"needed": False}, "parse": self._answer,
            "choose": self._number, "guess": self._guess,
            "answer_prompt": self._from_text, "hops_prompt": self._hops, "comparison_prompt": self._of_each,
        }  # fmt: skip

    def __call__(self, prompt: Prompt) -> Reply:
        asking = self._reader.read(prompt)
        reply = self._replies[asking.what](asking, prompt)
        likelihood = reply.likelihood if isinstance(reply, _Answer) else None
        text = (
            reply.text
            if isinstance(reply, _Answer)
            else reply
            if isinstance(reply, str)
            else json.dumps(reply, ensure_ascii=False)
        )
        logprob = math.log(likelihood) if prompt.likelihood and likelihood else None
        return Reply(
            text,
            Usage(sum(len(message.text.split()) for message in prompt.messages), len(text.split())),
            logprob=logprob,
        )

    def __repr__(self) -> str:
        return f"<{self.name}: knows {len(self._gold.chains)} questions>"

    # --- voting ---

    def _vote(self, asking: Asking, prompt: Prompt) -> Json:
        seen = self._seen(asking)
        if not self._wants_to_read(seen, prompt):
            return {"choice": "INSERT", "text": seen.missing}
        text = self._reading(asking.dialect, seen, prompt) if asking.dialect else self._said(seen, prompt)
        return {"choice": "RETRIEVE", "text": text}

    def _look(self, asking: Asking, prompt: Prompt) -> Json:
        seen = self._seen(asking)
        if not self._wants_to_read(seen, prompt):
            return {"answer": UNANSWERED, "choice": "INSERT", "about": [], "missing": seen.missing}
        answer = seen.answer or seen.nearest or seen.chain.steps[0].fact.subject
        return {"answer": answer, "choice": "RETRIEVE", "about": self._about(seen, prompt), "missing": ""}

    def _wants_to_read(self, seen: _Seen, prompt: Prompt) -> bool:
        return bool(seen.answer) != self._errs("vote", *_where(seen, prompt))

    def _merged(self, asking: Asking, _: Prompt) -> Json:
        return {"reason": "; ".join(asking.texts["reasons"].split("\n- "))}

    # --- fetching and writing ---

    def _calls(self, asking: Asking, prompt: Prompt) -> Json:
        assert prompt.schema is not None
        allowed = prompt.schema["properties"]["calls"]
        seen, made = self._seen(asking), asking.texts["calls"].split("\n- ")
        calls = []
        for wanted in seen.wanted[: allowed["maxItems"]]:
            for time in count(1):
                call = _call(allowed["items"], _phrase(wanted, time))
                if str(call) not in made:
                    break
            calls.append({"tool": call.tool, "arguments": dict(call.arguments)})
        return {"calls": calls}

    def _next(self, asking: Asking, prompt: Prompt) -> Json:
        assert prompt.schema is not None
        offered = prompt.schema["properties"]["about"]
        wanted = {canonical_answer(triple.subject) for triple in self._seen(asking).wanted}
        names = offered["items"]["enum"]
        chosen = [name for name in names if canonical_answer(name) in wanted]
        return {"about": (chosen or names)[: offered["maxItems"] if chosen else 1]}

    def _statements(self, asking: Asking, _: Prompt) -> Json:
        assert asking.dialect is not None
        seen, shown = self._seen(asking), " ".join(asking.texts["text"].split())
        said = [
            step.fact
            for step, held in zip(seen.chain.steps, seen.held, strict=True)
            if not held and step.sentence in shown
        ]
        written = self._written(said, seen.chain.question, asking.texts["source"])
        return {
            "statements": [
                self._spelled(asking.dialect.add([(triple, {})]), asking.texts["source"])
                for triple in written
            ]
        }

    def _lines(self, asking: Asking, _: Prompt) -> Json:
        lines = asking.texts["sentence"].splitlines()
        written = [
            fact for line in lines for fact in self._written(self._gold.by_sentence.get(line, ()), line)
        ]
        return "\n".join(" | ".join(triple.identity) for triple in written) or "nothing"

    def _written(self, said: Sequence[Triple], *where: str) -> list[Triple]:
        """The facts that it writes of those that are said: some missed, some with a made-up object."""
        found = [triple for triple in said if not self._errs("missed", str(triple), *where)]
        return [
            self._made_up(triple) if self._errs("invented", str(triple), *where) else triple
            for triple in found
        ]

    def _made_up(self, triple: Triple) -> Triple:
        return made_up(triple, self.competence.seed)

    def _spelled(self, statement: str, *where: str) -> str:
        return statement + _BREAK if self._errs("broken", statement, *where) else statement

    def _mended(self, asking: Asking, _: Prompt) -> Json:
        failed = asking.texts["statement"]
        whole = failed
        while whole.endswith(_BREAK):
            whole = whole.removesuffix(_BREAK)
        return {"statement": failed + _BREAK if failed != whole and self._errs("broken", failed) else whole}

    # --- reading ---

    def _read(self, asking: Asking, prompt: Prompt) -> Json:
        assert asking.dialect is not None
        return {
            "statement": self._reading(
                asking.dialect, self._seen(asking), prompt, asking.texts.get("wrong", "")
            )
        }

    def _names(self, asking: Asking, prompt: Prompt) -> Json:
        return {"about": self._about(self._seen(asking), prompt)}

    def _reading(self, dialect: Dialect, seen: _Seen, prompt: Prompt, *where: str) -> str:
        return self._spelled(
            dialect.about(self._about(seen, prompt, *where), 1), *_where(seen, prompt), *where
        )

    def _about(self, seen: _Seen, prompt: Prompt, *where: str) -> list[str]:
        """The names to read about: of every step that the graph holds, or where it errs, of those that do not
        lead to the answer.
        """
        if not self._errs("read", *_where(seen, prompt), *where):
            return seen.subjects
        last = seen.chain.steps[-1].fact
        aside = [name for name in seen.subjects if name not in (last.subject, last.object)]
        return aside or [self._made_up(last).object]

    def _said(self, seen: _Seen, prompt: Prompt) -> str:
        """An answer without a statement, from the graph as text."""
        wrong = self._errs("read", *_where(seen, prompt))
        return (
            self._made_up(seen.chain.steps[-1].fact).object
            if wrong
            else seen.answer or seen.nearest or UNANSWERED
        )

    def _guess(self, asking: Asking, prompt: Prompt) -> Json:
        seen = self._seen(asking)
        return {"answer": self._said(seen, prompt) if seen.answer else UNANSWERED}

    def _answer(self, asking: Asking, _: Prompt) -> Json:
        seen = self._seen_in(asking.texts["question"], asking.texts["facts"])
        return {"answer": seen.answer or UNANSWERED}

    def _number(self, asking: Asking, _: Prompt) -> Json:
        seen = self._seen_in(asking.texts["question"], asking.texts["facts"])
        candidates = [
            canonical_answer(candidate) for candidate in re.split(r"\n\d+\. ", asking.texts["candidates"])
        ]
        best = canonical_answer(seen.answer or UNANSWERED)
        return {"number": candidates.index(best) + 1 if best in candidates else 1}

    # --- reading texts ---

    def _from_text(self, asking: Asking, prompt: Prompt) -> _Answer:
        question, text = asking.texts["question"], asking.texts["facts"]
        where = (question, text, str(prompt.seed) if prompt.temperature > 0 else "")
        right = told_answer(self._gold, question, text)
        wrong = bool(text) and self._errs("read", *where)
        if right and not wrong:
            return _Answer(right, LIKELY)
        said = self._misread(right, *where) if wrong else UNANSWERED
        return _Answer(said, LIKELY if wrong and self._errs("assured", *where) else UNLIKELY)

    def _misread(self, right: str, question: str, text: str, seed: str) -> str:
        names = misread_names(self._gold, question, text, right) or [
            made_up_name(f"{question} --[]--> {text}", self.competence.seed)
        ]
        return names[int(len(names) * drawn_by_hash(str(self.competence.seed), "name", question, text, seed))]

    def _hops(self, asking: Asking, _: Prompt) -> str:
        hops = self._asked(asking.texts["question"], self._chain(asking.texts["question"]).hops)
        return join_lines(f"{number}. {hop}" for number, hop in enumerate(hops, start=1))

    def _of_each(self, asking: Asking, _: Prompt) -> str:
        return join_lines(
            self._asked(asking.texts["question"], self._chain(asking.texts["question"]).of_each)
        )

    def _asked(self, question: str, hops: Sequence[str]) -> Sequence[str]:
        return hops[:-1] if self._errs("split", question) else hops

    # --- seeing and erring ---

    def _seen(self, asking: Asking) -> _Seen:
        return self._seen_in(*situation_of(asking.texts["situation"]))

    def _seen_in(self, question: str, text: str) -> _Seen:
        chain = self._chain(question)

        def held(triple: Triple) -> str:
            # a made-up fact in the graph is believed: nothing tells it from a true one
            false = self._made_up(triple)
            return false.object if _stands(false, text) else triple.object if _stands(triple, text) else ""

        return _Seen(chain, tuple(held(step.fact) for step in chain.steps))

    def _chain(self, question: str) -> GoldChain:
        chain = self._gold.by_question.get(question)
        if chain is None:
            raise NoGold(question)
        return chain

    def _errs(self, rate: str, *where: str) -> bool:
        return self.competence.errs(rate, *where)


@lru_cache(maxsize=8)
def _prompts_in(dialects: tuple[Dialect, ...]) -> PromptReader:
    """What reads prompts in some languages, made once."""
    return PromptReader(dialects)


class _Answer(NamedTuple):
    """An answer read from a text, and how likely the model says it is."""

    text: str
    likelihood: float


@dataclass(frozen=True)
class _Seen:
    """A question, and the object that a text gives for each of its steps, "" where it gives none."""

    chain: GoldChain
    held: tuple[str, ...]

    def _true(self, number: int) -> bool:
        return self.held[number] == self.chain.steps[number].fact.object

    @property
    def wanted(self) -> list[Triple]:
        """The facts to look for: those whose subject is known and whose object is not, else the last one
        again.
        """
        steps = self.chain.steps
        open = [
            step.fact
            for step, held in zip(steps, self.held, strict=True)
            if not held and all(map(self._true, step.after))
        ]
        return open or [steps[-1].fact]

    @property
    def missing(self) -> str:
        """What is missing, in words."""
        return "; ".join(f"the {triple.relation} of {triple.subject}" for triple in self.wanted)

    @property
    def answer(self) -> str:
        """The answer that the facts give, a false one where the last of them is false, "" where the chain has
        a gap.
        """
        leaves = self.chain.leaves
        if not all(self.held) or not all(
            self._true(number) for number in range(len(self.held)) if number not in leaves
        ):
            return ""
        return next((self.held[number] for number in leaves if not self._true(number)), self.chain.answer)

    @property
    def nearest(self) -> str:
        """The last thing that the facts lead to."""
        return next((held for held in reversed(self.held) if held), "")

    @property
    def subjects(self) -> list[str]:
        """The names to read about, at most so many as a reply may hold."""
        found = [step.fact.subject for step, held in zip(self.chain.steps, self.held, strict=True) if held]
        return list(dict.fromkeys(found))[-_MOST_NAMES:] or [self.chain.steps[0].fact.subject]


def made_up(triple: Triple, seed: int) -> Triple:
    """A fact with a made-up name in the place of its object: of each fact the same for a seed."""
    return Triple(triple.subject, triple.relation, made_up_name(str(triple), seed))


def made_up_name(where: str, seed: int) -> str:
    """A made-up name, the same for a place and a seed."""
    first, second = (
        synthetic_word(int(140_608 * drawn_by_hash(str(seed), "name", part, where))) for part in "ab"
    )
    return f"{first.capitalize()}x {second.capitalize()}x"


def _where(seen: _Seen, prompt: Prompt) -> tuple[str, ...]:
    """Where an error is drawn: the question, the steps that are known, and the prompt's seed where it is not
    always the same reply.
    """
    known = "".join("1" if held else "0" for held in seen.held)
    return seen.chain.question, known, str(prompt.seed) if prompt.temperature > 0 else ""


def _stands(triple: Triple, text: str) -> bool:
    """Whether a text holds a fact, as a graph or as a row, in whichever language."""
    return _spellings(triple).search(text) is not None


@lru_cache(maxsize=100_000)
def _spellings(triple: Triple) -> re.Pattern[str]:
    """A fact as graphs and rows spell it: alone on its line or beside others of its sentence, and before its
    properties.
    """
    edge = Edge(triple.subject, triple.relation, triple.object)
    spelled = {*(dialect.edge(edge) for dialect in DIALECTS), fact_of(edge), " ".join(triple.identity)}
    return re.compile(
        rf"(?:^|; )(?:{'|'.join(map(re.escape, sorted(spelled)))})(?=$|; | \(| \{{| \[\])", re.M
    )


def _phrase(triple: Triple, time: int) -> str:
    """The words of a search: the name, then with the relation, then in ever other words."""
    return " ".join(
        (triple.subject, *([triple.relation] if time > 1 else []), *([str(time)] if time > 2 else []))
    )


def _call(items: Mapping[str, Json], words: str) -> ToolCall:
    """A call of the first tool that takes one text, or else of the first tool, with these words."""
    tools = [tool["properties"] for tool in items.get("anyOf", [items])]
    tool = next((tool for tool in tools if len(tool["arguments"].get("required", ())) == 1), tools[0])
    return ToolCall(tool["tool"]["const"], dict.fromkeys(tool["arguments"].get("required", ()), words))
