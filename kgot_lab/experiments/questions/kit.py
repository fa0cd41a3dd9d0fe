"""The tools that a question is given: search over its documents, its attached files, or a model's own knowledge where there is neither."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from kgot_lab.errors import BadInput
from kgot_lab.experiments.questions.attempt import Watched
from kgot_lab.experiments.questions.question import Question
from kgot_lab.tools.ask_model import ask_model
from kgot_lab.tools.attachment import read_attachment
from kgot_lab.tools.offered import AtHand, offered_tools
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import Tool
from kgot_lab.types import LLM, Document

_FOUND = {"loop": 8, "rag": 5}  # passages that one search returns

More = Callable[[Question, LLM], Sequence[Tool]]


_OUTWARD = ("ask_search_agent", "wikipedia")


def looking_out(web: bool, mirror: str | None) -> More:
    """Tools that look into the web, or into a folder of pages in its place, made once for each model."""
    made: dict[int, tuple[Tool, ...]] = {}

    def more(_: Question, llm: LLM) -> Sequence[Tool]:
        if id(llm) not in made:
            offered = offered_tools(AtHand(llm=llm, web=web, mirror=mirror), others=())
            made[id(llm)] = tuple(tool for tool in offered.tools if tool.name in _OUTWARD)
            if not made[id(llm)]:
                raise BadInput("; ".join(str(each) for each in offered.missing if each.name in _OUTWARD))
        return made[id(llm)]

    return more if web or mirror else nothing_more


def nothing_more(question: Question, llm: LLM) -> Sequence[Tool]:
    """No tools beside those that a question's documents and files give."""
    return ()


class Kit:
    """Makes the tools of each question. The index of the documents that all share is made once, and its searches take turns.

    `more` gives further tools for a question, such as those that look into the web. The seconds of each call go to the file `times`.
    """

    def __init__(self, documents: Sequence[Document], llm: LLM, times: Path, *, system: str = "loop", more: More = nothing_more):
        self._llm, self._times, self._more, self._k = llm, times, more, _FOUND.get(system, 1)
        self._documents, self._lock, self._turns = tuple(documents), threading.Lock(), threading.Lock()
        self._shared: Tool | None = None

    def names(self, questions: Sequence[Question]) -> list[str]:
        """The names of all tools that some of the questions get."""
        named = {"search"} if self._documents or any(question.documents for question in questions) else set()
        named |= {"read_attachment"} if any(question.attachments for question in questions) else set()
        named |= {tool.name for question in questions for tool in self._more(question, self._llm)}
        return sorted(named) or [ask_model(self._llm).name]

    def __call__(self, question: Question) -> list[Tool]:
        told = self._told(question)
        return [Watched(tool, told, self._turns if tool is self._shared else None) for tool in self._plain(question)]

    def _plain(self, question: Question) -> list[Tool]:
        tools: list[Tool] = []
        if question.documents:
            documents = (*question.documents, *self._documents)
            tools.append(search(documents, k=min(self._k, len(documents))))
        elif self._documents:
            tools.append(self._over_all())
        if question.attachments:
            tools.append(read_attachment(question.attachments))
        tools += self._more(question, self._llm)
        return tools or [ask_model(self._llm)]

    def _over_all(self) -> Tool:
        with self._lock:
            if self._shared is None:
                self._shared = search(self._documents, k=min(self._k, len(self._documents)))
            return self._shared

    def _told(self, question: Question) -> Callable[[str, float, bool], None]:
        def told(tool: str, seconds: float, failed: bool) -> None:
            line = json.dumps({"id": question.id, "tool": tool, "seconds": round(seconds, 4), "failed": failed}) + "\n"
            with self._lock, self._times.open("a", encoding="utf-8") as file:
                file.write(line)

        return told
