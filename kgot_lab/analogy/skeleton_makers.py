"""Skeletons from a language model, and stored skeletons."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import chain

from kgot_lab.analogy.skeletons import LeakCheck, extract_skeleton
from kgot_lab.errors import BadInput, BadReply
from kgot_lab.llm.recorded import prompt_to_json
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.types import LLM, FromFile, Message, Prompt

MAX_SKELETON_WORDS = 60  # maximum words of a model's skeleton
RULES = """\
You rewrite a text as its skeleton: one plain sentence that could be about anything, with the same events in the same order.
Replace each person by "someone", each group by "a group", each thing or substance by "something", "a part" or "a whole", \
each place by "a place", each tool by "a means", each feeling by "a state", each amount by "a quantity".
Replace each verb by the most general verb that keeps what happens: begin, move, join, separate, give, take, change, grow, shrink, \
repeat, block, allow, contain, cause, reach, lose.
No names, no numbers, no word that shows what the text is about. Reply with the sentence alone, at most 25 words."""
SKELETON_EXAMPLES = (  # with rare nouns, so that a copied one is noticed
    ("The ringer tugged the rope too early. The whole peal lost its rhythm.",
     "Someone acts at the wrong moment, and the whole group loses its order."),
    ("Termites tunnel through the beam unseen. One evening the ceiling gives way.",
     "Something weakens a whole slowly from within, until it suddenly fails."),
    ("A cheesemaker washes the rind in brine every few days. The brine feeds a red mould that keeps other moulds away, and each washing "
     "spreads it further.",
     "Someone treats something again and again, which helps one part that blocks its rivals and grows with every repetition."),
    ("Nadia had longed for a seat in the choir since girlhood. When the envelope came she ran down the lane singing.",
     "Someone wants something for long, then receives it and shows a strong state."),
    ("When the flywheel spins too fast, the weights of the governor rise and throttle the steam. When it slows they sink and let more in.",
     "A part senses a quantity and lets in less when it is too large and more when it is too small, so that it stays steady."),
    ("Rinse the lentils in a sieve. Then pick out the grit.",
     "First treat a collection of things with a means, then take out the parts that do not belong."),
    ("Saffron is dear because each crocus yields only three threads.",
     "Something has a high value because every source gives very little of it."),
    ("The widow lodges a piano tuner. He mends her clocks for her, and she darns his coats for him.",
     "Two members stay together, and each gives what the other lacks."),
    ("A mosaic consists of hundreds of tesserae. No two tesserae have quite the same tint.",
     "A whole contains many small parts, and every part differs from the others."),
    ("Rumours that paraffin was scarce made the villagers hoard it. The hoarding emptied the shelves, and the rumours grew louder.",
     "Fear of a lack makes a group take more, which causes the lack and makes the fear grow."),
    ("Heather dreaded the audition. She hummed a lullaby, and her hands stopped trembling.",
     "Someone is in a bad state, does something familiar, and the state passes."),
    ("The falconer never lets the hawk fly on a full crop. A sated hawk does not come back to the lure.",
     "Someone allows something to act only while it lacks what it wants, because once it is satisfied it no longer returns."),
    ("The ferry was late. The passengers sat on the quay and grumbled.",
     "Something does not come in time, and a group waits in a bad state."),
    ("Peat forms where moss dies faster than it rots. Every layer presses the one below and makes room for the next, until after millennia "
     "the bog stands above the valley.",
     "Something is added faster than it is lost, and each part rests on the one before, so that a whole slowly rises above its "
     "surroundings."),
)  # fmt: skip
REPHRASE_RULES = """\
You are given a sentence and words that it may not hold. Write the sentence again without them.
Say what they are in general instead: someone, something, a part, a whole, a group, a place, a means, a state, a quantity; \
act, change, move, join, cause. Where that says nothing, leave them out. Keep everything else, and the order.
Reply with the sentence alone."""
REPHRASE_EXAMPLES = (
    ("Something is soaked in brine again and again, which feeds a mould that keeps others away.", "soaked, brine, mould",
     "Something is treated again and again, which feeds one part that keeps others away."),
    ("Someone tugs the rope too early, and the peal loses its order.", "tugs, rope, peal",
     "Someone acts too early, and the whole loses its order."),
    ("A whole is made of many parts, which can be tesserae or beads.", "tesserae, beads",
     "A whole is made of many parts of several kinds."),
    ("The flywheel spins faster until the governor throttles it.", "flywheel, spins, governor, throttles",
     "A part moves faster until another part holds it back."),
    ("Someone dreads something, hums a lullaby and stops trembling.", "dreads, hums, lullaby, trembling",
     "Someone is in a bad state, does something familiar, and the state passes."),
    ("Two things squeeze each other, which can raise a dune or a cliff.", "squeeze, raise, dune, cliff",
     "Two things act on each other, which can form something new."),
    ("A group waits gloomily on the quay because the ferry is late.", "gloomily, quay, ferry",
     "A group waits in a bad state because something does not come in time."),
    ("Moss dies and rots slowly, so that the bog rises above its surroundings.", "moss, dies, rots, bog",
     "Something is lost more slowly than it is added, so that it rises above its surroundings."),
)  # fmt: skip


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


class StoredSkeletons:
    """Skeletons that exist already, such as some written by hand: a mapping from text to skeleton.

    Raises BadInput for a text without one.
    """

    def __init__(self, skeletons: Mapping[str, str], *, name: str = "stored") -> None:
        self.name, self._skeletons = name, dict(skeletons)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the texts and their skeletons."""
        return _sha256(json.dumps(sorted(self._skeletons.items())))

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Return the stored skeleton of each text."""
        for text in texts:
            if text not in self._skeletons:
                raise BadInput(f"there is no stored skeleton of {text[:60]!r}: have a model make it")
        return [self._skeletons[text] for text in texts]

    def __repr__(self) -> str:
        return f"<{len(self._skeletons):,} stored skeletons by {self.name}>"


def _format_request(skeleton: str, words: str) -> str:
    return f"Sentence: {skeleton}\nNot these words: {words}"


def _truncate_skeleton(reply: str) -> str:
    """Return the skeleton in a reply, truncated to 60 words."""
    return " ".join(extract_skeleton(reply).split()[:MAX_SKELETON_WORDS])


def _sha256(text: str) -> str:
    return hashlib.sha256(replace_surrogates(text).encode()).hexdigest()
