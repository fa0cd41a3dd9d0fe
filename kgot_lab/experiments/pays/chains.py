"""Related questions one after the other: does a graph that lasts help the next question, beside one that
begins empty each time?
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from kgot_lab.benchmark.comparison.reuse import ReusingLLM, replies_in
from kgot_lab.benchmark.comparison.systems import prompt_digests
from kgot_lab.benchmark.questions.batch import RECEIPTS, TRACES, trace_name
from kgot_lab.benchmark.questions.plan import PLAN_FILE, plan_differences, told_differences
from kgot_lab.benchmark.questions.question import Question, QuestionSet
from kgot_lab.benchmark.questions.receipts import (
    QuestionReceipt,
    append_receipt,
    read_receipts,
    scored,
    with_costs,
)
from kgot_lab.errors import BadInput
from kgot_lab.io.atomic_write import write_whole
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Answered, Event
from kgot_lab.loop.limits import Limits
from kgot_lab.loop.trace import beside, made_by, record
from kgot_lab.stores import empty_store
from kgot_lab.tools.tool import Tool
from kgot_lab.types import LLM, Json

GRAPHS_OF_A_CHAIN = ("fresh", "lasting", "lasting with facts")
_KIND = "does a graph that lasts help"
_AGAIN = ".again"  # what ends the name of a trace that is not whole yet, while an older one is kept


def related_chains(
    questions: QuestionSet, *, length: int = 3, most: int = 15, seed: int = 0
) -> list[tuple[Question, ...]]:
    """Groups of questions that share a step, the first `length` of each in an order drawn by seed, at most so
    many groups.
    """
    groups: dict[str, list[Question]] = {}
    for question in questions.questions:
        groups.setdefault(question.group or question.id, []).append(question)
    drawn = random.Random(seed)
    long = [group for group in groups.values() if len(group) >= length]
    return [tuple(drawn.sample(group, length)) for group in drawn.sample(long, min(most, len(long)))]


@dataclass(frozen=True)
class Chained:
    """Answers chains with one graph for each question ("fresh"), or one for each chain ("lasting"), into a
    folder for each.
    """

    folder: Path
    llm: LLM
    tools: Sequence[Tool]
    limits: Limits
    store: str = "in_memory"

    def keep_plan(self, chains: Sequence[Sequence[Question]], seed: int) -> None:
        """Write what all answers of the folder depend on, or see that it is as it was; raises BadInput: what
        differs.
        """
        ids = "\n".join(question.id for chain in chains for question in chain)
        told: Json = {
            "plan": 1, "kind": _KIND, "chains": len(chains), "seed": seed, "questions_sha256": hashlib.sha256(ids.encode()).hexdigest(),
            "model": {"name": self.llm.name, **made_by(self.llm)}, "limits": self.limits.as_json(), "store": self.store,
            "tools": {tool.name: tool.description for tool in self.tools}, "code": prompt_digests()["paths"],
        }  # fmt: skip
        plan, path = json.loads(json.dumps(told)), self.folder / PLAN_FILE
        if path.exists():
            if differences := plan_differences(chain_plan(self.folder), plan):
                said = f"{self.folder} holds answers to another plan: {told_differences(differences)}"
                raise BadInput(f"{said}. Name another folder with --folder DIR")
            return
        if self.folder.is_dir() and (
            left := [item.name for item in self.folder.iterdir() if not item.name.startswith(".")]
        ):
            raise BadInput(
                f"{self.folder} has no {PLAN_FILE} but holds {left[0]}: name an empty folder with --folder DIR"
            )
        write_whole(path, json.dumps(plan, indent=1, ensure_ascii=False) + "\n", "the plan")
        write_whole(
            self.folder / ".gitignore", f"{TRACES}/\n.lock*\n", "what git ignores"
        )  # receipts are for keeping, traces are large

    def answers(self, chain: Sequence[Question], graph: str) -> Iterator[QuestionReceipt]:
        """The receipts of a chain in its order; one whose receipts are all there is not asked again.

        A chain that was stopped is walked from its beginning with the replies on file, since its graph is not
        kept. What is on file of a question stays until its new trace is whole, so no reply is asked for
        twice, however often it is stopped.
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
                earlier = _unfinished(path)
                llm, began = ReusingLLM(self.llm, replies_in([path, *earlier])), time.perf_counter()
                walk = think(
                    question.text,
                    llm,
                    stores[0],
                    self.tools,
                    self.limits.but(typed_facts=graph.endswith("facts")),
                )
                fresh = next(
                    file
                    for number in count(1)
                    if not (file := path.with_name(f"{path.stem}.{number}{_AGAIN}")).exists()
                )
                seen: list[Event] = list(record(walk, fresh, about={"question": question.id, **made_by(llm)}))
                _replace(path, fresh, earlier)
                receipt = scored(
                    question,
                    next(event.text for event in reversed(seen) if isinstance(event, Answered)),
                    "match",
                )
                known = there[question.id].seconds if question.id in there else None
                receipt = with_costs(receipt, seen, known if llm.reused else time.perf_counter() - began)
                append_receipt(place / RECEIPTS, receipt)
                yield receipt
        finally:
            stores[0].close()


def chain_plan(folder: Path) -> dict[str, Json]:
    """The plan of a folder as plain values; raises BadInput where there is none."""
    try:
        plan = json.loads((folder / PLAN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"there is no plan of chains of questions in {folder}: {error}") from None
    if not isinstance(plan, dict) or plan.get("kind") != _KIND:
        raise BadInput(
            f"{folder / PLAN_FILE} is not the plan of chains of questions: name another folder with --folder DIR"
        )
    return plan


def _unfinished(path: Path) -> list[Path]:
    """The traces of a question that were begun beside its trace and not ended, in the order in which they
    were begun.
    """
    numbered = {
        int(number): file
        for file in path.parent.glob(f"{path.stem}.*{_AGAIN}")
        if (number := file.stem.rpartition(".")[2]).isdigit()
    }
    return [numbered[number] for number in sorted(numbered)]


def _replace(path: Path, fresh: Path, earlier: Sequence[Path]) -> None:
    """Put a whole trace in the place of an older one, with the graph that it began with; those not ended have
    nothing that it lacks.
    """
    if beside(fresh).exists():
        beside(fresh).replace(beside(path))
    fresh.replace(path)
    for file in earlier:
        file.unlink()
        beside(file).unlink(missing_ok=True)
