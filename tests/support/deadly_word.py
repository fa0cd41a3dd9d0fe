"""A line to a server that breaks, for everybody, when a certain word comes through: as if the statement had
ended the server.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class DeadlyWord:
    """Passes bytes on to a port on this machine, until it hears the word: then nobody is connected, and
    nobody gets in until `back`.

    `too_late`: only the server hears the word, and the line breaks when it answers. `briefly`: who comes
    next gets in.
    """

    def __init__(self, port: int, word: str, *, too_late: bool = False, briefly: bool = False):
        self.server, self.word = port, word.encode()
        self.too_late, self.briefly = too_late, briefly
        self.heard = 0  # how often the word came
        self._there, self._answering = True, False
        self._open: set[socket.socket] = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> DeadlyWord:
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()
        self._break()

    def back(self) -> None:
        """From now on it passes on what it hears again."""
        self._there = True

    def _accept(self) -> None:
        while True:
            try:
                inside, _ = self.listener.accept()
            except OSError:
                return
            if not self._there:
                inside.close()
                continue
            outside = socket.create_connection(("127.0.0.1", self.server))
            self._open |= {inside, outside}
            threading.Thread(target=self._pump, args=(inside, outside), daemon=True).start()
            threading.Thread(target=self._pump, args=(outside, inside, True), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, answers: bool = False) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                heard = self.word in data and not (answers and self.too_late)
                self.heard += heard
                if (self._answering and answers) if self.too_late else heard:
                    self._there, self._answering = self.briefly, False
                    self._break()
                    return
                self._answering |= heard
                target.sendall(data)
        self._end(source)
        self._end(target)

    def _break(self) -> None:
        for end in [*self._open]:
            self._end(end)

    def _end(self, end: socket.socket) -> None:
        self._open.discard(end)
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
