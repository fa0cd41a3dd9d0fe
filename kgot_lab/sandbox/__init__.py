"""Run code that a language model wrote: isolated by the operating system, limited, and in a warm worker."""

from __future__ import annotations

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import (
    BadInput,
    LabError,
    NoSandbox,
    SandboxError,
    require_count,
    require_known,
    require_seconds,
)
from kgot_lab.sandbox.launchers import KINDS, LANGUAGES
from kgot_lab.sandbox.process import Launch, Sandbox
from kgot_lab.types import STATEMENT_SECONDS

_INSTALL_HINT = (
    "no sandbox works on this machine, and a statement written by a model is never run without one. Install one of these: "
    "apt install bubblewrap (Linux), pip install 'kgot_lab[local]' (Linux, no root), or Docker (Linux, macOS, Windows)."
)

_OUT_OF_MEMORY_HINT = "no sandbox started for want of memory: free some, or raise the limit (ulimit -v)."
_SHORTAGE_HINTS = {  # messages of a system, in lower case, that has a sandbox which cannot be started now
    "too many open files": "no sandbox could be started, because this process may open no more files: raise the limit (ulimit -n 1024).",
    **dict.fromkeys(
        (
            "cannot allocate", "could not allocate", "unable to allocate", "reserve enough space", "insufficient memory", "out of memory",
            "outofmemory", "memoryerror", "more memory than it may have", "initialization of vm",
        ),
        _OUT_OF_MEMORY_HINT,
    ),
}  # fmt: skip


@check_arguments
def open_sandbox(
    kind: str = "auto",
    *,
    language: str = "python",
    seconds: float = STATEMENT_SECONDS,
    memory_mb: int = 512,
    unsafe: bool = False,
) -> Sandbox:
    """Start a sandbox for statements in a language: of the given kind, or for "auto" the first that works.

    `seconds` and `memory_mb` limit each statement. The kind "unsafe" limits a statement but lets it read your
    files, and requires `unsafe=True`. Raises NoSandbox, saying what was tried and what to install, if none
    works, and NotInstalled if the engine of the language is missing.
    """
    require_known("sandbox", (*KINDS, "auto"), kind)
    require_known("language", LANGUAGES, language)
    language_spec = LANGUAGES[language]
    language_spec.visible_paths()
    require_seconds(seconds)
    require_count(memory_mb, 1, "memory_mb", maximum=1 << 24)
    if kind == "unsafe" and not unsafe:
        raise BadInput("the unsafe sandbox lets a model's code read your files; pass unsafe=True to allow it")
    failures = []
    for name in [name for name in KINDS if unsafe or name != "unsafe"] if kind == "auto" else [kind]:
        for launch in KINDS[name](language_spec, memory_mb):
            sandbox = Sandbox(launch, seconds=max(seconds, STATEMENT_SECONDS), memory_mb=memory_mb)
            try:
                if sandbox.read(language_spec.probe):
                    sandbox.seconds = seconds
                    return sandbox
                raise SandboxError("it finds nothing")
            except LabError as error:
                sandbox.close()
                failures.append(f"{launch.kind} ({launch.command[0]}): {error}")
    hint = next(
        (
            shortage_hint
            for pattern, shortage_hint in _SHORTAGE_HINTS.items()
            if any(pattern in failure.lower() for failure in failures)
        ),
        _INSTALL_HINT,
    )
    raise NoSandbox("\n".join([hint, *(f"Tried {failure}" for failure in failures)]))


@check_arguments
def probe() -> str:
    """Return which sandbox works here, after starting it.

    Raises NoSandbox, saying what to install, if none works.
    """
    with open_sandbox() as sandbox:
        return f"{sandbox.launch.kind} works ({sandbox.launch.command[0]})"


@check_arguments
class Calculator:
    """Runs plain Python in a sandbox, for stores in another language.

    The sandbox is opened at the first computation. `seconds` limits each one. `unsafe` allows a sandbox that
    does not isolate.
    """

    def __init__(self, *, unsafe: bool = False, seconds: float = STATEMENT_SECONDS):
        self._unsafe, self.seconds = unsafe, require_seconds(seconds)
        self._sandbox: Sandbox | None = None

    def compute(self, code: str, *, seconds: float | None = None) -> str:
        """Run plain Python and return what it prints, or the value of its last expression.

        `seconds` replaces the time limit for this call. Raises QueryFailed if the code fails, or NoSandbox.
        """
        return self.open_once().compute(code, seconds=seconds)

    def open_once(self) -> Sandbox:
        """Return the sandbox, starting it at the first call.

        Raises NoSandbox if none works.
        """
        if self._sandbox is None:
            self._sandbox = open_sandbox(unsafe=self._unsafe, seconds=self.seconds)
        return self._sandbox

    def close(self) -> None:
        """Close the sandbox.

        A later computation starts another.
        """
        if self._sandbox is not None:
            self._sandbox.close()


__all__ = ["KINDS", "LANGUAGES", "Calculator", "Launch", "Sandbox", "open_sandbox", "probe"]
