"""How much of the package its core needs: the tests of graph, memory store, loop, retrieval and evaluation on an
installation without extras, their seconds, and the code lines of the modules of kgot_lab that they import.

python -m benchmarks.speed.thin_core [--list]; the target is 90 s and 16,000 lines.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import time
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
graph/test_property_graph.py graph/test_snapshots.py stores/test_in_memory.py loop/test_walk.py
retrieval/test_stage.py retrieval/test_fusion.py retrieval/test_learned.py retrieval/test_neighbours.py
retrieval/test_passthrough.py retrieval/test_trail.py
evaluation/test_measures.py evaluation/test_runs.py evaluation/test_significance.py evaluation/test_grading.py
""".split()  # what else these folders hold is about files, bundled data, plots or packages of extras
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def code_lines(text: str) -> int:
    """Count the lines that hold a token which is neither a comment nor part of a docstring."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstrings |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    spans = (
        range(token.start[0], token.end[0] + 1)
        for token in tokens
        if token.type not in SILENT and token.string
    )
    return len({line for span in spans for line in span} - docstrings)


def reached_modules() -> dict[str, int]:
    """Code lines by name of each module of the package that this process has imported."""
    loaded = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "kgot_lab"}
    files = {
        name: Path(module.__file__) for name, module in loaded.items() if getattr(module, "__file__", None)
    }
    return {name: code_lines(file.read_text(encoding="utf-8")) for name, file in files.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="name each module with its lines")
    options = parser.parse_args()
    began = time.perf_counter()
    # without the settings of the project, some of which are for plugins
    own = ["-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", "-c", "/dev/null"]
    own += ["--import-mode=importlib", "-o", f"pythonpath={ROOT / 'tests'} {ROOT}"]
    failed = pytest.main([*own, *(str(ROOT / "tests" / test) for test in TESTS)])
    lines = reached_modules()
    if options.list:
        print(
            "\n".join(
                f"{count:6,} {name}" for name, count in sorted(lines.items(), key=lambda each: -each[1])
            )
        )
    print(f"{time.perf_counter() - began:.0f} s; {sum(lines.values()):,} code lines in {len(lines)} modules")
    sys.exit(failed)
