"""The error tree. Each error carries what is needed to act, and its message says the next step.

LabError
├── BadInput          what the caller gave cannot be used
│   └── UnknownName   a name that is not in a table; lists the names that are
├── NotInstalled      an optional package is missing
├── LLMError          a model could not answer
│   ├── BadReply      it answered, but not in the shape asked for
│   ├── ReplayMiss    a tape holds no reply to this prompt
│   └── OverBudget    the next call would pass the budget
├── ModelMissing      the local model file is not there
├── StoreUnavailable  a store's server or file cannot be reached, or another process has it
├── QueryFailed       a store refused a statement; the engine's own message is kept
├── SandboxError      the sandbox itself failed, not the code in it
│   └── NoSandbox     no sandbox works on this machine
├── ToolFailed        a tool could not do its work
└── TraceError        a trace or tape file cannot be read or does not fit
"""

from collections.abc import Iterable
from difflib import get_close_matches


class LabError(Exception):
    """Anything this package raises on purpose."""


class BadInput(LabError):
    """What the caller gave cannot be used; the message says why and what would do."""


class UnknownName(BadInput):
    """A name that is not in a table."""

    def __init__(self, what: str, name: str, known: Iterable[str]):
        self.name, self.known = name, sorted(known)
        near = get_close_matches(name, self.known, n=1)
        known = ("; " if any("," in each for each in self.known) else ", ").join(self.known)
        super().__init__(f"unknown {what} {name!r}" + (f"; did you mean {near[0]!r}?" if near else ".") + f" Known: {known}")


class NotInstalled(LabError):
    """An optional package is missing; `extra` brings it, and what no extra brings is named in `also`."""

    def __init__(self, extra: str, package: str = "", *, also: str = ""):
        self.extra = extra
        super().__init__(f"this needs {package or 'an optional package'}: pip install 'kgot_lab[{extra}]'{also and f' {also}'}")


class LLMError(LabError):
    """A model could not answer."""


class BadReply(LLMError):
    """A model answered, but not in the shape asked for."""

    def __init__(self, reason: str, text: str):
        self.reason, self.text = reason, text
        super().__init__(f"the model's reply is not in the shape asked for ({reason}): {text[:200]!r}")


class ReplayMiss(LLMError):
    """A tape holds no reply to this prompt; it never falls through to a live model."""


class OverBudget(LLMError):
    """The next call would pass the budget; nothing was sent."""


class ModelMissing(LabError):
    """The local model file is not there or is not the right one."""


class StoreUnavailable(LabError):
    """A store's server or file cannot be reached, or another process has it; the store works again once it can."""


class QueryFailed(LabError):
    """A store refused a statement; the message is the engine's own."""

    def __init__(self, statement: str, reason: str):
        self.statement, self.reason = statement, reason
        super().__init__(reason)


class SandboxError(LabError):
    """The sandbox itself failed, not the code in it."""


class NoSandbox(SandboxError):
    """No sandbox works on this machine; the message says what to install."""


class ToolFailed(LabError):
    """A tool could not do its work."""


class TraceError(LabError):
    """A trace or tape file cannot be read or does not fit."""
