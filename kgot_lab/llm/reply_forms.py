"""What models write in place of the JSON that they were asked for, and their notations of tool calls.

Only what is certain is read. What is missing is not invented.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

from kgot_lab.arguments import check_arguments
from kgot_lab.types import Json

MAX_OPENINGS = 100  # maximum number of brackets at which JSON is searched
_MAX_REWRITES = 5  # brackets at which what is not JSON is rewritten
_MAX_REWRITTEN = 100_000  # characters of a value that is not JSON
_MAX_DEPTH = 100  # of a value that is not JSON
_MAX_CALLS = 20  # of tools, in a notation of their own
_MAX_YAML = 20_000  # characters


@check_arguments
@dataclass(frozen=True)
class Found:
    """A value in a text, how many characters it takes, and whether it is all of what was written.

    It is not if it is inside of a broken value, or if a value of the text has no end.
    """

    value: Json
    length: int
    is_whole: bool


def json_in(text: str) -> tuple[list[Found], str]:
    """Return the outermost JSON objects and lists in a text, and the error in the first broken one, or ""."""
    found, broken, start, broken_end = list[Found](), "", 0, 0
    for number in range(MAX_OPENINGS):
        opening = re.compile(r"[{\[]").search(text, start)
        if opening is None:
            break
        at, lenient = opening.start(), number < _MAX_REWRITES
        try:
            value, start = _decode(text, at, lenient=lenient)
            found.append(Found(value, start - at, at >= broken_end))
        except (ValueError, RecursionError) as error:
            where = getattr(error, "pos", at)
            problem = f"the JSON breaks at character {where} of {len(text)}: {explain_json_error(error)}"
            broken = broken or problem
            broken_end = max(broken_end, _extent(text, at)[0] if lenient else len(text))
            start = at + 1
    return [each if broken_end < len(text) else replace(each, is_whole=False) for each in found], broken


def from_json(value: Json) -> Json:
    """Return the value of a text that is JSON, and anything else as it is."""
    try:
        return json.loads(value, strict=False) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def explain_json_error(error: ValueError | RecursionError) -> str:
    """Explain briefly why a text could not be parsed as JSON.

    Numbers with thousands of digits and excessive nesting are not syntax errors and get their own words.
    """
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    return "too deep" if isinstance(error, RecursionError) else "too many digits"


def _decode(text: str, start: int, *, lenient: bool) -> tuple[Json, int]:
    """Decode the value at a bracket, and return its end.

    With `lenient`, it may be written as in JavaScript or Python. Raises ValueError for one that is not whole.
    """
    decoder = json.JSONDecoder(strict=False)
    try:
        return decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        if not lenient:
            raise
        end, lacks = _extent(text, start)
        if not lacks and text[end - 1] not in "]})":  # it has no end
            raise
        written = text[start : min(end, start + _MAX_REWRITTEN)] + lacks
        with suppress(ValueError):
            return decoder.raw_decode(_NOT_JSON.sub(_as_json, written))[0], end
        with suppress(ValueError):
            return _from_python(written), end
        raise error from None


def _extent(text: str, start: int) -> tuple[int, str]:
    """Return the end of the value at a bracket, and the braces that it lacks at the end of the text."""
    lacks, end = "", start
    for token in _NOT_JSON.finditer(text, start):
        end = token.end()
        if token.lastgroup == "opening":
            lacks = _CLOSING[token[0]] + lacks
            if len(lacks) > _MAX_DEPTH:
                break
        elif token.lastgroup == "closing":
            lacks = lacks[1:]
            if not lacks:
                return end, ""
    rest = _END_OF_VALUE.fullmatch(text, end)
    is_whole = rest and set(lacks) == {"}"} and text[end - 1] in "\"'”“]}"
    return (rest.end("value"), lacks) if rest and is_whole else (len(text), "")


# Texts, brackets, comments, commas before a closing bracket, keys without quotes, and literals of Python and
# JavaScript. What has no end extends to that of the text, so that it is read once.
_NOT_JSON = re.compile(
    r"""(?P<text>(?P<triple>\"{3}|'{3}).*?(?:(?P=triple)|\Z) | "(?:[^"\\]|\\.)*+(?:"|\Z) | [“”„](?:[^“”\\]|\\.)*+(?:[“”]|\Z)
        | (?<!\w)'(?:[^'\\]|\\.|(?<=\w)'(?=\w))*+(?:'|\Z))
      | (?P<opening>[\[{(]) | (?P<closing>[\]})])
      | //[^\n]* | \#[^\n]* | /\*.*?(?:\*/|\Z) | ,(?=(?:\s|//[^\n]{0,200}\n|\#[^\n]{0,200}\n|/\*.{0,200}?\*/)*+[]}])
      | (?P<key>[A-Za-z_]\w*+(?=\s*+:)) | \b(?:True|False|None|undefined)\b""",
    re.S | re.X,
)
_CLOSING = {"[": "]", "{": "}", "(": ")"}
_END_OF_VALUE = re.compile(r"(?P<value>(?:\s*:\s*(?:true|false|null|True|False|None))?)\s*(?:```|</\w+>)?\s*")
_LITERALS = {"True": "true", "False": "false", "None": "null", "undefined": "null"}


def _as_json(found: re.Match[str]) -> str:
    """Rewrite a part of a value as JSON has it: comments and last commas are left out."""
    kind, written = found.lastgroup, found[0]
    if kind == "text":
        quotes = 3 if found["triple"] else 1
        written = re.sub(r'\\(.)|"', _escape, written[quotes:-quotes], flags=re.S)
    if kind in {"text", "key"}:
        return f'"{written}"'
    return written if kind else _LITERALS.get(written, "")


def _escape(found: re.Match[str]) -> str:
    """Escape a quote or a backslash that JSON does not know."""
    letter = found[1]
    if letter is None:
        return '\\"'
    return found[0] if letter in '"\\/bfnrtu' else letter if letter in "'“”„" else f"\\{found[0]}"


def _from_python(written: str) -> Json:
    """Return the value of a literal of Python, or of a call its name and its arguments.

    Raises ValueError for anything else, and for texts side by side in a list, where a comma may be missing.
    """
    try:
        with warnings.catch_warnings():  # of escapes that Python does not know
            warnings.simplefilter("ignore")
            tree = ast.parse(written, mode="eval").body
        listed = [item for node in ast.walk(tree) for item in getattr(node, "elts", ())]
        if any(_SIDE_BY_SIDE.fullmatch(ast.get_source_segment(written, item) or "") for item in listed):
            raise ValueError("a comma may be missing")
        value = _call_of(tree) if isinstance(tree, ast.Call) else ast.literal_eval(tree)
        return json.loads(json.dumps(value))
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _call_of(tree: ast.Call) -> Json:
    given = {str(place): ast.literal_eval(value) for place, value in enumerate(tree.args)}
    given |= {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in tree.keywords}
    only = given.get("0") if len(given) == 1 else None
    given = only if isinstance(only, dict) else given
    return {"name": ast.unparse(tree.func).rpartition(".")[2], "arguments": given}


_SIDE_BY_SIDE = re.compile(r"""(?:(["'])(?:(?!\1)[^\\]|\\.)*+\1\s*){2,}""", re.S)

# Calls of tools. Some models have a name outside of the JSON, others no JSON at all.

_TOOL = ("tool", "name", "function", "tool_name", "function_name", "action")
_GIVEN = ("arguments", "parameters", "args", "input", "action_input", "tool_input", "params", "kwargs")
_NAMED = re.compile(r"(?:\[TOOL_CALLS\]\s*|<function=|\bto=functions\.)([\w.-]+)[^{]{0,80}?(?={|<parameter=)")
_PARAMETER = re.compile(r"<parameter=([\w.-]+)>\n?(.*?)\n?(?:</parameter>|(?=<parameter=)|\Z)", re.S)
_ACTION = re.compile(
    r"^[^\w\n]*Action\b\W{0,3}:\W{0,4}([\w.-]+)[^\n]*\n[^\w\n]*Action Input\b\W{0,3}:[ *]*"
    r"(.*?)(?=\n[^\w\n]*(?:Action|Observation|Thought|Final)\b|\Z)",
    re.M | re.S | re.I,
)
_CALLED = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*\(")


def as_calls(value: Json) -> Json:
    """Return one call or several as {"calls": […]}, whatever their keys are, and anything else as it is."""
    calls, is_told = value, isinstance(value, Mapping) and "calls" in value
    if isinstance(value, Mapping) and not is_call(value):
        calls = value["calls"] if is_told else next(iter(value.values())) if len(value) == 1 else None
    calls = from_json(calls)
    calls = [*map(from_json, calls)] if isinstance(calls, list) else [calls]
    if is_told or (calls and all(map(is_call, calls))):
        return {"calls": [*map(as_call, calls)]}
    return value


def as_call(value: Json) -> Json:
    """Return a call as {"tool": NAME, "arguments": {…}}, and anything else as it is.

    An argument without a name is named by its place, from 0.
    """
    if not is_call(value):
        return value
    value = value["function"] if isinstance(value.get("function"), Mapping) else value
    keys = {str(key).casefold(): key for key in value}
    tool, given = (next((keys[name] for name in names if name in keys), None) for names in (_TOOL, _GIVEN))
    if not isinstance(value.get(tool), str):
        return value
    others = {key: each for key, each in value.items() if key not in {tool, "id", "type"}}
    arguments = others if given is None else from_json(value[given])
    if not isinstance(arguments, Mapping):
        listed = arguments if isinstance(arguments, list) else [] if arguments is None else [arguments]
        arguments = {str(place): each for place, each in enumerate(listed)}
    return {"tool": value[tool].strip().removeprefix("functions."), "arguments": dict(arguments)}


def is_call(value: Json) -> bool:
    """Return whether a value has a key that names a tool."""
    return isinstance(value, Mapping) and any(str(key).casefold() in _TOOL for key in value)


def other_forms(text: str, fields: Collection[str]) -> list[Json]:
    """Return the values in a text without JSON: calls, or an object of these fields as YAML has it."""
    actions = [(name, _value(given.strip(" \n`*"))) for name, given in _ACTION.findall(text)]
    calls: list[Json] = [{"name": name, "arguments": given} for name, given in _named_calls(text) or actions]
    calls = calls or _python_calls(text)
    mapping = None if text.lstrip().startswith(("{", "[")) else _from_yaml(text, fields)
    return [*([calls] if calls else ()), *reversed(calls), mapping]


def _named_calls(text: str) -> list[tuple[str, Json]]:
    calls = list[tuple[str, Json]]()
    for found in islice(_NAMED.finditer(text), _MAX_CALLS):
        given = re.split("</function>|<function=", text[found.end() :], maxsplit=1)[0]
        with suppress(ValueError, RecursionError):
            tagged = {name: _value(value) for name, value in _PARAMETER.findall(given)}
            calls.append((found[1], tagged or _decode(given, 0, lenient=True)[0]))
    return calls


def _value(text: str) -> Json:
    """Return an argument that has no quotes: a list, an object, a whole number, a truth value, or the text itself."""
    value = from_json(text)
    return text if isinstance(value, float) else value


def _python_calls(text: str) -> list[Json]:
    calls, end = list[Json](), 0
    for found in islice(_CALLED.finditer(text), _MAX_CALLS):
        if found.start() >= end:
            with suppress(ValueError):
                after = _extent(text, found.end() - 1)[0]
                calls.append(_from_python(text[found.start() : after]))
                end = after
    return calls


def _from_yaml(text: str, fields: Collection[str]) -> Json:
    """Return the mapping that a text is in YAML. A value on the line of its field may hold a colon."""
    import yaml

    line = rf"(?mi)^[*_]*({'|'.join(map(re.escape, fields))})[*_]*:[*_]*[ \t]+(?![\[{{\"'|>])(\S.*)$"
    quoted = re.sub(line, lambda found: f"{found[1]}: {json.dumps(found[2])}", text[:_MAX_YAML])
    with suppress(yaml.YAMLError, ValueError, RecursionError):
        # texts, which are converted where a field is of another kind; aliases could repeat a value without end
        is_plain = re.search(r"(?:^|[\s\[{,:-])&\w|[\[{]{9}", quoted) is None
        return yaml.load(quoted, yaml.BaseLoader) if is_plain else None
    return None
