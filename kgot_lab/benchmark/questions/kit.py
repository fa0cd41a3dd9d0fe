"""The tools of a question: search over its documents, file readers, and others that work for its model."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import mkdtemp

from kgot_lab.benchmark.questions.attempt import TimedTool
from kgot_lab.benchmark.questions.question import Question
from kgot_lab.errors import BadInput
from kgot_lab.llm.budget import Spending
from kgot_lab.loop.limits import Limits
from kgot_lab.sandbox import Calculator
from kgot_lab.tools.files import read_attachment
from kgot_lab.tools.offered import ENTRY_POINTS, ToolResources, offered_tools
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import Tool, ask_model
from kgot_lab.types import LLM, Document


@dataclass(frozen=True)
class ToolModels:
    """The models that tools may call, within the budget of the run: the planning model and a vision model."""

    llm: LLM
    vision: LLM | None = None
    spending: Spending | None = None  # of which speech to text is paid too


ToolFactory = Callable[[Question, ToolModels], Sequence[Tool]]

_INSPECT_TOOL = "inspect_file"  # reads the attached files too, and more kinds of them
_WEB_TOOLS = ("ask_search_agent", "wikipedia")


@dataclass(frozen=True)
class WebSources:
    """The sources of web tools: the web through a search engine, or a folder of pages in its place."""

    web: bool = False
    mirror: str = ""
    engine: str = ""


NO_WEB = WebSources()


def web_tools(sources: WebSources) -> ToolFactory:
    """Return a factory of tools that read the web, or a folder of pages in its place.

    The tools are created once per model and shared by all threads. Raises BadInput if none of them can work.
    """
    made: dict[int, tuple[Tool, ...]] = {}
    lock = threading.Lock()

    def more(_: Question, behind: ToolModels) -> Sequence[Tool]:
        llm = behind.llm
        with lock:
            if id(llm) not in made:
                mirror = sources.mirror or None
                resources = ToolResources(llm=llm, web=sources.web, mirror=mirror, engine=sources.engine)
                offered = offered_tools(resources, others=())
                made[id(llm)] = tuple(tool for tool in offered.tools if tool.name in _WEB_TOOLS)
                if not made[id(llm)]:
                    missing = (str(each) for each in offered.missing if each.name in _WEB_TOOLS)
                    raise BadInput("; ".join(missing))
            return made[id(llm)]

    return more if sources.web or sources.mirror else no_tools


def all_working_tools(
    web_factory: ToolFactory, limits: Limits, unpack_into: Path, *, unsafe: bool = False, web: bool = False
) -> ToolFactory:
    """Return a factory of every tool that works with a question's files and models, and of the outward tools.

    Zip files are unpacked into `unpack_into`. With `web`, pictures may be loaded from the web, and recordings
    may be sent there for transcription.
    """
    computer, others = (
        _IsolatedPython(unsafe, limits.tools.python_seconds),
        tuple(entry_points(group=ENTRY_POINTS)),
    )

    def more(question: Question, behind: ToolModels) -> Sequence[Tool]:
        files = question.attachments
        zipped = any(file.suffix.lower() == ".zip" for file in files)
        into = Path(mkdtemp(dir=unpack_into)) if zipped else None
        at_hand = ToolResources(
            attachments=files,
            llm=behind.llm,
            vision=behind.vision,
            computer=computer,
            web=web,
            unpack_into=into,
            spending=behind.spending,
        )
        offered = offered_tools(at_hand, others=others, leave_out=_WEB_TOOLS)
        return [*offered.tools, *web_factory(question, behind)]

    return more


class _IsolatedPython:
    """Runs each piece of Python in a sandbox of its own.

    Questions that are answered in parallel do not wait for or see one another.
    """

    def __init__(self, unsafe: bool, seconds: float):
        self._unsafe, self._seconds = unsafe, seconds

    def compute(self, code: str, *, seconds: float | None = None) -> str:
        with closing(Calculator(unsafe=self._unsafe, seconds=seconds or self._seconds)) as calculator:
            return calculator.compute(code)


def no_tools(question: Question, behind: ToolModels) -> Sequence[Tool]:
    """Return no tools beyond those for a question's documents and files."""
    return ()


class QuestionTools:
    """A factory of the tools of each question.

    The index of shared documents is built once, and its searches are serialized. `further_tools` returns further tools
    for a question, such as web tools. A search returns at most `passages`. The seconds of each call are
    written to the file `times`.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        models: ToolModels,
        times: Path,
        *,
        passages: int = 8,
        further_tools: ToolFactory = no_tools,
    ):
        self._behind = models
        self._times = times
        self._more = further_tools
        self._k = passages
        self._documents, self._lock, self._turns = tuple(documents), threading.Lock(), threading.Lock()
        self._shared: Tool | None = None

    def tool_names(self, questions: Sequence[Question]) -> list[str]:
        """Return the names of all tools that any of the questions gets."""
        named = {"search"} if self._documents or any(question.documents for question in questions) else set()
        named |= {tool.name for question in questions for tool in self._other_tools(question)}
        return sorted(named) or [ask_model(self._behind.llm).name]

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
        return [*tools, *self._other_tools(question)] or [ask_model(self._behind.llm)]

    def _other_tools(self, question: Question) -> list[Tool]:
        more = self._more(question, self._behind)
        if question.attachments and not any(tool.name == _INSPECT_TOOL for tool in more):
            return [read_attachment(question.attachments), *more]
        return list(more)

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
