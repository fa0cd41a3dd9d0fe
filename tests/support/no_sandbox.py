"""How a store is opened in a test that must do without a sandbox."""

from __future__ import annotations

from typing import NoReturn

from kgot_lab.errors import NoSandbox


def no_sandbox() -> NoReturn:
    """In place of `open_sandbox`: an error, as on a computer where none works."""
    raise NoSandbox("there is none in this test")
