"""What an answer is worth, by its citations and its words; no model judges."""

from __future__ import annotations

import re
from collections.abc import Collection

from benchmarks.experts.gold import ExpertQuestion, NodeWords, telling_stems
from benchmarks.experts.replies import KeptReply
from kgot_lab.experts.chat.citations import CITATION_PATTERN

OF_CITATIONS = (
    "citation precision",
    "citation recall",
    "false citations",
    "gold in the context",
    "limitations in the context",
    "limitations cited",
)
OF_WORDS = (
    "limitations named",
    "words of names",
    "words of descriptions",
    "says it does not know",
    "refuses without need",
    "words said",
)

_NOT = r"(?:do not|don['’]t|does not|doesn['’]t|did not|didn['’]t|cannot|can['’]?t|could not|couldn['’]t)"
_TELL = r"(?:know|answer|say|tell|find|help|assist|provide)"
_KNOWLEDGE = r"(?:information|data|details|knowledge|answer)"
_SOURCE = r"(?:graph|context|knowledge base|sources?|material|information (?:given|provided|above))"
_REFUSALS = re.compile(
    "|".join(
        (
            rf"\bI (?:really |simply |honestly |currently )?{_NOT} (?:really )?{_TELL}\b",
            rf"\bI(?:['’]m| am) (?:not able|unable) to {_TELL}\b",
            rf"\bI (?:{_NOT} have|have no) (?:\w+ ){{0,3}}?{_KNOWLEDGE}\b",
            rf"\b{_SOURCE} (?:\w+ )?{_NOT} (?:\w+ )?(?:{_TELL}|contain|hold|mention|cover|include|address|have)\b",
            rf"\b{_SOURCE} (?:\w+ )?(?:holds|contains|has|says|provides|gives) (?:nothing|no)\b",
            rf"\bno (?:\w+ )?(?:{_KNOWLEDGE}|mention) (?:on|about|of|for|in|is)\b",
            rf"\b(?:is|are) not (?:(?:covered|mentioned|provided|found) (?:by|in)|in|part of) (?:the|my|this) (?:\w+ )?{_SOURCE}\b",
            r"\bit is not known\b",
        )
    ),
    re.I,
)


def own_words(text: str) -> str:
    """An answer without its citations, so that a name in a citation is no word said."""
    return CITATION_PATTERN.sub(" ", text)


def says_not_known(text: str) -> bool:
    """Whether an answer says that it does not know, or that the graph does not tell; of the speaker or the
    source, never of a tool.
    """
    return bool(_REFUSALS.search(own_words(text)))


def covered(words: Collection[str], text: str) -> float:
    """The share of some words, without endings, that an answer says."""
    return len(telling_stems(own_words(text)) & set(words)) / len(words)


def answer_measures(question: ExpertQuestion, reply: KeptReply, words: NodeWords) -> dict[str, float]:
    """The measures of a reply that apply to it, each between 0 and 1, but for the words that were said;
    citations of the graph arm only.

    Of a citation of the graph, precision counts gold nodes and gold limitations as right, recall asks for the
    gold nodes; of an answer that cites nothing precision and the share of false ones are left out. Words of
    the question are not counted as covered.
    """
    found: dict[str, float] = {"words said": len(own_words(reply.text).split())}
    if not question.answerable:
        return found | {"says it does not know": float(says_not_known(reply.text))}
    found["refuses without need"] = float(says_not_known(reply.text))
    asked = telling_stems(question.question)
    for measure, gold in (
        ("words of names", words.of_names(question.gold_nodes)),
        ("words of descriptions", words.of_descriptions(question.gold_nodes)),
    ):
        if left := gold - asked:
            found[measure] = covered(left, reply.text)
    if limits := question.gold_limitations:
        said = telling_stems(own_words(reply.text))
        found["limitations named"] = sum(words.of_name(limit) <= said for limit in limits) / len(limits)
    return found | (_of_citations(question, reply) if reply.arm == "graph" else {})


def _of_citations(question: ExpertQuestion, reply: KeptReply) -> dict[str, float]:
    gold, limits, cited = set(question.gold_nodes), set(question.gold_limitations), set(reply.cited)
    found = {
        "citation recall": len(cited & gold) / len(gold),
        "gold in the context": len(gold & set(reply.told)) / len(gold),
    }
    if cited:
        found["citation precision"] = len(cited & question.wanted) / len(cited)
    if cited or reply.false:
        found["false citations"] = len(set(reply.false)) / len({*cited, *reply.false})
    if limits:
        found["limitations in the context"] = len(limits & set(reply.limitations)) / len(limits)
        found["limitations cited"] = len(limits & cited) / len(limits)
    return found
