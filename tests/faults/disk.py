"""A disk below SQLite that records every write, cut, sync and delete, fills up, fails, or loses its power.

It is a VFS (https://sqlite.org/vfs.html) in the libsqlite3 that Python's sqlite3 uses: the methods of a file are
replaced after the real VFS opened it, and call the real ones.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_void_p
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

OK, NO_MEMORY, READONLY, FULL, CANTOPEN = 0, 7, 8, 13, 14
IO_ERRORS = {
    "read": 266, "write": 778, "sync": 1034, "cut": 1546, "size": 1802, "delete": 2570, "map": 5386, "open": CANTOPEN,
}  # fmt: skip
CHANGES = ("write", "cut", "sync", "delete")
SECTOR = 512
INDEX_BYTES = 32_768
# for folders of files that are opened thousands of times
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

_METHODS = (
    ("close", c_int, ()),
    ("read", c_int, (c_void_p, c_int, c_int64)),
    ("write", c_int, (c_void_p, c_int, c_int64)),
    ("cut", c_int, (c_int64,)),
    ("sync", c_int, (c_int,)),
    ("size", c_int, (POINTER(c_int64),)),
    *((name, c_int, ()) for name in ("lock", "unlock", "reserved", "control", "sector", "device")),
    ("map", c_int, (c_int, c_int, c_int, POINTER(c_void_p))),
    *((name, c_int, ()) for name in ("lock_index", "barrier")),
    ("unmap", c_int, (c_int,)),
    *((name, c_int, ()) for name in ("fetch", "unfetch")),
)
_TYPES = {name: CFUNCTYPE(result, c_void_p, *more) for name, result, more in _METHODS}
# names are addresses, since parameters of a URI stand behind their end
_OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, POINTER(c_int))
_DELETE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int)


class _Methods(ctypes.Structure):
    """`sqlite3_io_methods`."""

    _fields_ = (("version", c_int), *((name, c_void_p) for name, _, _ in _METHODS))


class _VFS(ctypes.Structure):
    """`sqlite3_vfs`, as far as it is changed, and the addresses of its other functions."""

    _fields_ = (
        ("version", c_int), ("file_size", c_int), ("longest", c_int), ("next", c_void_p), ("name", c_char_p),
        ("data", c_void_p), ("open", c_void_p), ("delete", c_void_p), ("more", c_void_p * 14),
    )  # fmt: skip


@dataclass(frozen=True)
class Act:
    """What was done to a file, and before it: how many writes were acknowledged, and the index of the log."""

    what: str
    file: str
    place: int = 0
    data: bytes = b""
    size: int = 0
    acknowledged: int = 0
    index: bytes = b""


@dataclass
class Disk:
    """What happens to the files of a folder, how much room there is, and which calls fail."""

    folder: Path
    acts: list[Act] = field(default_factory=list)
    acknowledged: int = 0
    calls: int = 0
    room: float = math.inf  # bytes
    fails: range = range(0)  # calls, by number
    code: int = 0  # with which they fail; 0: with an I/O error of the call
    sizes: dict[str, int] = field(default_factory=dict)
    look: Callable[[], object] = int  # at each act, before it is done
    indexes: dict[int, int] = field(
        default_factory=dict
    )  # addresses of the index of the log, by those of files

    def call(self, what: str, file: str, place: int = 0, size: int = 0, data: bytes = b"") -> int:
        """Count a call, and return the code of its failure, or record what it changes."""
        self.calls += 1
        if self.calls in self.fails and (what, self.code) != ("sync", NO_MEMORY):  # which takes none
            return self.code or IO_ERRORS[what]
        if what in ("write", "map") and self.fits(file, place, size) < size:
            return FULL if what == "write" else IO_ERRORS["map"]
        if what in CHANGES or (what == "map" and size):
            self.record(what, file, place, data, size)
        return OK

    def fits(self, file: str, place: int, size: int) -> int:
        """How many bytes of a write there is room for."""
        free = max(0, self.room - sum(self.sizes.values()))
        return int(min(size, max(0, self.sizes.get(file, 0) - place) + free))

    def record(self, what: str, file: str, place: int, data: bytes, size: int) -> None:
        self.look()
        index = next((ctypes.string_at(address, INDEX_BYTES) for address in self.indexes.values()), b"")
        if self.acts and self.acts[-1].index == index:
            index = self.acts[-1].index  # once in memory
        self.acts.append(Act(what, file, place, data, size, self.acknowledged, index))
        if what == "delete":
            for name in (file, file.replace("-wal", "-shm")):
                self.sizes.pop(name, None)
        elif what != "sync":
            self.sizes[file] = place if what == "cut" else max(self.sizes.get(file, 0), place + size)

    def mend(self) -> None:
        """Let there be room, and no more failures."""
        self.room, self.fails, self.code = math.inf, range(0), 0


# --- the VFS ---


@cache
def _library() -> ctypes.CDLL:
    """The libsqlite3 of this process. Raises OSError where it is part of Python itself."""
    import _sqlite3  # noqa: F401

    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    names = [line.split(maxsplit=5)[-1] for line in lines if "libsqlite3" in line]
    if not names:
        raise OSError("Python has an SQLite of its own, and no libsqlite3 to register a VFS in")
    library = ctypes.CDLL(names[0])
    library.sqlite3_vfs_find.restype = POINTER(_VFS)
    library.sqlite3_vfs_find.argtypes = (c_char_p,)
    library.sqlite3_vfs_register.argtypes = (POINTER(_VFS), c_int)
    library.sqlite3_vfs_unregister.argtypes = (POINTER(_VFS),)
    return library


class _Below:
    """The VFS of one disk at a time; its files are known by their addresses."""

    def __init__(self) -> None:
        self.real = _library().sqlite3_vfs_find(None).contents
        self.disk: Disk | None = None
        self.files: dict[int, tuple[str, _Methods]] = {}
        self.tables: dict[int, _Methods] = {}
        self.vfs = _VFS.from_buffer_copy(self.real)
        self.vfs.name = b"faults"
        self.kept = [_OPEN(self.open), _DELETE(self.delete)]
        self.vfs.open, self.vfs.delete = (ctypes.cast(each, c_void_p) for each in self.kept)
        self.replaced = {
            name: _TYPES[name](getattr(self, name))
            for name in ("close", "read", "write", "cut", "sync", "size", "map", "unmap")
        }

    def name(self, path: int | None) -> str:
        """The name of a file of the disk, "" for another."""
        place = Path(ctypes.string_at(path).decode()) if path else None
        return place.name if place and self.disk and place.parent == self.disk.folder else ""

    def open(self, vfs, path, file, flags, out) -> int:
        name = self.name(path)
        if name and (code := self.disk.call("open", name, flags)):
            ctypes.cast(file, POINTER(c_void_p))[0] = None  # no methods: nothing to close
            return code
        code = _OPEN(self.real.open)(vfs, path, file, flags, out)
        if code == OK and name:
            methods = ctypes.cast(file, POINTER(c_void_p))
            real = _Methods.from_address(methods[0])
            if methods[0] not in self.tables:
                self.tables[methods[0]] = table = _Methods.from_buffer_copy(real)
                for what, function in self.replaced.items():
                    setattr(table, what, ctypes.cast(function, c_void_p))
            self.files[file] = name, real
            methods[0] = ctypes.addressof(self.tables[methods[0]])
        return code

    def delete(self, vfs, path, sync) -> int:
        name = self.name(path)
        if (
            name
            and Path(ctypes.string_at(path).decode()).exists()
            and (code := self.disk.call("delete", name))
        ):
            return code
        return _DELETE(self.real.delete)(vfs, path, sync)

    def close(self, file) -> int:
        _, real = self.files.pop(file)
        self.disk.indexes.pop(file, None)
        return _TYPES["close"](real.close)(file)

    def read(self, file, buffer, size, place) -> int:
        name, real = self.files[file]
        return self.disk.call("read", name, place, size) or _TYPES["read"](real.read)(
            file, buffer, size, place
        )

    def write(self, file, buffer, size, place) -> int:
        name, real = self.files[file]
        data = ctypes.string_at(buffer, size)
        code = self.disk.call("write", name, place, size, data)
        if code == FULL and (part := self.disk.fits(name, place, size)):
            self.disk.record("write", name, place, data[:part], part)
            _TYPES["write"](real.write)(file, buffer, part, place)
        return code or _TYPES["write"](real.write)(file, buffer, size, place)

    def cut(self, file, size) -> int:
        name, real = self.files[file]
        return self.disk.call("cut", name, size) or _TYPES["cut"](real.cut)(file, size)

    def sync(self, file, flags) -> int:
        return self.disk.call("sync", self.files[file][0])  # which is all: nobody pulls the plug of this one

    def size(self, file, size) -> int:
        name, real = self.files[file]
        return self.disk.call("size", name) or _TYPES["size"](real.size)(file, size)

    def map(self, file, page, size, extend, address) -> int:
        name, real = self.files[file]
        code = self.disk.call("map", f"{name}-shm", page * size, size if extend else 0)
        code = code or _TYPES["map"](real.map)(file, page, size, extend, address)
        if code == OK and page == 0 and address[0]:
            self.disk.indexes[file] = address[0]
        return code

    def unmap(self, file, delete) -> int:
        self.disk.indexes.pop(file, None)
        return _TYPES["unmap"](self.files[file][1].unmap)(file, delete)


_below = cache(_Below)


@contextmanager
def below_sqlite(disk: Disk) -> Iterator[Disk]:
    """Let this process's SQLite files in a disk's folder lie on that disk."""
    below, library = _below(), _library()
    below.disk = disk
    library.sqlite3_vfs_register(ctypes.byref(below.vfs), 1)
    try:
        yield disk
    finally:
        library.sqlite3_vfs_unregister(ctypes.byref(below.vfs))
