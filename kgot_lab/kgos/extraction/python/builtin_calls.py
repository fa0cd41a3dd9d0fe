"""Model what builtin functions, and the methods of lists, sets and dictionaries, do with their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgot_lab.kgos.extraction.python.flow import ANY_KEY, known_key
from kgot_lab.kgos.extraction.python.program import Value

if TYPE_CHECKING:
    from kgot_lab.kgos.extraction.python.points_to import PointsTo


@dataclass(frozen=True)
class CallMade:
    """The arguments of a call as variables, its keyword arguments, and its position.

    An unknown argument is None, and *v is ("star", v).
    """

    arguments: list[int | tuple[str, int] | None]
    names: Mapping[str, int]
    caller: str
    line: int
    callee: int  # the variable of the callee
    operation: str = ""  # the method that an operator or a statement runs

    def argument(self, place: int) -> int | None:
        """Return the variable of a positional argument, or None if it is missing or unknown."""
        given = self.arguments[place] if place < len(self.arguments) else None
        return given if isinstance(given, int) else None


def _passes(analysis: PointsTo, to: int, calls: CallMade) -> None:
    """Model list(x), sorted(x) and iter(x): the result contains the items of x."""
    if (given := calls.argument(0)) is not None:
        analysis.solver.flow(given, to)
    _with_key(analysis, calls)


def _with_key(analysis: PointsTo, calls: CallMade) -> None:
    """Model sorted(x, key=f): f is called with each item."""
    key, given = calls.names.get("key"), calls.argument(0)
    if key is not None:
        each = _each(analysis, given, calls)
        _call(analysis, key, analysis.solver.of(f"nothing@{calls.caller}"), [each], calls)


def _each(analysis: PointsTo, given: int | None, calls: CallMade) -> int | None:
    if given is None:
        return None
    each = analysis.solver.of(f"each of {given}@{calls.caller}")
    analysis.solver.when(given, lambda value: analysis.each(value, each, calls.caller, calls.line))
    return each


def _each_argument(analysis: PointsTo, calls: CallMade) -> list[int | None]:
    return [_each(analysis, calls.argument(place), calls) for place in range(len(calls.arguments))]


def _call(analysis: PointsTo, function: int, to: int, arguments: list[int | None], calls: CallMade) -> None:
    passed = CallMade(list(arguments), {}, calls.caller, calls.line, function)
    analysis.solver.when(function, lambda value: analysis.call(value, to, passed))


def _map(analysis: PointsTo, to: int, calls: CallMade) -> None:
    function = calls.argument(0)
    box, returned = f"mapped {to}", analysis.solver.of(f"mapped into {to}")
    analysis.solver.add(to, ("box", box))
    analysis.hold(box, ANY_KEY, returned)
    if function is not None:
        _call(analysis, function, returned, _each_argument(analysis, calls)[1:], calls)


def _filter(analysis: PointsTo, to: int, calls: CallMade) -> None:
    function, given = calls.argument(0), calls.argument(1)
    if given is not None:
        analysis.solver.flow(given, to)
    if function is not None:
        nothing = analysis.solver.of(f"nothing@{calls.caller}")
        _call(analysis, function, nothing, [_each(analysis, given, calls)], calls)


def _best(analysis: PointsTo, to: int, calls: CallMade) -> None:
    """Model min and max: one item of a single collection, or one of several arguments."""
    if len(calls.arguments) == 1:
        if (each := _each(analysis, calls.argument(0), calls)) is not None:
            analysis.solver.flow(each, to)
    else:
        for given in calls.arguments:
            if isinstance(given, int):
                analysis.solver.flow(given, to)
    _with_key(analysis, calls)


def _next(analysis: PointsTo, to: int, calls: CallMade) -> None:
    given = calls.argument(0)
    if given is not None:
        analysis.solver.when(given, lambda value: analysis.advance(value, to, calls.caller, calls.line))
    if (default := calls.argument(1)) is not None:
        analysis.solver.flow(default, to)


def _iter(analysis: PointsTo, to: int, calls: CallMade) -> None:
    def act(value: Value) -> None:
        if value[0] == "object":
            analysis.send(value, "__iter__", [], to, calls.caller, calls.line)
        else:
            analysis.solver.add(to, value)

    if (given := calls.argument(0)) is not None:
        analysis.solver.when(given, act)


def _enumerate(analysis: PointsTo, to: int, calls: CallMade) -> None:
    _rows(analysis, to, [None, _each(analysis, calls.argument(0), calls)])


def _zip(analysis: PointsTo, to: int, calls: CallMade) -> None:
    _rows(analysis, to, _each_argument(analysis, calls))


def _rows(analysis: PointsTo, to: int, columns: list[int | None]) -> None:
    """Build a collection of tuples with the given columns."""
    box, row = f"rows {to}", f"row {to}"
    held = analysis.solver.of(f"held in {to}")
    analysis.solver.add(to, ("box", box))
    analysis.solver.add(held, ("box", row))
    analysis.hold(box, ANY_KEY, held)
    for place, column in enumerate(columns):
        if column is not None:
            analysis.hold(row, known_key(place), column)


def _getattr(analysis: PointsTo, to: int, calls: CallMade) -> None:
    base, name = calls.argument(0), calls.argument(1)
    if base is not None and name is not None:

        def named(key: Value) -> None:
            if key[:2] == ("key", "str"):
                analysis.solver.when(
                    base, lambda value: analysis.attribute(value, key[2], to, calls.caller, calls.line)
                )

        analysis.solver.when(name, named)
    if (default := calls.argument(2)) is not None:
        analysis.solver.flow(default, to)


def _setattr(analysis: PointsTo, to: int, calls: CallMade) -> None:
    base, name, given = (calls.argument(place) for place in range(3))
    if base is not None and name is not None and given is not None:

        def named(key: Value) -> None:
            if key[:2] == ("key", "str"):
                analysis.solver.when(base, lambda value: analysis.set_attribute(value, key[2], given))

        analysis.solver.when(name, named)


def _type(analysis: PointsTo, to: int, calls: CallMade) -> None:
    if (given := calls.argument(0)) is not None and len(calls.arguments) == 1:
        analysis.solver.when(
            given,
            lambda value: analysis.solver.add(to, ("class", value[1])) if value[0] == "object" else None,
        )


def _super(analysis: PointsTo, to: int, calls: CallMade) -> None:
    own, of = calls.argument(0), calls.argument(1)
    if own is not None and of is not None:

        def after(value: Value) -> None:
            if value[0] == "class":
                analysis.solver.when(of, lambda each: analysis.solver.add(to, ("super", value[1], *each)))

        analysis.solver.when(own, after)


def _sends(method: str) -> Builtin:
    """Model len(x) and str(x): they run a method of x."""

    def act(analysis: PointsTo, to: int, calls: CallMade) -> None:
        if (given := calls.argument(0)) is not None:
            where = (method, calls.caller, calls.line)
            analysis.solver.when(given, lambda value: analysis.send_only(value, *where))

    return act


Builtin = Callable[["PointsTo", int, CallMade], None]
BUILTINS: Mapping[str, Builtin] = {
    **dict.fromkeys(("list", "tuple", "set", "frozenset", "dict", "sorted", "reversed", "aiter"), _passes),
    "map": _map,
    "filter": _filter,
    **dict.fromkeys(("min", "max"), _best),
    **dict.fromkeys(("next", "anext"), _next),
    "iter": _iter,
    "enumerate": _enumerate,
    "zip": _zip,
    "getattr": _getattr,
    "setattr": _setattr,
    "type": _type,
    "super": _super,
    **{name: _sends(f"__{name}__") for name in "len str repr bool hash abs int float".split()},
}


# --- methods of lists, sets and dictionaries ---


def _added(analysis: PointsTo, box: str, to: int, calls: CallMade) -> None:
    """Model append, add and insert: the last argument is stored at an unknown key."""
    if calls.arguments and (given := calls.argument(len(calls.arguments) - 1)) is not None:
        analysis.hold(box, ANY_KEY, given)


def _extended(analysis: PointsTo, box: str, to: int, calls: CallMade) -> None:
    """Model extend and update: the items of the argument are stored.

    Items of a dictionary are stored under their keys.
    """
    given = calls.argument(0)

    def act(value: Value) -> None:
        if value[0] == "box":
            for key in analysis.boxes.get(value[1], ()):
                at = key if box in analysis.program.dictionaries else ANY_KEY
                analysis.hold(box, at, analysis.slot(value[1], key))
            analysis.hold(box, ANY_KEY, analysis.slot(value[1], ANY_KEY))
            if not analysis.boxes.get(value[1]):
                analysis.hold(box, ANY_KEY, analysis.slot(value[1], "all"))
        elif value[0] == "generator":
            analysis.hold(box, ANY_KEY, analysis.solver.of(f"yield@{value[1]}"))

    if given is not None:
        analysis.solver.when(given, act)
    for name, named in calls.names.items():
        analysis.hold(box, known_key(name), named)


def _got(analysis: PointsTo, box: str, to: int, calls: CallMade) -> None:
    """Model get, pop and setdefault: the value at the first argument's key, or the second argument."""
    key = calls.argument(0)
    if key is None:
        analysis.solver.flow(analysis.slot(box, "all"), to)
    else:
        analysis.item(("box", box), key, to, calls.caller, calls.line)
    if (default := calls.argument(1)) is not None:
        analysis.solver.flow(default, to)


