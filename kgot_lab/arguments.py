"""Check the arguments of public functions, and the fields of records, by their annotations.

Known are texts, numbers, paths, functions, containers with the type of their items, classes, and protocols by
their public members; for one with `__call__` a function may stand in. Any other annotation is not checked here.
Numbers and paths of other libraries become those of Python, and iterators lists.
"""

from __future__ import annotations

import json
import os
import re
import sys
from ast import literal_eval
from collections import ChainMap, Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence, Set
from dataclasses import field, fields
from datetime import date
from decimal import Decimal
from functools import cache, wraps
from inspect import CO_VARARGS, getattr_static, signature, unwrap
from io import IOBase
from itertools import chain, repeat
from numbers import Real
from pathlib import Path
from types import FunctionType, GeneratorType, NoneType, UnionType
from typing import Any, NamedTuple, Self, TypeVar

from kgot_lab.errors import (
    BadInput,
    UnknownName,
    attribute_errors,
    describe_value,
    require_between,
    require_count,
    require_known,
    short_repr,
)

Checked = TypeVar("Checked", bound=Callable[..., Any])
_KINDS: Mapping[str, tuple[Any, str]] = {
    "str": (str, "a text"), "bool": (bool, "True or False"), "Path": (Path, "a path"), "None": (NoneType, "None"),
    "int": (int, "a whole number"), "float": ((int, float), "a number"), "Callable": (Callable, "a function"),
    "Iterable": (Iterable, "a list"), "Collection": (Collection, "a list"), "Sequence": (Sequence, "a list"),
    "tuple": ((tuple, list), "a list"), "Mapping": (Mapping, "a dictionary"), "type": (type, "a class"),
    "frozenset": (Set, "a set"), "Set": (Set, "a set"), "AbstractSet": (Set, "a set"), "set": (set, "a set"),
    "list": (list, "a list"), "dict": (dict, "a dictionary"), "bytes": (bytes, "bytes"),
}  # fmt: skip
_CONTAINERS = (
    "frozenset", "Set", "AbstractSet", "set", "list", "dict", "Iterable", "Collection", "Sequence", "tuple", "Mapping", "type"
)  # fmt: skip
_CALLED = ("__init__", "__call__")  # methods that are checked as public ones are
_CALLBACKS = ("say", "progress", "now")  # arguments that are functions of the caller, whose errors name them
# texts of any kind: what no graph holds is not found, and an engine says what is wrong with a statement
_ANY_TEXT = frozenset(
    ("words", "query", "id", "value", "source", "target", "statement", "code", "symbol", "content")
)
_LONGEST_NAME, _LONGEST_PATH = 255, 4095  # bytes
_LARGEST = {"a number": sys.float_info.max, "a whole number": sys.maxsize}
_COUNTS = frozenset(("limit", "offset", "most", "top_k", "hops", "repairs", "max_length"))  # not below 0
_NO_FIT = object()  # instead of a value that is of none of some kinds
_MADE_BY = {
    "Store": "open_store(…)",
    "Embedder": "minilm()",
    "Verifier": "Aligner(embedder)",
    "LLM": "connect(…)",
}  # by protocol


class _Kind(NamedTuple):
    type: Any
    name: str
    items: tuple[_Kind, ...] = ()  # of a list; () if they are not checked
    members: tuple[str, ...] = ()  # of a protocol


class _Parameter(NamedTuple):
    kinds: tuple[_Kind, ...]
    exact: frozenset[type]  # of values that need no look at what is in them
    is_path: bool
    has_paths: bool  # in a list


_Kinds = MutableMapping[str, _Parameter]


def check_arguments(target: Checked) -> Checked:
    """Check the arguments of each call of a function, or of the public methods of a class, by their annotations.

    A call raises UnknownName for an argument that the function does not take, and BadInput for too few or too many, for
    one of another type, for a path that no file can have, for a text with a NUL or half a surrogate pair, and for a
    generator that was read to its end before. An error of a callback of _CALLBACKS raises LabError, which names it.
    A field of a dataclass may hold any text.
    """
    if not isinstance(target, type):
        return _check_calls(target)  # type: ignore[return-value]
    for name, method in [*vars(target).items()]:
        is_bound = isinstance(method, classmethod | staticmethod)
        if (
            (name[0] != "_" or name in _CALLED)
            and (is_bound or isinstance(method, FunctionType))
            and not hasattr(method, "by_names")
        ):
            is_record = name == "__init__" and "__dataclass_fields__" in vars(target)
            checked = _check_calls(method.__func__ if is_bound else method, plain=not is_record)
            setattr(target, name, type(method)(checked) if is_bound else checked)
    return target


