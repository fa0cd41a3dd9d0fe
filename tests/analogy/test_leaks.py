"""Which words of a text's field its skeleton still holds."""

import math
import subprocess
import sys

import pytest
from support.every import every

from benchmarks.structure.leaks import FUNCTION_WORDS, LeakCheck
from kgot_lab.errors import BadInput
from kgot_lab.text.words import stem

FIELDS = "baker oven loaf;sailor mast harbour;judge verdict prison;nurse fever ward;farmer plough barn"
FIELDS = FIELDS.split(";")
TEXTS = [f"The {field} thing number {row} waits for the day." for row, field in enumerate(FIELDS)]


@pytest.fixture
def check() -> LeakCheck:
    return LeakCheck.of(TEXTS)


def test_the_rare_words_of_a_text_leak_in_the_order_of_the_skeleton(check):
    found = check.check("The baker opens the oven.", "An oven is opened by a Baker, the one with the oven.")
    assert found == ("oven", "opened", "baker")


def test_common_words_and_the_words_of_other_texts_do_not_leak(check):
    assert check.check("The baker waits for the day.", "Someone waits for the day, a sailor perhaps.") == ()


def test_an_ending_does_not_hide_a_leak(check):
    text = "Loaves of bread were baked; dogs barked, berries dried and boxes were falling."
    assert check.check(text, "It bakes; a dog barking, a berry drying, a box: all falls.") == (
        *("bakes", "dog", "barking", "berry", "drying", "box", "falls"),
    )


FORMS = """
walk walks walked walking, bake bakes baked baking, stop stops stopped stopping, city cities, carry carries carried, class classes,
church churches, fall falls falling, Ada Ada's Ada’s, judges' judge, process processes processed
"""


@every("words", FORMS.split(","))
def test_the_forms_of_a_word_have_one_stem(words):
    assert len(set(map(stem, words.split()))) == 1


@every("word", ["bus", "this", "glass", "ring", "red", "sing", "string", "need", "bed", "axis"])
def test_what_only_looks_like_an_ending_stays(word):
    assert stem(word) == word


def test_names_and_numbers_leak_however_common_they_are():
    check = LeakCheck.of(["We met Ada Byron in 1843 and paid 1,000 pounds."] * 50)
    assert check.idf("Ada") == 0
    text = "We met Ada Byron in 1843 and paid 1,000 pounds. Then we rested."
    assert check.check(text, "Ada's group met in 1843 and paid 1,000 pounds.") == ("ada", "1843", "1,000")


def test_a_capital_at_the_head_of_a_sentence_or_a_quotation_makes_no_name():
    check = LeakCheck.of(["rose call wait shout halt"] * 50)
    text = 'Rose and call. Wait! "Shout it," they said. “Halt” was heard. A word of Rose.'
    assert check.check(text.removesuffix(" A word of Rose."), "Rose, Call, Wait, Shout and Halt.") == ()
    assert check.check(text, "Rose, Call, Wait, Shout and Halt.") == ("rose",)
    assert check.check(text, "They rose.") == ()  # the name is not meant


def test_words_as_common_as_the_cut_are_language_and_rarer_ones_leak():
    texts = ["lake"] * 10 + ["pond"] * 5 + ["well"] * 85
    strict, lax = LeakCheck.of(texts, cut=math.log(10)), LeakCheck.of(texts, cut=math.log(10) + 0.01)
    assert strict.idf("lakes") == pytest.approx(math.log(100 / 10))
    assert strict.check("pond lake", "lake pond") == ("lake", "pond")
    assert lax.check("pond lake", "lake pond") == ("pond",)


def test_in_few_texts_a_word_of_a_single_one_leaks(check):
    assert math.log(len(TEXTS)) < check.cut
    assert check.check(TEXTS[0], "a baker waits") == ("baker",)
    assert LeakCheck.of(["A baker waits."]).check("A baker waits.", "The baker") == ("baker",)


def test_general_words_are_allowed_unless_they_are_not_listed():
    text, skeleton = "The process increases the pressure.", "A process increases something."
    assert LeakCheck.of(TEXTS).check(text, skeleton) == ()
    assert LeakCheck.of(TEXTS, common=FUNCTION_WORDS).check(text, skeleton) == ("process", "increases")


def test_the_calibrated_cut_lets_few_skeletons_of_other_texts_seem_to_leak():
    texts = [f"word{row} topic{row % 3} matter{row % 7} everywhere" for row in range(60)]
    made = [f"word{row} topic{row % 3} everywhere" for row in range(60)]
    open_check = LeakCheck.of(texts, cut=0, common=())
    calibrated = open_check.calibrated(texts, made, share=0.0)
    assert math.log(3) < calibrated.cut < math.log(7)
    assert calibrated.check(texts[0], made[0]) == ("word0",)
    lax = open_check.calibrated(texts, made, share=0.5)  # a third of other skeletons share the topic
    assert 0 < lax.cut < math.log(3)
    assert lax.check(texts[0], made[0]) == ("word0", "topic0")
    assert (open_check.cut, open_check.texts) == (0, 60)


def test_its_digest_is_of_what_it_decides():
    assert LeakCheck.of(TEXTS).digest == LeakCheck.of(reversed(TEXTS)).digest
    others = LeakCheck.of(TEXTS[1:]), LeakCheck.of(TEXTS, cut=1), LeakCheck.of(TEXTS, common=())
    assert len({LeakCheck.of(TEXTS).digest, *(check.digest for check in others)}) == 4


def test_odd_texts_do_no_harm(check):
    assert check.check("", "Something.") == check.check("A baker.", "") == check.check("...", "—") == ()
    assert check.check("漢字 Ünïcödé_x 🙂", "ünïcödé_x 漢字") == ("ünïcödé_x", "漢字")


@pytest.mark.parametrize("cut", [-1, math.nan, math.inf])
def test_bad_input_is_told(cut):
    with pytest.raises(BadInput, match=r"idf in nats|'cut' is a number"):
        LeakCheck.of(TEXTS, cut=cut)
    with pytest.raises(BadInput, match="each item a text"):
        LeakCheck.of("one text")
    with pytest.raises(BadInput, match="at least one"):
        LeakCheck.of([])
    with pytest.raises(BadInput, match="as many skeletons"):
        LeakCheck.of(TEXTS).calibrated(TEXTS, ["one"])
    with pytest.raises(BadInput, match="share"):
        LeakCheck.of(TEXTS).calibrated(TEXTS, TEXTS, share=1)


def test_its_repr_says_what_it_looks_for(check):
    assert repr(check) == "<leak check from 5 texts: names, numbers and words with an idf of 3.00 or more>"


def test_importing_it_brings_no_heavy_package():
    heavy = {"numpy", "spacy", "torch", "sklearn", "xllamacpp"}
    code = f"import sys, kgot_lab.analogy.skeletons; print(*({heavy!r} & set(sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(loaded) <= {"numpy"}
