"""The data flow of a module as constraints between variables, flow-insensitive except for versions of local
names.

A constraint is a list, so that it can be stored as JSON: an operation, followed by variables or constants. A
variable is a text. A value is a list whose first item is its kind.

    copy, to, from: `to` may have every value of `from`
    new, to, value: `to` may have this value
    note, to, from: `to` may be an instance of a value of `from`: an annotation
    get, to, base, attribute, caller, line: `to` may have the value of this attribute of `base`
    set, base, attribute, from: this attribute of `base` may have the values of `from`
    item, to, base, key, caller, line: `to` may be what `base` holds at a key: a constant, a variable or any
    put, base, key, from: `base` may hold `from` at a key
    hold, box, key, from: this container holds `from` at a key
    part, to, base, from, until: `to` may be a slice of `base`
    each, to, base, caller, line: `to` may be an item from iterating over `base`
    call, to, callee, arguments, names, caller, line: `to` may be the result of calling `callee`
    decorate, to, callee, of, caller, line: `to` may be the result of decorating `of`
    enter, to, base, caller, line: `to` may be the value that the context manager `base` returns
    send, base, method, caller, line: an operator or a statement runs this method of `base`
    raise, base, caller, line: `base` is raised, and instantiated if it is a class
    module, to, name: `to` is a module
    from, to, module, name: `to` is the attribute of a module with this name
    star, to, module: a module has all names of another one
    super, to, class, from: `to` is `from`, looked up after this class in the resolution order
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from kgot_lab.types import Json

ANY_KEY = ["any"]  # an unknown key


def known_key(value: object) -> list[Json]:
    """Encode a constant key of a container with its type, since 1 and "1" are two keys."""
    return ["key", type(value).__name__, str(value)]


def scope_variable(name: str, scope: str) -> str:
    """Return the variable for every value that a name may have in a scope.

    It also stands for an attribute of a class or a module.
    """
    return f"{name}@{scope}"


@dataclass
class ModuleFlow:
    """The constraints of one module, collected while it is read."""

    module: str
    constraints: list[list[Json]] = field(default_factory=list)
    functions: dict[str, dict[str, Json]] = field(default_factory=dict)
    classes: dict[str, dict[str, Json]] = field(default_factory=dict)
    # list, tuple and dictionary displays, with their known keys
    boxes: dict[str, list[Json]] = field(default_factory=dict)
    dictionaries: list[str] = field(default_factory=list)  # those of them that iterate over their keys
    names: list[str] = field(default_factory=list)  # the names that the module binds
    _fresh: int = 0

    def fresh_name(self, what: str = "") -> str:
        """Return a unique name for a variable or an allocation site that has none in the code."""
        self._fresh += 1
        return f"{what}%{self._fresh}@{self.module}"

    def add(self, *constraint: Json) -> None:
        """Note a constraint."""
        self.constraints.append(list(constraint))

    def add_value(self, value: list[Json]) -> str:
        """Create a variable with this value."""
        variable = self.fresh_name()
        self.add("new", variable, value)
        return variable

    def derive(self, kind: str, base: str | None, *how: Json) -> str | None:
        """Create a variable that follows from another by a constraint. Without another there is none."""
        if base is None:
            return None
        variable = self.fresh_name()
        self.add(kind, variable, base, *how)
        return variable

    def merge_variables(self, variables: Iterable[str | None]) -> str | None:
        """Return a variable that merges those variables that are not None, or None if all are."""
        different = list(dict.fromkeys(variable for variable in variables if variable is not None))
        if len(different) < 2:
            return different[0] if different else None
        variable = self.fresh_name()
        for each in different:
            self.add("copy", variable, each)
        return variable


# A scope while its code is read, with the versions that each local name may have at the current point.

Versions = dict[str, tuple[str, ...]]
_BUILTINS = frozenset(dir(builtins))


@dataclass
class Scope:
    """A module, a class or a function.

    Comprehensions and lambdas in it are handled elsewhere.
    """

    id: str
    kind: Literal["module", "class", "function"]
    flow: ModuleFlow
    bound: set[str]
    outer: Scope | None = None
    own_class: str = ""  # of a method: its class
    first: str = ""  # of a method: its first parameter
    declared: Mapping[str, type[ast.stmt]] = field(default_factory=dict)  # names that are global or nonlocal
    versions: Versions = field(default_factory=dict)
    # one mapping for each enclosing loop and try, which collects all versions
    collecting: list[dict[str, str]] = field(default_factory=list)
    lambdas: int = 0
    _count: int = 0

    @property
    def module(self) -> Scope:
        """The module scope."""
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        return scope

    def write(self, name: str, value: str | None) -> str:
        """Start a new version of a name and return its variable."""
        if name in self.declared:
            variable = scope_variable(name, (self._binding_scope(name) or self.module).id)
            if value is not None:
                self.flow.add("copy", variable, value)
            return variable
        self._count += 1
        variable = f"{name}#{self._count}@{self.id}"
        if value is not None:
            self.flow.add("copy", variable, value)
        self.flow.add("copy", scope_variable(name, self.id), variable)
        for gathering in self.collecting:
            if name in gathering:
                self.flow.add("copy", gathering[name], variable)
        self.versions[name] = (variable,)
        return variable

    def read(self, name: str) -> str | None:
        """Return the variable for the value of a name at this point."""
        if versions := self.versions.get(name):
            return self.flow.merge_variables(versions)
        if name in self.bound and self.declared.get(name) is not ast.Global:
            return scope_variable(name, self.id)
        if (home := self._binding_scope(name)) is not None:
            return scope_variable(name, home.id)
        if name in _BUILTINS:
            return self.flow.add_value(["builtin", name])
        return scope_variable(name, self.module.id)  # perhaps one of `from … import *`

    def _binding_scope(self, name: str) -> Scope | None:
        """Return the enclosing scope that binds a name, or None.

        Class scopes are skipped, as in Python.
        """
        if self.declared.get(name) is ast.Global:
            return self.module
        scope = self.outer
        while scope is not None:
            if name in scope.bound and (scope.kind != "class"):
                return scope
            scope = scope.outer
        return None

    def begin_merging(self, names: Iterable[str]) -> None:
        """Merge all versions of these names until `gathered` is called.

        Code that is run again, or left in the middle, may see any version.
        """
        gathering: dict[str, str] = {}
        for name in sorted(names):
            if name in self.declared:
                continue
            self._count += 1
            gathering[name] = f"{name}#{self._count}@{self.id}"
            for version in self.versions.get(name, ()):
                self.flow.add("copy", gathering[name], version)
            self.versions[name] = (gathering[name],)
        self.collecting.append(gathering)

    def end_merging(self) -> None:
        """End what `begin_merging` began, after which each of the names may have any of its versions."""
        for name, variable in self.collecting.pop().items():
            self.versions[name] = (variable,)


def merge_versions(one: Versions, other: Versions) -> Versions:
    """Merge the versions of names after two branches."""
    names = dict.fromkeys((*one, *other))
    return {name: tuple(dict.fromkeys((*one.get(name, ()), *other.get(name, ())))) for name in names}


# The names that Python code binds: local names of a function, attributes of a class or a module.

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def bound_names(body: Iterable[ast.AST]) -> set[str]:
    """Return the names that statements bind in their own scope.

    Names that are declared global or nonlocal are left out.
    """
    bound: set[str] = set()
    elsewhere: set[str] = set()
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                elsewhere.update(names)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                bound.update(a.asname or a.name.split(".")[0] for a in aliases if a.name != "*")
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                bound.add(name)
        if isinstance(node, _SCOPES):
            if not isinstance(node, ast.Lambda):
                bound.add(node.name)
            continue  # names inside are bound there, and := in a default or decorator is ignored
        waiting.extend(ast.iter_child_nodes(node))
    return bound - elsewhere


def declared_names(body: Iterable[ast.stmt]) -> dict[str, type[ast.stmt]]:
    """Return the names that a function declares, and whether as global or as nonlocal."""
    nodes = (node for node in own_nodes(body) if isinstance(node, ast.Global | ast.Nonlocal))
    return {name: type(node) for node in nodes for name in node.names}


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the syntax nodes of some statements, except those inside nested functions and classes."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))


def is_generator(function: Function) -> bool:
    """Return whether a function is a generator."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(function.body))


def list_parameters(arguments: ast.arguments) -> list[ast.arg]:
    """List all named parameters, in the order in which they are written."""
    varargs = [arguments.vararg] if arguments.vararg else []
    keywords = [arguments.kwarg] if arguments.kwarg else []
    return [*arguments.posonlyargs, *arguments.args, *varargs, *arguments.kwonlyargs, *keywords]
