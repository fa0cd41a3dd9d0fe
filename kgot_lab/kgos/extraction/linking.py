"""Link the facts of all files into one graph: resolve names, follow calls, and merge repeated statements into
one edge.
"""

from __future__ import annotations

import posixpath
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.extraction.facts import (
    CALLS_RESOLVED,
    DEFERRED,
    PACKAGE,
    Definition,
    FileFacts,
    ModuleNames,
    Reference,
)
from kgot_lab.kgos.extraction.python.points_to import CallGraph, solve_calls
from kgot_lab.kgos.extraction.python.program import Program
from kgot_lab.kgos.extraction.script_names import BUILT_IN, ScriptNames
from kgot_lab.types import Edge, Json, Node

ROOT_FOLDER = "."
_LANGUAGES = {"python": "Python", "javascript": "JavaScript", "typescript": "TypeScript"}
_MAX_NAMES = 40  # names of another package on one edge
_MIN_CHARACTERS = 4  # of a bare word in prose that may name a class or function


@dataclass(frozen=True)
class LinkedGraph:
    """The graph, and by language how many of how many calls have a known callee."""

    graph: PropertyGraph
    calls: Mapping[str, tuple[int, int]]


def describe_calls(calls: Mapping[str, tuple[int, int]]) -> str:
    """Return the share of calls whose callee is known in each language, or "" if there are no calls."""
    shares = (
        f"{resolved / sites:.0%} of {sites:,} in {_LANGUAGES[language]}"
        for language, (resolved, sites) in sorted(calls.items())
        if sites
    )
    return ", ".join(shares)


def link_facts(
    files: Sequence[FileFacts],
    names: ModuleNames,
    root: str,
    solve: Callable[[Program], CallGraph] = solve_calls,
) -> LinkedGraph:
    """Link the facts of some files into one graph in the vocabulary of code.

    `root` is the name of the folder, and `solve` finds the calls of the program in Python.
    """
    files = sorted(files, key=lambda file: file.path)
    builder = _GraphBuilder(files, root)
    builder.add_folders()
    program = Program.of(files, names)
    calls = solve(program)
    builder.add_imports(names)
    builder.add_script_edges()
    builder.add_base_classes(calls.bases)
    builder.add_calls(calls, program)
    builder.add_mentions()
    builder.calls["python"] = (calls.resolved, calls.sites)
    return LinkedGraph(builder.build(), builder.calls)


