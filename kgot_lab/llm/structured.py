"""Structured replies: validation of replies, JSON schemas from pydantic models, and parsing."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from operator import getitem
from typing import Any, TypeGuard, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from kgot_lab.errors import BadInput, BadReply, LLMError, UnknownName, describe_value, short_repr
from kgot_lab.io.http_client import MAX_CONTAINERS
from kgot_lab.llm.keys import errors_without_keys
from kgot_lab.llm.reply_forms import from_json, is_call, json_in, other_forms
from kgot_lab.types import LLM, Json, Message, Prompt, Reply, Usage

_MAX_CONVERSIONS = 3  # rounds of converting parts of a value
_MAX_WRAPPERS = 5  # maximum number of lists and objects around the object asked for
_Shape = TypeVar("_Shape", bound=BaseModel)


@dataclass(frozen=True)
class RecordedCall:
    """The usage of one call and the accounts charged. `recorded` if it was paid in an earlier session."""

    usage: Usage
    accounts: tuple[object, ...] = ()
    recorded: bool = False


_CALL_RECORDS: ContextVar[list[RecordedCall] | None] = ContextVar("noted", default=None)


@contextmanager
def record_calls(noted: list[RecordedCall]) -> Iterator[None]:
    """Record every call of a model inside this context in a list, including failed ones.

    Calls of other threads are not recorded.
    """
    before = _CALL_RECORDS.set(noted)
    try:
        yield
    finally:
        _CALL_RECORDS.reset(before)


def record_replayed(usage: Usage) -> None:
    """Record a call that was paid earlier and is only replayed."""
    if (noted := _CALL_RECORDS.get()) is not None:
        noted.append(RecordedCall(usage, recorded=True))


class StepwiseRecord:
    """Like `record_once`, for a call in steps.

    `used` holds its usages, and its record goes to the context of its last step.
    """

    def __init__(self, account: object = None):
        self.used: list[Usage] = []
        self._account = account
        self._inner: list[RecordedCall] = []

    def step(self) -> AbstractContextManager[None]:
        """Count calls made inside as parts of this call."""
        return record_calls(self._inner)

    def finish(self) -> None:
        """Record the call when it is over."""
        records, account = self._inner, self._account
        # one record of a known usage for the inner ones
        if self.used and (account is not None or not records):
            accounts = (*(account for call in records for account in call.accounts), account)
            records = [RecordedCall(Usage.total(self.used), accounts)]
        if (outer := _CALL_RECORDS.get()) is not None:
            outer.extend(records)


@contextmanager
def record_once(account: object = None) -> Iterator[list[Usage]]:
    """Record one call with the usages put into the yielded list, in place of the calls made inside."""
    call = StepwiseRecord(account)
    try:
        with call.step():
            yield call.used
    finally:
        call.finish()


def checked_reply(llm: LLM, prompt: Prompt) -> Reply:
    """Call a model and check that it returns a complete Reply.

    Raises LLMError, with the model's name and what it returned, otherwise.
    """
    require_name(llm)
    with record_once() as used, errors_without_keys(f"{llm.name} did not answer: "):
        try:
            reply = require_reply(llm, llm(prompt))
        except LLMError as error:
            used += [] if error.spent is None else [error.spent]
            raise
        used.append(reply.usage)
    return reply


def require_name(llm: LLM) -> None:
    """Raise LLMError for a model whose name is not a text."""
    name: object = getattr(llm, "name", None)
    if not isinstance(name, str) or not name:
        problem = f"a model of the class {type(llm).__name__} has the name {describe_value(name)}"
        raise LLMError(f"{problem}: a name is a text, which goes into traces. Nothing was sent.")


def require_reply(llm: LLM, reply: object) -> Reply:
    """Check that a model returned a complete Reply.

    Raises LLMError, with the model's name and what it returned, otherwise.
    """
    if wrong := _reply_problem(reply):
        raise LLMError(
            f"{llm.name} replied with {wrong}: a model returns Reply(text, Usage(prompt_tokens, completion_tokens)), "
            "and what takes and returns a text says so: def __call__(self, text: str)"
        )
    assert isinstance(reply, Reply)
    return reply


def _reply_problem(reply: object) -> str:
    """Return what is wrong with a reply, or ""."""
    if not isinstance(reply, Reply):
        return describe_value(reply)
    for name, value, kind in (
        ("text", reply.text, str), ("usage", reply.usage, Usage), ("model", reply.model, str), ("cut", reply.cut, bool),
    ):  # fmt: skip
        if not isinstance(value, kind):
            return f"a Reply whose {name} is {describe_value(value)}"
    if reply.logprob is not None and not is_logprob(reply.logprob):
        return f"a Reply whose logprob is {describe_value(reply.logprob)}"
    wrong = usage_problem(reply.usage)
    return wrong and f"a Reply whose {wrong}"


def usage_problem(usage: Usage) -> str:
    """Return what is wrong with a usage, whose numbers must be 0 or more, or ""."""
    for name, value in vars(usage).items():
        kinds = (int, float) if name in {"seconds", "cost"} else int
        if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value) or value < 0:
            return f"usage.{name} is {describe_value(value)}"
    return ""


def is_usage(value: object) -> TypeGuard[Usage]:
    """Return whether a value is a usage with numbers of 0 or more."""
    return isinstance(value, Usage) and not usage_problem(value)


def is_logprob(value: object) -> TypeGuard[float]:
    """Return whether a value is a log-probability: a finite number of 0 or less."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value <= 0


