"""The facts of one file: definitions and references with their positions, converted to and from JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import SkipValidation, TypeAdapter

PACKAGE = "package:"  # prefix of the id of something imported that is not among the files
DEFERRED = "imports_deferred"  # the type of imports in a function, or for annotations alone
CALLS_RESOLVED = "calls_resolved"  # the property of the root of a graph of code


@dataclass(frozen=True)
class Definition:
    """A definition in a file: its id in the graph, its type in the vocabulary of code, its name, its lines
    and what contains it.
    """

    id: str
    type: str
    name: str
    line: int
    end_line: int
    inside: str = ""  # the id of the enclosing definition; "" for what the file itself contains
    description: str = ""
    signature: str = ""
    decorators: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()  # of a class, except its methods
    marks: tuple[str, ...] = ()  # what templates need and structure does not show, such as "abstract"


@dataclass(frozen=True)
class Reference:
    """A reference from one thing to another. `target` is an id, or a name that is resolved when all files are
    read.
    """

    source: str
    type: str
    target: str
    line: int
    said: str = ""  # the quotation, if it is not code


@dataclass(frozen=True)
class FileFacts:
    """All facts of one file.

    The first definition is the file itself. `flow` holds what the analysis of its language needs besides.
    """

    path: str  # relative to the folder
    language: str
    definitions: tuple[Definition, ...]
    references: tuple[Reference, ...] = ()
    remark: str = ""  # what was guessed or left out
    flow: Annotated[Mapping[str, Any] | None, SkipValidation] = None  # JSON values, deep and many

    @property
    def file(self) -> Definition:
        """The definition of the file itself."""
        return self.definitions[0]

    def to_json(self) -> dict[str, Any]:
        """Convert the facts to JSON values."""
        return asdict(replace(self, flow=None)) | {"flow": self.flow}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> FileFacts:
        """Rebuild facts from the output of `to_json`.

        Raises ValueError if they are damaged.
        """
        return _FACTS.validate_python(values)


_FACTS = TypeAdapter(FileFacts)


# Module names from file paths, and the file that an import means.

INIT = "__init__"


class ModuleNames:
    """The dotted name of each module of a folder, and the module that a name means where it is written.

    A package is a folder with an `__init__`. Names begin at its topmost enclosing package, so
    `src/shop/cart.py` is `shop.cart` if only `src/shop` is a package, and `src.shop.cart` if none is.
    `prefix` is the package that contains the folder itself. Two files that would have the same name are
    distinguished by their paths.
    """

    def __init__(self, paths: Iterable[str], prefix: str = ""):
        self._of_path: dict[str, str] = {}
        self.package_of: dict[str, bool] = {}
        paths = sorted(paths)
        packages = {str(PurePosixPath(path).parent) for path in paths if PurePosixPath(path).stem == INIT}
        for path in paths:
            name = _dotted_name(PurePosixPath(path), packages, prefix)
            if name in self.package_of:
                name = f"{name} ({path})"
            self._of_path[path] = name
            self.package_of[name] = PurePosixPath(path).stem == INIT
        self._by_end: dict[str, list[str]] = defaultdict(list)
        for name in self.package_of:
            parts = name.split(".")
            for start in range(1, len(parts)):
                self._by_end[".".join(parts[start:])].append(name)
        split_names = [name.split(".") for name in self.package_of]
        self._folders = {".".join(parts[:end]) for parts in split_names for end in range(1, len(parts))}

    def name_of(self, path: str) -> str:
        """Return the dotted name of the module in a file."""
        return self._of_path[path]

    def __contains__(self, name: object) -> bool:
        return name in self.package_of

    def is_folder(self, name: str) -> bool:
        """Return whether there are modules below this name."""
        return name in self._folders

    def find(self, name: str, at: str) -> str | None:
        """Resolve a module name as written in the module `at`, or return None.

        It is the module of this name, one in an enclosing package of `at`, or the only module whose name ends
        with this dotted name.
        """
        if name in self.package_of:
            return name
        beside = at if self.package_of.get(at) else at.rpartition(".")[0]
        while beside:
            if (near := f"{beside}.{name}") in self.package_of:
                return near
            beside = beside.rpartition(".")[0]
        ends = self._by_end.get(name, [])
        return ends[0] if len(ends) == 1 and "." in name else None


def _dotted_name(path: PurePosixPath, packages: set[str], prefix: str) -> str:
    folder = path.parent
    if str(folder) in packages:
        top = folder
        while top.parent != top and str(top.parent) in packages:
            top = top.parent
        parts = list(path.parts[len(top.parts) - (str(top) != ".") :])
    else:
        parts = list(path.parts)
    parts = parts[:-1] if path.stem == INIT else [*parts[:-1], path.stem]
    return ".".join([prefix, *parts] if prefix and "." in packages else parts) or path.stem


# The file endings that are read.

PYTHON_ENDINGS = (".py", ".pyi")
# in the order in which an import without an ending is resolved
SCRIPT_ENDINGS = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
SETTINGS_ENDINGS = (".json", ".toml", ".yaml", ".yml")
PROSE_ENDINGS = (".md", ".markdown")
READ_ENDINGS = (*PYTHON_ENDINGS, *SCRIPT_ENDINGS, *SETTINGS_ENDINGS, *PROSE_ENDINGS)
