"""The README against the program: its Python runs, and every command it names exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from kgot_lab.cli.app import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = typer.main.get_command(app).commands
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def blocks(text: str, language: str = r"\w*") -> list[str]:
    """The fenced blocks of a Markdown text."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def code_lines(text: str) -> list[str]:
    """The lines of all blocks that are not Python, and the code inside sentences."""
    fenced = [line for block in re.findall(r"^```(?!python)\w*\n(.*?)^```", text, re.M | re.S) for line in block.splitlines()]
    return fenced + re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def wrong_commands(text: str) -> list[str]:
    """What a text names that is not there: make targets, commands, and options of commands."""
    wrong = []
    for line in code_lines(text):
        words = line.split("#")[0].strip()
        wrong += [f"make {target}" for target in re.findall(r"(?:^|[;&|] ?|\$ )make ([a-z-]+)", words) if target not in TARGETS]
        for name, rest in re.findall(r"kgot-lab ([a-z]+)(.*)", words):
            options = {option for parameter in COMMANDS[name].params for option in parameter.opts} if name in COMMANDS else set()
            wrong += [f"kgot-lab {name}"] if name not in COMMANDS else []
            wrong += [f"kgot-lab {name} {option}" for option in re.findall(r"(?<!\S)--[a-z-]+", rest) if option not in options | {"--help"}]
    return wrong


def test_the_python_of_the_readme_runs(tmp_path):
    code = "\n".join(blocks(README, "python"))
    if not code:
        pytest.skip("the README shows no Python")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_every_command_that_the_readme_names_exists():
    assert wrong_commands(README) == []


def test_a_command_that_does_not_exist_would_be_found():
    block = "```sh\nmake nothing\nkgot-lab ask Q --documents DIR\nkgot-lab nothing\n```\n"
    text = f"{block}Try `kgot-lab ask Q --nothing 2` or `make run`; make sure it works."
    assert wrong_commands(text) == ["make nothing", "kgot-lab nothing", "kgot-lab ask --nothing"]