def compact_schema(shape: type[BaseModel] | TypeAdapter[Any]) -> dict[str, Json]:
    """Return the compact JSON schema of a pydantic model or adapter.

    It has no titles, its references are inlined, and unknown keys are forbidden.
    """
    schema = shape.json_schema() if isinstance(shape, TypeAdapter) else _described(shape)
    return dict(_compact(schema, schema.get("$defs", {})))


@lru_cache(maxsize=64)
def _described(shape: type[BaseModel]) -> dict[str, Json]:
    """Return pydantic's schema of a model, cached, since this takes longer than parsing a short reply."""
    return shape.model_json_schema()


def parse(text: str, shape: type[_Shape]) -> _Shape:
    """Parse the value in a reply, tolerating code fences and text around the JSON.

    What models write in place of JSON is read where its meaning is certain: Python's literals, comments, trailing
    commas, a last brace that is missing, YAML, an object inside a list, under one key, or as the arguments of a tool
    call in any notation, one text for a list, a list, number or truth value for a text, and another letter case. Of
    several values the last one counts, after which no draft follows. Nothing missing is invented. Raises BadReply, with a
    short reason, if there is no valid value.
    """
    if text.count("{") + text.count("[") > MAX_CONTAINERS:
        raise BadReply(f"it holds more than {MAX_CONTAINERS:,} brackets", text)
    quoted = from_json(unfenced := re.sub(r"\A\s*```\w*|```\s*\Z", "", text))
    found, broken = json_in(quoted if isinstance(quoted, str) else text)
    # prefer the error in the largest part of a reply
    nothing = "it is null" if quoted is None else "there is no JSON in it"
    reason, longest = (broken or nothing, len(text) // 2)
    whole = [each for each in reversed(found) if each.is_whole]
    whole.sort(key=lambda each: isinstance(each.value, Mapping) and "..." in each.value.values())  # echoed
    objects = [each.value for each in reversed(whole) if isinstance(each.value, Mapping)]  # perhaps calls
    values = [(objects, 0)] if len(objects) > 1 else []
    values += [
        (value, each.length) for each in whole for value in (each.value, _unwrapped(each.value, shape))
    ]
    # what is left of a broken value is no object under one key, and not the only call
    left = [each for each in found if not each.is_whole]
    values += [
        (each.value, each.length)
        for each in left
        if not is_call(each.value) or shape.model_fields.keys() & each.value.keys()
    ]
    for value, length in values:
        try:
            return _validated(value, shape)
        except ValidationError as error:
            if length >= longest:
                reason, longest = _reason(error), length
    for other in other_forms(unfenced, shape.model_fields):
        for value in (other, _unwrapped(other, shape)):
            with suppress(ValidationError):
                return _validated(value, shape)
    raise BadReply(reason, text)


def _unwrapped(value: Json, shape: type[BaseModel]) -> Json:
    """Return the object of a shape inside a list of one, a single key, or a tool call."""
    for _ in range(_MAX_WRAPPERS):
        inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        parts: list[Json] = [*map(from_json, inner)]
        objects: list[Json] = [part for part in parts if isinstance(part, Mapping)]
        objects = objects or [part for part in parts if isinstance(part, list) and len(parts) == 1]
        if len(objects) != 1 or (isinstance(value, Mapping) and shape.model_fields.keys() & value.keys()):
            break
        value = objects[0]
    return value


def _validated(value: Json, shape: type[_Shape]) -> _Shape:
    """Validate a value, with parts of the wrong kind converted in place.

    Raises ValidationError if some cannot be.
    """
    if isinstance(value, Mapping):
        value = _named(value, shape.model_fields)
    for _ in range(_MAX_CONVERSIONS):
        try:
            return shape.model_validate(value)
        except ValidationError as error:
            for problem in error.errors(include_url=False):
                *path, last = problem["loc"] or ("",)
                with suppress(LookupError, TypeError):  # a step into a union, which has no place in the value
                    part = reduce(getitem, path, value)
                    if problem["type"] == "missing":
                        part[last] = _named(part, [str(last)])[str(last)]
                        continue
                    converted = _converted(problem, problem["input"], last)
                    if converted is not problem["input"]:
                        part[last] = converted
                        continue
                raise
    return shape.model_validate(value)


def _named(value: Mapping[str, Json], fields: Collection[str]) -> dict[str, Json]:
    """Return an object in which these fields have their own letter case."""
    spelt = {field.casefold(): field for field in fields if field not in value}
    return {spelt.get(key.casefold(), key): each for key, each in value.items()}


def _converted(problem: Mapping[str, Any], given: Json, place: str | int) -> Json:
    """Convert a value of the wrong kind to the one asked for, if its meaning is certain."""
    kind = problem["type"]
    if kind == "literal_error" and isinstance(given, str):
        allowed = re.findall("'([^']*)'", problem["ctx"]["expected"])
        return next((one for one in allowed if one.casefold() == given.strip(" .\n").casefold()), given)
    if kind == "string_type":
        if isinstance(given, list) and given and all(type(each) in {str, int, float} for each in given):
            # lines of code are no list
            return ("\n" if place in {"text", "statement", "code"} else ", ").join(map(str, given))
        if given is None and not isinstance(place, int):
            return ""
        return (
            str(given).lower()
            if isinstance(given, bool)
            else str(given)
            if type(given) in {int, float}
            else given
        )
    inner = from_json("[]" if given is None else given)
    if kind not in {"list_type", "tuple_type"}:
        return inner if isinstance(given, str) else given
    return inner if isinstance(inner, list) else [given] if isinstance(given, str) else given


def repair_prompt(prompt: Prompt, reply: str, error: BadReply) -> Prompt:
    """Build the prompt that asks again: the conversation, the bad reply, and what was wrong with it."""
    request = (
        f"That reply cannot be used: {error.reason}. "
        "Answer the same question again, with one JSON value of the shape asked for and nothing else."
    )
    return replace(prompt, messages=(*prompt.messages, Message("assistant", reply), Message("user", request)))


def structured(llm: LLM, prompt: Prompt, shape: type[_Shape]) -> _Shape:
    """Request a value of a schema, and retry once if the reply is not valid.

    Raises BadReply if the second reply is not valid either, and LLMError if the model fails.
    """
    prompt = replace(prompt, schema=compact_schema(shape))
    text = checked_reply(llm, prompt).text
    try:
        return parse(text, shape)
    except BadReply as error:
        text = checked_reply(llm, repair_prompt(prompt, text, error)).text
    try:
        return parse(text, shape)
    except BadReply as error:
        error.args = (f"{llm.name}, asked for {shape.__name__}: {error}",)
        raise


def write_schema_in_prompt(prompt: Prompt) -> Prompt:
    """Write the schema of a prompt into its last message, for models that do not support schemas."""
    if prompt.schema is None:
        return prompt
    *before, last = prompt.messages
    text = f"{last.text}\n\nAnswer with one JSON value and nothing else. It must follow this JSON schema:\n{json.dumps(prompt.schema)}"
    return replace(prompt, messages=(*before, replace(last, text=text)), schema=None)


def _compact(part: Json, definitions: Mapping[str, Json]) -> Json:
    """Compact a schema: no titles and defaults, references inlined.

    Raises BadInput for a recursive schema.
    """
    if isinstance(part, list):
        return [_compact(item, definitions) for item in part]
    if not isinstance(part, Mapping):
        return part
    if "$ref" in part:
        name = str(part["$ref"]).rsplit("/", 1)[-1]
        if name not in definitions:
            raise BadInput(f"{name} contains itself: a reply needs a shape of fixed depth")
        return _compact(definitions[name], {key: value for key, value in definitions.items() if key != name})
    left_out = {"title", "default", "$defs", "discriminator", "properties"}
    compacted = {key: _compact(value, definitions) for key, value in part.items() if key not in left_out}
    if "properties" in part:  # a property may itself be called title
        compacted["properties"] = {key: _compact(v, definitions) for key, v in part["properties"].items()}
        compacted.setdefault("additionalProperties", False)
    return compacted


def field_problem(error: ValidationError, known: Iterable[str] = ()) -> tuple[str, str]:
    """Return the first invalid field of a user's file, and the problem, without showing the value.

    An unknown field is told with the fields of its place among `known`, whose names have the fields above.
    """
    return first_problem(error.errors(include_url=False, include_input=False), known)


def first_problem(problems: Sequence[Mapping[str, Any]], known: Iterable[str] = ()) -> tuple[str, str]:
    """Return the field and the problem of the first of pydantic's errors."""
    first = problems[0]
    if first["type"] == "extra_forbidden":
        name = ".".join(map(str, first["loc"]))
        start, problem = name[: name.rfind(".") + 1], "there is no such field"
        inner = (each.removeprefix(start) for each in known if each.startswith(start))
        if beside := {start + each.partition(".")[0] for each in inner}:
            problem += str(UnknownName("field", name, beside)).removeprefix(
                f"unknown field {short_repr(name)}"
            )
        return name, problem
    steps = [str(step) for step in first["loc"] if re.fullmatch(r"\w+", str(step))]  # others: types
    if len(steps) < len(first["loc"]) or first["type"] == "union_tag_invalid":
        alternatives = [p for p in problems if p["loc"][: len(steps)] == first["loc"][: len(steps)]]
        return ".".join(
            steps
        ), f"it has to be {' or '.join(dict.fromkeys(map(_expected_value, alternatives)))}"
    expected, message = _expected_value(first), str(first["msg"]).removeprefix("Value error, ")
    verb = "is" if expected == "missing" else "has to be"
    return ".".join(steps), f"it {verb} {expected}" if expected else message


def _expected_value(problem: Mapping[str, Any]) -> str:
    """Return what a field should be, or "" if only pydantic's message says it."""
    kind, more = str(problem["type"]), problem.get("ctx", {})
    if kind == "literal_error":
        return str(more["expected"]).replace("'", "")
    bounds = {"greater_than_equal": ("ge", "or more"), "less_than_equal": ("le", "or less")}
    if kind in bounds:
        name, words = bounds[kind]
        return f"{more[name]:g} {words}"
    if kind.removeprefix("string_") in {"too_long", "too_short"}:
        limits = {"max_length": "at most", "min_length": "at least"}
        parts = "characters" if kind.startswith("string_") else "items"
        return next(f"of {limits[name]} {size} {parts}" for name, size in more.items() if name in limits)
    if kind == "greater_than":
        return f"more than {more['gt']:g}"
    return next((words for begins, words in _KINDS.items() if kind.startswith(begins)), "")


_KINDS = {
    "missing": "missing", "int": "a whole number", "float": "a number", "finite_number": "a finite number", "bool": "true or false",
    "string": "a text", "tuple": "a list", "list": "a list", "dict": "a set of fields with values", "model": "a set of fields with values",
}  # fmt: skip


def _reason(error: ValidationError) -> str:
    """Format the first error of pydantic."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(step) for step in first["loc"]) or "the value"
    return f"{where}: {first['msg']}"[:200]


# Reasoning models: recognition by name, and separation of reasoning from the answer.

# Names as of November 2026. For other models set reasoning_effort or allowance.
_REASONS = re.compile(
    r"^(o[1-9]|gpt-[5-9]|gemini-(2\.5|[3-9])|claude-(opus|sonnet|haiku|fable)-[5-9]|grok-[4-9]|deepseek-(r|v?[4-9])|qwq|qwen3(?!.*(instruct|coder))"
    r"|gpt-oss|magistral|kimi-k[3-9])|(thinking|reasoner|reasoning|-r1)"
)
_TAGS = "think|thinking|reasoning|thought|reflection"
# How blocks of reasoning begin and end. The last two are channels of gpt-oss and of Gemma.
_BLOCKS = (
    *((rf"<{tag}(?:\s[^<>\n]{{0,40}})?>", rf"</{tag}\s*>") for tag in _TAGS.split("|")),
    (r"\[think\]", r"\[/think\]"),
    ("◁think▷", "◁/think▷"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|channel\|>analysis<\|message\|>", r"(?:<\|end\|>)?(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>"),
    (r"<\|channel>thought", r"<channel\|>"),
)  # fmt: skip
_OPENING = re.compile("|".join(f"({opening})" for opening, _ in _BLOCKS), re.I)
_CLOSINGS = [re.compile(closing, re.I) for _, closing in _BLOCKS]
_ANY_CLOSING = re.compile("|".join(closing for _, closing in _BLOCKS), re.I)
_BEGINS_AS_JSON = re.compile(r"\s*[{\[](?!think\])", re.I)
_LONGEST_TAG = 64  # characters
_MAX_BLOCKS = 100  # maximum number of blocks in a reply; further ones are text
_PART_OF_TAG = re.compile(
    rf"(?:<(?:[a-z]{{0,10}}|(?:{_TAGS})\s[^<>\n]{{0,40}}|\|[a-z_|<>]{{0,40}})|\[[a-z]{{0,5}}|◁[a-z]{{0,5}})\Z", re.I
)  # fmt: skip
_HEADING = re.compile(
    r"\A\W*(?:reasoning|thinking|thoughts?|thought process)\W{0,3}:.*?\n[^\w\n]{0,8}(?:final )?answer\W{0,3}:[*\s]*", re.I | re.S
)  # fmt: skip


def is_reasoning_model(model: str) -> bool:
    """Return whether a model of this name is known to reason before it answers.

    The name may include its maker, as in openai/o3.
    """
    return _REASONS.search(model.lower().rsplit("/", 1)[-1]) is not None


def split_reasoning(text: str, *, thinks: bool = False) -> tuple[str, str]:
    """Split a text into the answer and the reasoning in blocks such as <think>…</think>, wherever they are.

    A block without an end is reasoning up to the end, unless it begins in the middle of a sentence, where its tag
    may be mentioned only, as in a text that begins as JSON. Some models start inside a block, so with `thinks`
    everything before a first </think> is reasoning. What is under the heading "Reasoning:" is too, if "Answer:" follows.
    """
    splitter, heading = AnswerSplitter(thinks=thinks), _HEADING.match(text)
    answer = text[heading.end() :] if heading else text
    said = splitter.after(answer) + splitter.rest()
    thought = (heading[0] if heading else "") + splitter.thought
    return (text if said == text.lstrip() else said.strip()), thought


class AnswerSplitter:
    """Like `split_reasoning`, for streamed text, without headings and with the answer stripped.

    If a model `thinks` but opens no block, it may have started inside one: text before </think> or the end is
    held back.
    """

    def __init__(self, *, thinks: bool = False):
        self.thinks = thinks  # until its reasoning is known to be separate
        self.thought = ""
        self._held = ""  # text not yet classified as answer or reasoning
        self._opened = ""  # the tag of the open block
        self._closing = _ANY_CLOSING  # how it ends
        self._blocks = 0  # that were opened
        self._searched = 0  # characters of the held text in which no tag begins
        self._first, self._last = "", ""  # the first character and the last ones of the answer

    def after(self, piece: str) -> str:
        """Return the text that is certainly part of the answer, after this piece."""
        self._held += piece
        told = ""
        while (part := self._next_part()) is not None:
            told += part
        self._searched = max(0, len(self._held) - _LONGEST_TAG)
        if self._opened or self.thinks:
            return told
        partial = _PART_OF_TAG.search(self._held, self._searched)
        held = self._held[partial.start() :] if partial else ""
        told += self._tell(self._held[: len(self._held) - len(held)])
        self._held, self._searched = held, 0
        return told

    def rest(self) -> str:
        """Return the held text that is part of the answer, at the end.

        A truncated reasoning block has no answer.
        """
        held, opened, self._held, self._opened = self._held, self._opened, "", ""
        if opened and re.search(r"(\A|[\n.!?:>])[^\S\n]*\Z", self._last):  # elsewhere it may be a mention
            self.thought += held
            return ""
        return self._tell(opened + held)

    def _next_part(self) -> str | None:
        """Pass the next tag and return the answer before it, or None if there is no tag."""
        opening = closing = None
        if self._opened:
            closing = self._closing.search(self._held, self._searched)
        elif self._blocks < _MAX_BLOCKS and not _BEGINS_AS_JSON.match(self._first or self._held):
            opening = _OPENING.search(self._held, self._searched)
            end = opening.start() if opening else len(self._held)
            closing = _ANY_CLOSING.search(self._held, self._searched, end) if self.thinks else None
        tag = closing or opening
        if tag is None:
            return None
        before, self._held = self._held[: tag.start()], self._held[tag.end() :]
        self._searched, self.thinks = 0, False
        if closing:
            self.thought, self._opened = self.thought + before, ""
            return ""
        self._opened, self._closing = tag[0], _CLOSINGS[(tag.lastindex or 1) - 1]
        self._blocks += 1
        return self._tell(before)

    def _tell(self, piece: str) -> str:
        told = piece if self._first else piece.lstrip()
        self._first = self._first or told[:1]
        self._last = (self._last + told)[-_LONGEST_TAG:]
        return told


def estimate_reasoning_tokens(tokens: int, thought: str, said: str) -> int:
    """Estimate the reasoning tokens from the characters, if a server does not count them separately."""
    return round(tokens * len(thought) / (len(thought) + len(said))) if thought else 0
