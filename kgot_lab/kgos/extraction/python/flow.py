"""The data flow of a module as constraints between variables, flow-insensitive but for the versions of local
names.

A constraint is a list, so that it can be kept as JSON: an operation, and the names of variables or constants
it is about. A variable is a text; a value is a list whose first item is its kind.

| constraint                                        | says
|
|---------------------------------------------------|-----------------------------------------------------------------------|
| copy, to, from                                    | whatever `from` may be, `to` may be
|
| new, to, value                                    | `to` may be this value
|
| note, to, from                                    | `to` may be an instance of what `from` may be: an
annotation          |
| get, to, base, attribute, caller, line            | `to` may be this attribute of `base`
|
| set, base, attribute, from                        | this attribute of `base` may be `from`
|
| item, to, base, key, caller, line                 | `to` may be what `base` holds at a key: a constant, a
variable or any |
| put, base, key, from                              | `base` may hold `from` at a key
|
| hold, box, key, from                              | this container holds `from` at a key
|
| part, to, base, from, until                       | `to` may be a slice of `base`
|
| each, to, base, caller, line                      | `to` may be what iterating over `base` gives
|
| call, to, callee, arguments, names, caller, line  | `to` may be what calling `callee` returns
|
| decorate, to, callee, of, caller, line            | `to` may be what a decorator makes of `of`
|
| enter, to, base, caller, line                     | `to` may be what the context manager `base` gives
|
| send, base, method, caller, line                  | an operation runs this method of `base`
|
| raise, base, caller, line                         | `base` is raised, and made if it is a class
|
| module, to, name                                  | `to` is a module
|
| from, to, module, name                            | `to` is what a module has under a name
|
| star, to, module                                  | a module has all that another has
|
| super, to, class, from                            | `to` is what `from` may be, without this class and those
before it    |
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kgot_lab.types import Json

ANY_KEY = ["any"]  # a key that is not known


def known_key(value: object) -> list[Json]:
    """A known key of a container: its kind too, since 1 and "1" are two keys."""
    return ["key", type(value).__name__, str(value)]


def variable_in(name: str, scope: str) -> str:
    """The variable of all that a name may be in a scope, whenever; and of an attribute of a class or a
    module.
    """
    return f"{name}@{scope}"


@dataclass
class Flow:
    """The constraints of one module while it is read."""

    module: str
    constraints: list[list[Json]] = field(default_factory=list)
    functions: dict[str, dict[str, Json]] = field(default_factory=dict)
    classes: dict[str, dict[str, Json]] = field(default_factory=dict)
    # what is written as a list, a tuple or a dictionary: its known keys
    boxes: dict[str, list[Json]] = field(default_factory=dict)
    dictionaries: list[str] = field(default_factory=list)  # those of them that iterate over their keys
    names: list[str] = field(default_factory=list)  # what the module binds
    _fresh: int = 0

    def fresh(self, what: str = "") -> str:
        """A variable, or a place where a container is made, that has no name in the code."""
        self._fresh += 1
        return f"{what}%{self._fresh}@{self.module}"

    def add(self, *constraint: Json) -> None:
        """Note a constraint."""
        self.constraints.append(list(constraint))

    def made(self, value: list[Json]) -> str:
        """A variable that is this value."""
        variable = self.fresh()
        self.add("new", variable, value)
        return variable

    def joined(self, variables: list[str]) -> str | None:
        """A variable that may be whatever any of some is; None for none."""
        different = list(dict.fromkeys(variables))
        if len(different) < 2:
            return different[0] if different else None
        variable = self.fresh()
        for each in different:
            self.add("copy", variable, each)
        return variable
