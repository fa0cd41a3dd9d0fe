"""Learns claims, one in a change, and says each number once it is kept: here, or in forks that may be killed."""

from __future__ import annotations

import os
import sys

from kgot_lab.memory.claims.claim import Claim
from kgot_lab.memory.claims.claims import open_claims
from kgot_lab.types import Triple


def write(place: str, namespace: str, source: str, count: int) -> None:
    """Keep so many facts of a source, and write the number of each to the output when it is kept."""
    with open_claims(place, namespace=namespace or None) as claims:
        for number in range(count):
            claims.learn(Claim(Triple(f"{source}-{number}", "is", "kept"), source))
            os.write(1, f"{number}\n".encode())


def main() -> None:
    place, namespace, source, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    if source != "forks":
        return write(place, namespace, source, count)
    if "://" in place:
        import psycopg  # noqa: F401  (once, and not in every fork)
    for line in sys.stdin:  # the name of the next writer
        child = os.fork()
        if not child:
            os.write(1, f"{os.getpid()}\n".encode())
            write(place, namespace, line.strip(), count)
            os._exit(0)
        os.waitpid(child, 0)
        os.write(1, b"ended\n")


if __name__ == "__main__":
    main()
