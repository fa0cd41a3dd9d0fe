"""Whether a system is still the one it was: the version that it declares, and the embedders it searches with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import partial
from types import FunctionType, MethodType

_DEEPEST = 40  # from a stage to what it calls
_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_LONGEST = 100  # longer collections are data, which have their own digests


def declared_version(system: object) -> str:
    """Return the version that a stage, or what builds one, declares; "" for none, and then it is always run
    again.
    """
    version = getattr(system, "version", "")
    return version if isinstance(version, str) else ""


def embedders_in(system: object) -> list[object]:
    """The embedders that a stage, or what builds one, holds: one for each digest, in the order of their
    names.

    Of one that a builder makes itself nothing is seen until the stage is built.
    """
    found = {str(getattr(value, "digest", "")): value for value in _embedders(system, {}, 0)}
    return sorted(found.values(), key=named_embedder)


def named_embedder(embedder: object) -> str:
    """An embedder as a receipt names it: its name and its digest."""
    return f"{getattr(embedder, 'name', '')} {getattr(embedder, 'digest', '')}"


def _embedders(value: object, seen: dict[int, object], depth: int) -> Iterator[object]:
    """The embedders that a value leads to: through what functions close over, arguments, attributes and short
    collections.
    """
    if isinstance(value, _PLAIN) or id(value) in seen or depth > _DEEPEST:
        return
    seen[id(value)] = value  # held, since the id of a value that is gone may be given to another
    if callable(getattr(type(value), "embed", None)) and isinstance(getattr(value, "digest", None), str):
        yield value
        return
    for each in _held(value):
        yield from _embedders(each, seen, depth + 1)


def _held(value: object) -> Iterable[object]:
    if isinstance(value, FunctionType):
        return (value.__defaults__, value.__kwdefaults__, *_closed_over(value))
    if isinstance(value, MethodType):
        return (value.__func__, value.__self__)
    if isinstance(value, partial):
        return (value.func, value.args, value.keywords)
    if isinstance(value, Mapping):
        return value.values() if len(value) < _LONGEST else ()
    if isinstance(value, tuple | list | set | frozenset):
        return value if len(value) < _LONGEST else ()
    if (
        is_dataclass(value)
        or callable(getattr(value, "step", None))
        or callable(getattr(value, "build", None))
    ):
        return vars(value).values() if hasattr(value, "__dict__") and not isinstance(value, type) else ()
    return ()


def _closed_over(function: FunctionType) -> Iterator[object]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not bound yet
            continue
