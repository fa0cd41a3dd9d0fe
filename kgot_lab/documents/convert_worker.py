"""Converts files in a process of its own, which is ended when a file takes too long, and started again for
the next one.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from kgot_lab.documents.conversion import CONVERTED, MESSAGE_HEAD, Converted
from kgot_lab.errors import BadInput
from kgot_lab.io.processes import ended_after

_BOOT = "import sys; sys.path[:] = sys.argv[1:]; from kgot_lab.documents.conversion import main; main()"
_STARTS = 120.0  # seconds until the converter must be loaded
# what a program needs of the environment to start at all; keys and the like are not for the reader of
# strangers' files
_NEEDED = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SYSTEMROOT",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
)


@dataclass(frozen=True)
class ConvertLimits:
    """What the conversion of one file may take."""

    seconds: float = 30.0
    seconds_a_megabyte: float = 20.0  # of the file, on top of that
    most_seconds: float = 300.0
    share_of_page: float = 0.4  # of that time: a page is not packed, so a megabyte is less (2 s for running text, 8 s for cells of tables)
    memory_mb: int = 1024

    def time_for(self, size: int, extension: str) -> float:
        """The seconds that a file of so many bytes may take."""
        share = self.share_of_page if CONVERTED[extension] == "HtmlConverter" else 1
        return share * min(self.seconds + self.seconds_a_megabyte * size / 1e6, self.most_seconds)


class _Ended(Exception):
    """The process ended without an answer."""


class _Slow(_Ended):
    """It was ended because it took too long."""


class _Rested(_Ended):
    """It had ended by itself, because nothing came for a while."""


class Converter:
    """A process that converts one file after the other; it is started with the first, and ends by itself when
    nothing comes.
    """

    def __init__(self, limits: ConvertLimits = ConvertLimits()):
        self.limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._stop: weakref.finalize[..., Converter] | None = (
            None  # at the latest when this object or the program ends
        )
        self._lock = threading.Lock()

    def convert(self, data: bytes, extension: str) -> Converted:
        """What the converter says of a file: its text, or why it has none; raises BadInput where it says
        nothing within the limits.
        """
        seconds = self.limits.time_for(len(data), extension)
        head = json.dumps({"extension": extension, "memory_mb": self.limits.memory_mb}).encode()
        request = MESSAGE_HEAD.pack(len(head), len(data)) + head + data
        with self._lock:
            try:
                try:
                    reply = _asked(self._ready(), request, seconds)
                except _Rested:
                    reply = _asked(self._ready(), request, seconds)
            except _Slow:
                self._end()
                raise BadInput(f"takes longer than {seconds:.3g} seconds to read") from None
            except _Ended:
                self._end()
                raise BadInput("makes the program that reads it crash") from None
            except BaseException:  # an interrupt: its answer would be taken for that of the next file
                self._end()
                raise
            if "spent" in reply:  # what took all memory may not have given it back
                self._end()
            return reply

    def close(self) -> None:
        """End the process; a later file starts another."""
        with self._lock:
            self._end()

    def _ready(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            environment = {name: value for name, value in os.environ.items() if name.upper() in _NEEDED} | {
                "OPENBLAS_NUM_THREADS": "1"
            }
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _BOOT, *sys.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    env=environment, start_new_session=True,
                )  # fmt: skip
                self._stop = weakref.finalize(self, _stopped, self._process, os.getpid())
                threading.Thread(target=_let_go, args=(self._process,), daemon=True).start()
                _asked(self._process, b"", _STARTS)
            except (OSError, _Ended) as error:
                self._end()
                raise BadInput(f"the program that converts files could not be started ({error})") from None
        return self._process

    def _end(self) -> None:
        if self._stop is not None:
            self._stop()
        self._process = self._stop = None


@cache
def converter_of(process_id: int) -> Converter:
    """The converter of this process, whose number is given because a fork needs one of its own."""
    return Converter()


def _asked(process: subprocess.Popen[bytes], request: bytes, seconds: float) -> Converted:
    """What a process answers, which is ended after so many seconds; raises _Ended."""
    assert process.stdin is not None and process.stdout is not None
    with ended_after(seconds, process.kill) as late:
        try:
            process.stdin.write(request)
            process.stdin.flush()
            size, _ = MESSAGE_HEAD.unpack(process.stdout.read(MESSAGE_HEAD.size))
            reply: Converted = json.loads(process.stdout.read(size))
            return reply
        except (OSError, ValueError, struct.error):
            if late.is_set():
                raise _Slow from None
            raise _Rested if process.wait() == 0 else _Ended("it ended at once") from None


def _stopped(process: subprocess.Popen[bytes], parent: int) -> None:
    """End a process, in the one that started it: a fork of that one, which comes here when it exits, has no
    right to.
    """
    if os.getpid() == parent:
        process.kill()
        _let_go(process)


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of a process, and keep nothing of it; a thread does so from the start, since it may
    end while nobody asks.
    """
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # what was still to be written to it
                pipe.close()
