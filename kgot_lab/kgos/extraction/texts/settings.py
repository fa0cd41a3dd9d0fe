"""The facts of a file of settings: its keys, the packages it requires, and what its values name."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import yaml

from kgot_lab.errors import BadInput
from kgot_lab.kgos.extraction.facts import PACKAGE, Definition, FileFacts, Mention

_REQUIRING = {
    "dependencies",
    "devdependencies",
    "peerdependencies",
    "optionaldependencies",
    "optional-dependencies",
    "requires",
}
_REQUIREMENT = re.compile(r"^(@?[A-Za-z0-9][\w.\-/]*)\s*(?:\[[^\]]*\])?\s*(?:[<>=!~;@ ].*)?$")
_NAMES = re.compile(r"^[A-Za-z0-9_@./\-]+(?::[\w.]+)?$")  # a path, a dotted name, or module:function
_MOST_KEYS = 40  # that are told
_MOST_VALUES = 5_000  # that are looked at; a file of data has more, and names nothing
_LONGEST = 200  # characters of a value that may name something


def settings_facts(text: str, path: str) -> FileFacts:
    """What a file of settings says; raises BadInput for what does not parse, with the place."""
    form = PurePosixPath(path).suffix.lower()
    documents = _READERS[form](text)
    whole = documents[0] if len(documents) == 1 else documents
    keys = list(map(str, whole)) if isinstance(whole, Mapping) else []
    told = (
        f"settings: {', '.join(keys[:_MOST_KEYS])}"
        if keys
        else f"{len(whole)} entries"
        if isinstance(whole, list)
        else "one value"
    )
    itself = Definition(
        path,
        "config",
        PurePosixPath(path).name,
        1,
        text.count("\n") + 1,
        "",
        told + ", …" * (len(keys) > _MOST_KEYS),
    )
    lines = _Lines(text)
    references: dict[str, Mention] = {}
    looked = 0
    for pointer, value in _values(whole):
        looked += 1
        if looked > _MOST_VALUES:
            break
        for target in _named(pointer, value):
            references.setdefault(
                target, Mention(path, "configures", target, lines.of(value), ".".join(map(str, pointer)))
            )
    return FileFacts(
        path,
        form[1:],
        (itself,),
        tuple(references.values()),
        f"only its first {_MOST_VALUES:,} values were looked at" * (looked > _MOST_VALUES),
    )


def _named(pointer: tuple[Any, ...], value: str) -> Iterator[str]:
    """What a value may name: a package that is required, or a file, module or function, which is known when
    all files are read.
    """
    if any(str(each).lower() in _REQUIRING for each in pointer):
        match = _REQUIREMENT.match(value)
        if match and match[1].lower() != "python":
            yield PACKAGE + match[1]
    elif len(value) <= _LONGEST and _NAMES.match(value) and ("." in value or "/" in value or ":" in value):
        yield value


def _values(whole: Any) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Each text in some settings with the keys that lead to it; of packages that are required the key is the
    text. Breadth first.
    """
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), whole)]
    seen: set[int] = set()
    for pointer, value in waiting:
        if isinstance(value, str):
            yield pointer, value
        elif isinstance(value, Mapping | list):
            # YAML may say one thing in many places, and in itself
            if id(value) in seen or len(waiting) > 4 * _MOST_VALUES:
                continue
            seen.add(id(value))
            if isinstance(value, Mapping):
                if pointer and str(pointer[-1]).lower() in _REQUIRING:
                    yield from ((pointer, str(key)) for key, of in value.items() if not isinstance(of, list))
                    waiting.extend(((*pointer, key), of) for key, of in value.items() if isinstance(of, list))
                else:
                    waiting.extend(((*pointer, key), of) for key, of in value.items())
            else:
                waiting.extend((pointer, of) for of in value)


class _Lines:
    """Where in a text a value stands, as far as its letters can be found there."""

    def __init__(self, text: str):
        self.text = text

    def of(self, value: str) -> int:
        """The first line that holds a value; 1 for one that is written otherwise."""
        place = self.text.find(value)
        return self.text.count("\n", 0, place) + 1 if place >= 0 else 1


# --- reading ---


def _json(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and (rows := _json_lines(text)) is not None:
            return [rows]
        raise BadInput(f"does not parse: {error.msg}, line {error.lineno}") from None
    except RecursionError:
        raise BadInput("does not parse: nested too deep") from None


def _json_lines(text: str) -> list[Any] | None:
    """A value on each line; None where one line holds none."""
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return None


def _toml(text: str) -> list[Any]:
    try:
        return [tomllib.loads(text)]
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"does not parse: {error}") from None
    except RecursionError:
        raise BadInput("does not parse: nested too deep") from None


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader, for which a tag that it does not know is what it stands before."""


def _untagged(loader: Any, _: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node)
    return (
        loader.construct_sequence(node)
        if isinstance(node, yaml.SequenceNode)
        else loader.construct_scalar(node)
    )


_Loader.add_multi_constructor("", _untagged)


def _yaml(text: str) -> list[Any]:
    try:
        return [each for each in yaml.load_all(text, _Loader) if each is not None] or [None]
    except yaml.MarkedYAMLError as error:
        place = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise BadInput(f"does not parse: {error.problem or error.context}{place}") from None
    except (yaml.YAMLError, ValueError, TypeError) as error:  # a date that is none, a key that cannot be one
        raise BadInput(f"does not parse: {error}") from None
    except RecursionError:
        raise BadInput("does not parse: nested too deep") from None


_READERS: Mapping[str, Callable[[str], list[Any]]] = {
    ".json": _json,
    ".toml": _toml,
    ".yaml": _yaml,
    ".yml": _yaml,
}
