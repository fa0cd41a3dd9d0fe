"""Skeletons from a language model, and stored skeletons."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

from kgot_lab.analogy.skeletons import LeakCheck, Skeletons, extract_skeleton
from kgot_lab.errors import BadInput, BadReply
from kgot_lab.io.files import write_atomically
from kgot_lab.llm.recorded import prompt_to_json
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.types import LLM, FromFile, Json, Message, Prompt

MAX_SKELETON_WORDS = 60  # maximum words of a model's skeleton
_PROMPTS = json.loads(Path(__file__).with_name("skeleton_prompts.json").read_text(encoding="utf-8"))
RULES, REPHRASE_RULES = str(_PROMPTS["rules"]), str(_PROMPTS["rephrase rules"])
SKELETON_EXAMPLES = tuple(
    map(tuple, _PROMPTS["examples"])
)  # with rare nouns, so that a copied one is noticed
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


class StoredSkeletons:
    """Stored skeletons: a file that `save` wrote, or a mapping from text to skeleton.

    Raises BadInput for a text without one.
    """

    def __init__(self, source: str | Path | Mapping[str, str], *, name: str = "stored") -> None:
        if isinstance(source, Mapping):
            self.head: Mapping[str, Json] = {"maker": name}
            self._lines = {_sha256(text): skeleton for text, skeleton in source.items()}
        else:
            self.head, self._lines = _read_skeleton_file(Path(source))

    @property
    def name(self) -> str:
        """The name of the maker that made them."""
        return str(self.head["maker"])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the texts and their skeletons."""
        return _sha256(json.dumps(sorted(self._lines.items())))

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Return the stored skeleton of each text."""
        return [self._look_up(text) for text in texts]

    def _look_up(self, text: str) -> str:
        key = _sha256(text)
        if key not in self._lines:
            problem = f"there is no stored skeleton of {text[:60]!r} (SHA-256 {key[:8]}…)"
            raise BadInput(f"{problem}: have a model make it and save it")
        return self._lines[key]

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and _sha256(text) in self._lines

    def __len__(self) -> int:
        return len(self._lines)

    def __repr__(self) -> str:
        date = self.head.get("date")
        return f"<{len(self):,} stored skeletons by {self.name}{f', {date}' if date else ''}>"


def save_skeletons(skeletons: Skeletons, path: str | Path, *, model: str = "", date: str = "") -> None:
    """Write skeletons as JSON lines, keyed by the hash of their text, gzipped if the path ends in .gz.

    The same skeletons give the same bytes. First the header {"skeletons": 1, "maker", "model", "date"}, then
    {"text_sha256", "skeleton"} for each, in the order of the hashes.
    """
    head = {"skeletons": 1, "maker": skeletons.maker, "model": model, "date": date}
    lines = sorted((_sha256(text), skeleton) for text, skeleton in skeletons.items())
    rows = [head, *({"text_sha256": key, "skeleton": skeleton} for key, skeleton in lines)]
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path = Path(path)
    write_atomically(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data, "the skeletons")


def _read_skeleton_file(path: Path) -> tuple[Mapping[str, Json], dict[str, str]]:
    """Read the header of a skeleton file and its skeletons by the hash of their text.

    A line may hold the text itself instead of the hash.
    """
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise BadInput(f"the skeletons in {path} cannot be read: {error}") from None
    lines = text.strip("\n").split("\n")
    rows = [_parse_row(path, number, line) for number, line in enumerate(lines, start=1)]
    head = rows[0]
    if head.get("skeletons") != 1 or not isinstance(head.get("maker"), str):
        expected = '{"skeletons": 1, "maker": …}'
        raise BadInput(f"{path} does not begin with the head of a file of skeletons, {expected}")
    return head, dict(_parse_entry(path, number, row) for number, row in enumerate(rows[1:], start=2))


def _parse_row(path: Path, number: int, line: str) -> Mapping[str, Json]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadInput(f"line {number} of {path} is not JSON ({error.msg})") from None
    if not isinstance(row, Mapping):
        raise BadInput(f"line {number} of {path} is not a JSON object")
    return row


def _parse_entry(path: Path, number: int, row: Mapping[str, Json]) -> tuple[str, str]:
    key = row.get("text_sha256") or (_sha256(row["text"]) if isinstance(row.get("text"), str) else None)
    if not isinstance(key, str) or not isinstance(row.get("skeleton"), str):
        expected = '{"text_sha256": …, "skeleton": …}, nor with "text" instead of its hash'
        raise BadInput(f"line {number} of {path} is not {expected}")
    return key, row["skeleton"]


def _format_request(skeleton: str, words: str) -> str:
    return f"Sentence: {skeleton}\nNot these words: {words}"


def _truncate_skeleton(reply: str) -> str:
    """Return the skeleton in a reply, truncated to 60 words."""
    return " ".join(extract_skeleton(reply).split()[:MAX_SKELETON_WORDS])


def _sha256(text: str) -> str:
    return hashlib.sha256(replace_surrogates(text).encode()).hexdigest()
