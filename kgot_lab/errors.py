"""The error tree. Each error carries what is needed to act, and its message says the next step.

LabError
├── BadInput                 input that cannot be used
│   ├── UnknownName          a name that is not in a table, with the known names
│   ├── UnsupportedQuestion  a question that the chosen mode cannot answer
│   ├── AlreadyDecided       a claim that was decided on meanwhile, or is gone
│   ├── RefusedEnvelope      a signed message that is rejected, with a code
│   └── InsufficientData     too few data to learn from
├── NotInstalled             a missing optional package
├── LLMError                 a model call that failed
│   ├── BadReply             a reply that does not have the requested form
│   ├── ReplayMiss           a prompt without a reply in the recording
│   └── OverBudget           a call that would exceed the budget
├── ModelMissing             a missing local model file
├── StoreUnavailable         a store that cannot be reached, or is in use by another process
│   └── StoreDamaged         a file of this package that lost data or was changed by something else
├── QueryFailed              a statement that a store refused, with the engine's message
│   └── ServerLost           a server that went away during a statement, which is not sent again
├── SandboxError             a failure of the sandbox itself, not of the code in it
│   └── NoSandbox            no working sandbox on this machine
├── ToolFailed               a tool call that failed
├── OutOfMemory              too little memory on this computer, or under its limits
└── TraceError               a trace or recording file that cannot be read or does not fit
    └── TraceLocked          a trace file that belongs to another run or is being written
"""

import errno
import math
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from numbers import Number, Real
from typing import Any

_MAX_SHOWN = 60  # characters of a value that a message shows
_LONGEST_CAUSE = 300  # characters of the error of a caller's code
MAX_SECONDS = 86_400  # of a time limit: clocks and system calls overflow with far more


class LabError(Exception):
    """Base class of the errors of this package. No message shows a password or key in an address, or is endless."""

    of_caller = False  # of a function that the caller gave: the cause has its own error

    def __init__(self, *args: object):
        super().__init__(*(_shorten(mask_secrets(arg)) if isinstance(arg, str) else arg for arg in args))


class BadInput(LabError):
    """Invalid input. The message says why, and what is valid."""


class UnknownName(BadInput):
    """A name that is not in a table.

    `meant` is a suggestion, if known better than by its spelling, and `advice` what else can be done.
    """

    def __init__(self, what: str, name: str, known: Iterable[str], *, meant: str = "", advice: str = ""):
        self.name, self.known = name, sorted(map(str, known))
        suggestions = [meant] if meant else get_close_matches(str(name)[:_MAX_SHOWN], self.known, n=1)
        separator = "; " if any("," in known_name for known_name in self.known) else ", "
        suggestion = f"; did you mean {suggestions[0]!r}?" if suggestions else "."
        known = separator.join(self.known) or "none"
        message = f"unknown {what} {short_repr(name)}{suggestion} Known: {known}"
        super().__init__(f"{message}. {advice}" if advice else message)


class UnsupportedQuestion(BadInput):
    """A question that the chosen mode cannot answer with its inputs. Others of the set may be answerable."""


class AlreadyDecided(BadInput):
    """A claim that is no longer waiting for a decision.

    `fact` is None if the claim is gone, and `became` says what became of it.
    """

    def __init__(self, fact: object, became: str):
        self.fact, self.became = fact, became
        claim = "the claim" if fact is None else short_repr(str(fact))
        super().__init__(f"{claim} no longer waits. {became}")


class RefusedEnvelope(BadInput):
    """A signed message that is rejected. `code` is a machine-readable reason."""

    def __init__(self, code: str, message: str):
        self.code = code
        super().__init__(message)


class InsufficientData(BadInput):
    """Too few data to learn from. A comparison continues without the system that needs them."""


class NotInstalled(LabError):
    """A missing optional package. `extra` is the extra that installs it."""

    def __init__(self, extra: str, package: str = ""):
        self.extra = extra
        super().__init__(f"this needs {package or 'an optional package'}: pip install 'kgot_lab[{extra}]'")


class LLMError(LabError):
    """A model call that failed.

    `spent` is the Usage that was charged anyway, or None. `status` is the HTTP status, or 0 if there is none.
    """

    spent: Any = None
    status: int = 0


