"""Resolve the modules that scripts import, and their symbols by aliases, across files."""

from __future__ import annotations

import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from kgot_lab.kgos.extraction.facts import PACKAGE, SCRIPT_ENDINGS, FileFacts

BUILT_IN = "built-in"  # the symbol of what belongs to the language
_MAX_SYMBOLS = 60  # that one symbol may stand for
PACKAGE_FILE = "package.json"
_TEXT = r'("(?:\\.|[^"\\\n])*")'  # which the groups below leave as it is
_COMMENT, _LAST_COMMA = re.compile(_TEXT + r"|//[^\n]*|/\*[\s\S]*?\*/"), re.compile(_TEXT + r"|,(?=\s*[}\]])")
_PART = re.compile(r"\(\)|\.?[^.()]+")  # of the names in a symbol


def join_symbol(symbol: str, rest: str) -> str:
    """Return the symbol of a member (`.name`) or of the result (`()`) of a symbol, or "" if it is unknown.

    The members of what a function of a package or of the language returns are unknown.
    """
    if symbol == BUILT_IN:
        return symbol if "()" not in rest else ""
    if not symbol or (symbol.startswith(PACKAGE) and "()" in symbol):
        return ""
    return symbol + rest


def script_path(target: str, paths: Container[str]) -> str:
    """Return the path that an import of a path means among some files, or "" if it is missing."""
    stem = target.removesuffix(".js").removesuffix(".mjs").removesuffix(".cjs").removesuffix(".jsx")
    bases = (target, stem, f"{target}/index")
    endings = (*SCRIPT_ENDINGS, ".d.ts")
    candidates = (target, *(f"{base}{ending}" for base in bases for ending in endings))
    return next((candidate for candidate in candidates if candidate in paths), "")


def own_modules(manifests: Mapping[str, bytes], paths: Container[str]) -> dict[str, str]:
    """Map the packages of some package.json files to their scripts, by name, by what they export and by folder.

    `package:NAME/` is the folder of a package, in which its other modules are. A package whose main file is not among
    the paths, as if it has to be built, has its `index` or `src/index`.
    """
    found: dict[str, str] = {}
    for path, data in manifests.items():
        if posixpath.basename(path) != PACKAGE_FILE:
            continue
        package = _read_object(data)
        name, main, exports = package.get("name") or path, package.get("main"), package.get("exports")
        folder, mains = posixpath.dirname(path) or ".", [*_exported_files(main), "index", "src/index"]
        parts = (
            {key: of for key, of in exports.items() if key[:1] == "."} if isinstance(exports, dict) else {}
        )
        for part, exported in ({".": None if parts else exports} | parts).items():
            files = [*_exported_files(exported), *(mains if part == "." else ())]
            ways = (script_path(posixpath.normpath(posixpath.join(folder, each)), paths) for each in files)
            if script := next(filter(None, ways), ""):
                found |= {folder: script} if part == "." else {}
                found[PACKAGE + posixpath.normpath(f"{name}/{part}")] = script
        found[f"{PACKAGE}{name}/"] = folder
    return found


def import_aliases(manifests: Mapping[str, bytes], paths: Collection[str]) -> dict[str, str]:
    """Map `FOLDER|NAME` to what an import of NAME, or of a path below it, means in the scripts of a folder.

    The names are in the `paths` and the `baseUrl` of tsconfig and jsconfig files, with those that they extend, and in
    the `imports` of package.json files. Of several targets, the first that is among the paths is meant.
    """
    configs, found = {path: _read_object(data) for path, data in manifests.items()}, dict[str, str]()
    for path in configs:
        for pattern, targets in _import_patterns(path, configs, frozenset()).items():
            for target in targets:
                names = _names_after(target.partition("*")[0], paths) if "*" in pattern else [""]
                for name in names:
                    meant = target.replace("*", name, 1)
                    if "*" in pattern or script_path(meant, paths):
                        alias = pattern.replace("*", name, 1)
                        found.setdefault(f"{posixpath.dirname(path) or '.'}|{alias}", meant)
    return found


