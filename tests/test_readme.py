"""The README and the pages of docs/ against the program: their Python runs, and every command, file and extra
they name exists.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import typer.main
from support.every import every

from kgot_lab.cli.app import app
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.trace import load_run

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    ROOT / "README.md",
    ROOT / "notebooks" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "benchmarks" / "results").rglob("*.md")),
]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
# pages with Python
RUN = {
    "README.md",
    *(f"docs/{page}.md" for page in ("experts", "loop", "memory", "methods", "query", "recall")),
    *(f"docs/{page}.md" for page in ("extending", "stores", "structure", "views", "worlds")),
}
_GROUP = typer.main.get_command(app)
# `query` is made when it is asked for
COMMANDS = {name: _GROUP.get_command(None, name) for name in _GROUP.list_commands(None)}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def blocks(text: str, language: str = r"\w*") -> list[str]:
    """The fenced blocks of a Markdown text."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def code_lines(text: str) -> list[str]:
    """The lines of all blocks that are not Python, and the code inside sentences."""
    fenced = [
        line
        for block in re.findall(r"^```(?!python)\w*\n(.*?)^```", text, re.M | re.S)
        for line in block.splitlines()
    ]
    return fenced + re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def options_of(command: Any) -> set[str]:
    """The options of a command, and of those under it."""
    below = [options_of(each) for each in getattr(command, "commands", {}).values()]
    return {option for parameter in command.params for option in parameter.opts}.union(*below)


def wrong_commands(text: str) -> list[str]:
    """What a text names that is not there: make targets, commands, and options of commands."""
    wrong = []
    for line in code_lines(text):
        words = line.split("#")[0].strip()
        wrong += [
            f"make {target}"
            for target in re.findall(r"(?:^|[;&|] ?|\$ )make ([a-z-]+)", words)
            if target not in TARGETS
        ]
        for name, rest in re.findall(r"kgot-lab ([a-z]+)(.*)", words):
            options = options_of(COMMANDS[name]) if name in COMMANDS else set()
            wrong += [f"kgot-lab {name}"] if name not in COMMANDS else []
            wrong += [
                f"kgot-lab {name} {option}"
                for option in re.findall(r"(?<!\S)--[a-z-]+", rest)
                if option not in options | {"--help"}
            ]
    return wrong


@pytest.mark.extended
@pytest.mark.parametrize("name", sorted(RUN))
def test_the_python_of_a_page_runs(name, tmp_path):
    code = "\n".join(blocks((ROOT / name).read_text(encoding="utf-8"), "python"))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr


def test_every_page_that_shows_python_is_run():
    shown = {name for name in NAMES if blocks((ROOT / name).read_text(encoding="utf-8"), "python")}
    assert shown == RUN


@every("name", NAMES)
def test_every_command_that_a_page_names_exists(name):
    assert wrong_commands((ROOT / name).read_text(encoding="utf-8")) == []


@every("name", NAMES)
def test_every_file_that_a_page_links_to_exists(name):
    links = re.findall(r"\]\(([^)\s]+)\)", (ROOT / name).read_text(encoding="utf-8"))
    assert [
        link
        for link in links
        if "://" not in link and not (ROOT / name).parent.joinpath(link.partition("#")[0]).exists()
    ] == []


def test_every_extra_that_a_page_names_exists():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = {
        extra.strip() for some in re.findall(r"kgot_lab\[([\w, ]+)\]", text) for extra in some.split(",")
    }
    assert named and named <= set(extras)


def test_the_readme_is_short_and_shows_what_it_is_before_anything_else():
    assert len(README) <= 6_000
    first = README.splitlines()[:12]
    assert any(line.startswith("![") for line in first)
    assert {"make run", "make test"} <= {line.split("  ")[0] for line in first}


def test_every_package_stands_in_the_architecture_and_every_path_there_exists():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    packages = {path.parent.name for path in (ROOT / "kgot_lab").glob("*/__init__.py")} - {"experiments"}
    assert packages and [name for name in packages if f"`{name}`" not in page] == []
    paths = re.findall(r"`([\w./-]+/[\w./-]+)`", page)
    assert [p for p in paths if not any((root / p).exists() for root in (ROOT, ROOT / "kgot_lab"))] == []


def test_the_picture_of_the_layers_is_that_of_the_contract():
    drawn = runpy.run_path(str(ROOT / "docs" / "draw_layers.py"))["layers_svg"]()
    assert (ROOT / "docs" / "layers.svg").read_text(encoding="utf-8") == drawn, (
        "run python docs/draw_layers.py"
    )


@pytest.mark.parametrize(
    ("pages", "most"), [(["README.md"], 6_000), (["CHANGELOG.md"], 8_000), (["docs/*.md"], 120_000)]
)
def test_pages_keep_within_their_number_of_characters(pages, most):
    files = [file for pattern in pages for file in ROOT.glob(pattern)]
    assert files and sum(len(file.read_text(encoding="utf-8")) for file in files) <= most


def test_the_pictures_of_the_readme_are_what_the_commands_draw():
    answer = runpy.run_path(str(ROOT / "docs" / "draw_answer.py"))["answer_picture"]
    on_file = (ROOT / "docs" / "graph.svg").read_text(encoding="utf-8")
    drawn = answer(load_run(bundled_path("traces/hotpotqa_demo.jsonl"))).svg
    assert on_file == drawn, "run python docs/draw_answer.py"
    loop = runpy.run_path(str(ROOT / "docs" / "draw_loop.py"))["loop_drawing"]
    assert (ROOT / "docs" / "loop.svg").read_text(encoding="utf-8") == loop().svg, (
        "run python docs/draw_loop.py"
    )
    assert {"Botswana", "Ayesha Quraishi", "Southern Africa"} <= {
        text.text for text in ET.fromstring(on_file).iter("{http://www.w3.org/2000/svg}text")
    }


def test_the_api_reference_has_the_modules_of_the_pages(tmp_path):
    pytest.importorskip("pdoc")
    made = runpy.run_path(str(ROOT / "docs" / "make_api.py"))
    modules = made["documented_modules"]()
    assert modules[0] == "kgot_lab" and len(modules) > 20 and all(map(made["is_importable"], modules))
    command = [sys.executable, str(ROOT / "docs" / "make_api.py"), str(tmp_path), "kgot_lab.retrieval.fusion"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "reciprocal rank" in (tmp_path / "kgot_lab" / "retrieval" / "fusion.html").read_text(
        encoding="utf-8"
    )


def test_a_command_that_does_not_exist_would_be_found():
    block = "```sh\nmake nothing\nkgot-lab ask Q --documents DIR\nkgot-lab nothing\n```\n"
    text = f"{block}Try `kgot-lab ask Q --nothing 2` or `make run`; make sure it works."
    assert wrong_commands(text) == ["make nothing", "kgot-lab nothing", "kgot-lab ask --nothing"]