class CheckedCalls:
    """Base class whose subclasses are checked as by `check_arguments`."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        check_arguments(cls)


def check_names(target: Checked) -> Checked:
    """Check only whether a call of a function, or of a class, has arguments that it takes, and all that it needs."""
    if isinstance(target, type):
        target.__init__ = _refuse_misfits(target.__init__)  # type: ignore[misc]
        return target
    called = _refuse_misfits(target)
    called.by_names = True  # type: ignore[attr-defined]
    return called  # type: ignore[return-value]


def _refuse_misfits(function: Callable[..., Any]) -> Callable[..., Any]:
    inner = unwrap(function)

    @wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except TypeError:
            _require_fit(inner, arguments, options)
            raise

    return called


def _check_calls(function: Callable[..., Any], *, plain: bool = True) -> Callable[..., Any]:
    inner = unwrap(function)
    code = inner.__code__
    names = code.co_varnames[: code.co_argcount]
    end = code.co_argcount + code.co_kwonlyargcount
    rest = code.co_varnames[end] if code.co_flags & CO_VARARGS else ""
    kinds = cache(lambda: _kinds_of(inner.__annotations__, inner.__globals__))

    @wraps(function)
    def checked(*arguments: Any, **options: Any) -> Any:
        known = kinds()
        given = zip(chain(names, repeat(rest)), arguments, strict=False)
        fitted = [_fit_argument(name, value, known, plain=plain) for name, value in given]
        for name, value in options.items():
            options[name] = _name_errors(name, _fit_argument(name, value, known, plain=plain))
        try:
            return function(*fitted, **options)
        except TypeError:
            _require_fit(inner, arguments, options)
            raise

    return checked


def _require_fit(function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Raise UnknownName, or BadInput for too few arguments or too many, unless a function can be called with these."""
    takes = signature(function)
    try:
        takes.bind(*arguments, **options)
    except TypeError as error:
        known = [each for each in takes.parameters if each not in ("self", "cls")]
        if "unexpected" in str(error):
            require_known("argument", known, *options)
        raise BadInput(f"this takes {', '.join(known) or 'no arguments'}: {error}") from None


def _name_errors(name: str, value: Any) -> Any:
    """Return a callback whose errors name it, and any other argument unchanged."""
    if name not in _CALLBACKS or not callable(value):
        return value
    return attribute_errors(f"the function {name!r} failed")(value)


def check_fields(record: Any, *, plain: bool = False) -> None:
    """Check the fields of a dataclass by their annotations. Raises BadInput as `check_arguments` does.

    Only if they are to be `plain` are texts with a NUL or half a surrogate pair refused: replies and traces may
    have them.
    """
    own: Any = type(record)
    kinds = _fields_of(own)
    for name in kinds:
        value = getattr(record, name)
        if (fitted := _fit_argument(name, value, kinds, plain=plain)) is not value:
            object.__setattr__(record, name, fitted)


@cache
def _fields_of(record: type) -> _Kinds:
    above = getattr(record, "__orig_bases__", record.__bases__)
    bases = [_fields_of(base) for base in above if "__annotations__" in getattr(base, "__dict__", ())]
    return ChainMap(_kinds_of(record.__annotations__, vars(sys.modules[record.__module__])), *bases)


POSITIVE = sys.float_info.min  # the lower bound of a number above 0


def bounded(default: Any, least: float, most: float = sys.float_info.max) -> Any:
    """Return a field of a CheckedRecord for a number with bounds. Without them, a number is 0 or more, and finite."""
    return field(default=default, metadata={"bounds": (least, most)})


class CheckedRecord(CheckedCalls):
    """Base class of a dataclass whose fields are checked by their annotations, and numbers by bounds.

    Raises BadInput, which names the field, after a prefix.
    """

    _prefix = _advice = ""  # before the name of a field, and after that of an unknown one

    def __new__(cls, *_: object, **options: object) -> Self:
        """Raise UnknownName for a field that the record does not have."""
        for name in options.keys() - cls.__dataclass_fields__.keys():  # type: ignore[attr-defined]
            known = [each.name for each in fields(cls) if each.init]  # type: ignore[arg-type]
            raise UnknownName(f"field of {cls.__name__}", name, known, advice=cls._advice)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check_fields(self)
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                least, most = each.metadata.get("bounds", (0, sys.float_info.max))
                require_between(value, least, most, self._prefix + each.name)


