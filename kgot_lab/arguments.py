"""Check the arguments of public functions, and the fields of records, by their annotations.

Known are texts, numbers, paths, functions, containers with the type of their items, and classes. A parameter
whose annotation names anything else is not checked here.
"""

from __future__ import annotations

import os
import re
import sys
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence, Set
from functools import cache, wraps
from itertools import chain
from math import isnan
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from kgot_lab.errors import BadInput, describe_value, short_repr

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
_KINDS: Mapping[str, tuple[Any, str]] = {
    "str": (str, "a text"), "bool": (bool, "True or False"), "Path": (Path, "a path"), "None": (NoneType, "None"),
    "int": (int, "a whole number"), "float": ((int, float), "a number"), "Callable": (Callable, "a function"),
    "Iterable": (Iterable, "a list"), "Collection": (Collection, "a list"), "Sequence": (Sequence, "a list"),
    "tuple": ((tuple, list), "a list"), "Mapping": (Mapping, "a dictionary"), "type": (type, "a class"),
    "frozenset": (Set, "a set"),
}  # fmt: skip
_CONTAINERS = ("frozenset", "Iterable", "Collection", "Sequence", "tuple", "Mapping", "type")
_LONGEST_NAME, _LONGEST_PATH = 255, 4095  # bytes


class _Kind(NamedTuple):
    type: Any
    name: str
    items: tuple[_Kind, ...] = ()  # of a list; () if they are not checked


_Kinds = MutableMapping[str, tuple[_Kind, ...]]


def check_arguments(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Check the arguments of each call of a function by its annotations.

    A call raises BadInput for an argument of another type, and for a path that no file can have.
    """
    inner = getattr(function, "__wrapped__", function)
    names = inner.__code__.co_varnames[: inner.__code__.co_argcount]
    kinds = cache(lambda: _kinds_of(inner.__annotations__, inner.__globals__))

    @wraps(function)
    def checked(*arguments: Parameters.args, **options: Parameters.kwargs) -> Returned:
        _require_kinds(chain(zip(names, arguments, strict=False), options.items()), kinds())
        return function(*arguments, **options)

    return checked


def check_fields(record: Any) -> None:
    """Check the fields of a dataclass by their annotations. Raises BadInput as `check_arguments` does."""
    own: Any = type(record)
    kinds = _fields_of(own)
    _require_kinds(((name, getattr(record, name)) for name in kinds), kinds)


@cache
def _fields_of(record: type) -> _Kinds:
    bases = [_fields_of(base) for base in getattr(record, "__orig_bases__", ()) if isinstance(base, type)]
    return ChainMap(_kinds_of(record.__annotations__, vars(sys.modules[record.__module__])), *bases)


def _kinds_of(annotations: Mapping[str, Any], names: Mapping[str, Any]) -> _Kinds:
    """Return the kinds of each parameter whose annotation is known, with those of named options."""
    kinds: dict[str, tuple[_Kind, ...]] = {}
    for name, annotation in annotations.items():
        text = str(getattr(annotation, "__forward_arg__", getattr(annotation, "__name__", annotation)))
        if options := re.fullmatch(r"Unpack\[(\w+)\]", text):
            kinds |= _fields_of(names[options[1]])
        elif (known := tuple(_parse_union(text, names))) and None not in known:
            kinds[name] = known  # type: ignore[assignment]
    return kinds


def _parse_union(text: str, names: Mapping[str, Any]) -> Iterator[_Kind | None]:
    """Yield the kinds in an annotation, and None for what is not known."""
    for part in re.split(r" \| (?![^\[]*\])", text):
        head, _, inner = part.removesuffix("]").partition("[")
        value: Any = names.get(head.split(".")[0])
        for attribute in head.split(".")[1:]:
            value = getattr(value, attribute, None)
        if head in _KINDS:
            item = inner.partition(", ")[2] if head == "Mapping" else inner.removesuffix(", ...")
            items = tuple(_parse_union(item, names)) if head in _CONTAINERS else ()
            kind, name = _KINDS[head]
            name = f"{name} made from {inner}" if head == "type" else name
            yield _Kind(kind, name, () if None in items else items)  # type: ignore[arg-type]
        elif isinstance(origin := getattr(value, "__origin__", None), type):  # a name for Callable[…]
            yield from _parse_union(origin.__name__, names)
        elif isinstance(value, UnionType):
            yield from _parse_union(" | ".join(each.__name__ for each in value.__args__), names)
        elif isinstance(value, type) and value is not Any and not getattr(value, "_is_protocol", False):
            yield _Kind(value, f"{'an' if head[0] in 'AEIOU' else 'a'} {head}")
        else:
            yield None


def _require_kinds(values: Iterable[tuple[str, object]], kinds: _Kinds) -> None:
    for name, value in values:
        if name not in kinds:
            continue
        if not any(_is_kind(value, kind) for kind in kinds[name]):
            given = short_repr(value) if isinstance(value, list | tuple | dict) else describe_value(value)
            raise BadInput(f"the argument {name!r} is {_describe_kinds(kinds[name])}, not {given}")
        if isinstance(value, str | Path) and any(kind.type is Path for kind in kinds[name]):
            require_path(str(value), name)


def _is_kind(value: object, kind: _Kind) -> bool:
    is_number = not isinstance(value, bool) and not (isinstance(value, float) and isnan(value))
    if not isinstance(value, kind.type) or (kind.name.endswith("number") and not is_number):
        return False
    if kind.name == "a list" and isinstance(value, str | bytes):
        return False
    if isinstance(value, type):
        return all(issubclass(value, each.type) for each in kind.items)
    items = value.values() if kind.type is Mapping and isinstance(value, dict) else value
    if not kind.items or not isinstance(items, list | tuple | set | frozenset | type({}.values())):
        return True  # another container may compute its items when they are looked at
    one_of_each_type = dict(zip(map(type, items), items, strict=True)).values()  # there may be thousands
    return all(any(_is_kind(item, each) for each in kind.items) for item in one_of_each_type)


def _describe_kinds(kinds: Iterable[_Kind]) -> str:
    texts = (
        f"{kind.name} (each item {_describe_kinds(kind.items)})"
        if kind.items and kind.type is not type
        else kind.name
        for kind in kinds
    )
    return " or ".join(dict.fromkeys(texts))


def require_path(path: str, name: str) -> None:
    """Raise BadInput for a path that no file can have, as one with a NUL."""
    try:
        parts = os.fsencode(path).split(os.sep.encode())
    except UnicodeEncodeError:
        parts = [b"\0"]
    is_long = max(map(len, parts)) > _LONGEST_NAME or sum(map(len, parts)) > _LONGEST_PATH
    if is_long or b"\0" in b"".join(parts) or not path.strip():
        raise BadInput(f"the argument {name!r} is a path that no file can have: {short_repr(path)}")
