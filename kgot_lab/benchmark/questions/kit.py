"""The tools of a question: search over its documents, file readers, and others that work for its model."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

from kgot_lab.benchmark.questions.attempt import TimedTool
from kgot_lab.benchmark.questions.question import Question
from kgot_lab.errors import BadInput
from kgot_lab.sandbox import Calculator
from kgot_lab.tools.files import read_attachment
from kgot_lab.tools.offered import FACTORIES, ToolResources, offered_tools
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import Tool, ask_model

ToolFactory = Callable[[Question, ToolResources], Sequence[Tool]]

_INSPECT_TOOL = "inspect_file"  # reads the attached files too, and more kinds of them
_WEB_TOOLS = ("ask_search_agent", "wikipedia")


def web_tools(resources: ToolResources) -> tuple[Tool, ...]:
    """Return the tools that read the web, or the folder of pages in its place, which all threads share.

    Raises BadInput if none of them can work.
    """
    if not (resources.web or resources.mirror):
        return ()
    others = FACTORIES.keys() - {*_WEB_TOOLS}
    offered = offered_tools(replace(resources, attachments=()), others=(), leave_out=others)
    if not offered.tools:
        raise BadInput("; ".join(map(str, offered.missing)))
    return offered.tools


def all_working_tools(question: Question, resources: ToolResources) -> Sequence[Tool]:
    """Return every tool that works with a question's files and models, besides search and web tools.

    Zip files are unpacked into a folder of their own in `resources.unpack_into`.
    """
    files = question.attachments
    is_zipped = any(file.suffix.lower() == ".zip" for file in files)
    into = Path(mkdtemp(dir=resources.unpack_into)) if is_zipped else None
    own = replace(resources, attachments=files, unpack_into=into, mirror=None)
    return offered_tools(own, leave_out=("search", *_WEB_TOOLS)).tools


class IsolatedPython:
    """Run each piece of Python in a sandbox of its own, for at most some seconds.

    Questions that are answered in parallel do not wait for or see one another.
    """

    def __init__(self, unsafe: bool, seconds: float):
        self._unsafe, self._seconds = unsafe, seconds

    def compute(self, code: str, *, seconds: float | None = None) -> str:
        with closing(Calculator(unsafe=self._unsafe, seconds=seconds or self._seconds)) as calculator:
            return calculator.compute(code)


def no_tools(question: Question, resources: ToolResources) -> Sequence[Tool]:
    """Return no tools beyond those for a question's documents and files, and those of the web."""
    return ()


class QuestionTools:
    """A factory of the tools of each question.

    The index of shared documents is built once, and its searches are serialized. `further_tools` returns
    further tools for a question. The seconds of each call are written to the file `times`.
    """

    def __init__(self, resources: ToolResources, times: Path, further_tools: ToolFactory = no_tools):
        self._resources, self._times, self._more = resources, times, further_tools
        self._documents, self._k = tuple(resources.documents), resources.passages
        self._lock, self._turns = threading.Lock(), threading.Lock()
        self._web = web_tools(resources)
        self._shared: Tool | None = None

    def tool_names(self, questions: Sequence[Question]) -> list[str]:
        """Return the names of all tools that any of the questions gets."""
        named = {"search"} if self._documents or any(question.documents for question in questions) else set()
        named |= {tool.name for question in questions for tool in self._other_tools(question)}
        return sorted(named) or [self._ask_model().name]

    def __call__(self, question: Question) -> list[Tool]:
        record, tools = self._call_recorder(question), self._untimed_tools(question)
        return [TimedTool(tool, record, self._turns if tool is self._shared else None) for tool in tools]

    def _untimed_tools(self, question: Question) -> list[Tool]:
        tools: list[Tool] = []
        if question.documents:
            documents = (*question.documents, *self._documents)
            tools.append(search(documents, k=min(self._k, len(documents))))
        elif self._documents:
            tools.append(self._shared_search())
        return [*tools, *self._other_tools(question)] or [self._ask_model()]

    def _other_tools(self, question: Question) -> list[Tool]:
        more = [*self._more(question, self._resources), *self._web]
        if question.attachments and not any(tool.name == _INSPECT_TOOL for tool in more):
            return [read_attachment(question.attachments), *more]
        return more

    def _ask_model(self) -> Tool:
        assert self._resources.llm is not None
        return ask_model(self._resources.llm)

    def _shared_search(self) -> Tool:
        with self._lock:
            if self._shared is None:
                self._shared = search(self._documents, k=min(self._k, len(self._documents)))
            return self._shared

    def _call_recorder(self, question: Question) -> Callable[[str, float, bool], None]:
        def record_tool(tool: str, seconds: float, failed: bool) -> None:
            call = {"id": question.id, "tool": tool, "seconds": round(seconds, 4), "failed": failed}
            with self._lock, self._times.open("a", encoding="utf-8") as file:
                file.write(json.dumps(call) + "\n")

        return record_tool
