"""The same worker without isolation: for machines where nothing else runs, and only when asked for by name.

A statement still has its limits of time and memory and, on Linux, the system-call filter (no network, no
processes, no new files). But it can read every file its user can.
"""

from __future__ import annotations

import sys

from kgot_lab.sandbox.launchers import Language
from kgot_lab.sandbox.process import INSIDE, OPTIONS, Launch, clean


def launch(language: Language, memory_mb: int) -> Launch:
    """How to start a language's worker as an ordinary process; raises NotInstalled."""
    return Launch(
        "unsafe",
        (sys.executable, *OPTIONS, str(INSIDE), language.module, *map(str, language.folders())),
        clean(memory_mb),
    )
