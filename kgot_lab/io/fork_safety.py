"""A forked child and what its parent had opened: locks, connections and worker processes stay the parent's
alone.
"""

import ctypes
import os
import weakref
from functools import cache
from typing import Protocol

ELSEWHERE = "was opened in another process, of which this one is a fork, which cannot use it: open it anew here (a file: closed there)"


class Inherited(Protocol):
    """Something opened that a forked child gets a copy of."""

    def forked(
        self,
    ) -> (
        None
    ): ...  # lets go of it in the child, so that the parent notices nothing; may not wait and may not raise


_there: weakref.WeakSet[Inherited] = weakref.WeakSet()


def tell_of_forks(opened: Inherited) -> None:
    """Have `forked` called in every child that is forked while this object is there, before anything else
    runs in it.
    """
    _begin()
    _there.add(opened)


def keep_for_ever(connection: object) -> None:
    """Never let an object be collected, not even at the end of the program: closing a copy of it would change
    what the parent has.
    """
    if hasattr(ctypes, "pythonapi"):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


@cache
def _begin() -> None:
    if hasattr(os, "register_at_fork"):  # not on Windows, which forks nothing
        os.register_at_fork(after_in_child=_tell)


def _tell() -> None:
    for opened in list(_there):
        opened.forked()
