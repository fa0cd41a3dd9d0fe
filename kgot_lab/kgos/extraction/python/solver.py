"""Inclusion constraints between variables, solved by passing on what is new (Andersen 1994; difference
propagation, Pearce et al. 2003).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

Value = tuple[Any, ...]  # its kind, and what it is of
# How many values of a kind a variable may be. One that may be more may be nearly anything, which says nothing
# of what a call calls, and without a bound the answer grows with the square of a program: each test of a
# package hands its own lists to the same functions.
MOST_OF_KIND: dict[str, int] = {
    "key": 12,
    "external": 12,
    "builtin": 12,
    "box": 12,
    "box method": 24,
    "generator": 12,
    "function": 24,
    "bound": 24,
    "super": 24,
}
_MOST_OTHERS = 40  # classes, their objects, modules


class Solver:
    """Which values each variable may be, up to a bound for each kind of value.

    Below the bounds it is the least solution, whichever order the constraints come in; a variable that
    reaches one keeps those that came first, and is named by `full`. The order is that of the constraints and
    the same in every process.
    """

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._values: list[Value] = []
        self._value_number: dict[Value, int] = {}
        self._may: list[set[int]] = []
        self._into: list[dict[int, None]] = []
        self._waiting: list[list[Callable[[Value], None]]] = []
        self._count: dict[tuple[int, str], int] = {}
        self._full: set[tuple[int, str]] = set()
        self._new: dict[int, list[int]] = {}
        self._queue: deque[int] = deque()

    def of(self, variable: str) -> int:
        """The number of a variable."""
        number = self._number.get(variable)
        if number is None:
            number = self._number[variable] = len(self._may)
            self._may.append(set())
            self._into.append({})
            self._waiting.append([])
        return number

    def may(self, number: int) -> list[Value]:
        """What a variable may be, as far as it is known."""
        return [self._values[value] for value in sorted(self._may[number])]

    def full(self, number: int, *kinds: str) -> bool:
        """Whether a variable may be more values of one of some kinds than are kept."""
        return any((number, kind) in self._full for kind in kinds)

    def add(self, number: int, value: Value) -> None:
        """A variable may be a value."""
        known = self._value_number.get(value)
        if known is None:
            known = self._value_number[value] = len(self._values)
            self._values.append(value)
        if known not in self._may[number]:
            self._take(number, (known,))

    def flow(self, source: int, target: int) -> None:
        """Whatever one variable may be, another may be."""
        if source == target or target in self._into[source]:
            return
        self._into[source][target] = None
        if missing := self._may[source] - self._may[target]:
            self._take(target, sorted(missing))

    def when(self, number: int, act: Callable[[Value], None]) -> None:
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
                held = self._may[target]
                if missing := [value for value in new if value not in held]:
                    self._take(target, missing)
            for act in tuple(self._waiting[number]):
                for value in new:
                    act(self._values[value])

    def _take(self, number: int, values: tuple[int, ...] | list[int]) -> None:
        """Add values that a variable does not hold, up to the bound of each kind."""
        held = self._may[number]
        taken: list[int] = []
        for value in values:
            kind = self._values[value][0]
            count = self._count.get((number, kind), 0)
            if count >= MOST_OF_KIND.get(kind, _MOST_OTHERS):
                self._full.add((number, kind))
                continue
            self._count[number, kind] = count + 1
            held.add(value)
            taken.append(value)
        if not taken:
            return
        if number in self._new:
            self._new[number] += taken
        else:
            self._new[number] = taken
            self._queue.append(number)
