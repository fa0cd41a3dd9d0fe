"""The tools that work with the given resources, including those of other packages.

For other tools it says why they cannot work. A package adds a tool with a class and an entry point in the
group "kgot_lab.tools". The class is called with the resources (ToolResources), and its instance is the tool: it has
a name, a one-line description, arguments (JSON schema) and a call that returns a Result. If it cannot work,
it raises BadInput or NotInstalled, with what to provide or install.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from kgot_lab.errors import BadInput, LabError, OutOfMemory
from kgot_lab.io.entry_points import errors_of
from kgot_lab.llm.budget import Spending
from kgot_lab.llm.keys import mask_known_keys
from kgot_lab.sandbox import Calculator
from kgot_lab.stores.protocol import PythonRunner
from kgot_lab.tools.files import FileCollection, extract_zip
from kgot_lab.tools.media import (
    AUDIO_EXTENSIONS,
    SPEECH_REQUIREMENTS,
    Transcriber,
    image_question,
    inspect_file,
)
from kgot_lab.tools.search import tools_for
from kgot_lab.tools.search_agent import WebAccess, ask_search_agent
from kgot_lab.tools.tool import Tool, as_tool, ask_model, python
from kgot_lab.tools.web.archives import Mirror, WebArchive, Wikipedia, wikipedia
from kgot_lab.tools.web.engines import web_engine
from kgot_lab.tools.web.fetching import FetchSettings, WebFetcher
from kgot_lab.tools.web.pages import page_opener
from kgot_lab.types import LLM, Document

ENTRY_POINTS = "kgot_lab.tools"
_INSPECT_FILE, _SPEECH = "inspect_file", "speech to text"  # the second is part of the first


# The resources of tools, one field each. The command line, `lab.ask` and tests each set some.
@dataclass(frozen=True)
class ToolResources:
    """The resources for tools. The web is accessed only if `web` is set."""

    documents: Sequence[Document] = ()
    attachments: Sequence[str | Path] = ()
    llm: LLM | None = None
    vision: LLM | None = None  # a vision model
    speech: str = "whisper-1"  # OpenAI's model for transcription
    # the budget of the models, which also pays for transcription
    spending: Spending | None = None
    computer: PythonRunner | None = None
    web: bool = False
    mirror: str | Path | None = None  # a folder that replaces the web
    engine: str = ""  # the name of the search engine; "" for the first with a key
    passages: int = 8  # returned by one search of documents
    # a folder to unpack zip files into; None for a temporary one
    unpack_into: Path | None = None
    manners: FetchSettings = field(default_factory=FetchSettings)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    @cached_property
    def files(self) -> FileCollection:
        """The attached files. Raises BadInput if there are none."""
        if not self.attachments:
            raise BadInput("no files are attached; attach some (--attach FILE)")
        return FileCollection(self.attachments, unpack_into=self.unpack_into)

    @cached_property
    def web_fetcher(self) -> WebFetcher:
        """The fetcher of pages.

        Raises BadInput if the web must not be accessed, and NotInstalled for a missing package.
        """
        if not self.web:
            raise BadInput("the web is not to be asked; allow it (--web)")
        return WebFetcher(self.manners)

    @cached_property
    def encyclopedia(self) -> Tool:
        """Wikipedia, shared by the loop and the search agent.

        Raises BadInput if the web must not be accessed, and NotInstalled for a missing package.
        """
        return wikipedia(Wikipedia(user_agent=self.web_fetcher.manners.user_agent))


@dataclass(frozen=True)
class UnavailableTool:
    """A tool that cannot work, and what to provide, set or install."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


@dataclass(frozen=True, repr=False)
class OfferedTools:
    """The tools that can work, and those that cannot with the reasons."""

    tools: tuple[Tool, ...]
    missing: tuple[UnavailableTool, ...]

    def __repr__(self) -> str:
        names = ", ".join(tool.name for tool in self.tools) or "none"
        return "\n".join([f"<Offered: {names}>", *(f"  not {unavailable}" for unavailable in self.missing)])


ToolFactory = Callable[[ToolResources], Tool]  # raises LabError with what is missing


