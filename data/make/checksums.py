"""Rewrite the tables of files in data/README.md: size and sha256 of everything in each folder, between its
markers.

A folder without markers gets a section at the end, to be completed by hand with source and licence.
"""

import argparse
import hashlib
import re
from pathlib import Path

DATA = Path(__file__).parent.parent
README = DATA / "README.md"


def files_of(folder: Path) -> list[Path]:
    """The files in a folder and below, in order of name, without those that systems leave behind."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def folders(root: Path) -> list[Path]:
    """The folders of data; what made them is no data."""
    return [path for path in root.iterdir() if path.is_dir() and path.name != "make"]


def table(folder: Path) -> str:
    """The Markdown table of a folder's files, or a note that there are none."""
    rows = [
        f"| {path.relative_to(folder).as_posix()} | {path.stat().st_size:,} | `{hashlib.sha256(path.read_bytes()).hexdigest()}` |"
        for path in files_of(folder)
    ]
    if not rows:
        return "No files yet."
    return "\n".join(["| file | bytes | sha256 |", "|---|---:|---|", *rows])


def rewritten(text: str, root: Path = DATA) -> str:
    """The text of the README with every table brought up to date."""
    described = set(re.findall(r"<!-- files (\S+) -->", text))
    for name in sorted(described | {path.name for path in folders(root) if files_of(path)}):
        start, end = f"<!-- files {name} -->", f"<!-- end {name} -->"
        if name not in described:
            text = f"{text.rstrip()}\n\n## {name}\n- Source: to be written.\n- Licence: to be written.\n\n{start}\n{end}\n"
        text = re.sub(
            f"{re.escape(start)}.*?{re.escape(end)}",
            f"{start}\n{table(root / name)}\n{end}",
            text,
            flags=re.DOTALL,
        )
    return text


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{README.name}: {sum(len(files_of(folder)) for folder in folders(DATA))} files")


if __name__ == "__main__":
    main()
