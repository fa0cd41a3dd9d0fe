"""One test for a whole list of cases, which reports each case that fails: for cases that need no set-up of
their own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from typing import Any

import pytest

Ids = Callable[[Any], Any] | Iterable[Any] | None


def every(names: str | Collection[str], cases: Iterable[Any], ids: Ids = None) -> Callable[..., Any]:
    """Call a test with each case in turn, in place of `pytest.mark.parametrize`, which makes a test of each.

    All cases share the fixtures of the one test, so none may leave anything that another would meet.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    listed = [case if len(names) > 1 else (case,) for case in cases]
    shown: Collection[Any] = listed if ids is None or callable(ids) else list(ids)
    if callable(ids):
        shown = [" ".join(str(ids(value)) for value in case) for case in listed]
    assert listed and len(shown) == len(listed)

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def whole(**fixtures: Any) -> None:
            failed: list[Exception] = []
            for name, case in zip(shown, listed, strict=True):
                try:
                    test(**fixtures, **dict(zip(names, case, strict=True)))
                except pytest.skip.Exception:
                    continue
                except (Exception, pytest.fail.Exception) as error:
                    found = error if isinstance(error, Exception) else AssertionError(str(error))
                    found.add_note(f"case: {str(name)[:200]!r}")
                    failed.append(found)
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(listed)} cases", failed)

        taken = inspect.signature(test)
        rest = [each for name, each in taken.parameters.items() if name not in names]
        whole.__signature__ = taken.replace(parameters=rest)  # type: ignore[attr-defined]
        return whole

    return decorated
