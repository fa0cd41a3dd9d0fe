"""One line of mechanism for each text: what is made, what is kept, and what becomes of the texts that get
none.
"""

import gzip
import json
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.every import every

from benchmarks.structure.leaks import LeakCheck
from benchmarks.structure.stored_skeletons import SkeletonFile, save_skeletons
from kgot_lab.analogy.skeleton_makers import (
    MAX_SKELETON_WORDS,
    RULES,
    SKELETON_EXAMPLES,
    ModelSkeletons,
)
from kgot_lab.analogy.skeletons import BATCH_SIZE, Skeletons, extract_skeleton, make_skeletons
from kgot_lab.errors import BadInput, BadReply, LLMError, ModelMissing, NotInstalled
from kgot_lab.llm.recorded import Scripted
from kgot_lab.types import Prompt

TEXTS = [f"Loaf number {number} was shaped by the baker." for number in range(40)]
GOOD = "Someone shapes one thing after another."


class Stored:
    """A maker of skeletons that were written by hand."""

    name, digest = "by hand", "1"

    def __init__(self, skeletons: dict[str, str]) -> None:
        self.skeletons = skeletons

    def __call__(self, texts: Sequence[str]) -> list[str]:
        return [self.skeletons[text] for text in texts]


class Upside:
    """A maker that turns the words of a text round; it breaks on the texts it is told, and counts what it was
    asked for.
    """

    def __init__(
        self, breaks_on: Sequence[str] = (), error: BaseException | None = None, digest: str = "1"
    ) -> None:
        self.name, self.digest = "upside", digest
        self.breaks_on = set(breaks_on)
        self.error = error or LLMError("the line is dead")
        self.asked = list[list[str]]()

    def __call__(self, texts: Sequence[str]) -> list[str]:
        self.asked.append(list(texts))
        if self.breaks_on & set(texts):
            raise self.error
        return [" ".join(reversed(text.split())) for text in texts]


def said(prompt: Prompt) -> str:
    return prompt.messages[-1].text


# --- the collection ---


def test_every_text_gets_its_skeleton_in_the_order_of_the_texts(tmp_path):
    found = make_skeletons(TEXTS, Upside(), folder=tmp_path)
    assert list(found) == TEXTS and len(found) == 40
    assert found[TEXTS[3]] == "baker. the by shaped was 3 number Loaf"
    assert (found.blank, found.failed) == ((), {})
    assert found.get("another text") is None


def test_a_blank_text_gets_no_skeleton_and_is_counted(tmp_path):
    maker = Upside()
    found = make_skeletons(["", "A b.", " \n", "12 — 34", ""], maker, folder=tmp_path)
    assert found.blank == ("", " \n", "12 — 34", "")
    assert list(found) == ["A b."] and maker.asked == [["A b."]]
    assert len(make_skeletons(["", "…"], maker, folder=tmp_path)) == 0
    assert repr(make_skeletons([], maker, folder=tmp_path)) == "<0 skeletons by upside>"


def test_what_was_made_is_kept_for_its_maker_alone(tmp_path):
    first, second, other = Upside(), Upside(), Upside(digest="2")
    made = make_skeletons(TEXTS, first, folder=tmp_path)
    assert make_skeletons(TEXTS, second, folder=tmp_path) == made and second.asked == []
    make_skeletons(TEXTS[:1], other, folder=tmp_path)
    assert other.asked == [TEXTS[:1]]
    make_skeletons(TEXTS[:1], second, folder=tmp_path, cache=False)
    assert second.asked == [TEXTS[:1]]


