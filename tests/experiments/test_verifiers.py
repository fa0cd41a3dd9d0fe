"""Verifiers of structure beside the alignment: encodings learnt without labels, causal frames, and entailment
by a model.
"""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from kgot_lab.analogy.vocabulary_leaks import LeakCheck
from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import BadInput, BadReply, LLMError
from kgot_lab.experiments.structure.analogies import choices
from kgot_lab.experiments.structure.judge import JUDGE_SETS
from kgot_lab.experiments.structure.nouns import Nouns
from kgot_lab.experiments.transfer.causal_frames import (
    FRAME_EXAMPLES,
    CausalFrame,
    FrameLikeness,
    OutcomeName,
    causal_frame,
)
from kgot_lab.experiments.transfer.encodings import EncodedTraits, Encoder
from kgot_lab.experiments.transfer.entailment import abstract_statement, entailed, log_odds, steps_of
from kgot_lab.experiments.transfer.outcomes import OUTCOME_PHRASES
from kgot_lab.experiments.transfer.read_by_model import read_grid, read_rows
from kgot_lab.experiments.transfer.receipts import held_out, kept_sets
from kgot_lab.experiments.transfer.rewordings import reworded_pairs
from kgot_lab.llm.scripted import Scripted
from kgot_lab.types import Prompt, Reply, Usage

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "transfer"
DAM = "The dam holds back the river. As the water rises, the water presses on the wall. Finally the water breaks the dam."
HELPED = '{"aim":"to gain","steps":[{"link":"first","who":"doer","does":"seeks"},{"link":"so","who":"doer","does":"gains"}],"end":"good"}'
HARMED = '{"aim":"to keep","steps":[{"link":"first","who":"thing","does":"grows"},{"link":"so","who":"whole","does":"fails"}],"end":"bad"}'


class Sure:
    """A model that holds every statement with "water" in it to be true, and says how sure it is."""

    name = "sure"

    def __init__(self, sure: float | None = 0.9, reply: str = "") -> None:
        self.sure, self.reply = sure, reply

    def __call__(self, prompt: Prompt) -> Reply:
        text = self.reply or (
            "Yes" if "water" in prompt.messages[-1].text.partition("Statement:")[2] else "No"
        )
        return Reply(text, Usage(1, 1), logprob=None if self.sure is None else math.log(self.sure))


# --- encodings
# --------------------------------------------------------------------------------------------------------


def test_a_text_told_of_something_else_keeps_all_but_its_nouns_and_a_noun_that_returns_is_the_same_again():
    texts = [DAM, "A debtor owes money to the bank.", "The gardener waters seven roses."]
    nouns = Nouns()
    (dam, told), *_ = reworded_pairs(texts, nouns, seed=3)
    seen, pattern = set(), ""
    for piece in nouns.pieces(
        DAM
    ):  # the same words, any noun for a noun, and the same one wherever a noun returns
        noun = f"(?P={piece.lemma})" if piece.lemma in seen else f"(?P<{piece.lemma}>.+?)"
        pattern += (noun if piece.lemma else re.escape(piece.text)) + piece.space
        seen.add(piece.lemma)
    assert dam == DAM != told and re.fullmatch(pattern, told) and {"dam", "water"} <= seen
    assert reworded_pairs(texts, nouns, seed=3) == reworded_pairs(texts, nouns, seed=3)


@pytest.fixture(scope="module")
def encoder():
    texts = choices("analobench T1 S1").develop.texts[:150]
    return Encoder.learnt(reworded_pairs(texts, Nouns()), minilm(), most=80)


def test_an_encoding_learnt_without_labels_brings_a_text_nearer_to_itself_told_of_something_else(encoder):
    unseen = list(choices("storyanalogy-mc").develop.texts[:60])
    pairs = reworded_pairs(unseen, Nouns(), seed=1)
    traits = EncodedTraits({"any": encoder}, minilm())
    traits.prepare([text for pair in pairs for text in pair])
    place = traits.names.index("encoded without any, 20")
    table = np.array([[traits.of(one, [other])[0, place] for _, other in pairs] for one, _ in pairs])
    plain = (rows := minilm().embed([one for one, _ in pairs])) @ minilm().embed(
        [other for _, other in pairs]
    ).T
    found, before = (
        float((each.argmax(axis=1) == np.arange(60)).mean()) for each in (table, np.asarray(plain))
    )
    assert rows.shape[0] == 60 and found > before
    assert np.all(np.abs(table) <= 1 + 1e-6)


def test_too_few_texts_teach_no_encoder():
    with pytest.raises(BadInput, match="too few for 80 directions"):
        Encoder.learnt([(DAM, DAM)], minilm())


def test_texts_without_nouns_another_embedder_and_an_encoder_that_is_too_small_are_refused_by_name(encoder):
    with pytest.raises(BadInput, match="hold no nouns"):
        Encoder.learnt([("He went. She came.", "He went. She came.")] * 20, minilm(), most=20)
    with pytest.raises(BadInput, match="fewer than 80 directions"):
        EncodedTraits({"any": Encoder(encoder.mean, encoder.directions[:, :20])}, minilm())
    other = EncodedTraits({"any": Encoder(encoder.mean[:100], encoder.directions[:100])}, minilm())
    with pytest.raises(BadInput, match="another embedder"):
        other.prepare([DAM])


