"""Whether a system is still the one it was: a digest of the code that it runs, and the embedders it searches
with.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

import numpy as np

from kgot_lab.evaluation.own_code import code_behind, files_behind, is_ours

_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_DEEPEST = 40  # from a stage to what it calls
_SMALL = 100_000  # bytes of an array that may be learnt weights; larger ones are indexes, which follow from the data
_INSTALLED = tuple(str(Path(place).resolve()) for place in {sys.prefix, sys.base_prefix})


def source_digest(system: object) -> str:
    """SHA-256 of the code a system runs, as far as it can be followed: a stage, or what builds one.

    Of your own code these count: the functions, what they close over, and the files of modules beside them.
    Of this package: of a function that builds a system what it reaches by name in its file, and else every
    file, whole, that its file imports, so that a comment changes it too. It is the same in another process,
    and another one after any such change; compiled by another version of Python a function of yours counts as
    changed. So do arrays of up to 100 kB, such as weights. Not seen are other installed packages, larger
    arrays, lists, dictionaries and sets of plain values that a function closes over (it may fill them), what
    it reads from files or servers, names that it makes up while it runs, and a change made after a module was
    first looked at.
    """
    digest = hashlib.sha256()
    for part in sorted(set(_of_system(system, {}))):
        digest.update(part.encode("utf-8", "backslashreplace") + b"\0")
    return digest.hexdigest()


def embedders_in(system: object) -> list[object]:
    """The embedders that a stage, or what builds one, holds: one for each digest, in the order of their
    names.

    Of one that a builder makes itself nothing is seen until the stage is built.
    """
    seen: dict[int, object] = {}
    for _ in _of_system(system, seen):
        pass
    found = {str(getattr(value, "digest", "")): value for value in seen.values() if _embeds(value)}
    return sorted(found.values(), key=named_embedder)


def named_embedder(embedder: object) -> str:
    """An embedder as a receipt names it: its name and its digest."""
    return f"{getattr(embedder, 'name', '')} {getattr(embedder, 'digest', '')}"


def _embeds(value: object) -> bool:
    return callable(getattr(type(value), "embed", None)) and isinstance(getattr(value, "digest", None), str)


# --- a builder of this package
# ------------------------------------------------------------------------------------------


def _of_system(system: object, seen: dict[int, object]) -> Iterator[str]:
    """What there is to tell of a system: of a function of this package that builds one, only what it uses of
    its file.
    """
    if isinstance(system, partial):
        yield from _of_system(system.func, seen)
        yield from _all((system.args, system.keywords), seen, 0)
        return
    given = getattr(system, "build", system)
    function = given.__func__ if isinstance(given, MethodType) else given
    if isinstance(function, FunctionType) and is_ours(function.__module__):
        behind = code_behind(function)
        yield from behind.texts
        for module in behind.modules:
            yield from files_behind(module)
        for value in (*([given.__self__] if isinstance(given, MethodType) else []), *_closed_over(function)):
            if (
                type(value).__module__ == function.__module__
            ):  # of what its file defines, the parts that it uses
                value = tuple(
                    part
                    for name, part in getattr(value, "__dict__", {}).items()
                    if name in behind.names and _embeds(part)
                )
            yield from _parts(value, seen, 0)
    else:
        yield from _parts(system, seen, 0)


# --- a stage, and any code of yours
# ---------------------------------------------------------------------------------------


def _parts(value: object, seen: dict[int, object], depth: int) -> Iterator[str]:
    """What there is to tell of a value and of all it leads to, as texts."""
    if isinstance(value, _PLAIN):
        yield repr(value)
        return
    if id(value) in seen or depth > _DEEPEST:
        return
    seen[id(value)] = value  # held, since the place of a value that is gone may be given to another
    if _embeds(value):  # its digest is told beside that of the code
        return
    if isinstance(value, np.ndarray):
        if value.nbytes <= _SMALL and value.dtype != object:
            yield f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif isinstance(value, ModuleType):
        yield from _of_file(getattr(value, "__file__", None), value, seen, depth)
    elif isinstance(value, FunctionType):
        yield from files_behind(value.__module__) if is_ours(value.__module__) else _of_code(value.__code__)
        yield from _all(
            (value.__defaults__, value.__kwdefaults__, *_closed_over(value), *_called(value)), seen, depth
        )
    elif isinstance(value, MethodType):
        yield from _all((value.__func__, value.__self__), seen, depth)
    elif isinstance(value, partial):
        yield from _all((value.func, value.args, value.keywords), seen, depth)
    elif isinstance(value, Mapping):
        yield from _all((*value.keys(), *value.values()) if len(value) < 100 else (), seen, depth)
    elif isinstance(value, tuple | list | set | frozenset):
        yield from _all(
            value if len(value) < 100 else (), seen, depth
        )  # longer ones are data, which have their own digests
    elif is_ours(getattr(value if isinstance(value, type) else type(value), "__module__", None)):
        yield from _of_ours(value, seen, depth)
    elif isinstance(value, type):
        yield from _all(
            (sys.modules.get(value.__module__), *vars(value).values()) if _own(value.__module__) else (),
            seen,
            depth,
        )
    elif not isinstance(value, BuiltinFunctionType) and (
        _own(type(value).__module__) or callable(getattr(value, "step", None))
    ):
        yield from _all(
            (type(value), getattr(value, "__dict__", None)), seen, depth
        )  # an index of a package is data, and no stage


def _of_ours(value: object, seen: dict[int, object], depth: int) -> Iterator[str]:
    """A class of this package, or one of its things: the files behind it, and what a stage or the settings of
    one hold.
    """
    yield from files_behind(value.__module__ if isinstance(value, type) else type(value).__module__)
    if is_dataclass(value) and not isinstance(value, type):
        held = vars(value) if hasattr(value, "__dict__") else {}
        yield from _all(
            (each for each in held.values() if isinstance(each, _PLAIN) or _runs(each)), seen, depth
        )


def _runs(value: object) -> bool:
    """Whether a value is code or a stage."""
    return isinstance(value, FunctionType | MethodType | partial) or callable(getattr(value, "step", None))


def _all(values: Iterable[object], seen: dict[int, object], depth: int) -> Iterator[str]:
    for each in values:
        yield from _parts(each, seen, depth + 1)


def _closed_over(function: FunctionType) -> Iterator[object]:
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:  # it has no value yet
            continue
        if isinstance(
            value, Mapping | list | set
        ):  # what a function gathers may grow while it runs, and is an index in stages of ours
            yield from filter(_runs, value.values() if isinstance(value, Mapping) else value)
        else:
            yield value


def _called(function: FunctionType) -> Iterator[object]:
    """The values of the names that a function takes from its module."""
    if _own(function.__module__):
        names = {name for code in _codes(function.__code__) for name in code.co_names}
        yield from (function.__globals__[name] for name in sorted(names) if name in function.__globals__)


def _of_file(file: str | None, module: ModuleType, seen: dict[int, object], depth: int) -> Iterator[str]:
    """A module of one's own: its file, and the modules it uses."""
    if _own(module.__name__) and file and Path(file).is_file():
        yield hashlib.sha256(Path(file).read_bytes()).hexdigest()
        yield from _all(
            [each for each in vars(module).values() if isinstance(each, ModuleType | FunctionType | type)],
            seen,
            depth,
        )


def _own(module: str | None) -> bool:
    """Whether a module is none that was installed, as those of this package and of Python are."""
    if module is None or module.partition(".")[0] == "kgot_lab":
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    if module in sys.builtin_module_names or (
        file is None and module in sys.modules and module != "__main__"
    ):
        return False
    return file is None or not str(Path(file).resolve()).startswith(_INSTALLED)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _of_code(code: CodeType) -> Iterator[str]:
    for each in _codes(code):
        plain = [repr(const) for const in each.co_consts if isinstance(const, _PLAIN)]
        tuples = [repr(const) for const in each.co_consts if isinstance(const, tuple)]
        sets = [
            repr(sorted(map(repr, const))) for const in each.co_consts if isinstance(const, frozenset)
        ]  # which have no order
        yield f"{each.co_name} {each.co_code.hex()} {each.co_names} {plain} {tuples} {sets}"
