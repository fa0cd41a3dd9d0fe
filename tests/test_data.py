"""The bundled data is what data/README.md says it is."""

import hashlib
import json
import re
import runpy
import shutil
import subprocess
import sys

import pytest
from support.every import every

from kgot_lab.io.files import bundled_path

DATA = bundled_path("README.md").parent
README = (DATA / "README.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", README, flags=re.DOTALL | re.MULTILINE))
LISTED = {
    f"{section}/{name}": (int(size.replace(",", "")), sha256)
    for section, text in SECTIONS.items()
    for name, size, sha256 in re.findall(
        r"^\| (\S.*?) \| ([\d,]+) \| `([0-9a-f]{64})` \|$", text, flags=re.MULTILINE
    )
}
FILES = [
    path.relative_to(DATA) for path in DATA.rglob("*") if path.is_file() and not path.name.startswith(".")
]
# what made the data is no data
PRESENT = sorted(path.as_posix() for path in FILES if path.parts[0] != "make")


def test_every_file_is_listed_and_every_listed_file_is_there():
    assert set(PRESENT) - {"README.md"} == set(LISTED), "run python data/make/checksums.py"


@every("name", sorted(LISTED))
def test_size_and_checksum_hold(name):
    content = (DATA / name).read_bytes()
    assert (len(content), hashlib.sha256(content).hexdigest()) == LISTED[name], (
        "run python data/make/checksums.py"
    )


@every("name", PRESENT)
def test_no_file_is_four_megabytes_or_more(name):
    assert (DATA / name).stat().st_size < 4_000_000


@every("section", sorted(SECTIONS))
def test_every_folder_has_a_source_and_a_licence(section):
    for word in ("Source", "Licence"):
        assert re.search(rf"^- {word}: (?!to be written)\S", SECTIONS[section], flags=re.MULTILINE)


def test_rewriting_the_tables_finds_new_files_and_keeps_the_prose(tmp_path):
    script = runpy.run_path(str(DATA / "make" / "checksums.py"))
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "a.txt").write_bytes(b"abc")
    once = script["rewritten"]("# Data\n\nProse.\n", tmp_path)
    assert "Prose." in once
    assert "| a.txt | 3 | `ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad` |" in once
    (tmp_path / "new" / "a.txt").write_bytes(b"abcd")
    twice = script["rewritten"](once, tmp_path)
    assert "| a.txt | 4 |" in twice and "| a.txt | 3 |" not in twice and twice.count("## new") == 1
    assert script["rewritten"](twice, tmp_path) == twice


def test_the_queries_of_the_cookbook_are_as_they_were_frozen():
    frozen = json.loads((DATA / "cookbook" / "FROZEN.json").read_text(encoding="utf-8"))["sha256"]
    assert set(frozen) == {"queries_tuning.jsonl", "queries_locked.jsonl", "nodes.jsonl", "edges.jsonl"}
    assert frozen == {
        name: hashlib.sha256((DATA / "cookbook" / name).read_bytes()).hexdigest() for name in frozen
    }


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        ("queries_locked.jsonl", "", "", "nothing is wrong"),
        ("edges.jsonl", '"reduces"', '"enables"', "not as they were frozen"),
        (
            "queries_tuning.jsonl",
            '"intent": "security"',
            '"intent": "safety"',
            "benefit-11 names an intent that is unknown",
        ),
        (
            "queries_tuning.jsonl",
            '"strict": ["cost_strategy:',
            '"strict": ["cost:',
            "benefit-02 holds strict nodes or steps",
        ),
        ("queries_locked.jsonl", '"verdict": "no"', '"verdict": "yes"', "benefit-44 is answered by .*'no'"),
        (
            "queries_locked.jsonl",
            "a stolen token",
            "short-lived bound tokens",
            "benefit-12 repeats a name or a keyword",
        ),
    ],
    ids=["untouched", "edge", "intent", "strict", "verdict", "name"],
)
def test_the_check_of_the_queries_says_what_is_wrong(tmp_path, file, before, after, said):
    for folder in ("make", "cookbook"):
        shutil.copytree(DATA / folder, tmp_path / folder)
    changed = tmp_path / "cookbook" / file
    changed.write_text(changed.read_text(encoding="utf-8").replace(before, after, 1), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, tmp_path / "make" / "cookbook_queries.py"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert re.search(said, ran.stdout) and ran.returncode == (before != after), ran.stdout + ran.stderr
