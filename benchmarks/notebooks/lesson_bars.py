"""What each notebook holds against the bars of a lesson: cells, words, asserts, deep imports, screens, packages.

A lesson has at most 45 cells, 1,100 words of prose, 12 screens and 15 minutes, an assert in at most one of ten
code cells, and imports of kgot_lab alone and of no module in it. What exceeds a bar has a * beside it, and then
the command exits with 1. A screen is 900 pixels of the page that nbconvert makes of the stored notebook, 1,200
pixels wide; it needs Chromium.

python -m benchmarks.notebooks.lesson_bars                      all notebooks
python -m benchmarks.notebooks.lesson_bars --screens            and how many screens each fills
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.notebooks.lesson_minutes import NOTEBOOKS, lesson
from benchmarks.requirements import require_browser, require_packages

BARS: Mapping[str, float] = {
    "cells": 45,
    "words": 1100,
    "minutes": 15,
    "asserts": 0.1,
    "deep": 0,
    "screens": 12,
}
PACKAGES: Mapping[str, str] = {  # of the design card, and how one is seen in code
    "networkx": r"networkx\b|\bnx\.", "pandas": r"\bpandas\b|\bpd\.", "matplotlib": r"\bmatplotlib\b|\bplt\.|\.plot\.",
    "pyvis": "pyvis", "sentence-transformers": "sentence_transformers|SentenceTransformer", "ipywidgets": "ipywidgets|interact",
    "openai": r"\bopenai\b",
}  # fmt: skip
_WIDTH, _HEIGHT = 1200, 900


def lesson_figures(path: Path) -> dict[str, float]:
    """Count what the bars are about, but screens; asserts is the share of code cells that hold one."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    about, code = lesson(path), code_cells(path)
    trees = [ast.parse(source) for source in code]
    deep = sum(_is_deep(node) for tree in trees for node in ast.walk(tree))
    asserts = sum(any(isinstance(node, ast.Assert) for node in ast.walk(tree)) for tree in trees)
    return {
        "cells": len(cells),
        "words": about.words,
        "minutes": about.minutes,
        "asserts": asserts / len(code),
        "deep": deep,
    }


def code_cells(path: Path) -> list[str]:
    """Return the sources of a notebook's code cells."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def packages(path: Path) -> list[str]:
    """Return the packages of the design card that a notebook's code uses."""
    code = "\n".join(code_cells(path))
    return [name for name, pattern in PACKAGES.items() if re.search(pattern, code)]


def _is_deep(node: ast.AST) -> bool:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    return any(name.startswith("kgot_lab.") for name in names)


def count_screens(paths: list[Path]) -> Iterator[float]:
    """Yield how many screens the page of each stored notebook fills."""
    import nbformat
    from nbconvert import HTMLExporter
    from playwright.sync_api import sync_playwright

    from kgot_lab.diagnostics.components import find_chromium

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find_chromium()), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT})
        page.route("http**", lambda route: route.abort())
        for path in paths:
            html, _ = HTMLExporter().from_notebook_node(nbformat.read(path, as_version=4))
            page.set_content(html, wait_until="domcontentloaded")
            yield page.evaluate("document.body.scrollHeight") / _HEIGHT
        browser.close()


def main(paths: list[Path], *, with_screens: bool) -> bool:
    """Print the table; whether no bar is exceeded."""
    figures = [lesson_figures(path) for path in paths]
    if with_screens:
        for own, screens in zip(figures, count_screens(paths), strict=True):
            own["screens"] = screens
    print(f"{'notebook':34}" + "".join(f"{name:>9}" for name in figures[0]) + "  packages")
    for path, own in zip(paths, figures, strict=True):
        columns = (f"{value:8.4g}{'*' if value > BARS[name] else ' '}" for name, value in own.items())
        print(f"{path.stem:34}{''.join(columns)}  {', '.join(packages(path))}")
    used = {name: sum(name in packages(path) for path in paths) for name in PACKAGES}
    print(f"{len(paths)} notebooks; {', '.join(f'{name} in {count}' for name, count in used.items())}")
    return all(value <= BARS[name] for own in figures for name, value in own.items())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notebooks", nargs="*", type=Path, help="by default all")
    parser.add_argument("--screens", action="store_true", help="count screens as well, in Chromium")
    given = parser.parse_args()
    if given.screens:
        require_browser()
        require_packages("lab", "nbconvert")
    sys.exit(not main(given.notebooks or sorted(NOTEBOOKS.glob("*.ipynb")), with_screens=given.screens))
