"""The facts of one file: what it defines, what it refers to, and where each stands; JSON in and out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kgot_lab.types import Json

PACKAGE = "package:"  # before the name of something that is imported and is not among the files: its id


@dataclass(frozen=True)
class Definition:
    """Something that a file defines: its id in the graph, its type in the vocabulary of code, its name, its
    lines, and what holds it.
    """

    id: str
    type: str
    name: str
    line: int
    end_line: int
    inside: str = ""  # the id of what holds it; "" for what the file holds itself
    description: str = ""
    signature: str = ""
    decorators: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()  # of a class, besides its methods
    marks: tuple[
        str, ...
    ] = ()  # what a template of a pattern asks for and structure does not tell, as "abstract"

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Definition:
        """What `asdict` gave."""
        return cls(**{**kept, **{name: tuple(kept[name]) for name in ("decorators", "attributes", "marks")}})


@dataclass(frozen=True)
class Mention:
    """That one thing names another: `target` is an id, or a name that is looked up among all files once they
    are read.
    """

    source: str
    type: str
    target: str
    line: int
    said: str = ""  # the words that say so, where they are not those of code


@dataclass(frozen=True)
class FileFacts:
    """All that one file says: the node of the file is the first definition; `flow` is what an analysis of the
    language needs besides.
    """

    path: str  # inside the folder
    language: str
    definitions: tuple[Definition, ...]
    references: tuple[Mention, ...] = ()
    remark: str = ""  # what had to be guessed or was left out
    flow: Mapping[str, Json] | None = None

    @property
    def file(self) -> Definition:
        """The file itself."""
        return self.definitions[0]

    def to_json(self) -> dict[str, Any]:
        """The same as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> FileFacts:
        """The facts that `to_json` gave."""
        definitions = tuple(Definition.from_json(each) for each in kept["definitions"])
        references = tuple(Mention(**each) for each in kept["references"])
        return cls(kept["path"], kept["language"], definitions, references, kept["remark"], kept["flow"])
