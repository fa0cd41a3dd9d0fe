"""Tools that no longer tell what was retracted: a source that a memory gave up is not read again by the next
question.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from kgot_lab.errors import ToolFailed
from kgot_lab.loop.events import ToolCall
from kgot_lab.loop.persistence import ThroughTool
from kgot_lab.tools.tool import Result, Tool, checked_result
from kgot_lab.types import Json


@dataclass(frozen=True)
class WithoutRetracted(ThroughTool):
    """A tool, but for the documents that were retracted: what it returns is without them, or is a ToolFailed
    where nothing is left.
    """

    retracted: Collection[str]

    def __call__(self, /, **arguments: Json) -> Result:
        result = checked_result(self.tool(**arguments))
        left = tuple(document for document in result.sources if document.id not in self.retracted)
        gone = len(result.sources) - len(left)
        if str(ToolCall(self.name, arguments)) in self.retracted or (gone and not left):
            raise ToolFailed(
                f"{self.name}: all that it found was retracted; try other words", usage=result.usage
            )
        if not gone:
            return result
        lines = (
            f"[{number}] {' '.join(f'{each.title} {each.text}'.split())}"
            for number, each in enumerate(left, start=1)
        )
        return replace(result, text="\n".join(lines), sources=left)


def without_retracted(tools: Collection[Tool], retracted: Collection[str]) -> list[Tool]:
    """Tools that tell nothing of what was retracted."""
    return [WithoutRetracted(tool, retracted) for tool in tools] if retracted else list(tools)
