"""A scope while its code is read: which versions of each local name may be meant at the point that is being
read.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from kgot_lab.kgos.extraction.python.flow import Flow, variable_in

Versions = dict[str, tuple[str, ...]]
_BUILTINS = frozenset(dir(builtins))


@dataclass
class Scope:
    """A module, a class or a function. `caller` is what runs its code: a comprehension and a lambda in it are
    told apart elsewhere.
    """

    id: str
    kind: Literal["module", "class", "function"]
    flow: Flow
    bound: set[str]
    outer: Scope | None = None
    own_class: str = ""  # of a method: the class it stands in
    first: str = ""  # of a method: its first parameter
    global_names: set[str] = field(default_factory=set)
    nonlocal_names: set[str] = field(default_factory=set)
    versions: Versions = field(default_factory=dict)
    # of loops and tries around this point: what gathers all versions
    collecting: list[dict[str, str]] = field(default_factory=list)
    lambdas: int = 0
    _count: int = 0

    @property
    def module(self) -> Scope:
        """The scope of the module."""
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        return scope

    def write(self, name: str, value: str | None) -> str:
        """A new version of a name; returns its variable."""
        if name in self.global_names or name in self.nonlocal_names:
            home = self.module if name in self.global_names else self._home(name) or self.module
            variable = variable_in(name, home.id)
            if value is not None:
                self.flow.add("copy", variable, value)
            return variable
        self._count += 1
        variable = f"{name}#{self._count}@{self.id}"
        if value is not None:
            self.flow.add("copy", variable, value)
        self.flow.add("copy", variable_in(name, self.id), variable)
        for gathering in self.collecting:
            if name in gathering:
                self.flow.add("copy", gathering[name], variable)
        self.versions[name] = (variable,)
        return variable

    def read(self, name: str) -> str | None:
        """The variable of what a name may be here; None for a name that stands for nothing known."""
        if versions := self.versions.get(name):
            return self.flow.joined(list(versions))
        if name in self.bound and name not in self.global_names:
            return variable_in(name, self.id)
        home = self.module if name in self.global_names else self._home(name)
        if home is not None:
            return variable_in(name, home.id)
        if name in _BUILTINS:
            return self.flow.made(["builtin", name])
        return variable_in(name, self.module.id)  # perhaps one of `from … import *`

    def _home(self, name: str) -> Scope | None:
        """The scope around this one that binds a name; classes are passed over, as Python does."""
        scope = self.outer
        while scope is not None:
            if name in scope.bound and (scope.kind != "class"):
                return scope
            scope = scope.outer
        return None

    def gather(self, names: Iterable[str]) -> None:
        """From here until `gathered`, keep all versions of these names: code that is run again, or left in
        the middle, may see any.
        """
        gathering: dict[str, str] = {}
        for name in sorted(names):
            if name in self.global_names or name in self.nonlocal_names:
                continue
            self._count += 1
            gathering[name] = f"{name}#{self._count}@{self.id}"
            for version in self.versions.get(name, ()):
                self.flow.add("copy", gathering[name], version)
            self.versions[name] = (gathering[name],)
        self.collecting.append(gathering)

    def gathered(self) -> None:
        """The end of what `gather` began: each of the names may be any of its versions."""
        for name, variable in self.collecting.pop().items():
            self.versions[name] = (variable,)


def either(one: Versions, other: Versions) -> Versions:
    """The versions after one of two ways was taken."""
    names = dict.fromkeys((*one, *other))
    return {name: tuple(dict.fromkeys((*one.get(name, ()), *other.get(name, ())))) for name in names}
