"""A simulated extractor: it notes the facts of texts that it has gold for, with errors at rates that are set."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.competence.simulated import LIKELY, UNLIKELY, Competence, made_up
from kgot_lab.errors import LLMError
from kgot_lab.llm.presets import FREE
from kgot_lab.text.cleaning import fenced
from kgot_lab.types import Prompt, Reply, Triple, Usage


class SimulatedExtractor:
    """A model that answers the prompt of `extract_by_schema` for texts whose facts are known, and errs at set
    rates.

    Of the rates it has `missed`, `invented` and `read`: a fact is left out; its object is a made-up name; its
    object is another of `names` that the text holds, or subject and object change places. A misread fact is
    LIKELY at the rate `assured`, else UNLIKELY. Errors are drawn by hash: the same text has the same reply.
    Raises LLMError for a text without gold.
    """

    price = FREE

    def __init__(
        self,
        said: Mapping[str, Sequence[Triple]],
        competence: Competence | None = None,
        *,
        names: Sequence[str] = (),
    ):
        self.competence, self._said, self._names = competence or Competence(), said, names
        self.name = f"simulated extractor:{self.competence}"

    def __call__(self, prompt: Prompt) -> Reply:
        asked = prompt.messages[-1].text
        for text, facts in self._said.items():
            if asked.startswith(fenced(text, "a message")):
                reply = json.dumps(
                    {"triples": [self._noted(fact) for fact in self._found(text, facts)]}, ensure_ascii=False
                )
                return Reply(reply, Usage(len(asked.split()), len(reply.split())))
        raise LLMError(
            f"a simulated extractor knows the texts only that it has gold for, and this is none: {asked[:200]!r}"
        )

    def _found(self, text: str, facts: Sequence[Triple]) -> Iterator[Triple]:
        for fact in facts:
            where = (str(fact), text)
            if self.competence.errs("missed", *where):
                continue
            if self.competence.errs("invented", *where):
                yield Triple(*made_up(fact, self.competence.seed).identity, confidence=fact.confidence)
            elif self.competence.errs("read", *where):
                yield self._misread(
                    text, fact, LIKELY if self.competence.errs("assured", *where) else UNLIKELY
                )
            else:
                yield fact

    def _misread(self, text: str, fact: Triple, confidence: float) -> Triple:
        others = [name for name in self._names if name in text and name not in (fact.subject, fact.object)]
        if others:
            return Triple(fact.subject, fact.relation, others[0], confidence)
        return Triple(fact.object, fact.relation, fact.subject, confidence)

    @staticmethod
    def _noted(fact: Triple) -> dict[str, str | float]:
        return dict(zip(("subject", "relation", "object"), fact.identity, strict=True)) | {
            "confidence": fact.confidence
        }