def _set_default(analysis: PointsTo, box: str, to: int, calls: CallMade) -> None:
    _got(analysis, box, to, calls)
    if (default := calls.argument(1)) is not None:
        analysis.hold(box, ANY_KEY, default)


def _values(analysis: PointsTo, box: str, to: int, calls: CallMade) -> None:
    values = f"values of {box}"
    analysis.solver.add(to, ("box", values))
    analysis.hold(values, ANY_KEY, analysis.slot(box, "all"))


def _keys(analysis: PointsTo, box: str, to: int, calls: CallMade) -> None:
    analysis.solver.add(to, ("box", box))  # iterating over a dictionary yields its keys


def _pairs(analysis: PointsTo, box: str, to: int, calls: CallMade) -> None:
    pairs, pair = f"items of {box}", f"item of {box}"
    held = analysis.solver.of(f"pair of {box}")
    analysis.solver.add(to, ("box", pairs))
    analysis.solver.add(held, ("box", pair))
    analysis.hold(pairs, ANY_KEY, held)
    keys = analysis.solver.of(f"keys of {box}")
    for key in analysis.boxes.get(box, ()):
        analysis.solver.add(keys, tuple(key))
    analysis.hold(pair, known_key(0), keys)
    analysis.hold(pair, known_key(1), analysis.slot(box, "all"))


def _same(analysis: PointsTo, box: str, to: int, calls: CallMade) -> None:
    analysis.solver.add(to, ("box", box))


def _model_sorted(analysis: PointsTo, box: str, to: int, calls: CallMade) -> None:
    if (key := calls.names.get("key")) is not None:
        nothing = analysis.solver.of(f"nothing@{calls.caller}")
        _call(analysis, key, nothing, [analysis.slot(box, "all")], calls)


METHODS_OF_BOXES: Mapping[str, Callable[[PointsTo, str, int, CallMade], None]] = {
    **dict.fromkeys(("append", "add", "insert", "appendleft"), _added),
    **dict.fromkeys(("extend", "update"), _extended),
    **dict.fromkeys(("get", "pop", "popleft", "popitem"), _got),
    "setdefault": _set_default,
    "values": _values,
    "keys": _keys,
    "items": _pairs,
    "copy": _same,
    "sort": _model_sorted,
}
