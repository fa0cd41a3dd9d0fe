"""Encodings learnt without labels, a verifier of structure beside the alignment."""

import re

import numpy as np
import pytest

from benchmarks.structure.analogies import choices
from benchmarks.structure.nouns import Nouns
from benchmarks.transfer.encodings import EncodedTraits, Encoder
from benchmarks.transfer.rewordings import reworded_pairs
from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import BadInput

DAM = "The dam holds back the river. As the water rises, the water presses on the wall. Finally the water breaks the dam."


# --- encodings
# --------------------------------------------------------------------------------------------------------


def test_a_text_told_of_something_else_keeps_all_but_its_nouns_and_a_noun_that_returns_is_the_same_again():
    texts = [DAM, "A debtor owes money to the bank.", "The gardener waters seven roses."]
    nouns = Nouns()
    (dam, told), *_ = reworded_pairs(texts, nouns, seed=3)
    seen, pattern = set(), ""
    # the same words, any noun for a noun, and the same one wherever a noun returns
    for piece in nouns.pieces(DAM):
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
