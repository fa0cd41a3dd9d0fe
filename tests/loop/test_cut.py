"""Which texts are kept within a budget: the same ones in every process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import ClassVar

import pytest
from support.loop_script import FEW, call, of, scripted, votes

from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Asked, Cut
from kgot_lab.loop.render import fit_budget, relevance
from kgot_lab.stores import InMemory
from kgot_lab.text.cleaning import estimate_tokens
from kgot_lab.tools.tool import Result

SCRIPT = """
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.render import relevance
from kgot_lab.loop.events import ToolReturned
from kgot_lab.loop.trace import load_run
from kgot_lab.text.words import sentences

run = load_run(bundled_path("traces/hotpotqa_demo.jsonl"))
read = next(event for event in run.events if isinstance(event, ToolReturned))
print([score.hex() for score in relevance(run.question, sentences(read.text))])
"""


def test_the_relevance_of_a_text_is_the_same_to_the_last_bit_whatever_order_its_words_have_in_a_set():
    seeds = ("0", "146", "189")  # of these two, the second and third had given other sums than the first
    told = {_told_with(seed) for seed in seeds}
    assert len(told) == 1 and "0x" in told.pop()


def _told_with(seed):
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_a_rare_word_that_is_shared_counts_more_than_a_common_one():
    rare, common, _ = relevance("copper bridge", ["copper", "bridge", "bridge again"])
    assert rare > common > 0 == relevance("copper bridge", ["a boat"])[0]


QUESTION = "Where was Ada Lovelace born?"
BEST = "Ada Lovelace was born in London."  # 32 characters, 8 tokens
LINES = [f"- Box {n:02}." for n in range(10, 30)]  # 8 characters each without the bullet: just 2 tokens
TEXTS = {  # what a tool returned, the best sentence first, last, or with much between
    "many short lines": "\n".join([*LINES, BEST]),
    "the best first": "\n".join([BEST, *LINES]),
    "blank lines between": ("\n" * 30).join([*LINES[:5], BEST]),
    "spaces between": (" " * 300).join(["Box 10.", "Box 11.", BEST]),
    "one long sentence": f"The register of {'very ' * 60}old parishes says that Ada Lovelace was born in London.",
}


class Reads:
    """A tool that returns a text."""

    name, description, finds = "search", "Finds texts.", "query"
    arguments: ClassVar = {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    }

    def __init__(self, text):
        self._text = text

    def __call__(self, query):
        return Result(self._text)


def written_from(text, tokens):
    """The text that a model is asked to write facts from, and what was cut, as it was recorded."""
    reply = {"statements": ['add("Ada Lovelace", "born in", "London")']}
    llm = scripted(
        vote=votes(*"III", "R"), merge={"reason": "x"}, tools=call(), write=reply, parse={"answer": "London"}
    )
    with InMemory() as store:
        events = list(think(QUESTION, llm, store, [Reads(text)], FEW.but(tool_tokens=tokens)))
    (asked,) = [event for event in of(Asked, events) if event.role == "write"]
    prompt = asked.prompt.messages[-1].text
    return prompt, [cut for cut in of(Cut, events) if cut.what.startswith("search")]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("tokens", [8, 9, 20, 30, 48, 49, 50, 60])
def test_the_best_sentence_is_never_cut_and_nothing_else_exceeds_the_budget(text, tokens):
    prompt, cuts = written_from(text, tokens)
    best = text if "register" in text else BEST
    assert best in prompt and " …" not in prompt
    shown = [line for line in dict.fromkeys(text.split("\n")) if line and line.strip() in prompt.split("\n")]
    size = estimate_tokens("\n".join(line.strip() for line in shown))
    assert size <= max(tokens, estimate_tokens(best))
    assert bool(cuts) == any(sentence not in prompt for sentence in re.split(r"\s\s+|\n", text))
    assert all(cut.kept <= max(tokens, estimate_tokens(best)) and cut.left_out > 0 for cut in cuts)


@pytest.mark.parametrize("budget", range(1, 40))
def test_the_texts_of_a_budget_fit_it_with_the_newlines_between_them(budget):
    texts = [*("word" for _ in range(30)), "four", "a b", ""]
    chosen, left_out = fit_budget("four words", texts, budget)
    assert estimate_tokens("\n".join(texts[number] for number in chosen)) <= budget
    assert (left_out == 0) == (len(chosen) == len(texts))
