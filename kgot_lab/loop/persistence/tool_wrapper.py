"""A tool whose results are changed before anyone reads them, and which is otherwise the tool it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgot_lab.tools.tool import Tool, sought_by
from kgot_lab.types import Json


@dataclass(frozen=True)
class ThroughTool:
    """What another tool is called, takes and finds by; a kind of it says what becomes of the results."""

    tool: Tool

    @property
    def name(self) -> str:
        """That of the tool."""
        return self.tool.name

    @property
    def description(self) -> str:
        """That of the tool."""
        return self.tool.description

    @property
    def arguments(self) -> Mapping[str, Json]:
        """Those of the tool."""
        return self.tool.arguments

    @property
    def finds(self) -> str:
        """What the tool finds documents by."""
        return sought_by(self.tool)
