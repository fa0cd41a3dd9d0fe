"""A command on a terminal of its own, on POSIX: what it shows there, and keys that are pressed when it waits
for one.
"""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

from support.waiting import AMPLE, until

PROMPT = "q quit] "


class Terminal:
    """The screen of a process and its keyboard."""

    def __init__(self, process: subprocess.Popen[bytes], keyboard: int, screen: int) -> None:
        self.process, self._keyboard, self._screen = process, keyboard, screen
        self._shown = b""
        self._asked = 0

    @property
    def shown(self) -> str:
        """All that was shown so far."""
        try:
            while more := os.read(self._keyboard, 65536):
                self._shown += more
        except BlockingIOError:
            pass
        return self._shown.decode().replace("\r\n", "\n")

    def press(self, key: str) -> None:
        """Press a key as soon as the next question for one is there; what is typed before is dropped."""
        self._asked += 1
        until(lambda: self._waits_for_key() or self._ended(), "a key is asked for")
        assert not self._ended(), self.shown
        os.write(self._keyboard, key.encode())

    def type(self, text: str, after: str) -> None:
        """Answer a question with a line."""
        until(lambda: after in self.shown.rpartition(PROMPT)[2] or self._ended(), f"it asks for {after}")
        os.write(self._keyboard, f"{text}\n".encode())

    def sees(self, words: str) -> None:
        """Wait until some words, a pattern, are shown."""
        until(lambda: re.search(words, self.shown) or self._ended(), f"{words!r} is shown")
        assert re.search(words, self.shown), self.shown

    def code(self) -> int:
        """How the process ended."""
        until(lambda: (self.shown, self._ended())[1], "the command ends")
        return self.process.wait(AMPLE)

    def _waits_for_key(self) -> bool:
        # first, or the terminal may still be as for the key before
        asked = self.shown.count(PROMPT) >= self._asked
        return asked and not termios.tcgetattr(self._screen)[3] & termios.ICANON

    def _ended(self) -> bool:
        return self.process.poll() is not None


@contextmanager
def on_terminal(*words: object) -> Iterator[Terminal]:
    """The command line in a process whose input and output are a terminal."""
    keyboard, screen = pty.openpty()
    os.set_blocking(keyboard, False)
    code = [sys.executable, "-c", "from kgot_lab.cli.app import main; main()", *map(str, words)]
    streams = {"stdin": screen, "stdout": screen, "stderr": screen}
    # a suite may run deaf to some
    process = subprocess.Popen(code, **streams, start_new_session=True, preexec_fn=_hears_signals)
    try:
        yield Terminal(process, keyboard, screen)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait(AMPLE)
        os.close(keyboard)
        os.close(screen)


def _hears_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
