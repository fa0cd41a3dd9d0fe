"""The tools that work with the given resources, including those of other packages.

For other tools it says why they cannot work. A package adds a tool with a class and an entry point in the
group "kgot_lab.tools". The class is called with the resources (AtHand), and its instance is the tool: it has
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

from kgot_lab.errors import BadInput, LabError, OutOfMemory, is_out_of_memory, mask_secrets
from kgot_lab.llm.budget import Spending
from kgot_lab.llm.keys import mask_known_keys
from kgot_lab.sandbox import Calculator
from kgot_lab.stores.protocol import PythonRunner
from kgot_lab.text.cleaning import printable_line
from kgot_lab.tools.files import FileShelf, extract_zip
from kgot_lab.tools.media import AUDIO, SPEECH_NEEDS, Transcriber, image_question, inspect_file
from kgot_lab.tools.search import search_of
from kgot_lab.tools.search_agent import WebAccess, ask_search_agent
from kgot_lab.tools.tool import Tool, ask_model, python
from kgot_lab.tools.web.archives import Mirror, WebArchive, Wikipedia, wikipedia
from kgot_lab.tools.web.engines import web_engine
from kgot_lab.tools.web.fetching import Manners, PoliteWeb
from kgot_lab.tools.web.pages import page_opener
from kgot_lab.types import LLM, Document

ENTRY_POINTS = "kgot_lab.tools"
_INSPECTING, _SPEECH = "inspect_file", "speech to text"  # the second is part of the first
_PASSAGES = 8  # returned by one search of documents


# The resources of tools, one field each. The command line, `lab.ask` and tests each set some.
@dataclass(frozen=True)
class AtHand:
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
    follow: bool = False  # whether a search follows names from passage to passage, for the mode `paths`
    # a folder to unpack zip files into; None for a temporary one
    unpack_into: Path | None = None
    manners: Manners = field(default_factory=Manners)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    @cached_property
    def shelf(self) -> FileShelf:
        """The attached files. Raises BadInput if there are none."""
        if not self.attachments:
            raise BadInput("no files are attached; attach some (--attach FILE)")
        return FileShelf(self.attachments, unpack_into=self.unpack_into)

    @cached_property
    def polite_web(self) -> PoliteWeb:
        """The fetcher of pages.

        Raises BadInput if the web must not be accessed, and NotInstalled for a missing package.
        """
        if not self.web:
            raise BadInput("the web is not to be asked; allow it (--web)")
        return PoliteWeb(self.manners)

    @cached_property
    def encyclopedia(self) -> Tool:
        """Wikipedia, shared by the loop and the search agent.

        Raises BadInput if the web must not be accessed, and NotInstalled for a missing package.
        """
        return wikipedia(Wikipedia(user_agent=self.polite_web.manners.user_agent))


@dataclass(frozen=True)
class NotOffered:
    """A tool that cannot work, and what to provide, set or install."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


@dataclass(frozen=True, repr=False)
class Offered:
    """The tools that can work, and those that cannot with the reasons."""

    tools: tuple[Tool, ...]
    missing: tuple[NotOffered, ...]

    def __repr__(self) -> str:
        named = ", ".join(tool.name for tool in self.tools) or "none"
        return "\n".join([f"<Offered: {named}>", *(f"  not {each}" for each in self.missing)])


ToolMaker = Callable[[AtHand], Tool]  # raises LabError with what is missing


def offered_tools(
    at_hand: AtHand, *, others: Iterable[EntryPoint] | None = None, leave_out: Collection[str] = ()
) -> Offered:
    """Create all tools that work with the given resources.

    `others` are the entry points of other packages, by default those installed. Tools named in `leave_out`
    are neither created nor listed. A tool of another package that fails to load is listed with its error.
    Raises BadInput for missing files and for a folder that cannot serve as a mirror of the web, and
    OutOfMemory if a tool runs out of memory.
    """
    tools: dict[str, Tool] = {}
    missing: list[NotOffered] = []
    if at_hand.attachments:
        at_hand.shelf.listed()  # a wrong path is the caller's error, not a missing tool
    if at_hand.mirror is not None:
        Mirror(at_hand.mirror)  # likewise
    for name, make in MAKERS.items():
        if name in leave_out:
            continue
        try:
            tools[name] = make(at_hand)
        except OutOfMemory:  # a run without the tool would guess
            raise
        except LabError as error:
            missing.append(NotOffered(name, str(error)))
    if (
        at_hand.attachments
        and any(name.lower().endswith(AUDIO) for name in at_hand.shelf.names)
        and _INSPECTING not in leave_out
    ):
        try:
            _listening(at_hand)
        except BadInput as error:
            missing.append(NotOffered(_SPEECH, str(error)))
    for entry in entry_points(group=ENTRY_POINTS) if others is None else others:
        try:
            tool = _checked(entry.load()(at_hand), tools)
            tools[tool.name] = tool
        except OutOfMemory:
            raise
        except LabError as error:
            missing.append(NotOffered(entry.name, str(error)))
        except Exception as error:  # any error of another package
            if is_out_of_memory(error):
                raise OutOfMemory(f"the tool {entry.name}") from error
            told = mask_known_keys(mask_secrets(str(error)), at_hand.environment)
            why = (
                f"the entry point {entry.value} failed ({type(error).__name__}: {printable_line(told[:200])})"
            )
            missing.append(NotOffered(entry.name, why))
    shown = (NotOffered(each.name, mask_known_keys(each.why, at_hand.environment)) for each in missing)
    return Offered(tuple(tools.values()), tuple(shown))