def offered_tools(
    resources: ToolResources, *, others: Iterable[EntryPoint] | None = None, leave_out: Collection[str] = ()
) -> OfferedTools:
    """Create all tools that work with the given resources.

    `others` are the entry points of other packages, by default those installed. Tools named in `leave_out`
    are neither created nor listed. A tool of another package that fails to load is listed with its error.
    Raises BadInput for missing files and for a folder that cannot serve as a mirror of the web, and
    OutOfMemory if a tool runs out of memory.
    """
    tools: dict[str, Tool] = {}
    missing: list[UnavailableTool] = []
    if resources.attachments:
        resources.files.format_names()  # a wrong path is the caller's error, not a missing tool
    if resources.mirror is not None:
        Mirror(resources.mirror)  # likewise
    for name, make in FACTORIES.items():
        if name in leave_out:
            continue
        try:
            tools[name] = make(resources)
        except OutOfMemory:  # a run without the tool would guess
            raise
        except LabError as error:
            missing.append(UnavailableTool(name, str(error)))
    names = resources.files.names if resources.attachments and _INSPECT_FILE not in leave_out else ()
    if any(name.lower().endswith(AUDIO_EXTENSIONS) for name in names):
        try:
            _transcriber(resources)
        except BadInput as error:
            missing.append(UnavailableTool(_SPEECH, str(error)))
    for entry in entry_points(group=ENTRY_POINTS) if others is None else others:
        try:
            with errors_of(entry):
                tool = as_tool(entry.load()(resources))
            if tool.name in tools:
                raise BadInput(f"there is a tool called {tool.name!r} already")
            tools[tool.name] = tool
        except OutOfMemory:
            raise
        except LabError as error:
            missing.append(UnavailableTool(entry.name, str(error)))
    shown = (UnavailableTool(m.name, mask_known_keys(m.why, resources.environment)) for m in missing)
    return OfferedTools(tuple(tools.values()), tuple(shown))


def _search(resources: ToolResources) -> Tool:
    if not resources.documents:
        raise BadInput("there are no documents to search; give some (--documents DIR)")
    return tools_for(resources.documents, passages=resources.passages)[0]


def _inspect_file(resources: ToolResources) -> Tool:
    try:
        return inspect_file(resources.files, resources.llm, transcribe=_transcriber(resources))
    except BadInput as error:
        return inspect_file(resources.files, resources.llm, no_speech_reason=str(error))


def _transcriber(resources: ToolResources) -> Transcriber:
    """Create the transcriber.

    Raises BadInput, which says what is missing, if it cannot be used.
    """
    key = resources.environment.get("OPENAI_API_KEY", "").strip()
    if not (key and resources.web):  # the service is on the web, whatever the model
        raise BadInput(SPEECH_REQUIREMENTS)
    return Transcriber(key, model=resources.speech, spending=resources.spending)


def _extract_zip(resources: ToolResources) -> Tool:
    if not any(name.lower().endswith(".zip") for name in resources.files.names):
        raise BadInput("no zip file is attached")
    return extract_zip(resources.files)


def _image_question(resources: ToolResources) -> Tool:
    if resources.vision is None:
        raise BadInput("no model that sees is given; name one (--vision-model MODEL)")
    if not (resources.attachments or resources.web):
        advice = "attach files (--attach FILE), or allow the web (--web)"
        raise BadInput(f"there are no pictures to look at; {advice}")
    files = resources.files if resources.attachments else None
    fetch = resources.web_fetcher.fetch if resources.web else None
    return image_question(resources.vision, files, fetch=fetch)


def _search_agent(resources: ToolResources) -> Tool:
    if resources.llm is None:
        raise BadInput("it needs a model to read pages with")
    if resources.mirror is not None:
        mirror = Mirror(resources.mirror)
        return ask_search_agent(resources.llm, WebAccess(mirror, mirror.open_page))
    if not resources.web:
        problem = "the web is not to be asked; allow it (--web), or give a folder that stands in for it"
        raise BadInput(f"{problem} (--mirror FOLDER)")
    engine = web_engine(resources.environment, resources.engine)
    access = WebAccess(engine, page_opener(resources.web_fetcher), resources.encyclopedia, WebArchive())
    return ask_search_agent(resources.llm, access)


def _ask_model(resources: ToolResources) -> Tool:
    if resources.llm is None:
        raise BadInput("no model is given")
    return ask_model(resources.llm)


def _python(resources: ToolResources) -> Tool:
    if resources.computer is None:
        raise BadInput("no sandbox to run Python in is given")
    if isinstance(resources.computer, Calculator):
        resources.computer.open_once()  # otherwise it would fail in the middle of a run; the sandbox stays open for the first call
    return python(resources.computer)


FACTORIES: Mapping[str, ToolFactory] = {
    "search": _search,
    _INSPECT_FILE: _inspect_file,
    "extract_zip": _extract_zip,
    "image_question": _image_question,
    "ask_search_agent": _search_agent,
    "wikipedia": lambda resources: resources.encyclopedia,
    "llm_query": _ask_model,
    "python": _python,
}
