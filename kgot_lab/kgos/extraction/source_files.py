"""List the files of a folder that are source: neither built nor minified, nor ignored by git."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath

from kgot_lab.documents.folder import ListedFile, list_files
from kgot_lab.kgos.extraction.facts import SCRIPT_ENDINGS

_BUILD_FOLDERS = ("dist", "build")
_MINIFIED = re.compile(r".*[.-](min|bundle)\.[cm]?js")
_MIN_GENERATED_BYTES, _MAX_LINE_BYTES = 5_000, 300  # of a generated script, and of its lines on average


def list_source_files(folder: Path, all_files: bool = False) -> list[ListedFile]:
    """List the files of a folder. What is no source has the reason as its refusal, unless `all_files`.

    A folder `build` or `dist` is source if it is a package of Python.
    """
    listed = list_files(folder)
    if all_files:
        return listed
    packages = {PurePosixPath(file.name).parent for file in listed if file.path.name == "__init__.py"}
    ignore = _GitIgnore(folder.resolve(), (file.name for file in listed if file.path.name == ".gitignore"))

    def refusal(file: ListedFile) -> str:
        parents = PurePosixPath(file.name).parents
        if any(parent.name in _BUILD_FOLDERS and parent not in packages for parent in parents):
            why = "build output"
        elif _MINIFIED.fullmatch(file.name) or _is_generated(file.path):
            why = "minified or generated"
        elif ignore.is_ignored(file.name):
            why = "ignored by .gitignore"
        else:
            return ""
        return f"{why}; --all-files (all_files=True) reads it"

    return [file if file.refusal else file._replace(refusal=refusal(file)) for file in listed]


def _is_generated(path: Path) -> bool:
    """Return whether a file is a script of very long lines, as bundlers write them."""
    if path.suffix not in SCRIPT_ENDINGS:
        return False
    status = path.stat()
    return status.st_size > _MIN_GENERATED_BYTES and _has_long_lines(path, status.st_size, status.st_mtime_ns)


@lru_cache(10_000)
def _has_long_lines(path: Path, size: int, modified: int) -> bool:
    return size > _MAX_LINE_BYTES * (path.read_bytes().count(b"\n") + 1)


_IgnoreRule = tuple[re.Pattern[str], bool, bool]  # whether it ignores what matches, and only folders


class _GitIgnore:
    """The rules of the .gitignore files in a folder, and of those above it in the same repository.

    The rules above a folder that they ignore as a whole are not used, since somebody asks for it.
    """

    def __init__(self, folder: Path, names: Iterable[str]):
        above = [each for each in (folder, *folder.parents) if (each / ".git").exists()]
        self._root = above[0] if above else folder
        self._prefix = folder.relative_to(self._root).as_posix().removeprefix(".")
        self._rules: dict[str, list[_IgnoreRule]] = defaultdict(list)  # by the folder, relative to the root
        for parent in PurePosixPath(self._prefix).parents:
            self._add_rules(parent / ".gitignore")
        if self._prefix and self._match_rules(self._prefix, is_folder=True):
            self._rules.clear()
        for name in names:
            self._add_rules(PurePosixPath(self._prefix, name))
        self._is_ignored = cache(self._match_path)

    def is_ignored(self, name: str) -> bool:
        """Return whether a file of the folder is ignored, itself or by a folder that holds it."""
        return self._is_ignored(str(PurePosixPath(self._prefix, name)), is_folder=False)

    def _add_rules(self, file: PurePosixPath) -> None:
        with suppress(OSError):
            lines = (self._root / file).read_text(encoding="utf-8", errors="replace").splitlines()
            self._rules[str(file.parent)] = list(filter(None, map(_read_rule, lines)))

    def _match_path(self, path: str, is_folder: bool) -> bool:
        parent = path.rpartition("/")[0]
        is_inside = len(parent) > len(self._prefix)
        return (is_inside and self._is_ignored(parent, is_folder=True)) or self._match_rules(path, is_folder)

    def _match_rules(self, path: str, is_folder: bool) -> bool:
        """Return what the last matching rule says, those of the nearest folder last."""
        ignored = False
        for parent in reversed(PurePosixPath(path).parents):
            inside = str(PurePosixPath(path).relative_to(parent))
            for pattern, ignores, only_folders in self._rules.get(str(parent), ()):
                if (is_folder or not only_folders) and pattern.fullmatch(inside):
                    ignored = ignores
        return ignored


_TOKEN = re.compile(r"\*\*/|/\*\*$|\*+|\?|\[[!^]?\]?[^\]]*\]|\\.|.")
_MEANINGS = {"**/": "(?:.*/)?", "/**": "/.+", "?": "[^/]"}


def _read_rule(line: str) -> _IgnoreRule | None:
    """Read a line of a .gitignore file, or return None if it is no rule."""
    text = re.sub(r"(?<!\\)\s+$", "", line)
    pattern = text.removeprefix("!").rstrip("/")
    if not pattern or text.startswith("#"):
        return None
    expression = "" if "/" in pattern else "(?:.*/)?"
    for token in _TOKEN.findall(pattern.removeprefix("/")):
        if token.startswith("[") and len(token) > 1:
            expression += f"[^{token[2:]}" if token[1] in "!^" else token
        elif token.strip("*"):
            expression += _MEANINGS.get(token) or re.escape(token.removeprefix("\\") or token)
        else:
            expression += "[^/]*"
    with suppress(re.error):
        return re.compile(expression), not text.startswith("!"), text.endswith("/")
    return None
