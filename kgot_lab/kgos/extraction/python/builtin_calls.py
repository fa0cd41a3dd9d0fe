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
class CallSite:
    """The arguments of a call as variables, its keyword arguments, and its position.

    An unknown argument is None, and *v is ("star", v).
    """

    arguments: list[int | tuple[str, int] | None]
    names: Mapping[str, int]
    caller: str
    line: int
    callee: int  # the variable of the callee
    operation: str = ""  # the method that an operator or a statement runs

    def positional(self, position: int) -> int | None:
        """Return the variable of a positional argument, or None if it is missing or unknown."""
        argument = self.arguments[position] if position < len(self.arguments) else None
        return argument if isinstance(argument, int) else None


def _model_copy(analysis: PointsTo, to: int, calls: CallSite) -> None:
    """Model list(x), sorted(x) and iter(x): the result contains the items of x."""
    if (argument := calls.positional(0)) is not None:
        analysis.solver.flow(argument, to)
    _model_key_function(analysis, calls)


def _model_key_function(analysis: PointsTo, calls: CallSite) -> None:
    """Model sorted(x, key=f): f is called with each item."""
    key, argument = calls.names.get("key"), calls.positional(0)
    if key is not None:
        item = _item_of(analysis, argument, calls)
        _call_function(analysis, key, analysis.solver.number_of(f"nothing@{calls.caller}"), [item], calls)


def _item_of(analysis: PointsTo, container: int | None, calls: CallSite) -> int | None:
    if container is None:
        return None
    item = analysis.solver.number_of(f"each of {container}@{calls.caller}")
    analysis.solver.on_value(container, lambda value: analysis.iterate(value, item, calls.caller, calls.line))
    return item


def _items_of_arguments(analysis: PointsTo, calls: CallSite) -> list[int | None]:
    return [_item_of(analysis, calls.positional(position), calls) for position in range(len(calls.arguments))]


def _call_function(
    analysis: PointsTo, function: int, to: int, arguments: list[int | None], calls: CallSite
) -> None:
    passed = CallSite(list(arguments), {}, calls.caller, calls.line, function)
    analysis.solver.on_value(function, lambda value: analysis.call(value, to, passed))


def _model_map(analysis: PointsTo, to: int, calls: CallSite) -> None:
    function = calls.positional(0)
    box, returned = f"mapped {to}", analysis.solver.number_of(f"mapped into {to}")
    analysis.solver.add(to, ("box", box))
    analysis.hold(box, ANY_KEY, returned)
    if function is not None:
        _call_function(analysis, function, returned, _items_of_arguments(analysis, calls)[1:], calls)


def _model_filter(analysis: PointsTo, to: int, calls: CallSite) -> None:
    function, argument = calls.positional(0), calls.positional(1)
    if argument is not None:
        analysis.solver.flow(argument, to)
    if function is not None:
        nothing = analysis.solver.number_of(f"nothing@{calls.caller}")
        _call_function(analysis, function, nothing, [_item_of(analysis, argument, calls)], calls)


def _model_min_max(analysis: PointsTo, to: int, calls: CallSite) -> None:
    """Model min and max: one item of a single collection, or one of several arguments."""
    if len(calls.arguments) == 1:
        if (item := _item_of(analysis, calls.positional(0), calls)) is not None:
            analysis.solver.flow(item, to)
    else:
        for argument in calls.arguments:
            if isinstance(argument, int):
                analysis.solver.flow(argument, to)
    _model_key_function(analysis, calls)


def _model_next(analysis: PointsTo, to: int, calls: CallSite) -> None:
    iterator = calls.positional(0)
    if iterator is not None:
        analysis.solver.on_value(iterator, lambda v: analysis.advance(v, to, calls.caller, calls.line))
    if (default := calls.positional(1)) is not None:
        analysis.solver.flow(default, to)


def _model_iter(analysis: PointsTo, to: int, calls: CallSite) -> None:
    def act(value: Value) -> None:
        if value[0] == "object":
            analysis.call_method(value, "__iter__", [], to, calls.caller, calls.line)
        else:
            analysis.solver.add(to, value)

    if (argument := calls.positional(0)) is not None:
        analysis.solver.on_value(argument, act)