def test_an_interruption_loses_one_lot_and_a_rerun_goes_on(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        make_skeletons(
            TEXTS, Upside(breaks_on=[TEXTS[BATCH_SIZE + 1]], error=KeyboardInterrupt()), folder=tmp_path
        )
    maker = Upside()
    make_skeletons(TEXTS, maker, folder=tmp_path)
    assert [text for lot in maker.asked for text in lot] == TEXTS[BATCH_SIZE:]


def test_a_text_that_fails_is_tried_alone_and_reported_and_tried_again_next_time(tmp_path):
    maker = Upside(breaks_on=[TEXTS[2]])
    found = make_skeletons(TEXTS, maker, folder=tmp_path)
    assert found.failed == {TEXTS[2]: "the line is dead"}
    assert list(found) == TEXTS[:2] + TEXTS[3:]
    expected = [BATCH_SIZE, *[1] * BATCH_SIZE, *[BATCH_SIZE] * (40 // BATCH_SIZE - 1)]
    assert [len(lot) for lot in maker.asked] == expected
    again = Upside()
    assert len(make_skeletons(TEXTS, again, folder=tmp_path)) == 40 and again.asked == [[TEXTS[2]]]


@pytest.mark.parametrize(
    "error", [LLMError("no"), BadInput("no"), ValueError("no"), BadReply("no", "")], ids=repr
)
def test_no_error_of_one_text_is_fatal_to_the_others(error, tmp_path):
    found = make_skeletons(TEXTS[:3], Upside(breaks_on=TEXTS[:1], error=error), folder=tmp_path)
    assert list(found) == TEXTS[1:3] and "no" in found.failed[TEXTS[0]]


@pytest.mark.parametrize("error", [NotInstalled("local"), ModelMissing("there is no model file")], ids=repr)
def test_a_maker_that_is_not_there_is_told_at_once(error, tmp_path):
    with pytest.raises(type(error)):
        make_skeletons(TEXTS, Upside(breaks_on=TEXTS, error=error), folder=tmp_path)


def test_a_maker_that_gives_too_few_is_found_out(tmp_path):
    maker = Upside()
    maker.__class__ = type("Lazy", (Upside,), {"__call__": lambda self, texts: ["Only one."]})
    found = make_skeletons(["A b.", "C d."], maker, folder=tmp_path)
    assert list(found.values()) == ["Only one.", "Only one."]  # alone, one is enough
    maker.__class__ = type("Mute", (Upside,), {"__call__": lambda self, texts: []})
    assert "0 skeletons of 1 texts" in make_skeletons(["E f."], maker, folder=tmp_path).failed["E f."]


def test_progress_counts_the_missing_texts(tmp_path):
    told = []
    make_skeletons(TEXTS[:5], Upside(), folder=tmp_path)
    make_skeletons(TEXTS, Upside(), folder=tmp_path, progress=lambda done, total: told.append((done, total)))
    assert told == [*((done, 35) for done in range(0, 35, BATCH_SIZE)), (35, 35)]
    make_skeletons(TEXTS, Upside(), folder=tmp_path, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (35, 35) and told.count((35, 35)) == 1  # nothing was missing, so nothing is told


def test_its_repr_counts_everything():
    found = Skeletons(
        {str(number): "x" for number in range(1204)},
        "qwen2.5",
        ("", "", ""),
        {"a": "no"},
    )
    assert repr(found) == "<1,204 skeletons by qwen2.5, 3 blank, 1 failed>"
    assert repr(replace(found, blank=(), failed={})) == "<1,204 skeletons by qwen2.5>"


def test_half_characters_and_other_scripts_do_no_harm(tmp_path):
    texts = ["a \ud800 b", "漢字 🙂", "Ünï\x00cödé"]
    made = make_skeletons(texts, Upside(), folder=tmp_path)
    assert make_skeletons(texts, Upside(), folder=tmp_path) == made and made["a \ud800 b"] == "b ? a"


def test_bad_input_is_told(tmp_path):
    with pytest.raises(BadInput, match="each item a text"):
        make_skeletons("one text", Upside(), folder=tmp_path)
    with pytest.raises(BadInput, match="each item a text"):
        make_skeletons(["A b.", None], Upside(), folder=tmp_path)  # type: ignore[list-item]


def test_a_damaged_row_is_made_again(tmp_path):
    make_skeletons(TEXTS[:2], Upside(), folder=tmp_path)
    with sqlite3.connect(tmp_path / "skeletons-2.sqlite") as connection:
        connection.execute("UPDATE cache SET value = x'00ff'")
    connection.close()
    maker = Upside()
    assert make_skeletons(TEXTS[:2], maker, folder=tmp_path)[TEXTS[0]].endswith("Loaf")
    assert len(maker.asked) == 1


# --- one line ---


REPLIES = [
    *(
        GOOD,
        f"\n\n  {GOOD}\nAnd more.",
        f'"{GOOD}"',
        f"“{GOOD}”",
        f"Skeleton: {GOOD}",
        f'**Skeleton:** "{GOOD}"',
        f"- {GOOD}",
        f"1. {GOOD}",
    ),
    *(
        f"Here is the skeleton:\n\n{GOOD}",
        f"The abstract mechanism: {GOOD}",
        f"```\n{GOOD}\n```",
        f"'Skeleton: {GOOD}'",
        f"> *{GOOD}*",
    ),
]


@every("reply", REPLIES)
def test_a_skeleton_is_the_first_line_without_labels_and_quotes(reply):
    assert extract_skeleton(reply) == GOOD


@pytest.mark.parametrize(
    "line",
    ["A mechanism-driven change.", 'The "whole" is "divided"', "Output grows with input.", "Someone's own."],
)
def test_what_only_looks_like_a_label_or_a_quote_stays(line):
    assert extract_skeleton(line) == line


@every("reply", ["", " \n ", '""', "Skeleton:", "```\n```", "..."])
def test_a_reply_without_words_is_bad(reply):
    with pytest.raises(BadReply, match="no skeleton"):
        extract_skeleton(reply)


# --- a model that is asked ---


def test_the_model_gets_rules_then_examples_then_the_text():
    llm = Scripted([GOOD, GOOD])
    assert ModelSkeletons(llm)([TEXTS[0], TEXTS[1]]) == [GOOD, GOOD]
    first, second = (prompt.messages for prompt in llm.asked)
    expected = ["system", *["user", "assistant"] * len(SKELETON_EXAMPLES), "user"]
    assert [message.role for message in first] == expected
    assert first[0].text == RULES and TEXTS[0] in first[-1].text
    assert first[:-1] == second[:-1]  # so that it is read once
    assert (llm.asked[0].temperature, llm.asked[0].seed, llm.asked[0].max_tokens) == (0, None, 60)


def test_the_examples_do_what_the_rules_ask():
    texts, made = zip(*SKELETON_EXAMPLES, strict=True)
    check = LeakCheck.of(texts)
    assert [leaked for text, skeleton in SKELETON_EXAMPLES if (leaked := check.check(text, skeleton))] == []
    assert all(extract_skeleton(skeleton) == skeleton and len(skeleton.split()) <= 30 for skeleton in made)


def test_a_long_reply_is_cut_and_the_first_of_several_lines_taken():
    assert len(ModelSkeletons(Scripted(["word " * 200]))(["A b."])[0].split()) == MAX_SKELETON_WORDS
    assert ModelSkeletons(Scripted([f"Skeleton: {GOOD}\nI hope this helps!"]))(["A b."]) == [GOOD]


def test_the_digest_follows_everything_that_decides_the_skeleton():
    class WithFile(Scripted):
        sha256, engine = "abc", ""

    plain = ModelSkeletons(Scripted([]))
    others = [
        ModelSkeletons(Scripted([], name="other")),
        ModelSkeletons(WithFile([])),
        ModelSkeletons(Scripted([]), examples=SKELETON_EXAMPLES[:1]),
    ]
    others += [
        replace(plain, max_tokens=50),
        replace(plain, temperature=0.7),
    ]
    assert len({plain.digest, *(maker.digest for maker in others)}) == 6
    assert plain.digest == ModelSkeletons(Scripted([GOOD])).digest
    assert plain.name == "scripted"


# --- stored skeletons ---


def test_what_is_saved_is_found_again(tmp_path):
    made = make_skeletons([*TEXTS, "漢字 \u2028 🙂"], Upside(), folder=tmp_path)
    save_skeletons(made, "upside", tmp_path / "made.jsonl.gz", model="m", date="2025-01-31")
    maker = SkeletonFile(tmp_path / "made.jsonl.gz")
    assert make_skeletons([*TEXTS, "漢字 \u2028 🙂"], maker, folder=tmp_path) == made
    assert maker.head == {"skeletons": 1, "maker": "upside", "model": "m", "date": "2025-01-31"}
    assert len(maker) == 41 and TEXTS[0] in maker and "A c." not in maker
    assert "no stored skeleton of 'A c.'" in make_skeletons(["A c."], maker, folder=tmp_path).failed["A c."]


def test_the_file_is_the_same_bytes_whatever_the_order_and_holds_no_text(tmp_path):
    for name, texts in (("a.gz", TEXTS), ("b.gz", TEXTS[::-1])):
        made = make_skeletons(texts, Upside(), folder=tmp_path)
        save_skeletons(made, "upside", tmp_path / name, model="m", date="2025-01-31")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    lines = gzip.decompress((tmp_path / "a.gz").read_bytes()).decode().splitlines()
    assert json.loads(lines[0])["maker"] == "upside"
    assert set(json.loads(lines[1])) == {"text_sha256", "skeleton"}


def test_importing_the_makers_brings_no_model():
    heavy = {"spacy", "torch", "onnxruntime", "xllamacpp", "openai"}
    code = f"import sys, kgot_lab.analogy.skeleton_makers; print(*({heavy!r} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""


# --- the real local model ---


@pytest.mark.live
def test_the_local_model_makes_a_line_of_each_text_and_is_not_needed_again(tmp_path: Path):
    from kgot_lab.llm.local import Local

    try:
        llm = Local(context=1024)
    except (ModelMissing, NotInstalled) as error:
        pytest.skip(f"no local model here: {error}")
    texts = [
        "Pour water on the seeds. After a week they sprout.",
        "Put money in the bank. After a year it has grown.",
    ]
    # few, because reading them takes longer than the rest of this file
    maker = ModelSkeletons(llm, examples=SKELETON_EXAMPLES[:3])
    made = make_skeletons([*texts, ""], maker, folder=tmp_path)
    llm.close()
    assert list(made) == texts and made.failed == {} and made.blank == ("",)
    assert all(
        "\n" not in skeleton and 3 <= len(skeleton.split()) <= MAX_SKELETON_WORDS
        for skeleton in made.values()
    )
    again = make_skeletons(texts, maker, folder=tmp_path)
    # kept, so the model was not needed
    assert again.by_text == made.by_text and repr(llm).endswith("not loaded yet>")


def test_a_broken_cache_is_put_aside(tmp_path):
    (tmp_path / "skeletons-2.sqlite").write_bytes(b"not a database at all" * 50)
    with pytest.warns(UserWarning, match="skeleton cache is broken"):
        assert len(make_skeletons(TEXTS, Upside(), folder=tmp_path)) == 40
    maker = Upside()
    make_skeletons(TEXTS, maker, folder=tmp_path)
    assert maker.asked == [] and (tmp_path / "skeletons-2.broken").exists()


def test_an_empty_reply_fails_its_text_only(tmp_path):
    llm = Scripted(lambda prompt: "" if TEXTS[1] in said(prompt) else GOOD)
    found = make_skeletons(TEXTS[:3], ModelSkeletons(llm), folder=tmp_path)
    assert list(found) == [TEXTS[0], TEXTS[2]] and "no skeleton in it" in found.failed[TEXTS[1]]
    assert repr(found) == "<2 skeletons by scripted, 1 failed>"


def test_a_model_that_runs_out_of_replies_keeps_what_it_made(tmp_path):
    found = make_skeletons(TEXTS[:3], ModelSkeletons(Scripted([GOOD] * 4)), folder=tmp_path)
    assert len(found) == 3
    # the lot of five passes, and two replies are left over
    found = make_skeletons(TEXTS[:8], ModelSkeletons(Scripted([GOOD] * 7)), folder=tmp_path)
    assert len(found) == 8
    found = make_skeletons(TEXTS[:20], ModelSkeletons(Scripted([])), folder=tmp_path)
    assert len(found) == 8 and len(found.failed) == 12


def test_without_a_cache_nothing_is_written(tmp_path):
    make_skeletons(TEXTS, Upside(), folder=tmp_path / "new", cache=False)
    assert list(tmp_path.iterdir()) == []
