"""Reading a text by its grammar, and the skeletons that come of it."""

import subprocess
import sys

import pytest
from support.every import every

from kgot_lab.analogy import linguistic
from kgot_lab.analogy.linguistic import LinguisticSkeletons, Predication, Role, analyse_texts, map_roles
from kgot_lab.analogy.skeletons import make_skeletons
from kgot_lab.errors import BadInput, NotInstalled, UnknownName

DAM = "The dam holds back the river. As the water rises, the wall cracks."
ROMAN = "Maria Lopez from Boston bought 300 Roman coins in 1931.\nShe sold them [4] to a museum."


def only(text):
    return analyse_texts([text])[0]


def roles_of(text, verb):
    return {role.name: role.noun for event in only(text).events if event.verb == verb for role in event.roles}


def test_every_noun_phrase_becomes_something_and_the_order_stays():
    expected = ["something holds back something.", "As something rises, something cracks."]
    assert [sentence.masked for sentence in only(DAM).sentences] == expected
    expected = ["something hold back something", "something rise", "something crack"]
    assert [event.line for event in only(DAM).events] == expected


@pytest.mark.parametrize("style", linguistic.STYLES)
def test_a_skeleton_is_one_line_without_names_nouns_and_numbers(style):
    (skeleton,) = LinguisticSkeletons(style)([ROMAN])
    assert "\n" not in skeleton
    assert not {"maria", "lopez", "boston", "coin", "coins", "roman", "museum"} & set(
        skeleton.lower().replace(".", "").split()
    )
    assert not any(letter.isdigit() for letter in skeleton)
    assert "something" in skeleton


def test_a_lone_pronoun_stays():
    assert only("She sold them to a museum.").sentences[0].masked == "She sold them to something."


def test_a_predicate_that_names_a_people_is_masked():
    assert only("The law was Roman.").sentences[0].masked == "something was something."


@pytest.mark.parametrize("opening", ["Finally, ", "As a result, ", "However, ", "And then, ", "After that, "])
def test_a_connective_at_the_head_of_a_sentence_is_not_read(opening):
    plain, opened = only("the river flooded the town."), only(f"{opening}the river flooded the town.")
    expected = [(unit.masked, unit.form) for unit in plain.units]
    assert [(unit.masked, unit.form) for unit in opened.units] == expected
    assert opened.events == plain.events


def test_a_connective_adverb_is_not_read_anywhere():
    assert only("The rock is then crushed.").units[0].masked == only("The rock is crushed.").units[0].masked
    assert only("The rock is then crushed.").events == only("The rock is crushed.").events


def test_an_introduction_that_tells_something_stays():
    expected = "After something, something flooded something."
    assert only("After the storm, the river flooded the town.").units[0].masked == expected


def test_a_passive_is_told_as_the_active():
    expected = {"subject": "flood", "object": "town"}
    assert roles_of("The town was destroyed by the flood.", "destroy") == expected
    found = only("The town was destroyed by the flood.").events[0].line
    assert found == only("The flood destroyed the town.").events[0].line


def test_a_relative_pronoun_stands_for_its_noun():
    expected = {"subject": "river", "object": "town"}
    assert roles_of("The river that flooded the town is calm.", "flood") == expected


def test_prepositions_are_roles_and_pronouns_fill_them_without_a_name():
    expected = {"subject": "clerk", "object": "", "to": "widow"}
    assert roles_of("The clerk gave it to the widow.", "give") == expected
    assert only("The clerk gave it to the widow.").events[0].phrase == "clerk give … to widow"


@pytest.mark.parametrize(
    "text",
    ["The wall does not hold.", "The wall never holds.", "The wall doesn't hold.", "Nobody holds the wall."],
)
def test_a_denial_is_seen(text):
    assert only(text).sentences[0].denied
    assert not only("The wall holds.").sentences[0].denied


def test_the_form_keeps_function_words_and_puts_tags_for_the_others():
    expected = ("the", "NN", "VBZ", "under", "the", "NN")
    assert only("The river flows under the bridge.").sentences[0].form == expected


@every("style", linguistic.STYLES)
@every("text", ["", " \n\t", "Fire", "Photosynthesis.", "Finally", "…"])
def test_a_text_in_which_nothing_happens_gets_no_skeleton(style, text):
    assert LinguisticSkeletons(style)([text]) == [""]


def test_one_verb_is_a_skeleton():
    assert [LinguisticSkeletons(style)(["Run!"]) for style in ("masked", "events")] == [["Run!"], ["run"]]


def test_a_text_is_read_once():
    assert only(DAM) is only(DAM)
    assert analyse_texts([DAM, "Run!", DAM])[0] is analyse_texts([DAM])[0]