def _model_enumerate(analysis: PointsTo, to: int, calls: CallSite) -> None:
    _build_tuples(analysis, to, [None, _item_of(analysis, calls.positional(0), calls)])


def _model_zip(analysis: PointsTo, to: int, calls: CallSite) -> None:
    _build_tuples(analysis, to, _items_of_arguments(analysis, calls))


def _build_tuples(analysis: PointsTo, to: int, columns: list[int | None]) -> None:
    """Build a collection of tuples with the given columns."""
    box, row = f"rows {to}", f"row {to}"
    tuple_variable = analysis.solver.number_of(f"held in {to}")
    analysis.solver.add(to, ("box", box))
    analysis.solver.add(tuple_variable, ("box", row))
    analysis.hold(box, ANY_KEY, tuple_variable)
    for position, column in enumerate(columns):
        if column is not None:
            analysis.hold(row, known_key(position), column)


def _model_getattr(analysis: PointsTo, to: int, calls: CallSite) -> None:
    _on_named_attribute(
        analysis, calls, lambda value, name: analysis.attribute(value, name, to, calls.caller, calls.line)
    )
    if (default := calls.positional(2)) is not None:
        analysis.solver.flow(default, to)


def _model_setattr(analysis: PointsTo, to: int, calls: CallSite) -> None:
    if (given := calls.positional(2)) is not None:
        _on_named_attribute(analysis, calls, lambda value, name: analysis.set_attribute(value, name, given))


def _on_named_attribute(analysis: PointsTo, calls: CallSite, act: Callable[[Value, str], None]) -> None:
    """Do something with each value of the first argument and each text that the second may be."""
    base, name = calls.positional(0), calls.positional(1)
    if base is not None and name is not None:

        def named(key: Value) -> None:
            if key[:2] == ("key", "str"):
                analysis.solver.on_value(base, lambda value: act(value, key[2]))

        analysis.solver.on_value(name, named)


def _model_type(analysis: PointsTo, to: int, calls: CallSite) -> None:
    if (argument := calls.positional(0)) is not None and len(calls.arguments) == 1:
        analysis.solver.on_value(
            argument,
            lambda value: analysis.solver.add(to, ("class", value[1])) if value[0] == "object" else None,
        )


def _model_super(analysis: PointsTo, to: int, calls: CallSite) -> None:
    own, of = calls.positional(0), calls.positional(1)
    if own is not None and of is not None:

        def after(value: Value) -> None:
            if value[0] == "class":
                analysis.solver.on_value(of, lambda each: analysis.solver.add(to, ("super", value[1], *each)))

        analysis.solver.on_value(own, after)


def _model_method_call(method: str) -> Builtin:
    """Model len(x) and str(x): they run a method of x."""

    def act(analysis: PointsTo, to: int, calls: CallSite) -> None:
        if (argument := calls.positional(0)) is not None:
            where = (method, calls.caller, calls.line)
            analysis.solver.on_value(argument, lambda value: analysis.run_method(value, *where))

    return act


Builtin = Callable[["PointsTo", int, CallSite], None]
BUILTINS: Mapping[str, Builtin] = {
    **dict.fromkeys(
        ("list", "tuple", "set", "frozenset", "dict", "sorted", "reversed", "aiter"), _model_copy
    ),
    "map": _model_map,
    "filter": _model_filter,
    **dict.fromkeys(("min", "max"), _model_min_max),
    **dict.fromkeys(("next", "anext"), _model_next),
    "iter": _model_iter,
    "enumerate": _model_enumerate,
    "zip": _model_zip,
    "getattr": _model_getattr,
    "setattr": _model_setattr,
    "type": _model_type,
    "super": _model_super,
    **{name: _model_method_call(f"__{name}__") for name in "len str repr bool hash abs int float".split()},
}


# --- methods of lists, sets and dictionaries ---


