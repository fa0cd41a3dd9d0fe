"""What holds on a set that was held out, from the receipts alone; and the twins that were written for it."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from benchmarks.structure.answered import graded, load_answers
from benchmarks.structure.nouns import PIPELINE
from benchmarks.transfer.compared import HeldOut, settings_grid
from benchmarks.transfer.held_sets import HELD_SETS, held_questions
from benchmarks.transfer.per_question import kept_sets, texts_without
from benchmarks.transfer.report import chosen_settings, mappings_grid
from benchmarks.transfer.systems import (
    FITS,
    ChosenElsewhere,
    as_answers,
    learnt_weights,
    right_shares,
    transferred,
)
from benchmarks.transfer.traits import MASKED, SETTINGS, Setting, keep_traits, kept_traits
from benchmarks.transfer.twins import TELLINGS, story_twins, twin_questions, words_shared
from kgot_lab.errors import BadInput, UnknownName

ROOT = Path(__file__).parents[2]
RESULTS, DRAWN = ROOT / "benchmarks" / "results" / "transfer", ROOT / "benchmarks" / "results" / "structure"


@pytest.fixture(scope="module")
def sets():
    return kept_sets(RESULTS)


def test_the_report_says_what_the_receipts_say(sets):
    """The two tables that take no time; `make results` derives them all."""
    report = (RESULTS / "report.md").read_text(encoding="utf-8")
    for grid in (settings_grid(chosen_settings(sets)), mappings_grid(DRAWN / "mappings.jsonl.gz")):
        assert grid.markdown in report, "run make results"


def test_an_aligner_with_the_usual_setting_answers_as_the_structure_benchmark_says(sets):
    for name in ("storyanalogy-mc", "parallelparc basic"):
        asked = held_questions(name)
        kept = graded(
            load_answers(DRAWN / "answers" / f"{name}.jsonl.gz", asked)["aligned"], asked
        ).per_query("accuracy")
        (traits,) = (some for each in sets.by.values() for some in each if some.questions.name == name)
        shares = right_shares(traits.aligned(Setting()), asked)
        # four digits are kept of a score
        assert np.abs(shares - [kept[each.id] for each in asked.questions]).sum() <= 2


def test_what_is_learnt_elsewhere_does_not_depend_on_the_held_out_set(sets):
    others = sets.without("storyanalogy")
    assert set(others.by) == set(HELD_SETS) - {"storyanalogy"}
    chosen = ChosenElsewhere.by(others, "storyanalogy")
    weights = learnt_weights(others, FITS["fitted surface"], chosen)
    assert chosen.setting in SETTINGS and chosen.encoded.startswith("encoded without storyanalogy, ")
    assert weights.shape == (len(FITS["fitted surface"]),) and np.isfinite(weights).all()


def test_an_encoder_is_taught_by_no_text_of_the_set_that_is_held_out_and_by_no_locked_question():
    for held, names in HELD_SETS.items():
        taught = set(texts_without(held))
        assert taught and not taught & {text for name in names for text in held_questions(name).texts}
    every = {text for held in HELD_SETS for text in texts_without(held)}
    assert every == {text for held in ("storyanalogy", "parallelparc", "analobench") for name in HELD_SETS[held]
                     for text in held_questions(name).develop.texts}  # fmt: skip


def test_fitted_weights_do_not_travel_and_the_alignment_does(sets):
    (stories,) = sets.by["storyanalogy"]
    one = HeldOut.of("storyanalogy", stories, sets)
    lost = {
        name: one.here[name].mean() - one.elsewhere[name].mean()
        for name in ("aligned", "fitted surface + aligned")
    }
    assert lost["aligned"] < 0.1 < 0.25 < lost["fitted surface + aligned"]


def test_every_system_answers_every_question_of_a_set_that_was_held_out(sets):
    (words,) = sets.by["scan"]
    answers = as_answers(
        transferred(words, others := sets.without("scan"), ChosenElsewhere.by(others, "scan")),
        words.questions,
    )
    assert all(len(each.scores) == len(words.questions.questions) for each in answers.values())
    assert answers[MASKED].kind == "structure" and answers["noun veto"].kind == "control"


CONTENT = {"NOUN", "PROPN", "VERB", "ADJ", "ADV", "NUM"}


def test_sixty_twins_share_no_content_word_with_their_stories_and_are_locked_as_their_questions_are():
    read = importlib.import_module(PIPELINE).load(exclude=["ner"])

    def content(text):
        return frozenset(
            word.lemma_.lower() for word in read(text) if word.pos_ in CONTENT and not word.is_stop
        )

    twins = story_twins()
    assert len(twins) == 60 and len({each.question.group for each in twins}) == 60
    assert sum(words_shared(content).values()) == 0
    assert len(twin_questions("reworded").locked) == 24


def test_a_twin_takes_the_place_of_its_story_and_a_turned_one_that_of_a_choice_by_chance():
    same, reworded, turned = (twin_questions(telling).questions for telling in (*TELLINGS[:2], TELLINGS[3]))
    for twin, one, other, third in zip(story_twins(), same, reworded, turned, strict=True):
        assert (
            one.choices[one.answer] == twin.story
            and other.choices[other.answer] == third.choices[third.answer] == twin.twin
        )
        assert third.kinds.count("turned") == 1 and third.kinds[third.choices.index(twin.turned)] == "turned"
    with pytest.raises(UnknownName):
        twin_questions("sung")


def test_traits_of_other_questions_are_refused(tmp_path, sets):
    (stories,) = sets.by["storyanalogy"]
    keep_traits(stories, tmp_path / "one.jsonl.gz")
    assert np.array_equal(kept_traits(tmp_path / "one.jsonl.gz", stories.questions).table, stories.table)
    with pytest.raises(BadInput, match="other questions"):
        kept_traits(tmp_path / "one.jsonl.gz", held_questions("parallelparc basic"))
    with pytest.raises(BadInput, match="has no trait"):
        stories.column("weather")
