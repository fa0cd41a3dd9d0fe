"""Skeletons from a language model, and stored skeletons."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

from kgot_lab.analogy.skeletons import LeakCheck, extract_skeleton
from kgot_lab.errors import BadReply
from kgot_lab.llm.recorded import prompt_to_json
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.types import LLM, FromFile, Message, Prompt

MAX_SKELETON_WORDS = 60  # maximum words of a model's skeleton
_PROMPTS = json.loads(Path(__file__).with_name("skeleton_prompts.json").read_text(encoding="utf-8"))
RULES, REPHRASE_RULES = str(_PROMPTS["rules"]), str(_PROMPTS["rephrase rules"])
# with rare nouns, so that a copied one is noticed
SKELETON_EXAMPLES = tuple(map(tuple, _PROMPTS["examples"]))
REPHRASE_EXAMPLES = tuple(map(tuple, _PROMPTS["rephrase examples"]))


@dataclass(frozen=True)
class ModelSkeletons:
    """A maker of skeletons with a language model.

    The prompt is rules, examples, then the text, so that a model with a prompt cache reads only the text.
    `examples` are texts, each with its skeleton. `max_tokens` limits a reply, and `temperature` 0 is greedy.
    With `leaks`, a skeleton with domain words of the text is sent back once to be rephrased without them, on
    its own, so that the text cannot leak again. The one with fewer such words is kept, or else the first.
    """

    llm: LLM
    _: KW_ONLY
    examples: Sequence[tuple[str, str]] = SKELETON_EXAMPLES
    max_tokens: int = 60
    temperature: float = 0.0
    leaks: LeakCheck | None = None

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.llm.name

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the model, its file and engine if known, the whole prompt, and the leak check."""
        file = (self.llm.sha256, self.llm.engine) if isinstance(self.llm, FromFile) else ("", "")
        prompts = [prompt_to_json(self._skeleton_prompt(""))]
        if self.leaks:
            prompts.append(prompt_to_json(self._rephrase_prompt("", ())))
        check = self.leaks.digest if self.leaks else ""
        return _sha256(json.dumps([[self.llm.name, *file], prompts, MAX_SKELETON_WORDS, check]))

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Make a skeleton for each text, of at most 60 words.

        Raises LLMError if the model fails, and BadReply if a reply holds no skeleton.
        """
        return [self._make_skeleton(text) for text in texts]

    def _make_skeleton(self, text: str) -> str:
        first = _truncate_skeleton(self.llm(self._skeleton_prompt(text)).text)
        leaked = self._find_leaks(text, first)
        if not leaked:
            return first
        try:
            second = _truncate_skeleton(self.llm(self._rephrase_prompt(first, leaked)).text)
        except BadReply:  # empty: the first is kept
            return first
        return second if len(self._find_leaks(text, second)) < len(leaked) else first

    def _find_leaks(self, text: str, skeleton: str) -> tuple[str, ...]:
        return self.leaks.check(text, skeleton) if self.leaks else ()

    def _skeleton_prompt(self, text: str) -> Prompt:
        """Build the prompt for the skeleton of a text."""
        examples = [(f"Text: {example}", made) for example, made in self.examples]
        return self._build_prompt(RULES, examples, f"Text: {text}")

    def _rephrase_prompt(self, skeleton: str, leaked: Sequence[str]) -> Prompt:
        """Build the prompt for a skeleton without the words that leaked."""
        examples = [(_format_request(text, words), made) for text, words, made in REPHRASE_EXAMPLES]
        return self._build_prompt(REPHRASE_RULES, examples, _format_request(skeleton, ", ".join(leaked)))

    def _build_prompt(self, rules: str, examples: Sequence[tuple[str, str]], last: str) -> Prompt:
        turns = [(Message("user", request), Message("assistant", reply)) for request, reply in examples]
        messages = Message("system", rules), *chain.from_iterable(turns), Message("user", last)
        seed = 0 if self.temperature else None
        return Prompt(messages, temperature=self.temperature, seed=seed, max_tokens=self.max_tokens)

    def __repr__(self) -> str:
        return f"<skeletons by {self.name}, {len(self.examples)} examples{', asked again about leaks' if self.leaks else ''}>"


def _format_request(skeleton: str, words: str) -> str:
    return f"Sentence: {skeleton}\nNot these words: {words}"


def _truncate_skeleton(reply: str) -> str:
    """Return the skeleton in a reply, truncated to 60 words."""
    return " ".join(extract_skeleton(reply).split()[:MAX_SKELETON_WORDS])


def _sha256(text: str) -> str:
    return hashlib.sha256(replace_surrogates(text).encode()).hexdigest()
