"""The tool that runs Python."""

from __future__ import annotations

import re

from kgot_lab.errors import QueryFailed, ToolFailed, require_parts
from kgot_lab.stores.protocol import Computer
from kgot_lab.tools.tool import Result, TextTool


def python(execute: Computer, *, name: str = "python") -> TextTool:
    """A tool that runs Python code in a sandbox and returns what it printed; a broken sandbox raises its own
    SandboxError.
    """

    require_parts(
        execute,
        ("compute",),
        "python() runs code where something computes, as in open_sandbox(): an object with compute(code)",
    )

    def run(code: str) -> Result:
        try:
            output = execute.compute(_without_fence(code))
        except QueryFailed as error:
            raise ToolFailed(f"{name}: {error}") from error
        if not output.strip():
            raise ToolFailed(f"{name}: the code printed nothing; print the result")
        return Result(output)

    description = (
        "Runs Python code, for arithmetic, dates and counting, without files or network. Print the result."
    )
    return TextTool(name, description, {"code": "Python code that prints the result"}, run)


def _without_fence(code: str) -> str:
    """The code inside a Markdown fence, if there is one: models like to add it."""
    match = re.fullmatch(r"\s*```[\w+-]*[ \t]*\n(.*?)\n?```\s*", code, flags=re.DOTALL)
    return match[1] if match else code
