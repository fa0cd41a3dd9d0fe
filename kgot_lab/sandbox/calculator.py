"""Plain Python for stores whose own statements are in another language."""

from __future__ import annotations

from kgot_lab.sandbox import open_sandbox
from kgot_lab.sandbox.process import Sandbox


class Calculator:
    """Runs plain Python in a sandbox that is opened at the first computation; `unsafe` allows one that does
    not isolate.

    `seconds` bounds each computation.
    """

    def __init__(self, *, unsafe: bool = False, seconds: float = 5.0):
        self._unsafe, self.seconds = unsafe, seconds
        self._sandbox: Sandbox | None = None

    def compute(self, code: str, *, seconds: float | None = None) -> str:
        """What plain Python prints, or its last expression's value; raises QueryFailed, or NoSandbox. Other
        `seconds` hold this once.
        """
        return self.opened().compute(code, seconds=seconds)

    def opened(self) -> Sandbox:
        """The sandbox, opened the first time; raises NoSandbox."""
        if self._sandbox is None:
            self._sandbox = open_sandbox(unsafe=self._unsafe, seconds=self.seconds)
        return self._sandbox

    def close(self) -> None:
        """End the sandbox; a later computation starts another."""
        if self._sandbox is not None:
            self._sandbox.close()
