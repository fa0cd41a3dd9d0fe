"""Every command of benchmarks/ and data/make/ explains itself at once, and one that lacks something says so
before it starts.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.every import every

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parent.parent
COMMANDS = sorted(
    path
    for path in [*(ROOT / "benchmarks").glob("*/*.py"), *(ROOT / "data" / "make").glob("*.py")]
    if "argparse" in path.read_text(encoding="utf-8")  # others are programs that a command starts
)
HEAVY = (
    "torch",
    "onnxruntime",
    "spacy",
    "scipy",
    "pandas",
    "matplotlib",
    "xllamacpp",
    "distributed",
    "faiss",
    "playwright",
    "IPython",
)
# a fork for each command, of a process that has what most of them load and nothing heavy
TOLD = f"""
import os, runpy, sys
import numpy, kgot_lab.benchmark.recall.bench, kgot_lab.loop.trace, kgot_lab.stores.files
for path in sys.argv[1:]:
    print("command:", path, flush=True)
    if child := os.fork():
        print("ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.dup2(1, 2)
    sys.argv, sys.path[:1] = [path, "--help"], [{str(ROOT)!r}, path.rpartition("/")[0]]
    try:
        runpy.run_path(path, run_name="__main__")
    finally:
        print("loaded:", *({{name.split(".")[0] for name in sys.modules}} & set({HEAVY})))
"""


@pytest.fixture(scope="module")
def helped():
    """What each command says to --help, with its standard error, by its path."""
    done = subprocess.run(
        [sys.executable, "-c", TOLD, *map(str, COMMANDS)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
        cwd=ROOT,
        check=True,
    )
    return dict(said.split("\n", 1) for said in done.stdout.split("command: ")[1:])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@every("path", COMMANDS, ids=lambda path: path.stem)
def test_a_command_explains_itself_and_loads_nothing_heavy_for_it(helped, path):
    *said, loaded, ended = helped[str(path)].splitlines()
    assert said[0].startswith(f"usage: {path.name}") and len("\n".join(said[1:])) > 100
    assert (loaded.strip(), ended) == ("loaded:", "ended with 0"), "\n".join(said)


@pytest.fixture
def clone(tmp_path):
    """What a clean clone has of the benchmarks: no traces, no results of this machine."""
    shutil.copytree(
        ROOT / "benchmarks", tmp_path / "benchmarks", ignore=shutil.ignore_patterns("results", "__pycache__")
    )
    (tmp_path / "benchmarks" / "results").mkdir()
    for path in (ROOT / "benchmarks" / "results").glob("hotpotqa_*.jsonl"):
        shutil.copy(path, tmp_path / "benchmarks" / "results")
    return tmp_path / "benchmarks"


def stopped(command: list[object], *, without: str = "") -> str:
    """What a command says on standard error when it ends with exit code 2; `without` names a module that is
    made absent.
    """
    hide = f"import sys; sys.modules[{without!r}] = None\n" if without else "import sys\n"
    code = hide + "import runpy; del sys.argv[0]; sys.path[0] = sys.argv[0].partition('/benchmarks/')[0]\n"
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, command)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1, "one line, no traceback"
    return done.stderr


def test_where_lost_says_that_it_needs_the_traces(clone):
    said = stopped([clone / "questions" / "where_lost.py"])
    assert "traces are not kept in git" in said and "questions.question_answering --split test" in said


@pytest.mark.parametrize(
    ("kind", "module", "extra"),
    [
        ("cypher_server", "neo4j", "cypher"),
        ("sparql_embedded", "pyoxigraph", "sparql"),
        ("postgres", "psycopg", "postgres"),
    ],
)
def test_statement_attacks_says_which_package_a_store_needs(kind, module, extra):
    said = stopped(
        [ROOT / "benchmarks" / "stores" / "statement_attacks.py", "--stores", kind], without=module
    )
    assert module in said and f"kgot_lab[{extra}]" in said


def test_the_cases_beside_truth_maintenance_packages_come_to_what_the_docs_say_of_claims():
    told = runpy.run_path(str(ROOT / "benchmarks" / "memory" / "truth_maintenance.py"))
    assert [told["outcome"](case) for case in told["of_claims"]().values()] == [
        "stays", "stays", "falls", "falls", "holds again", "nothing changes", "there; after erase: gone", "2 of 2 kept",
    ]  # fmt: skip


def test_a_command_says_that_it_needs_the_local_model(clone, monkeypatch, tmp_path):
    monkeypatch.setenv("KGOT_LAB_MODEL", str(tmp_path / "none.gguf"))
    assert (
        "xllamacpp" in (said := stopped([clone / "questions" / "question_answering.py"]))
        or "none.gguf" in said
    )
