"""The second choice, and the first on macOS and Windows: the same worker in a Docker container.

Untested: written to Docker's manual, and started by none of our tests.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from kgot_lab.sandbox.launchers import PYTHON_WORKER, Language
from kgot_lab.sandbox.process import INSIDE, OPTIONS, Launch, clean

IMAGE = "python:3.12-slim"
_FOLDER, _PACKAGES = "/kgot_lab/inside", "/packages"


def launch(language: Language, memory_mb: int, image: str = IMAGE) -> Launch | None:
    """How to start the Python worker in a container, if there is a docker program.

    NetworkX is plain Python, so ours is shown to it, read-only; the engines of other languages are not, and
    have no container.
    """
    program, networkx = shutil.which("docker"), importlib.util.find_spec("networkx")
    if language is not PYTHON_WORKER or program is None or networkx is None or networkx.origin is None:
        return None
    environment = [
        option for name, value in clean(memory_mb).items() for option in ("--env", f"{name}={value}")
    ]
    command = (
        program, "run", "--rm", "--interactive", "--network", "none", "--read-only", "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", "--pids-limit", "16", "--memory", f"{2 * memory_mb + 1024}m", "--user", "65534:65534",
        *environment,
        "--volume", f"{INSIDE}:{_FOLDER}:ro", "--volume", f"{Path(networkx.origin).parent}:{_PACKAGES}/networkx:ro",
        image, "python", *OPTIONS, _FOLDER, language.module, _PACKAGES,
    )  # fmt: skip
    return Launch("docker", command, None, patience=120.0)  # the first start fetches the image