def _kinds_of(annotations: Mapping[str, Any], names: Mapping[str, Any]) -> _Kinds:
    """Return the kinds of each parameter whose annotation is known, with those of named options."""
    parameters: dict[str, _Parameter] = {}
    for name, annotation in annotations.items():
        text = str(getattr(annotation, "__forward_arg__", getattr(annotation, "__name__", annotation)))
        if options := re.fullmatch(r"Unpack\[(\w+)\]", text):
            parameters |= _fields_of(names[options[1]])
        elif (kinds := tuple(filter(None, parsed := [*_parse_union(text, names)]))) and None not in parsed:
            exact = {each.type for each in kinds if not each.items and not each.members}
            exact = {
                each
                for each in exact
                if each in (str, bool, NoneType) or hasattr(each, "__dataclass_fields__")
            }
            is_path, has_paths = (
                any(each.type is Path for kind in kinds for each in parts(kind))
                for parts in (lambda kind: [kind], lambda kind: kind.items)
            )
            parameters[name] = _Parameter(kinds, frozenset(exact), is_path, has_paths)
    return parameters


def _parse_union(text: str, names: Mapping[str, Any]) -> Iterator[_Kind | None]:
    """Yield the kinds in an annotation, and None for what is not known."""
    for part in re.split(r" \| (?![^\[]*\])", text):
        head, _, inner = part.removesuffix("]").partition("[")
        value: Any = names.get(head.split(".")[0])
        for attribute in head.split(".")[1:]:
            value = getattr(value, attribute, None)
        if head == "Literal":
            yield from (_Kind(type(each), repr(each)) for each in literal_eval(f"[{inner}]"))
        elif head in _KINDS:
            item = inner.partition(", ")[2] if head in ("Mapping", "dict") else inner.removesuffix(", ...")
            items = tuple(_parse_union(item, names)) if head in _CONTAINERS else ()
            kind, name = _KINDS[head]
            name = f"{name} made from {inner}" if head == "type" else name
            yield _Kind(kind, name, () if None in items else items)  # type: ignore[arg-type]
        elif isinstance(origin := getattr(value, "__origin__", None), type):  # a name for Callable[…]
            yield from _parse_union(origin.__name__, names)
        elif isinstance(value, UnionType):
            yield from _parse_union(" | ".join(each.__name__ for each in value.__args__), names)
        elif getattr(value, "_is_protocol", False):
            yield _protocol_kind(value)
        elif isinstance(value, type) and value is not Any:
            yield _Kind(value, f"{'an' if head[0] in 'AEIOU' else 'a'} {head}")
        else:
            yield None


def _protocol_kind(protocol: type) -> _Kind | None:
    parts = [vars(base) for base in protocol.__mro__ if getattr(base, "_is_protocol", False)]
    names = dict.fromkeys(name for own in parts for name in (*own.get("__annotations__", ()), *own))
    members = tuple(name for name in names if not name.startswith("_"))
    made = f", as {_MADE_BY[protocol.__name__]} gives" if protocol.__name__ in _MADE_BY else ""
    if "__call__" in names:
        return _Kind(Callable, f"a function or {protocol.__name__}{made}")
    if not members:
        return None
    texts = [f"{name}()" if callable(getattr(protocol, name, None)) else name for name in members]
    return _Kind(object, f"an object with {', '.join(texts)}{made}", (), members)


def _fit_argument(name: str, value: object, known: _Kinds, *, plain: bool = True) -> Any:
    """Return an argument as one of the kinds of its parameter. Raises BadInput if it is of none."""
    if name not in known:
        return value
    kinds, exact, is_path, has_paths = known[name]
    if type(value) in exact:
        fitted: Any = value
    elif (is_path or has_paths) and isinstance(value, IOBase):
        raise BadInput(f"the argument {name!r} is an open file: give its path")
    elif isinstance(value, GeneratorType) and value.gi_frame is None:
        raise BadInput(f"the argument {name!r} is a generator that was read to its end before: give a list")
    elif (fitted := _fit(value, kinds)) is _NO_FIT:
        given = short_repr(value) if isinstance(value, list | tuple | dict) else describe_value(value)
        members = [member for kind in kinds for member in kind.members]
        missing = [member for member in members if not has_member(value, member)]
        lacks = f", which has no {missing[0]}" if 0 < len(missing) < len(members) else ""
        if (
            isinstance(value, int)
            and any(kind.name in _LARGEST for kind in kinds)
            and not isinstance(value, bool)
        ):
            lacks = ": it is too large"
        raise BadInput(f"the argument {name!r} is {_describe_kinds(kinds)}, not {given}{lacks}")
    if name in _COUNTS and type(fitted) is int:
        require_count(fitted, 0, name)
    if is_path and isinstance(fitted, str | Path):
        require_path(str(fitted), name)
    elif has_paths:
        for each in fitted if isinstance(fitted, list | tuple) else ():
            require_path(str(each), name)
    elif plain and isinstance(fitted, str) and name not in _ANY_TEXT and not is_plain_text(fitted):
        problem = "holds a NUL or half a surrogate pair, which no database takes"
        raise BadInput(f"the argument {name!r} {problem}: {short_repr(fitted)}")
    return fitted


