"""Build output, minified scripts and files that git ignores are no source, and are told."""

import shutil
import subprocess

import pytest

from kgot_lab.kgos.extraction.folder import extract_folder
from kgot_lab.kgos.extraction.patterns import add_patterns
from kgot_lab.kgos.extraction.source_files import list_source_files

PATTERNS = ["*.log", "/top.py", "sub/", "a/**/z.js", "**/deep", "gen/**", "!keep.log", "!sub/x.py", "[ab]?.js", "[!c].ts", "#no.py", "\\#yes.py", "o.py   ", "x/*.md", "[z-a]"]  # fmt: skip
NAMES = (
    "a.log keep.log sub/keep.log top.py a/top.py sub/x.py b/sub/x.py a/z.js a/b/c/z.js c/a/z.js deep/x.py q/deep gen/a/b.js gen.js ab.js c1.js "
    "c.ts d.ts #no.py #yes.py o.py x/a.md x/y/a.md y/x/a.md"
).split()


@pytest.mark.skipif(not shutil.which("git"), reason="git is the reference")
@pytest.mark.parametrize("number", range(1, len(PATTERNS) + 1))
def test_gitignore_is_read_as_git_reads_it(tmp_path, number):
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    (tmp_path / ".gitignore").write_text("\n".join(PATTERNS[:number]))
    ignored = {file.name for file in list_source_files(tmp_path) if ".gitignore;" in file.refusal}
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    check = ["git", "check-ignore", "--stdin"]
    said = subprocess.run(check, input="\n".join(NAMES), cwd=tmp_path, capture_output=True, text=True)
    assert ignored == set(said.stdout.split())


def test_what_is_passed_over_is_told_and_read_on_request(tmp_path):
    files = {
        "lib/a.js": "exports.f = function () {};\n",
        "dist/a.js": "function f() {}\n",
        "lib/a.min.js": "function g() {}",
    }
    files |= {
        "lib/bundle.js": "function h() {}" * 1_000,
        "build/__init__.py": "x = 1\n",
        "lib/.gitignore": "local.js\n",
    }
    files |= {"lib/local.js": "function i() {}\n", "local.js": "function j() {}\n"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = extract_folder(tmp_path, cache=False)
    functions = {
        id
        for id, labels in zip(found.graph.ids, found.graph.node_labels, strict=True)
        if "function" in labels
    }
    assert functions == {"lib/a.js#f", "local.js#j"} and "build" in found.graph.ids
    reasons = {remark.path: remark.reason.partition(";")[0] for remark in found.skipped}
    generated = "minified or generated"
    assert reasons == {
        "dist/a.js": "build output", "lib/.gitignore": "a hidden file", "lib/a.min.js": generated,
        "lib/bundle.js": generated, "lib/local.js": "ignored by .gitignore",
    }  # fmt: skip
    assert "dist/a.js: build output; --all-files (all_files=True) reads it" in found.describe()
    whole = extract_folder(tmp_path, cache=False, all_files=True)
    assert {"dist/a.js#f", "lib/a.min.js#g", "lib/bundle.js#h", "lib/local.js#i"} <= set(whole.graph.ids)


def test_the_rules_of_a_repository_hold_in_its_folders_but_not_for_a_folder_that_is_asked_for(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.gen.py\n/out\n")
    for folder in ("src", "out"):
        (tmp_path / folder).mkdir()
        for name in ("a.py", "a.gen.py"):
            (tmp_path / folder / name).write_text("x = 1\n")
    assert (
        extract_folder(tmp_path, cache=False).files
        == extract_folder(tmp_path / "src", cache=False).files
        == 1
    )
    assert extract_folder(tmp_path / "out", cache=False).files == 2


def test_an_import_for_annotations_alone_or_in_a_function_makes_no_circle(tmp_path):
    (tmp_path / "a.py").write_text("import b\nimport c\n")
    (tmp_path / "c.py").write_text("def late():\n    import a\n")
    (tmp_path / "b.py").write_text(
        "import typing\nif typing.TYPE_CHECKING:\n    import a\nelse:\n    import json\n"
    )
    graph = add_patterns(extract_folder(tmp_path, cache=False).graph)
    about = {edge.target: edge.properties.get("deferred") for edge in graph.edges if edge.source == "b"}
    assert about == {"package:typing": None, "a": True, "package:json": None}
    assert "pattern:circular-import" not in graph.ids
