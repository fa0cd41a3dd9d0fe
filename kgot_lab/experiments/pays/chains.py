"""Related questions one after the other: does a graph that lasts help the next question, beside one that begins empty each time?"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.experiments.pays.reuse import ReusingLLM, replies_in
from kgot_lab.experiments.questions.batch import RECEIPTS, TRACES, trace_name
from kgot_lab.experiments.questions.question import Question, QuestionSet
from kgot_lab.experiments.questions.receipts import QuestionReceipt, append_receipt, read_receipts, scored, with_costs
from kgot_lab.loop.events import Answered, Event
from kgot_lab.loop.limits import Limits
from kgot_lab.loop.trace import made_by, record
from kgot_lab.loop.walk import think
from kgot_lab.stores import empty_store
from kgot_lab.tools.tool import Tool
from kgot_lab.types import LLM

GRAPHS_OF_A_CHAIN = ("fresh", "lasting", "lasting with facts")


def related_chains(questions: QuestionSet, *, length: int = 3, most: int = 15, seed: int = 0) -> list[tuple[Question, ...]]:
    """Groups of questions that share a step, the first `length` of each in an order drawn by seed, at most so many groups."""
    groups: dict[str, list[Question]] = {}
    for question in questions.questions:
        groups.setdefault(question.group or question.id, []).append(question)
    drawn = random.Random(seed)
    long = [group for group in groups.values() if len(group) >= length]
    return [tuple(drawn.sample(group, length)) for group in drawn.sample(long, min(most, len(long)))]


@dataclass(frozen=True)
class Chained:
    """Answers chains with one graph for each question ("fresh"), or one for each chain ("lasting"), into a folder for each."""

    folder: Path
    llm: LLM
    tools: Sequence[Tool]
    limits: Limits
    store: str = "in_memory"

    def answers(self, chain: Sequence[Question], graph: str) -> Iterator[QuestionReceipt]:
        """The receipts of a chain in its order; one whose receipts are all there is not asked again.

        A chain that was stopped is walked from its beginning with the replies on file, since its graph is not kept.
        """
        place = self.folder / graph.replace(" ", "-")
        there = read_receipts(place / RECEIPTS)
        if all(question.id in there for question in chain):
            yield from (there[question.id] for question in chain)
            return
        stores = [empty_store(self.store)]
        try:
            for number, question in enumerate(chain):
                if number and graph == "fresh":
                    stores.pop().close()
                    stores.append(empty_store(self.store))
                path = place / TRACES / trace_name(question.id)
                known = replies_in([path])
                path.unlink(missing_ok=True)
                llm, began = ReusingLLM(self.llm, known), time.perf_counter()
                walk = think(question.text, llm, stores[0], self.tools, self.limits.but(typed_facts=graph.endswith("facts")))
                seen: list[Event] = list(record(walk, path, about={"question": question.id, **made_by(llm)}))
                receipt = scored(question, next(event.text for event in reversed(seen) if isinstance(event, Answered)), "match")
                receipt = with_costs(receipt, seen, None if llm.reused else time.perf_counter() - began)
                append_receipt(place / RECEIPTS, receipt)
                yield receipt
        finally:
            stores[0].close()
