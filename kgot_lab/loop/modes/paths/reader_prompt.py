"""A short prompt with a few examples for reading an answer out of sentences, and the check that the answer
was read there.

The people, places and works of the examples are invented; none of their names stands in a question or passage
that comes with the package.
"""

from __future__ import annotations

from collections.abc import Iterable

from kgot_lab.loop.modes.paths.mentions import bracketed
from kgot_lab.loop.modes.paths.question_form import Form, form_of
from kgot_lab.text.words import content_stems, stands_in
from kgot_lab.types import Document, Message, Prompt

ANSWER_TOKENS = 40  # tokens of an answer
_SYSTEM = "Answer the question from the text. Reply with the shortest exact answer and nothing else: a name, a date, a number or a few words."
_SYSTEM_ALONE = "Answer the question. Reply with the shortest exact answer and nothing else: a name, a date, a number or a few words."
_BRIDGE = (
    "[Varnholt Bridge] Varnholt Bridge was designed by Odile Brantsev in 1911.\n[Odile Brantsev] Odile Brantsev was from Tellmark.",
    "Where was the designer of Varnholt Bridge from?",
    "Tellmark",
)
_YEAR = (
    "[The Glass Orchid] The Glass Orchid is a novel by Imre Dostwell, published in 1957.",
    "When did The Glass Orchid come out?",
    "1957",
)
_CHOICE = (
    "[Quillmoor Rovers] Quillmoor Rovers were founded in 1902.\n[Brask Athletic] Brask Athletic was formed in 1899.",
    "Which club is older, Quillmoor Rovers or Brask Athletic?",
    "Brask Athletic",
)
_YES = (
    "[Pell Hadrowe] Pell Hadrowe is a Danish painter.\n[Sunniva Askelund] Sunniva Askelund (born 1960) is a painter from Oslo.",
    "Are Pell Hadrowe and Sunniva Askelund both painters?",
    "yes",
)
_NO = (
    "[Lake Ombrel] Lake Ombrel lies in Chile.\n[Lake Tirsova] Lake Tirsova is a lake in the north of Finland.",
    "Are Lake Ombrel and Lake Tirsova in the same country?",
    "no",
)
_EXAMPLES = {"open": (_BRIDGE, _YEAR), "choice": (_CHOICE, _BRIDGE), "yes or no": (_YES, _NO)}
EXAMPLE_NAMES = (
    "Varnholt Bridge", "Odile Brantsev", "Tellmark", "The Glass Orchid", "Imre Dostwell", "Quillmoor Rovers", "Brask Athletic",
    "Pell Hadrowe", "Sunniva Askelund", "Lake Ombrel", "Lake Tirsova",
)  # fmt: skip


def few_prompt(question: str, facts: str, *, examples: bool = True) -> Prompt:
    """Ask for the answer that some sentences give, after examples of the question's form; without facts, for
    what the model knows.
    """
    shown = _EXAMPLES[form_of(question)] if examples else ()
    turns = [message for example in shown for message in _turn(*example, alone=not facts)]
    asked = Message("user", _asked(question, facts))
    return Prompt(
        (Message("system", _SYSTEM if facts else _SYSTEM_ALONE), *turns, asked), None, 0.0, 0, ANSWER_TOKENS
    )


def passage_lines(documents: Iterable[Document]) -> str:
    """Documents as facts to read: the title in brackets, then the text, each on a line of its own."""
    return "\n".join(bracketed(document.title, document.text) for document in documents)


def answer_in(reply: str) -> str:
    """The answer in a reply: its first line, without quotes around it or a full stop behind it."""
    line = next((line.strip() for line in reply.splitlines() if line.strip()), "")
    return line.removeprefix("Answer:").strip().strip('"“”').removesuffix(".").strip()


def checked_answer(question: str, answer: str, facts: str) -> str:
    """Why an answer cannot have been read from some facts; "" where it can.

    Yes and no answer a question of that form and no other. Any other answer stands in the facts, word for
    word, and not in the question, unless that asks for one of the things that it names.
    """
    form: Form = form_of(question)
    if not (words := content_stems(answer)):
        return "it is empty"
    if words in {("yes",), ("no",)}:
        return "" if form == "yes or no" else "the question does not ask for yes or no"
    if form == "yes or no":
        return "the question asks for yes or no"
    if not stands_in(answer, facts):
        return "it does not stand in the sentences"
    return "it stands in the question" if form != "choice" and stands_in(answer, question) else ""


def _turn(facts: str, question: str, answer: str, *, alone: bool) -> tuple[Message, Message]:
    return Message("user", _asked(question, "" if alone else facts)), Message("assistant", answer)


def _asked(question: str, facts: str) -> str:
    return f"{facts}\n\nQuestion: {question}" if facts else f"Question: {question}"
