"""Errors of ours as an assistant is told them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kgot_lab.errors import LabError

_Made = TypeVar("_Made")


def error_message(make: Callable[[], _Made]) -> _Made:
    """What a function gives; an error of ours is told to the assistant in its words, which say what would do."""
    from mcp.server.mcpserver.exceptions import ToolError

    try:
        return make()
    except LabError as error:
        raise ToolError(str(error)) from None
