"""Which code of this package stands behind a function: parts of the file it is written in, and whole files
beyond.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FunctionType

_PACKAGE = "kgot_lab"
_FOLDER = Path(__file__).parents[1]
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def is_ours(module: str | None) -> bool:
    """Whether a module belongs to this package."""
    return module is not None and module.partition(".")[0] == _PACKAGE


@cache
def files_behind(module: str) -> frozenset[str]:
    """A module of this package and all that it imports of it, anywhere in its code, each as its name and the
    SHA-256 of its file.
    """
    found, left = dict[str, str](), [module]
    while left:
        if (name := left.pop()) not in found and (read := _read(name)):
            found[name] = read.digest
            left += read.imported.values()
    return frozenset(f"{name} {digest}" for name, digest in found.items())


@dataclass(frozen=True, eq=False)
class Behind:
    """What stands behind a function: the pieces of its own file as texts, the names they use, and modules of
    this package.
    """

    texts: frozenset[str]
    names: frozenset[str]
    modules: frozenset[str]


def code_behind(function: FunctionType) -> Behind:
    """The pieces of its file that a function of this package reaches by name, itself the first, and the
    modules that they use.

    Of a class only those parts count whose names are used, beside what makes an instance: so a system that is
    added to a file changes no other. A name is followed wherever it is written, even where it is that of
    something else: rather too much is seen than too little.
    """
    return _behind(function.__module__, function.__code__.co_firstlineno, function.__name__)


@cache
def _behind(module: str, line: int, function: str) -> Behind:
    texts, names, modules = set[str](), set[str](), set[str]()
    read = _read(module)
    left = list(read.at(line, function)) if read else []
    while read and left:
        node = left.pop()
        if (text := ast.unparse(node)) in texts:
            continue
        texts.add(text)
        for name in _names(node) - names:
            names.add(name)
            left += read.pieces.get(name, ())
            if name in read.imported:
                modules.add(read.imported[name])
    return Behind(frozenset(texts), frozenset(names), frozenset(modules))


@dataclass(frozen=True)
class _Read:
    """A module that was read: its digest, what it defines by name, and which module of this package each
    imported name comes from.
    """

    digest: str
    tree: ast.Module
    pieces: dict[str, list[ast.AST]] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)

    def at(self, line: int, name: str) -> list[ast.AST]:
        """The functions of a name that begin in a line; its first decorator is the first line of a function."""
        lambdas = name == "<lambda>"
        return [
            node
            for node in ast.walk(self.tree)
            if (isinstance(node, ast.Lambda) and lambdas and node.lineno == line)
            or (
                isinstance(node, _FUNCTION)
                and min([node.lineno, *(each.lineno for each in node.decorator_list)]) == line
            )
        ]


@cache  # read once: what a process runs is what stood there when it began, more nearly than what stands there now
def _read(module: str) -> _Read | None:
    """A module by its dotted name; None where there is no such file."""
    path = _file_of(module)
    if path is None:
        return None
    source = path.read_bytes()
    tree = ast.parse(source)
    read = _Read(hashlib.sha256(b"\0".join([source, *_data_files(path, tree)])).hexdigest(), tree)
    for name, origin in _imports(read.tree):
        read.imported[name] = origin
    for name, node in _pieces(read.tree.body):
        read.pieces.setdefault(name, []).append(node)
    return read


def _data_files(path: Path, tree: ast.AST) -> Iterator[bytes]:
    """The files of JSON in the folder of a module that it names, such as weights: with others it is another
    system.
    """
    named = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    for file in sorted(path.parent.glob("*.json")):
        if file.name in named:
            yield file.read_bytes()


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that are imported from this package, anywhere in a module, and the module each is or comes
    from.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and is_ours(node.module):
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                yield alias.asname or alias.name, module if _file_of(module) else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (
                (alias.asname or alias.name, alias.name) for alias in node.names if is_ours(alias.name)
            )


def _file_of(module: str) -> Path | None:
    """The file of a module of this package, but for the package itself, which imports nothing until it is
    asked.
    """
    place = _FOLDER.joinpath(*module.split(".")[1:])
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if place != _FOLDER and file.is_file()), None)


def _pieces(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """What a module defines by name; of a class the parts by their own names, and by its name what makes an
    instance.
    """
    for node in body:
        if isinstance(node, ast.ClassDef):
            members = list(_pieces(node.body))
            yield from ((name, member) for name, member in members if not name.startswith("__"))
            for part in (
                *node.bases,
                *node.decorator_list,
                *(member for name, member in members if name.startswith("__")),
            ):
                yield node.name, part
            yield from (
                (node.name, each) for each in node.body if isinstance(each, ast.AnnAssign)
            )  # the fields of a dataclass
        elif isinstance(node, _FUNCTION):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in {
                each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
            }:
                yield name, node
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _pieces([each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)])


def _names(node: ast.AST) -> set[str]:
    """Every name that is written in a piece of code."""
    return {
        each.id if isinstance(each, ast.Name) else each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Name | ast.Attribute)
    }
