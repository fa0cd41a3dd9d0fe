"""Learns claims or adds triples in a file, one in a change, and says each number once it is kept: here, or in forks that may be killed."""

from __future__ import annotations

import os
import sys

from kgot_lab.memory.claims.claim import Claim
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.sqlite import SQLiteClaims
from kgot_lab.memory.sqlite import SQLiteTripleStore
from kgot_lab.types import Triple


def learn(path: str, source: str, count: int) -> None:
    """Learn so many claims of a source, and write the number of each to the output when it is kept."""
    with Claims(SQLiteClaims(path)) as claims:
        for number in range(count):
            claims.learn(Claim(Triple(f"{source}-{number}", "is", "kept"), source))
            os.write(1, f"{number}\n".encode())


def add(path: str, source: str, count: int) -> None:
    """Add so many triples, and write the number of each to the output when it is kept."""
    with SQLiteTripleStore(path) as store:
        for number in range(count):
            store.add([Triple(f"{source}-{number}", "is", "kept")])
            os.write(1, f"{number}\n".encode())


def main() -> None:
    path, source, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    write = add if "triples" in sys.argv else learn
    if source != "forks":
        return write(path, source, count)
    for line in sys.stdin:  # the name of the next writer
        child = os.fork()
        if not child:
            os.write(1, f"{os.getpid()}\n".encode())
            write(path, line.strip(), count)
            os._exit(0)
        os.waitpid(child, 0)
        os.write(1, b"ended\n")


if __name__ == "__main__":
    main()