def _checked(tool: Tool, taken: Mapping[str, Tool]) -> Tool:
    """Return a tool of another package after checking it.

    Raises BadInput if it is not a tool or its name is taken.
    """
    name, about = getattr(tool, "name", None), getattr(tool, "description", None)
    if not (isinstance(name, str) and name and isinstance(about, str) and callable(tool)):
        raise BadInput(
            "what its entry point made is no tool: a tool has a name, a description, arguments and a call"
        )
    if not isinstance(getattr(tool, "arguments", None), Mapping):
        raise BadInput("its arguments are no JSON schema of an object")
    if name in taken:
        raise BadInput(f"there is a tool called {name!r} already")
    return tool


def _search(at_hand: AtHand) -> Tool:
    if not at_hand.documents:
        raise BadInput("there are no documents to search; give some (--documents DIR)")
    return search_of(at_hand.documents, follow=at_hand.follow, most=_PASSAGES)


def _inspect_file(at_hand: AtHand) -> Tool:
    try:
        return inspect_file(at_hand.shelf, at_hand.llm, transcribe=_listening(at_hand))
    except BadInput as error:
        return inspect_file(at_hand.shelf, at_hand.llm, deaf=str(error))


def _listening(at_hand: AtHand) -> Transcriber:
    """Create the transcriber.

    Raises BadInput, which says what is missing, if it cannot be used.
    """
    key = at_hand.environment.get("OPENAI_API_KEY", "").strip()
    if not (key and at_hand.web):  # the service is on the web, whatever the model
        raise BadInput(SPEECH_NEEDS)
    return Transcriber(key, model=at_hand.speech, spending=at_hand.spending)


def _extract_zip(at_hand: AtHand) -> Tool:
    if not any(name.lower().endswith(".zip") for name in at_hand.shelf.names):
        raise BadInput("no zip file is attached")
    return extract_zip(at_hand.shelf)


def _image_question(at_hand: AtHand) -> Tool:
    if at_hand.vision is None:
        raise BadInput("no model that sees is given; name one (--vision-model MODEL)")
    if not (at_hand.attachments or at_hand.web):
        raise BadInput(
            "there are no pictures to look at; attach files (--attach FILE), or allow the web (--web)"
        )
    shelf = at_hand.shelf if at_hand.attachments else None
    return image_question(at_hand.vision, shelf, fetch=at_hand.polite_web.fetch if at_hand.web else None)


def _search_agent(at_hand: AtHand) -> Tool:
    if at_hand.llm is None:
        raise BadInput("it needs a model to read pages with")
    if at_hand.mirror is not None:
        mirror = Mirror(at_hand.mirror)
        return ask_search_agent(at_hand.llm, WebAccess(mirror, mirror.open_page))
    if not at_hand.web:
        raise BadInput(
            "the web is not to be asked; allow it (--web), or give a folder that stands in for it (--mirror FOLDER)"
        )
    engine = web_engine(at_hand.environment, at_hand.engine)
    access = WebAccess(engine, page_opener(at_hand.polite_web), at_hand.encyclopedia, WebArchive())
    return ask_search_agent(at_hand.llm, access)


def _wikipedia(at_hand: AtHand) -> Tool:
    return at_hand.encyclopedia


def _ask_model(at_hand: AtHand) -> Tool:
    if at_hand.llm is None:
        raise BadInput("no model is given")
    return ask_model(at_hand.llm)


def _python(at_hand: AtHand) -> Tool:
    if at_hand.computer is None:
        raise BadInput("no sandbox to run Python in is given")
    if isinstance(at_hand.computer, Calculator):
        at_hand.computer.open_once()  # otherwise it would fail in the middle of a run; the sandbox stays open for the first call
    return python(at_hand.computer)


MAKERS: Mapping[str, ToolMaker] = {
    "search": _search,
    _INSPECTING: _inspect_file,
    "extract_zip": _extract_zip,
    "image_question": _image_question,
    "ask_search_agent": _search_agent,
    "wikipedia": _wikipedia,
    "llm_query": _ask_model,
    "python": _python,
}