def _fit(value: object, kinds: Collection[_Kind]) -> object:
    """Return a value if it is of one of some kinds, or as the first that it can be converted to, or _NO_FIT."""
    if getattr(type(value), "item", None) and getattr(value, "ndim", None) == 0:
        value = value.item()  # type: ignore[attr-defined]  # a number of NumPy
    elif getattr(value, "ndim", None) == 1 and any(kind.name == "a list" for kind in kinds):
        value = value.tolist()  # type: ignore[attr-defined]
    if any(_is_kind(value, kind) for kind in kinds):
        return value
    converted = ((kind, _convert(value, kind)) for kind in kinds)
    return next((each for kind, each in converted if each is not value and _is_kind(each, kind)), _NO_FIT)


def _convert(value: object, kind: _Kind) -> object:
    try:
        if kind.name == "a number" and isinstance(value, Real | Decimal) and not isinstance(value, int):
            return float(value)
        if kind.type is Path and isinstance(value, os.PathLike):
            return Path(os.fsdecode(value))
    except (OverflowError, TypeError, ValueError):  # a fraction of a thousand digits; a path that is none
        return value
    if kind.type in (Mapping, dict) and isinstance(value, dict):
        return {name: _fit(item, kind.items) for name, item in value.items()}
    is_table = getattr(value, "ndim", 1) != 1 or hasattr(value, "adj")  # of pandas, or a graph of NetworkX
    is_other = is_table or isinstance(value, str | Mapping | set)
    if kind.name == "a list" and isinstance(value, Iterable) and not is_other:
        items = [_fit(item, kind.items) if kind.items else item for item in value]
        return tuple(items) if kind.type == _KINDS["tuple"][0] else items
    return value


def has_member(value: object, name: str) -> bool:
    """Return whether an object, and not merely its class, has an attribute, which is not computed."""
    is_defined = getattr_static(value, name, None) is not None or hasattr(value, name)
    return is_defined and not isinstance(value, type)


def _is_kind(value: object, kind: _Kind) -> bool:
    if kind.members:
        return all(has_member(value, name) for name in kind.members)
    if not isinstance(value, kind.type) or (isinstance(value, float | date) and value != value):  # NaN, NaT
        return False
    if kind.name.endswith("number") and isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= _LARGEST[kind.name]
    if kind.name == "a list" and isinstance(value, str | bytes):
        return False
    if isinstance(value, type):
        return all(issubclass(value, each.type) for each in kind.items)
    items = value.values() if kind.type in (Mapping, dict) and isinstance(value, dict) else value
    if not kind.items or not isinstance(items, list | tuple | dict | set | frozenset | type({}.values())):
        return True  # another container may compute its items when they are looked at
    if all(each.name != "a number" for each in kind.items):  # there may be thousands: one of each type
        items = dict(zip(map(type, items), items, strict=True)).values()
    return all(any(_is_kind(item, each) for each in kind.items) for item in items)


def _describe_kinds(kinds: Iterable[_Kind]) -> str:
    texts = (
        f"{kind.name} (each item {_describe_kinds(kind.items)})"
        if kind.items and kind.type is not type
        else kind.name
        for kind in kinds
    )
    return " or ".join(dict.fromkeys(texts))


def require_words(what: str, *texts: str) -> None:
    """Raise BadInput for a text that is blank. `what` names the texts, as in "the id of a node"."""
    if not all(map(str.strip, texts)):
        raise BadInput(f"{what} must not be blank: {short_repr(texts)}")


def distinct_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of an object, for json.loads. Raises ValueError if a key occurs twice."""
    if len(fields := dict(pairs)) < len(pairs):
        name = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"one object has the key {short_repr(name)} twice, of which one would be lost")
    return fields


def parse_json(text: str | bytes) -> Any:
    """Parse JSON that a user wrote. Raises ValueError if it does not parse, or if an object has a key twice."""
    return json.loads(text, object_pairs_hook=distinct_fields)


def is_plain_text(text: str) -> bool:
    """Return whether a text holds neither a NUL nor half a surrogate pair."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def require_path(path: str, name: str) -> None:
    """Raise BadInput for a path that no file can have, as one with a NUL."""
    try:
        parts = os.fsencode(path).split(os.sep.encode())
    except UnicodeEncodeError:
        parts = [b"\0"]
    is_long = max(map(len, parts)) > _LONGEST_NAME or sum(map(len, parts)) > _LONGEST_PATH
    if is_long or b"\0" in b"".join(parts) or not path.strip():
        raise BadInput(f"the argument {name!r} is a path that no file can have: {short_repr(path)}")
