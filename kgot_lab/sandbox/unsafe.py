"""The same worker without isolation: for machines where nothing else runs, and only when asked for by name.

A statement still has its limits of time and memory and, on Linux, the system-call filter (no network, no processes, no new files).
But it can read every file its user can.
"""

from __future__ import annotations

import sys

from kgot_lab.sandbox.bubblewrap import packages
from kgot_lab.sandbox.process import CLEAN, HERE, OPTIONS, Launch


def launch() -> Launch:
    """How to start the worker as an ordinary process."""
    return Launch("unsafe", (sys.executable, *OPTIONS, str(HERE), *map(str, packages())), CLEAN)