class BadReply(LLMError):
    """A reply of a model that does not have the requested form, the last of `calls` to one request."""

    calls = 1

    def __init__(self, reason: str, text: str):
        self.reason, self.text = reason, text
        problem = f"the model's reply is not in the shape asked for ({reason}): {text[:200]!r}"
        super().__init__(f"{problem}; ask again, or take a model that keeps to a JSON schema")


class ReplayMiss(LLMError):
    """A prompt without a reply in the recording. It is never passed to a live model."""


class OverBudget(LLMError):
    """A call that would exceed the budget and was not sent."""


class ModelMissing(LabError):
    """The local model file is not there or is not the right one."""


class StoreUnavailable(LabError):
    """A store whose server or file cannot be reached, or is used by another process.

    The store works again as soon as it can be reached.
    """


class StoreDamaged(StoreUnavailable):
    """A file of this package that lost data or was changed by something else.

    The message says what is intact and how to save it.
    """


_TIMEOUT_MESSAGE = re.compile(r"((the statement|it) )?took longer than [0-9.]+ s(econds)?( and was stopped)?")


class QueryFailed(LabError):
    """A statement that a store refused. The message is the engine's own."""

    def __init__(self, statement: str, reason: str):
        self.statement, self.reason = statement, reason
        super().__init__(reason)

    @property
    def timed_out(self) -> bool:
        """Whether the statement was stopped because it took longer than it may."""
        return _TIMEOUT_MESSAGE.fullmatch(self.reason) is not None


class ServerLost(QueryFailed):
    """A server that went away while it ran a statement.

    The statement changed nothing and is not sent again, since it would crash the server once more.
    """

    MESSAGE = "the server went away while it answered this statement, which is not sent again"

    def __init__(self, statement: str, detail: str = ""):
        super().__init__(statement, self.MESSAGE + (f" ({detail})" if detail else ""))


class SandboxError(LabError):
    """The sandbox itself failed, not the code in it."""


class NoSandbox(SandboxError):
    """No sandbox works on this machine. The message says what to install."""


class ToolFailed(LabError):
    """A tool call that failed.

    `again` says whether a retry may help, and `wait` is the number of seconds to wait before it, if the tool
    knows better than the limits of the run. `usage` is the cost of models behind the tool. `recorded` is set
    if a trace already holds the failure.
    """

    recorded = False

    def __init__(
        self, message: str, *, again: bool = False, usage: Iterable[object] = (), wait: float | None = None
    ):
        self.again, self.usage, self.wait = again, tuple(usage), wait
        super().__init__(message)


class OutOfMemory(LabError):
    """Too little memory on this computer, or under its limits. It says nothing about a question."""

    def __init__(self, what: str):
        advice = "close other programs or raise the limit (ulimit -v); fewer documents and a smaller model take less"
        super().__init__(f"there is too little memory for {what}: {advice}")


class TraceError(LabError):
    """A trace or recording file cannot be read or does not fit."""


class TraceLocked(TraceError):
    """A trace file that belongs to another run, or that another command is writing.

    Nothing of this run is in it.
    """


# --- messages ---

_MAX_MESSAGE = 5_000  # characters, of which the beginning and the end are shown


def _shorten(text: str) -> str:
    half = _MAX_MESSAGE // 2
    return text if len(text) <= _MAX_MESSAGE else f"{text[:half]} … {text[-half:]}"


_ADDRESS_LOGIN = re.compile(
    r"""(?P<scheme>[a-z][a-z0-9+.-]{0,30}:/+)         # of a path made of an address, one slash is left
        (?:[^\s/?#@'"]{0,500}@                        # a name, or a name and a password
         | [^\s:/?#@'"]{0,500}:(?!\d+[/?#])[^\s'"]{0,500}@  # a password with any letters in it, which is no port and what follows one
        )+""",
    re.I | re.X,
)
_SECRET_PARAMETER = re.compile(
    r"""(?P<name>[?&;][\w.-]{0,80}(?:key|token|secret|passw|pwd|signature|credential)[\w.-]{0,80}=
         | (?:^|\s)password=)[^\s&;#'"]+""",
    re.I | re.X,
)