class _GraphBuilder:
    """A builder of the graph."""

    def __init__(self, files: Sequence[FileFacts], root: str):
        self.files, self.root = files, root
        self.nodes: dict[str, Node] = {}
        self.about: dict[str, dict[str, Any]] = {}  # the properties of definitions
        self.edges: dict[tuple[str, str, str], dict[str, set[Any]]] = {}
        # maps definitions in the analysis of Python, except modules, to nodes of the graph
        self.id_of: dict[str, str] = {}
        self.file_of: dict[str, str] = {}  # the file that a node was read from
        modules = {facts.file.id for facts in files}
        for facts in files:
            self._add_definition(facts.file, facts)
        for facts in files:
            for definition in facts.definitions[1:]:
                # a package may have a function with the name of one of its modules
                self.id_of[definition.id] = definition.id + ("()" if definition.id in modules else "")
        for facts in files:
            for definition in facts.definitions[1:]:
                self._add_definition(definition, facts)
        self.by_path = {facts.path: facts.file.id for facts in files}
        self.scripts = ScriptNames(files, self.by_path, self.nodes)
        self.loaded_imports: set[tuple[str, str]] = set()
        self.calls: dict[str, tuple[int, int]] = {}  # by language: calls whose callee is known, and all

    def _add_definition(self, definition: Definition, facts: FileFacts) -> None:
        id = self.id_of.get(definition.id, definition.id)
        if id in self.nodes:  # defined again, on another branch or as the setter of a property
            self.about[id].setdefault("also_at", []).append(definition.line)
            return
        properties: dict[str, Any] = {"name": definition.name or id, "file": facts.path}
        properties |= {"line": definition.line, "end_line": definition.end_line, "language": facts.language}
        for name in ("description", "signature", "decorators", "attributes", "marks"):
            if value := getattr(definition, name):
                properties[name] = list(value) if isinstance(value, tuple) else value
        self.about[id] = properties
        self.nodes[id] = Node(id, (definition.type,), properties)
        self.file_of[id] = facts.path
        if definition.inside:
            inside = self.id_of.get(definition.inside, definition.inside)
            self._add_edge(inside, "contains", id, definition.line)

    def _add_edge(
        self, source: str, type: str, target: str, line: int = 0, name: str = "", quote: str = ""
    ) -> None:
        if source == target:
            return
        about = self.edges.setdefault((source, type, target), defaultdict(set))
        for kind, value in (("lines", line), ("names", name), ("said", quote)):
            if value:
                about[kind].add(value)

    # --- folders ---

    def add_folders(self) -> None:
        """Add nodes for folders, and `contains` edges from folders and packages to their files.

        A package contains the files of its folder. Any other folder has a node of its own.
        """
        paths = {PurePosixPath(f.path): f.file.id for f in self.files if f.language == "python"}
        packages = {str(path.parent): id for path, id in paths.items() if path.stem == "__init__"}
        self.packages = packages

        def holder(folder: str) -> str:
            if folder in packages:
                return packages[folder]
            id = ROOT_FOLDER if folder == ROOT_FOLDER else f"{folder}/"
            if id not in self.nodes:
                name = self.root if folder == ROOT_FOLDER else PurePosixPath(folder).name
                self.nodes[id] = Node(id, ("folder",), {"name": name, "file": folder})
                if folder != ROOT_FOLDER:
                    self._add_edge(holder(str(PurePosixPath(folder).parent)), "contains", id)
            return id

        for facts in self.files:
            folder = PurePosixPath(facts.path).parent
            if packages.get(str(folder)) != facts.file.id:
                self._add_edge(holder(str(folder)), "contains", facts.file.id)
            elif str(folder) != ROOT_FOLDER:
                self._add_edge(holder(str(folder.parent)), "contains", facts.file.id)

    # --- imports ---

    def add_imports(self, names: ModuleNames) -> None:
        """Add edges from each module to the modules and external packages that it imports."""
        for facts in self.files:
            for reference in facts.references:
                if reference.type not in ("imports", DEFERRED):
                    continue
                if facts.language == "python":
                    target, name = self._python_import(facts.file.id, reference, names)
                else:
                    target, name = self._script_target(reference.target), ""
                if target:
                    self._add_edge(facts.file.id, "imports", target, reference.line, name)
                if reference.type == "imports":
                    self.loaded_imports.add((facts.file.id, target))

    def _python_import(self, module: str, reference: Reference, names: ModuleNames) -> tuple[str, str]:
        """Return the node that an import means, and the name that is taken from it."""
        found = names.find(reference.target, module)
        if reference.said:
            below = names.find(f"{reference.target}.{reference.said}", module)
            if below is not None and f"{found}.{reference.said}" not in self.id_of:
                return below, ""
        if found is None and not names.is_folder(reference.target):
            found = self._package_node(reference.target.split(".")[0])
        return found or "", reference.said

    # --- scripts ---

    def _script_target(self, target: str) -> str:
        """Return the node of the file or package that a script imports, or "" if the file is missing."""
        if target.startswith(PACKAGE):
            return self._package_node(target.removeprefix(PACKAGE))
        return self.scripts.file_of(target)

    def add_script_edges(self) -> None:
        """Add edges for what scripts call and inherit from, and count the calls whose callee is known."""
        for facts in self.files:
            for reference in facts.references:
                if reference.type not in ("calls", "inherits_from"):
                    continue
                found = self.scripts.resolve(reference.target)
                for symbol in found:
                    is_external = symbol.startswith(PACKAGE)
                    package, _, name = symbol.removeprefix(PACKAGE).removesuffix("()").partition("#exports")
                    target = self._package_node(package) if is_external else symbol
                    external_name = package + name if is_external else ""
                    if target == reference.source:
                        self.about[target]["calls_itself"] = True
                    if symbol != BUILT_IN:
                        self._add_edge(
                            reference.source, reference.type, target, reference.line, external_name
                        )
                if reference.type == "calls":
                    resolved, sites = self.calls.get(facts.language, (0, 0))
                    self.calls[facts.language] = (resolved + bool(found), sites + 1)

    def _package_node(self, name: str) -> str:
        id = PACKAGE + name
        if id not in self.nodes:
            about: dict[str, Json] = {"name": name, "description": "a package that is not among the files"}
            if name in sys.stdlib_module_names:
                about["description"] = "a package of Python itself"
            self.nodes[id] = Node(id, ("package",), about)
        return id

    # --- calls in Python ---

    def add_base_classes(self, bases: Mapping[str, Iterable[str]]) -> None:
        """Add edges from each class to its base classes."""
        for owner, base_names in bases.items():
            for base in base_names:
                external = base.startswith("ext:")
                package = base[4:].split(".")[0]
                target = self._package_node(package) if external else self.id_of.get(base, base)
                name = base[4:] if external else ""
                self._add_edge(self.id_of.get(owner, owner), "inherits_from", target, name=name)

    def add_calls(self, calls: CallGraph, program: Program) -> None:
        """Add edges from callers to callees.

        A lambda counts as part of the enclosing function. A function that calls itself is marked
        `calls_itself`.
        """
        for caller, kind, name, positions in calls.called:
            lines = program.lines_of(caller)
            source = self._owner_of_code(caller)
            if kind in ("function", "class"):
                if name not in self.id_of:  # a lambda
                    continue
                target, external_name = self.id_of[name], ""
            elif kind == "external":
                target, external_name = self._package_node(name.split(".")[0]), name
            else:
                continue
            if source == target:
                self.about[source]["calls_itself"] = True
            for position in positions:
                line = lines[position - 1] if position else 0
                self._add_edge(source, "calls", target, line, external_name)

    def _owner_of_code(self, caller: str) -> str:
        """Return the node whose code runs.

        Lambdas, and definitions in them, belong to the enclosing definition.
        """
        while caller and caller not in self.id_of and caller not in self.nodes:
            caller = caller.rpartition(".")[0]
        return self.id_of.get(caller, caller)

    # --- settings and prose ---

    def add_mentions(self) -> None:
        """Add edges for names in settings and prose that match exactly one node."""
        ends: dict[str, set[str]] = defaultdict(set)
        for id in self.nodes:
            parts = id.removesuffix("()").split(".") if not id.startswith(PACKAGE) and "/" not in id else []
            for start in range(len(parts)):
                ends[".".join(parts[start:])].add(id)
        for facts in self.files:
            for reference in facts.references:
                if reference.type in ("configures", "documents") and (
                    target := self._resolve_mention(facts, reference, ends)
                ):
                    file, type, line = facts.file.id, reference.type, reference.line
                    self._add_edge(file, type, target, line, quote=reference.said)

    def _resolve_mention(self, facts: FileFacts, reference: Reference, ends: Mapping[str, set[str]]) -> str:
        target = reference.target
        if target.startswith(PACKAGE):
            own = target.removeprefix(PACKAGE)
            return own if own in self.nodes else self._package_node(own)
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(facts.path), target))
        for path in (target, beside):
            if path in self.by_path:
                return self.by_path[path]
        name = target.replace(":", ".")
        if name in self.nodes:
            return name
        fewest = _MIN_CHARACTERS if name[:1].isupper() else 2 * _MIN_CHARACTERS + 1
        is_distinctive = "." in name or "_" in name or len(name) >= fewest
        found = ends.get(name, set()) if is_distinctive else set()
        return next(iter(found)) if len(found) == 1 else ""

    def build(self) -> PropertyGraph:
        """Build the graph from the collected nodes and edges. Its root has the shares of resolved calls."""
        root = self.packages.get(ROOT_FOLDER, ROOT_FOLDER)
        if shares := describe_calls(self.calls):
            about = {**self.nodes[root].properties, CALLS_RESOLVED: shares}
            self.nodes[root] = replace(self.nodes[root], properties=about)
        edges = []
        for (source, type, target), about in sorted(self.edges.items()):
            properties: dict[str, Json] = {}
            within = target if type == "contains" and about.get("lines") else source
            if within in self.file_of and (type != "contains" or about.get("lines")):
                properties["file"] = self.file_of[within]
            if type == "imports" and (source, target) not in self.loaded_imports:
                properties["deferred"] = True
            for part, values in about.items():
                properties[part] = sorted(values)[: None if part == "lines" else _MAX_NAMES]
            edges.append(Edge(source, type, target, properties))
        return PropertyGraph.of((self.nodes[id] for id in sorted(self.nodes)), edges)