def test_an_encoding_of_a_text_that_was_not_prepared_is_refused(encoder):
    traits = EncodedTraits({"any": encoder}, minilm())
    traits.prepare([DAM])
    assert traits.of(DAM, [DAM]) == pytest.approx(np.ones((1, 4)))
    with pytest.raises(BadInput):
        traits.of(DAM, ["A gate."])


# --- causal frames
# ----------------------------------------------------------------------------------------------------


def test_a_frame_holds_no_word_but_those_of_its_vocabulary_so_that_nothing_leaks():
    assert [step.does for step in causal_frame(Scripted([HELPED]), DAM).steps] == ["seeks", "gains"]
    leak = HELPED.replace('"gains"', '"floods the valley"')
    with pytest.raises(BadReply):
        causal_frame(Scripted([leak, leak]), DAM)  # asked again once, and refused again
    assert causal_frame(Scripted([leak, HELPED]), DAM).end == "good"


def test_the_examples_are_frames_and_every_outcome_has_its_phrases():
    for _, frame in FRAME_EXAMPLES:
        assert CausalFrame.model_validate_json(frame).steps
    assert set(OutcomeName.__args__) | {"is so"} == set(OUTCOME_PHRASES)


def test_frames_of_the_same_kind_are_more_alike_than_opposite_ones():
    likeness = FrameLikeness(minilm())
    helped, harmed = CausalFrame.model_validate_json(HELPED), CausalFrame.model_validate_json(HARMED)
    same, other = likeness.of(helped, [helped, harmed])
    assert same == pytest.approx(1) and other < 0.3


# --- entailment
# -------------------------------------------------------------------------------------------------------


def test_a_statement_is_asked_step_by_step_and_short_steps_stay_joined():
    assert steps_of("Something weakens a whole slowly, until the whole suddenly fails.") == (
        "Something weakens a whole slowly", "the whole suddenly fails",
    )  # fmt: skip
    assert steps_of("Someone waits, and it goes.") == ("Someone waits, and it goes",)


def test_how_sure_a_model_is_counts_for_yes_and_against_for_no():
    said = entailed(Sure(), "The water rises over a wall, and a state passes soon", [DAM])
    assert said == [[pytest.approx(0.9), pytest.approx(0.1)]]
    assert log_odds(said[0]) == pytest.approx(0)
    assert log_odds([1.0]) == log_odds([0.999]) > log_odds([0.5]) == 0


def test_a_model_that_does_not_say_how_sure_it_is_is_told_apart_from_one_that_says_neither():
    with pytest.raises(LLMError, match="does not tell how likely"):
        entailed(Sure(sure=None), "The water rises", [DAM])
    with pytest.raises(BadReply, match="neither Yes nor No"):
        entailed(Sure(reply="Perhaps"), "The water rises", [DAM])


def test_a_statement_that_leaks_is_given_back_once():
    leaks = LeakCheck.of([DAM, "A debtor owes money to the bank.", "The gardener waters seven roses."])
    model = Scripted(["The dam breaks in the end.", "A whole breaks in the end."])
    assert abstract_statement(model, DAM, leaks) == "A whole breaks in the end." and len(model.asked) == 2


# --- the benchmark
# ----------------------------------------------------------------------------------------------------


def test_the_table_of_what_the_local_model_read_follows_from_its_receipts():
    rows = [
        json.loads(line)
        for line in (RESULTS / "read_by_model.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    grid = read_grid(rows, held_out(RESULTS, kept_sets(RESULTS), JUDGE_SETS), minilm())
    assert grid.markdown + "\n" == (RESULTS / "read_by_model.md").read_text(encoding="utf-8")
    asked = {(row["set"], row["question"]) for row in rows}
    assert len(asked) == len(rows) and not any(name in choices(of).locked for of, name in asked)


def test_what_failed_is_right_by_chance_and_counted_and_one_question_is_told_without_a_fuss():
    rows = list(read_rows(Sure(reply="nothing of the kind"), 1))
    grid = read_grid(rows, held_out(RESULTS, kept_sets(RESULTS), ("analobench T1 S1",)), minilm())
    assert [[cell.text for cell in line[2:7]] for line in grid.rows] == [
        ["1", name, ".250", ".000 to .793", failed]
        for name, failed in (("causal frames", "1"), ("entailment", "1"), ("both", "2"))
    ]


def test_a_run_that_was_stopped_asks_for_what_is_missing_and_keeps_what_failed():
    rows = list(read_rows(Sure(reply="nothing of the kind"), 1))
    assert [row["frames"] for row in rows] == [[None] * 5] * 3 and all(
        "neither Yes nor No" in str(row["failed"]) for row in rows
    )
    kept = {("sure", str(row["set"]), str(row["question"])) for row in rows[:2]}
    assert [row["set"] for row in read_rows(Sure(reply="nothing of the kind"), 1, kept)] == [rows[2]["set"]]