def test_a_text_is_read_alike_alone_and_among_others(monkeypatch):
    sayings = ["Never trust the rising tide.", "Old friends quarrelled and parted without a word."]
    texts = [DAM, ROMAN, *sayings] * 2
    monkeypatch.setattr(linguistic, "_ANALYSIS_CACHE", {})
    together = analyse_texts(texts)
    for text, kept in zip(texts, together, strict=True):
        monkeypatch.setattr(linguistic, "_ANALYSIS_CACHE", {})
        assert analyse_texts([text]) == [kept]


def test_what_was_read_long_ago_is_forgotten(monkeypatch):
    monkeypatch.setattr(linguistic, "_ANALYSIS_CACHE", {})
    monkeypatch.setattr(linguistic, "_MAX_CACHED", 2)
    assert [text.text for text in analyse_texts(["Run!", "Walk!", "Swim!"])] == ["Run!", "Walk!", "Swim!"]
    assert {text for text, _ in linguistic._ANALYSIS_CACHE} == {"Walk!", "Swim!"}


def test_half_a_character_is_no_trouble():
    assert analyse_texts(["The dam \ud83d breaks."])[0].events[0].verb == "break"


def test_the_digest_tells_styles_apart_and_nothing_else():
    masked, events = LinguisticSkeletons("masked"), LinguisticSkeletons("events")
    assert masked.digest == LinguisticSkeletons().digest != events.digest
    assert len(LinguisticSkeletons().digest) == 64
    assert LinguisticSkeletons("events").name == "linguistic (events)"


def test_bad_input_is_refused_with_a_word_on_what_would_do():
    with pytest.raises(UnknownName, match="masked"):
        LinguisticSkeletons("mask")
    with pytest.raises(BadInput, match="list of texts"):
        analyse_texts("The dam bursts.")
    with pytest.raises(BadInput, match="too long"):
        analyse_texts(["word " * 300_000])


def test_without_spacy_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, linguistic.MODEL, None)
    monkeypatch.setattr(linguistic, "_ANALYSIS_CACHE", {})
    linguistic._load_pipeline.cache_clear()
    try:
        with pytest.raises(NotInstalled, match=r"kgot_lab\[lab\]"):
            analyse_texts([DAM])
        assert analyse_texts([" "])[0].sentences == ()
    finally:
        linguistic._load_pipeline.cache_clear()


def test_importing_does_not_load_spacy():
    code = "import sys, kgot_lab.analogy.alignment; sys.exit('spacy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def event(verb, **roles):
    return Predication(verb, tuple(Role(name, noun) for name, noun in roles.items()), (), False, 0)


def test_fillers_of_the_same_role_answer_each_other():
    found = map_roles(
        [
            (
                event("hold", subject="dam", object="water"),
                event("delay", subject="debtor", object="debt", by="trick"),
            )
        ]
    )
    expected = [("dam", "debtor", 1, True), ("water", "debt", 1, True)]
    assert [
        (counterpart.source, counterpart.target, counterpart.times, counterpart.agrees)
        for counterpart in found.counterparts
    ] == expected
    assert (found.votes, found.same, found.consistency) == (2, 0, 1.0)


def test_a_noun_that_answers_to_two_is_inconsistent():
    twice = (event("rise", subject="water"), event("grow", subject="debt"))
    once = (event("fall", subject="water"), event("fall", subject="debtor"))
    found = map_roles([twice, twice, twice, once])
    assert [counterpart.agrees for counterpart in found.counterparts] == [True, False]
    assert found.consistency == 0.75


def test_a_noun_in_its_own_role_is_counted_as_the_same():
    found = map_roles(
        [(event("rise", subject="water", under="wall"), event("climb", subject="water", under="gate"))]
    )
    assert (found.same, found.votes) == (1, 2)


def test_a_pronoun_has_no_vote():
    assert map_roles([(event("rise", subject=""), event("rise", subject="water"))]).votes == 0
    assert map_roles([]).consistency == 1.0


@pytest.mark.parametrize("style", linguistic.STYLES)
def test_a_text_in_which_nothing_is_told_fails_for_a_reason_that_is_true(style):
    found = make_skeletons(["Rain", "Rain falls.", "The red dam."], LinguisticSkeletons(style), cache=False)
    assert list(found) == ["Rain falls."] and set(found.failed) == {"Rain", "The red dam."}
    why = f"linguistic ({style}) found nothing to tell in it: nothing but nouns, perhaps, or a language that it does not read"
    assert set(found.failed.values()) == {why}