# keys that are known by how they begin, and what follows "Bearer"
_KNOWN_KEY = re.compile(
    r"\b(?:[spr]k-|[sr]k_|gsk_|hf_|r8_|AIza|AKIA|xai-|pplx-|nvapi-|tvly-|glpat-|gh[opsu]_|github_pat_|xox[abeprs]-)(?=[-\w*.]*\d)[-\w*.]{10,}[\w*]"
    r"|(?<=\bbearer )(?=[-\w.~+/]*\d)[-\w.~+/]{12,}=*",
    re.I | re.A,
)


def mask_secrets(text: str) -> str:
    """Mask user names, passwords and keys in addresses by an ellipsis, and keys that are known by how they begin.

    Examples are bolt://…@host, http://host/query?api_key=… and sk-…
    """
    text = _KNOWN_KEY.sub("…", text)
    if "@" in text:
        text = _ADDRESS_LOGIN.sub(r"\g<scheme>…@", text)
    return _SECRET_PARAMETER.sub(r"\g<name>…", text) if "=" in text else text


_KEY_VARIABLE = re.compile(r"(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.I)
_PLAIN_WORD = re.compile("[A-Za-z][a-z]{0,14}")
_SHORTEST_KEY = 8


def keys_in(environment: Mapping[str, str]) -> list[str]:
    """Return the values of environment variables that hold keys by their names (…_KEY, …_TOKEN, …).

    A value that is a plain word, as in POSTGRES_PASSWORD=postgres, is left out, because texts that use the word
    would lose it.
    """
    keys = [value.strip() for name, value in environment.items() if _KEY_VARIABLE.search(name)]
    return [key for key in keys if len(key) >= _SHORTEST_KEY and not _PLAIN_WORD.fullmatch(key)]


def error_message(error: BaseException) -> str:
    """Return the message of an error, or a note if it cannot be converted to text."""
    try:
        return str(error)
    except Exception as broken:
        return f"(its message cannot be shown: {type(broken).__name__})"


_OUT_OF_MEMORY = re.compile(
    "bad_?alloc|bad allocation|cannot allocate|failed to allocate|failed to map segment|out of memory", re.I
)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error reports a lack of memory.

    It may come from Python, the operating system, a library that cannot load, or onnxruntime.
    """
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    native = isinstance(error, ImportError) or type(error).__module__.startswith("onnxruntime")
    return native and bool(_OUT_OF_MEMORY.search(error_message(error)))


# --- input checks ---


def short_repr(value: object) -> str:
    """Format a value for a message on one line, truncated if it is long, or by its type if it has no text."""
    try:
        text = repr(value[: 2 * _MAX_SHOWN] if isinstance(value, str | bytes) else value)
    except Exception as error:  # its own, or that of Python for huge numbers and deep lists
        text = f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"
    text = re.sub(r"\s*\n\s*", " ", text)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 2]} …"


def describe_value(value: object) -> str:
    """Describe a value of the wrong kind for a message, as None, or its type and, if it is short, itself."""
    kind = type(value).__name__
    if isinstance(value, int) and value.bit_length() > 1_024:
        return f"a whole number of {int(value.bit_length() * 0.30103) + 1:,} digits"
    if value is None or isinstance(value, Number) or kind.startswith("bool"):  # "bool_" of NumPy
        return short_repr(value)
    article = "an" if kind[0] in "aeiouAEIOU" else "a"
    return (
        f"{article} {kind} ({short_repr(value)})" if isinstance(value, str | bytes) else f"{article} {kind}"
    )


def warn_caller(message: str) -> None:
    """Warn of something, at the line outside of this package that led to it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("kgot_lab."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def require(value: object, kinds: type | tuple[type, ...], what: str) -> None:
    """Raise BadInput unless a value is of one of these types.

    `what` states the requirement, as in "a question is a text".
    """
    if not isinstance(value, kinds) or (isinstance(value, date) and value != value):  # NaT of pandas
        raise BadInput(f"{what}, not {describe_value(value)}")


def require_known(what: str, known: Collection[str], *names: str) -> None:
    """Raise UnknownName for the first of some names that is not known. `what` is their kind, as in "system"."""
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise UnknownName(what, name if isinstance(name, str) else describe_value(name), known)


def require_unique(ids: Collection[str], what: str) -> None:
    """Raise BadInput if one of these ids occurs more than once. `what` names them, as in "document ids"."""
    if len(set(ids)) < len(ids):
        repeated = [id for id, count in Counter(ids).items() if count > 1]
        problem = f"{len(repeated):,} {what} occur more than once, for example {short_repr(repeated[0])}"
        raise BadInput(f"{problem}; ids must be unique")


@contextmanager
def needs_extra(extra: str, package: str) -> Iterator[None]:
    """Raise NotInstalled where an import in the `with` block fails. `extra` is the extra that installs it."""
    try:
        yield
    except ImportError:
        raise NotInstalled(extra, package) from None


@contextmanager
def attribute_errors(what: str) -> Iterator[None]:
    """Raise LabError for an error of a caller's own code in the `with` block, which `what` names.

    Errors of this package, and lack of memory, are passed on.
    """
    try:
        yield
    except Exception as error:
        # named again by the outer block
        cause = error.__cause__ if getattr(error, "of_caller", False) else error
        # for that, the caller has advice
        if cause is None or isinstance(cause, LabError) or is_out_of_memory(cause):
            raise
        named = LabError(f"{what}: {type(cause).__name__}: {error_message(cause)[:_LONGEST_CAUSE]}")
        named.of_caller = True
        raise named from cause


def require_parts(value: object, parts: Iterable[str], what: str) -> None:
    """Raise BadInput unless a value, and not merely its class, has these attributes.

    `what` states the requirement.
    """
    if isinstance(value, type) or not all(hasattr(value, part) for part in parts):
        raise BadInput(f"{what}, not {describe_value(value)}")


def require_count(
    value: object, minimum: int, name: str, why: str = "", *, maximum: float = sys.maxsize
) -> None:
    """Raise BadInput unless a value is an integer from `minimum` to `maximum`. `why` says what it is for."""
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        most = f", at most {maximum:,}" if isinstance(value, int) and value > maximum else ""
        expected = f"{name} must be {minimum} or more{most}, a whole number"
        raise BadInput(f"{expected}, not {describe_value(value)}{why and f': {why}'}")


def require_amount(
    value: object, name: str, *, positive: bool = False, maximum: float = sys.float_info.max
) -> None:
    """Raise BadInput unless a value is a number from 0 to `maximum`. With `positive`, it must be above 0."""
    require_between(value, sys.float_info.min if positive else 0, maximum, name)


def require_between(value: object, minimum: float, maximum: float, name: str) -> None:
    """Raise BadInput unless a value is a number between two bounds, of which the upper may be infinite."""
    if not minimum <= _as_number(value) <= maximum:
        least = "more than 0" if minimum == sys.float_info.min else f"{minimum:,} or more"
        most = f" and at most {maximum:,}" if maximum < sys.float_info.max else ""
        wanted = (
            f"between {minimum:,} and {maximum:,}" if most and least[0] != "m" else f"a number, {least}{most}"
        )
        raise BadInput(f"{name} must be {wanted}, not {describe_value(value)}")


def _as_number(value: Any) -> Any:
    """Return a number, and NaN for what is none: it is in no range."""
    is_number = isinstance(value, Real | Decimal) and not isinstance(value, bool)
    return value if is_number and value == value else math.nan


def require_probability(value: Any, name: str) -> float:
    """Return a number from 0 to 1. Raises BadInput for anything else."""
    if not 0 <= _as_number(value) <= 1:
        raise BadInput(f"{name} is a number from 0 to 1, not {describe_value(value)}")
    return float(value)


def require_seconds(value: Any, name: str = "seconds") -> float:
    """Return a time limit. Raises BadInput unless it is a number of seconds, above 0 and at most a day."""
    require_amount(value, name, positive=True, maximum=MAX_SECONDS)
    return float(value)


def require_options(make: Callable[..., object], options: Iterable[str], owner: str) -> None:
    """Raise BadInput for an option that a function or class does not take.

    `owner` names it, as in "the store 'sqlite'".
    """
    from inspect import signature

    known = [
        name
        for name, parameter in signature(make).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    if unknown := sorted(set(options) - set(known)):
        raise BadInput(f"{owner} has no option {unknown[0]!r}; it knows {', '.join(known) or 'none'}")