def _import_patterns(
    path: str, configs: Mapping[str, dict[str, Any]], below: frozenset[str]
) -> dict[str, list[str]]:
    """Return the patterns of names in a file, each with its target paths. `below` are the files that extend it."""
    config, folder = configs[path], posixpath.dirname(path)
    if posixpath.basename(path) == PACKAGE_FILE:
        imports = config.get("imports")
        return {
            key: [posixpath.normpath(posixpath.join(folder, each)) for each in _exported_files(exported)]
            for key, exported in (imports.items() if isinstance(imports, dict) else ())
        }
    found: dict[str, list[str]] = {}
    extended = config.get("extends") or []
    for each in [extended] if isinstance(extended, str) else extended:
        other = posixpath.normpath(posixpath.join(folder, f"{str(each).removesuffix('.json')}.json"))
        if other in configs and other not in below | {path}:
            found |= _import_patterns(other, configs, below | {path})
    options = config.get("compilerOptions")
    options = options if isinstance(options, dict) else {}
    base, given = options.get("baseUrl"), options.get("paths")
    root = posixpath.join(folder, base) if isinstance(base, str) else folder
    if isinstance(given, dict):
        found = {
            key: [posixpath.normpath(posixpath.join(root, each)) for each in targets if isinstance(each, str)]
            for key, targets in given.items()
            if isinstance(targets, list)
        }
    if isinstance(base, str):
        found["*"] = [*found.get("*", ()), posixpath.normpath(posixpath.join(root, "*"))]
    return found


def _names_after(prefix: str, paths: Iterable[str]) -> list[str]:
    """Return the next name in each path that begins with a prefix, of a script also without its ending."""
    rest = (path.removeprefix(prefix).partition("/") for path in paths if path.startswith(prefix))
    names = {
        name: None for first, below, _ in rest for name in ((first,) if below else (first, _stem(first)))
    }
    return list(names)


def _stem(name: str) -> str:
    return next((name.removesuffix(each) for each in (".d.ts", *SCRIPT_ENDINGS) if name.endswith(each)), name)


def _read_object(data: bytes) -> dict[str, Any]:
    """Return the object in a JSON file, which may have comments and commas at the end, or else an empty one."""
    text = data.decode("utf-8-sig", "replace")
    for skipped in (_COMMENT, _LAST_COMMA):
        text = skipped.sub(lambda match: match[1] or "", text)
    try:
        found = json.loads(text)
    except ValueError:  # which the reader of settings tells
        return {}
    return found if isinstance(found, dict) else {}


def _exported_files(exported: Any) -> Iterator[str]:
    """Yield the files in a value of `exports`, which may depend on conditions such as `import` and `require`."""
    if isinstance(exported, str):
        yield exported
    for each in exported.values() if isinstance(exported, dict) else ():
        yield from _exported_files(each)


class ScriptNames:
    """The aliases of all scripts, and the nodes that a symbol stands for."""

    def __init__(self, files: Sequence[FileFacts], by_path: Mapping[str, str], nodes: Container[str]):
        self._by_path, self._nodes = by_path, nodes
        self._aliases: dict[str, list[str]] = defaultdict(list)
        for facts in files:
            for reference in facts.references:
                if reference.type == "aliases":
                    self._aliases[reference.source].append(reference.target)
        self.resolve = cache(self._resolve)
        self.file_of = cache(self._file_of)

    def _file_of(self, target: str) -> str:
        """Return the path of the file that a script imports, or "" if it is missing."""
        return self._by_path.get(script_path(target, self._by_path), "")

    def _resolve(self, symbol: str) -> tuple[str, ...]:
        """Return the definitions that a symbol stands for, or symbols of packages if there are none."""
        found, external, symbols = [], [], dict.fromkeys([symbol])
        waiting = [symbol]
        for each in waiting:
            path, _, name = each.partition("#")
            file = "" if path.startswith(PACKAGE) else self.file_of(path)
            if each == BUILT_IN or path.startswith(PACKAGE):
                external.append(each)
            elif f"{file}#{name}" in self._nodes:
                found.append(f"{file}#{name}")
            elif file:
                new = [step for step in self._steps(file, name) if step and step not in symbols]
                waiting += list(dict.fromkeys(new))[: max(0, _MAX_SYMBOLS - len(symbols))]
                symbols |= dict.fromkeys(new)
        return tuple(dict.fromkeys(found or external))

    def _steps(self, file: str, name: str) -> Iterator[str]:
        """Yield what a symbol without a definition may stand for, by the aliases of its parts."""
        parts = _PART.findall(name)
        for end in range(len(parts), 0, -1):
            for target in self._aliases.get(f"{file}#{''.join(parts[:end])}", ()):
                # a member of an object of a package is the package's, but not what that member holds
                if not (target.startswith(PACKAGE) and parts[end + 1 :]):
                    yield join_symbol(target, "".join(parts[end:]))
        if parts[:1] == ["exports"] and parts[1:]:
            yield f"{file}#{''.join(parts[1:]).removeprefix('.')}"
        if parts[:2] == ["exports", ".default"]:
            yield f"{file}#exports{''.join(parts[2:])}"
