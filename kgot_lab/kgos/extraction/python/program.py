"""All modules of a folder together: their functions and classes, name resolution of modules, and method
resolution order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kgot_lab.kgos.extraction.facts import FileFacts, ModuleNames


@dataclass
class Program:
    """The flows of all modules of a program.

    `bases` and `order` are filled by the analysis, which resolves base classes.
    """

    names: ModuleNames
    flows: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # by module
    functions: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    classes: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    keys: dict[str, list[Any]] = field(default_factory=dict)  # of each container display
    dictionaries: set[str] = field(default_factory=set)
    # of each class; those of other packages are ext:…
    bases: dict[str, list[str]] = field(default_factory=dict)
    # the resolution order of each class, itself first
    order: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Iterable[FileFacts], names: ModuleNames) -> Program:
        """Collect the program of some Python files."""
        program = cls(names)
        for facts in files:
            if facts.flow is None:
                continue
            program.flows[facts.file.id] = facts.flow
            program.functions.update(facts.flow["functions"])
            program.classes.update(facts.flow["classes"])
            program.keys.update(facts.flow["boxes"])
            program.dictionaries.update(facts.flow["dictionaries"])
        return program

    def lines_of(self, caller: str) -> list[int]:
        """Return the lines of the module in which a caller is, by their positions in its constraints."""
        while caller not in self.flows:
            caller = caller.rpartition(".")[0]
        return self.flows[caller]["lines"]  # type: ignore[no-any-return]

    def exported_names(self, module: str) -> set[str]:
        """Return the names that `from module import *` binds, also through other modules."""
        found: set[str] = set()
        seen: set[str] = set()
        waiting = [module]
        while waiting:
            each = waiting.pop()
            if each in seen or each not in self.flows:
                continue
            seen.add(each)
            found.update(name for name in self.flows[each]["names"] if not name.startswith("_"))
            stars = [c[2] for c in self.flows[each]["constraints"] if c[0] == "star"]
            waiting += [id for name in stars if (id := self.names.find(name, each)) is not None]
        return found


def resolution_orders(bases: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Compute the method resolution order of each class (C3, Barrett et al. 1996, as Python does it).

    If the bases are inconsistent, which no running program has, the order is depth first.
    """
    done: dict[str, tuple[str, ...]] = {}

    def order_of(name: str, above: frozenset[str]) -> tuple[str, ...]:
        if name in done:
            return done[name]
        own = [base for base in dict.fromkeys(bases.get(name, ())) if base not in above and base != name]
        parts = [list(order_of(each, above | {name})) for each in own]
        merged = _merge_linearisations([*parts, own])
        done[name] = (name, *merged)
        return done[name]

    for name in bases:
        order_of(name, frozenset())
    return done


def _merge_linearisations(sequences: list[list[str]]) -> list[str]:
    merged: list[str] = []
    waiting = [list(sequence) for sequence in sequences if sequence]
    while waiting:
        heads = [each[0] for each in waiting]
        tails = {name for each in waiting for name in each[1:]}
        chosen = next((head for head in heads if head not in tails), heads[0])
        merged.append(chosen)
        waiting = [rest for each in waiting if (rest := [name for name in each if name != chosen])]
    return merged


# Inclusion constraints between variables, solved by difference propagation (Andersen 1994; Pearce et al.
# 2003).

Value = tuple[Any, ...]  # its kind, and what it refers to
# Limits on the number of values of a kind that a variable may have. A variable with more may be nearly
# anything, which does not resolve a call. Without a limit the result grows with the square of the program,
# since each test of a package passes its own lists to the same functions.
MAX_VALUES_BY_KIND = dict.fromkeys(("key", "external", "builtin", "box", "generator"), 12)
MAX_VALUES_BY_KIND |= dict.fromkeys(("box method", "function", "bound", "super"), 24)
_MAX_OTHER_VALUES = 40  # classes, their objects, modules


class Solver:
    """A solver for the values of each variable, up to a limit for each kind of value.

    Below the limits the result is the least solution, whatever the order of the constraints. A variable that
    reaches a limit keeps the values that came first, and `full` reports it. The order is that of the
    constraints and is the same in every process.
    """

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._values: list[Value] = []
        self._value_number: dict[Value, int] = {}
        self._kinds: list[str] = []  # of each value
        self._may: list[set[int]] = []
        self._seen: list[set[int]] = []  # with the values over the limit
        self._into: list[dict[int, None]] = []
        self._waiting: list[list[Callable[[Value], None]]] = []
        self._count: list[dict[str, int]] = []  # of the values of each kind, by variable
        self._full: set[tuple[int, str]] = set()
        self._new: dict[int, list[int]] = {}
        self._queue: deque[int] = deque()

    def number_of(self, variable: str) -> int:
        """Return the number of a variable, and register it if it is new."""
        number = self._number.get(variable)
        if number is None:
            number = self._number[variable] = len(self._may)
            self._may.append(set())
            self._seen.append(set())
            self._into.append({})
            self._waiting.append([])
            self._count.append({})
        return number

    def possible_values(self, number: int) -> list[Value]:
        """List the values that a variable may have, as far as they are known."""
        return [self._values[value] for value in sorted(self._may[number])]

    def is_full(self, number: int, *kinds: str) -> bool:
        """Return whether a variable has reached the limit of values for one of some kinds."""
        return any((number, kind) in self._full for kind in kinds)

    def add(self, number: int, value: Value) -> None:
        """Add a value to those that a variable may have."""
        known = self._value_number.get(value)
        if known is None:
            known = self._value_number[value] = len(self._values)
            self._values.append(value)
            self._kinds.append(value[0])
        if known not in self._seen[number]:
            self._add_values(number, (known,))

    def flow(self, source: int, target: int) -> None:
        """Whatever one variable may be, another may be."""
        if source == target or target in self._into[source]:
            return
        self._into[source][target] = None
        if missing := self._may[source] - self._seen[target]:
            self._add_values(target, sorted(missing))

    def on_value(self, number: int, act: Callable[[Value], None]) -> None:
        """Do something with each value that a variable may be, now and later."""
        self._waiting[number].append(act)
        for value in sorted(self._may[number]):
            act(self._values[value])

    def solve(self) -> None:
        """Pass on what is new until nothing is."""
        while self._queue:
            number = self._queue.popleft()
            new = self._new.pop(number)
            for target in self._into[number]:
                seen = self._seen[target]
                if missing := [value for value in new if value not in seen]:
                    self._add_values(target, missing)
            for act in tuple(self._waiting[number]):
                for value in new:
                    act(self._values[value])

    def _add_values(self, number: int, values: tuple[int, ...] | list[int]) -> None:
        """Add values that a variable has not seen, up to the bound of each kind."""
        counts, kinds = self._count[number], self._kinds
        self._seen[number].update(values)
        taken: list[int] = []
        for value in values:
            kind = kinds[value]
            count = counts.get(kind, 0)
            if count >= MAX_VALUES_BY_KIND.get(kind, _MAX_OTHER_VALUES):
                self._full.add((number, kind))
                continue
            counts[kind] = count + 1
            taken.append(value)
        self._may[number].update(taken)
        if not taken:
            return
        if number in self._new:
            self._new[number] += taken
        else:
            self._new[number] = taken
            self._queue.append(number)
