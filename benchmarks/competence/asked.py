"""What a prompt of the loop asks for: the loop's own prompts, made with marks in place of their texts and
read backwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from string import Template

from kgot_lab.errors import LLMError
from kgot_lab.llm.structured import compact_schema
from kgot_lab.loop.modes.paths.comparison import comparison_prompt
from kgot_lab.loop.modes.paths.question_form import hops_prompt
from kgot_lab.loop.modes.paths.reading import answer_prompt
from kgot_lab.loop.prompts import (
    FORMATS,
    TEMPLATES,
    Answer,
    CandidateChoice,
    ComputationNeeded,
    Names,
    OperationsVote,
    Prompts,
    Reason,
    Statement,
    Statements,
    Vote,
    format_calls,
    format_list,
    format_situation,
    retrieve_request,
)  # fmt: skip
from kgot_lab.memory.extraction import facts_prompt
from kgot_lab.stores.protocol import Dialect
from kgot_lab.text.cleaning import FENCES, fence_text
from kgot_lab.tools.calls import ChosenCalls
from kgot_lab.types import Message, Prompt


@dataclass(frozen=True)
class Asking:
    """What a prompt asks for, by its name in `loop.prompts`, or that of the function in `paths` that made it, and the
    texts in it by name.
    """

    what: str
    texts: Mapping[str, str]
    dialect: Dialect | None = None


@dataclass(frozen=True)
class _Form:
    what: str
    pattern: re.Pattern[str]
    dialect: Dialect | None = None


@dataclass(frozen=True)
class PromptReader:
    """Tells what a prompt of the loop asks for, in the languages that it is given; nothing of the prompts'
    wording is known beforehand.
    """

    dialects: Sequence[Dialect]
    _forms: Mapping[frozenset[str], Sequence[_Form]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        forms: dict[frozenset[str], list[_Form]] = {}
        for shape, form in _all_forms(self.dialects):
            forms.setdefault(frozenset(compact_schema(shape)["properties"]), []).append(form)
        object.__setattr__(self, "_forms", forms)

    def read(self, prompt: Prompt) -> Asking:
        """What a prompt asks for; raises LLMError for one that the loop does not make in these languages."""
        if prompt.messages[:-1] == facts_prompt("")[:-1]:
            return Asking("extract", {"sentence": prompt.messages[-1].text})
        if prompt.schema is None and (found := _along(prompt.messages)):
            return found
        for form in self._forms.get(frozenset((prompt.schema or {}).get("properties", ())), ()):
            if told := form.pattern.fullmatch(prompt.messages[-1].text):
                return Asking(form.what, told.groupdict(), form.dialect)
        raise LLMError(
            f"a simulated model knows the loop's own prompts only, and this is none: {prompt.messages[-1].text[:200]!r}"
        )


def situation_of(text: str) -> tuple[str, str]:
    """The question and the graph in what every prompt of a turn begins with; raises LLMError for another
    text.
    """
    for form in _SITUATIONS:
        if found := form.fullmatch(text):
            return found["question"], found["graph"]
    raise LLMError(f"this is not what a prompt of the loop begins with: {text[:200]!r}")


# --- forms ---


def _mark(name: str) -> str:
    return f"⟦{name}⟧"


def _pattern(form: str) -> re.Pattern[str]:
    """A form with marks as a pattern with groups; the number of a fence is a hash of the text in it."""
    plain = re.sub(r"(?<=<<<|>>>)[0-9a-f]{16}", "⟦⟧", form)
    pieces = re.split(r"⟦(\w*)⟧", plain)
    known = [
        re.escape(piece) if place % 2 == 0 else f"(?P<{piece}>.*?)" if piece else "[0-9a-f]{16}"
        for place, piece in enumerate(pieces)
    ]
    return re.compile("".join(known), re.S)


def _form(what: str, messages: Sequence[Message], dialect: Dialect | None = None) -> _Form:
    return _Form(what, _pattern(messages[-1].text), dialect)


_OF_A_DIALECT = {"language", "how_to_read", "read_example", "how_to_write", "write_example"}
_QUESTION, _GRAPH, _FACTS = map(_mark, ("question", "graph", "facts"))
_TEXTS = [_pattern(answer_prompt(_QUESTION, facts).messages[-1].text) for facts in (_FACTS, "")]
_SITUATIONS = [_pattern(format_situation(_QUESTION, files, _GRAPH)) for files in ([_mark("files")], [])]


def _along(messages: tuple[Message, ...]) -> Asking | None:
    """What a prompt of the mode `paths` asks for; None where it is none."""
    for split in (hops_prompt, comparison_prompt):
        if messages[:-1] == split("").messages[:-1]:
            return Asking(split.__name__, {"question": messages[-1].text})
    for form in _TEXTS:
        if found := form.fullmatch(messages[-1].text):
            texts = {"facts": "", **found.groupdict()}
            same = answer_prompt(texts["question"], texts["facts"]).messages
            if messages == same:  # the examples before it are those of this question's form
                return Asking(answer_prompt.__name__, texts)
    return None


_SHAPES = {
    "vote": Vote, "vote by names": OperationsVote, "merge": Reason, "tools": ChosenCalls, "next names": Names, "names": Names,
    "write": Statements, "mend": Statement, "read": Statement, "read again": Statement, "forced read": Statement,
    "arithmetic?": ComputationNeeded, "choose": CandidateChoice, "parse": Answer, "guess": Answer,
}  # fmt: skip
_LISTS = {
    "calls": format_calls([_mark("calls")]), "reasons": format_list([_mark("reasons")]), "candidates": f"1. {_mark('candidates')}",
    "text": fence_text(_mark("text"), _mark("source")), "fences": FENCES,
}  # fmt: skip


def _all_forms(dialects: Iterable[Dialect]) -> Iterator[tuple[type, _Form]]:
    """Every prompt that asks for a shape, with the shape."""
    for (name, shape), dialect in product(_SHAPES.items(), (*dialects, None)):
        fields = set(Template(TEMPLATES[name]).get_identifiers())
        marks = {field: _LISTS.get(field, _mark(field)) for field in fields - _OF_A_DIALECT}
        if dialect is None and fields & _OF_A_DIALECT:
            continue
        if name == "vote":
            marks["retrieve"] = retrieve_request(dialect)
        choices = [{}]
        if name == "mend" and dialect is not None:
            choices = [{"instructions": text} for text in (dialect.how_to_write, dialect.how_to_read)]
        if "format" in fields:
            choices = [{"format": text} for text in FORMATS.values()]
        for choice in choices:
            yield shape, _form(name, Prompts()(name, dialect, **marks | choice), dialect)
