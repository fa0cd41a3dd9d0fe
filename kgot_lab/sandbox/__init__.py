"""Runs code that a language model wrote: isolated by the operating system, limited, and fast because the
worker is warm.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from kgot_lab.errors import BadInput, LabError, NoSandbox, SandboxError, UnknownName
from kgot_lab.sandbox.launchers import LANGUAGES, Language
from kgot_lab.sandbox.process import Launch, Sandbox

_HINT = (
    "no sandbox works on this machine, and a statement written by a model is never run without one. Install one of these: "
    "apt install bubblewrap (Linux), pip install 'kgot_lab[local]' (Linux, no root), or Docker (Linux, macOS, Windows)."
)

_NO_MEMORY = "no sandbox could be started for want of memory: free some, or raise the limit (ulimit -v)."
_SHORTAGES = {  # what a system says, in lower case, when there is a sandbox and it cannot be started now
    "too many open files": "no sandbox could be started, because this process may open no more files: raise the limit (ulimit -n 1024).",
    **dict.fromkeys(
        (
            "cannot allocate", "could not allocate", "unable to allocate", "reserve enough space", "insufficient memory", "out of memory",
            "outofmemory", "memoryerror", "more memory than it may have", "initialization of vm",
        ),
        _NO_MEMORY,
    ),
}  # fmt: skip


def _bubblewraps(language: Language, memory_mb: int) -> Iterator[Launch]:
    from kgot_lab.sandbox.launchers import launches, programs

    if sys.platform == "linux":
        for program in programs():
            yield from launches(program, language, memory_mb)


def _dockers(language: Language, memory_mb: int) -> Iterator[Launch]:
    from kgot_lab.sandbox.launchers import launch

    if found := launch(language, memory_mb):
        yield found


def _unsafe(language: Language, memory_mb: int) -> Iterator[Launch]:
    from kgot_lab.sandbox.launchers import launch

    yield launch(language, memory_mb)


KINDS: dict[str, Callable[[Language, int], Iterator[Launch]]] = {
    "bubblewrap": _bubblewraps,
    "docker": _dockers,
    "unsafe": _unsafe,
}


def open_sandbox(
    kind: str = "auto",
    *,
    language: str = "python",
    seconds: float = 5.0,
    memory_mb: int = 512,
    unsafe: bool = False,
) -> Sandbox:
    """A started sandbox for statements in a language: of this kind, or for "auto" the first that works.

    `seconds` and `memory_mb` bound each statement. The kind "unsafe" limits a statement but shows it your
    files: it needs `unsafe=True`. Raises NoSandbox, saying what was tried and what to install, and
    NotInstalled where the engine of the language is missing.
    """
    if kind not in (*KINDS, "auto"):
        raise UnknownName("sandbox", kind, (*KINDS, "auto"))
    if language not in LANGUAGES:
        raise UnknownName("language", language, LANGUAGES)
    spoken = LANGUAGES[language]
    spoken.shown()
    if kind == "unsafe" and not unsafe:
        raise BadInput(
            "the unsafe sandbox lets a model's code read your files; if you want that, pass unsafe=True"
        )
    tried = []
    for name in [name for name in KINDS if unsafe or name != "unsafe"] if kind == "auto" else [kind]:
        for launch in KINDS[name](spoken, memory_mb):
            sandbox = Sandbox(launch, seconds=seconds, memory_mb=memory_mb)
            try:
                if sandbox.read(spoken.probe):
                    return sandbox
                raise SandboxError("it finds nothing")
            except LabError as error:
                sandbox.close()
                tried.append(f"{launch.kind} ({launch.command[0]}): {error}")
    hint = next(
        (told for words, told in _SHORTAGES.items() if any(words in trial.lower() for trial in tried)), _HINT
    )
    raise NoSandbox("\n".join([hint, *(f"Tried {trial}" for trial in tried)]))


def probe() -> str:
    """Which sandbox works here, after starting it for real; raises NoSandbox, saying what to install."""
    with open_sandbox() as sandbox:
        return f"{sandbox.launch.kind} works ({sandbox.launch.command[0]})"


__all__ = ["KINDS", "LANGUAGES", "Launch", "Sandbox", "open_sandbox", "probe"]
