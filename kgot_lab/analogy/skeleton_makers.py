"""Skeletons from a language model, and stored skeletons."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

from kgot_lab.analogy.skeletons import extract_skeleton
from kgot_lab.llm.recorded import prompt_to_json
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.types import LLM, FromFile, Message, Prompt

MAX_SKELETON_WORDS = 60  # maximum words of a model's skeleton
_PROMPTS = json.loads(Path(__file__).with_name("skeleton_prompts.json").read_text(encoding="utf-8"))
RULES = str(_PROMPTS["rules"])
# with rare nouns, so that a copied one is noticed
SKELETON_EXAMPLES = tuple(map(tuple, _PROMPTS["examples"]))


@dataclass(frozen=True)
class ModelSkeletons:
    """A maker of skeletons with a language model.

    The prompt is rules, examples, then the text, so that a model with a prompt cache reads only the text.
    `examples` are texts, each with its skeleton. `max_tokens` limits a reply, and `temperature` 0 is greedy.
    """

    llm: LLM
    _: KW_ONLY
    examples: Sequence[tuple[str, str]] = SKELETON_EXAMPLES
    max_tokens: int = 60
    temperature: float = 0.0

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.llm.name

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the model, its file and engine if known, and the whole prompt."""
        file = (self.llm.sha256, self.llm.engine) if isinstance(self.llm, FromFile) else ("", "")
        prompts = [prompt_to_json(self._skeleton_prompt(""))]
        # "" stands for a check that earlier versions had, so that what they stored is found
        return _sha256(json.dumps([[self.llm.name, *file], prompts, MAX_SKELETON_WORDS, ""]))

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Make a skeleton for each text, of at most 60 words.

        Raises LLMError if the model fails, and BadReply if a reply holds no skeleton.
        """
        return [_truncate_skeleton(self.llm(self._skeleton_prompt(text)).text) for text in texts]

    def _skeleton_prompt(self, text: str) -> Prompt:
        """Build the prompt for the skeleton of a text."""
        turns = [
            (Message("user", f"Text: {example}"), Message("assistant", made))
            for example, made in self.examples
        ]
        messages = Message("system", RULES), *chain.from_iterable(turns), Message("user", f"Text: {text}")
        seed = 0 if self.temperature else None
        return Prompt(messages, temperature=self.temperature, seed=seed, max_tokens=self.max_tokens)

    def __repr__(self) -> str:
        return f"<skeletons by {self.name}, {len(self.examples)} examples>"


def _truncate_skeleton(reply: str) -> str:
    """Return the skeleton in a reply, truncated to 60 words."""
    return " ".join(extract_skeleton(reply).split()[:MAX_SKELETON_WORDS])


def _sha256(text: str) -> str:
    return hashlib.sha256(replace_surrogates(text).encode()).hexdigest()
