"""Whether a system is still the one it was: a digest of the code that it runs."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_DEEPEST = 40  # from a stage to what it calls
_INSTALLED = tuple(str(Path(place).resolve()) for place in {sys.prefix, sys.base_prefix})


def source_digest(system: object) -> str:
    """SHA-256 of the code a system runs, as far as it can be followed: functions, what they close over, the files of modules.

    Of installed packages nothing is looked at. It is the same in another process, and another after a change of a function, of a
    parameter it closes over, or of a module beside it. Lists, dictionaries and sets that it closes over are left out: it may fill them.
    """
    digest = hashlib.sha256()
    for part in sorted(set(_parts(system, {}, 0))):
        digest.update(part.encode("utf-8", "backslashreplace") + b"\0")
    return digest.hexdigest()


def _parts(value: object, seen: dict[int, object], depth: int) -> Iterator[str]:
    """What there is to tell of a value and of all it leads to, as texts."""
    if isinstance(value, _PLAIN):
        yield repr(value)
        return
    if id(value) in seen or depth > _DEEPEST:
        return
    seen[id(value)] = value  # held, since the place of a value that is gone may be given to another
    if isinstance(value, ModuleType):
        yield from _of_file(getattr(value, "__file__", None), value, seen, depth)
    elif isinstance(value, FunctionType):
        yield from _of_code(value.__code__)
        yield from _all((value.__defaults__, value.__kwdefaults__, *_closed_over(value), *_called(value)), seen, depth)
    elif isinstance(value, MethodType):
        yield from _all((value.__func__, value.__self__), seen, depth)
    elif isinstance(value, partial):
        yield from _all((value.func, value.args, value.keywords), seen, depth)
    elif isinstance(value, Mapping):
        yield from _all((*value.keys(), *value.values()) if len(value) < 100 else (), seen, depth)
    elif isinstance(value, tuple | list | set | frozenset):
        yield from _all(value if len(value) < 100 else (), seen, depth)  # longer ones are data, which have their own digests
    elif isinstance(value, type):
        yield from _all((sys.modules.get(value.__module__), *vars(value).values()) if _own(value.__module__) else (), seen, depth)
    elif not isinstance(value, BuiltinFunctionType) and (_own(type(value).__module__) or callable(getattr(value, "step", None))):
        yield from _all((type(value), getattr(value, "__dict__", None)), seen, depth)  # an index of a package is data, and no stage


def _all(values: Iterable[object], seen: dict[int, object], depth: int) -> Iterator[str]:
    for each in values:
        yield from _parts(each, seen, depth + 1)


def _closed_over(function: FunctionType) -> Iterator[object]:
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:  # it has no value yet
            continue
        if not isinstance(value, Mapping | list | set):
            yield value  # what a function gathers may grow while it runs, and is an index in stages of ours


def _called(function: FunctionType) -> Iterator[object]:
    """The values of the names that a function takes from its module."""
    if _own(function.__module__):
        names = {name for code in _codes(function.__code__) for name in code.co_names}
        yield from (function.__globals__[name] for name in sorted(names) if name in function.__globals__)


def _of_file(file: str | None, module: ModuleType, seen: dict[int, object], depth: int) -> Iterator[str]:
    """A module of one's own: its file, and the modules it uses."""
    if _own(module.__name__) and file and Path(file).is_file():
        yield hashlib.sha256(Path(file).read_bytes()).hexdigest()
        yield from _all([each for each in vars(module).values() if isinstance(each, ModuleType | FunctionType | type)], seen, depth)


def _own(module: str | None) -> bool:
    """Whether a module is none that was installed, as those of this package and of Python are."""
    if module is None or module.partition(".")[0] == "kgot_lab":
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    if module in sys.builtin_module_names or (file is None and module in sys.modules and module != "__main__"):
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
        sets = [repr(sorted(map(repr, const))) for const in each.co_consts if isinstance(const, frozenset)]  # which have no order
        yield f"{each.co_name} {each.co_code.hex()} {each.co_names} {plain} {tuples} {sets}"