def _model_append(analysis: PointsTo, box: str, to: int, calls: CallSite) -> None:
    """Model append, add and insert: the last argument is stored at an unknown key."""
    if calls.arguments and (argument := calls.positional(len(calls.arguments) - 1)) is not None:
        analysis.hold(box, ANY_KEY, argument)


def _model_extend(analysis: PointsTo, box: str, to: int, calls: CallSite) -> None:
    """Model extend and update: the items of the argument are stored.

    Items of a dictionary are stored under their keys.
    """
    argument = calls.positional(0)

    def act(value: Value) -> None:
        if value[0] == "box":
            for key in analysis.boxes.get(value[1], ()):
                at = key if box in analysis.program.dictionaries else ANY_KEY
                analysis.hold(box, at, analysis.slot(value[1], key))
            analysis.hold(box, ANY_KEY, analysis.slot(value[1], ANY_KEY))
            if not analysis.boxes.get(value[1]):
                analysis.hold(box, ANY_KEY, analysis.slot(value[1], "all"))
        elif value[0] == "generator":
            analysis.hold(box, ANY_KEY, analysis.solver.number_of(f"yield@{value[1]}"))

    if argument is not None:
        analysis.solver.on_value(argument, act)
    for name, named in calls.names.items():
        analysis.hold(box, known_key(name), named)


def _model_get(analysis: PointsTo, box: str, to: int, calls: CallSite) -> None:
    """Model get, pop and setdefault: the value at the first argument's key, or the second argument."""
    key = calls.positional(0)
    if key is None:
        analysis.solver.flow(analysis.slot(box, "all"), to)
    else:
        analysis.item(("box", box), key, to, calls.caller, calls.line)
    if (default := calls.positional(1)) is not None:
        analysis.solver.flow(default, to)


def _model_setdefault(analysis: PointsTo, box: str, to: int, calls: CallSite) -> None:
    _model_get(analysis, box, to, calls)
    if (default := calls.positional(1)) is not None:
        analysis.hold(box, ANY_KEY, default)


def _model_values(analysis: PointsTo, box: str, to: int, calls: CallSite) -> None:
    values = f"values of {box}"
    analysis.solver.add(to, ("box", values))
    analysis.hold(values, ANY_KEY, analysis.slot(box, "all"))


def _model_same_items(analysis: PointsTo, box: str, to: int, calls: CallSite) -> None:
    analysis.solver.add(to, ("box", box))  # of a dictionary too: iterating over it yields its keys


def _model_items(analysis: PointsTo, box: str, to: int, calls: CallSite) -> None:
    pairs, pair = f"items of {box}", f"item of {box}"
    pair_variable = analysis.solver.number_of(f"pair of {box}")
    analysis.solver.add(to, ("box", pairs))
    analysis.solver.add(pair_variable, ("box", pair))
    analysis.hold(pairs, ANY_KEY, pair_variable)
    keys = analysis.solver.number_of(f"keys of {box}")
    for key in analysis.boxes.get(box, ()):
        analysis.solver.add(keys, tuple(key))
    analysis.hold(pair, known_key(0), keys)
    analysis.hold(pair, known_key(1), analysis.slot(box, "all"))


def _model_sort(analysis: PointsTo, box: str, to: int, calls: CallSite) -> None:
    if (key := calls.names.get("key")) is not None:
        nothing = analysis.solver.number_of(f"nothing@{calls.caller}")
        _call_function(analysis, key, nothing, [analysis.slot(box, "all")], calls)


CONTAINER_METHODS: Mapping[str, Callable[[PointsTo, str, int, CallSite], None]] = {
    **dict.fromkeys(("append", "add", "insert", "appendleft"), _model_append),
    **dict.fromkeys(("extend", "update"), _model_extend),
    **dict.fromkeys(("get", "pop", "popleft", "popitem"), _model_get),
    "setdefault": _model_setdefault,
    "values": _model_values,
    "keys": _model_same_items,
    "items": _model_items,
    "copy": _model_same_items,
    "sort": _model_sort,
}
