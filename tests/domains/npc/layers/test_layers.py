"""The log and the texts of a world, the same on SQLite and PostgreSQL: kept whole, found by words and by
meaning.
"""

from __future__ import annotations

import pytest
from support.every import every

from kgot_lab.domains.npc.layers.memory import SemanticIndex, SessionLog
from kgot_lab.domains.npc.layers.models import Chunk, ContextRanking, LogEntry
from kgot_lab.domains.npc.models import Entity
from kgot_lab.embedding.fitted import lsa
from kgot_lab.errors import BadInput
from kgot_lab.types import Document

GRIM, ELARA, FORGE = Entity("npc", "Grimjaw"), Entity("npc", "Elara"), Entity("location", "Forge")
NOBODY = Entity("npc", "Nobody").id


@pytest.fixture
def there(layers):
    layers.world.add([GRIM, ELARA, FORGE])
    return layers


def texts(found):
    return [each.text for each in found]


# --- the log ---


def test_an_entry_is_found_again_as_it_was_appended(there):
    said = LogEntry("s1", "“Où est l’épée?” 🗡 he asked; 'DROP TABLE log'", (ELARA.id,), GRIM.id)
    there.log.append([said, LogEntry("s1", "the bells", None)])
    found, bells = there.log.last()
    assert (found.session_id, found.text, found.audience, found.speaker_id) == (
        "s1",
        said.text,
        (ELARA.id,),
        GRIM.id,
    )
    assert found.at < bells.at and (bells.audience, bells.speaker_id) == (None, None)
    assert there.log.search("épée") == there.log.search("table") == (found,)


def test_words_are_found_in_any_of_their_forms_and_signs_are_no_operators(there):
    there.log.append(
        LogEntry("s1", text, None)
        for text in ("The caches were looted", "caching gold in a forge", "nothing of note")
    )
    assert texts(there.log.search("cache")) == ["caching gold in a forge", "The caches were looted"], (
        "later ones first"
    )
    assert texts(there.log.search("cached LOOT?")) == ["The caches were looted", "caching gold in a forge"], (
        "more words first"
    )
    assert texts(there.log.search("gold* OR (NOT forge) & | ! <-> :*", 1)) == ["caching gold in a forge"]
    assert there.log.search("the a ?") == there.log.search("") == there.log.search("dragon") == ()


def test_what_was_said_last_is_told_in_its_order_by_session(there):
    there.log.append(LogEntry(session, f"{session} {n}", None) for session in ("s1", "s2") for n in range(3))
    assert texts(there.log.last(2)) == ["s2 1", "s2 2"]
    assert texts(there.log.last(2, session_id="s1")) == ["s1 1", "s1 2"]
    assert there.log.last(session_id="s3") == ()


def test_one_hears_what_it_says_what_is_said_to_it_and_to_everyone(there):
    there.log.append(
        [
            LogEntry("s1", "gold, said Grimjaw to nobody", (), GRIM.id),
            LogEntry("s1", "gold, said Elara to Grimjaw", (GRIM.id, FORGE.id), ELARA.id),
            LogEntry("s1", "gold, cried the herald", None),
            LogEntry("s1", "gold, thought Elara", (), ELARA.id),
            LogEntry("s1", "gold, only the game master knows", ()),
        ]
    )
    heard = there.log.log_of(GRIM.id)
    assert heard.last() == heard.search("gold")[::-1] and len(texts(heard.last())) == 3
    assert texts(heard.last(1)) == ["gold, cried the herald"], (
        "what is not for it takes no place among the last"
    )
    assert {each.audience for each in heard.last()} == {(GRIM.id,)}, "who else heard it is not told"
    assert len(there.log.last()) == 5
    there.world.delete_entity(ELARA.id)
    assert len(heard.last()) == 3, "what was said stays said"
    there.world.delete_entity(GRIM.id)
    for ask in (heard.last, lambda: heard.search("gold"), lambda: heard.search("dragon")):
        with pytest.raises(BadInput, match=f"^there is no entity {GRIM.id}"):
            ask()


def test_entries_are_appended_all_or_none(there):
    for odd in (LogEntry("s1", "hush", (NOBODY,)), LogEntry("s1", "hush", None, NOBODY)):
        with pytest.raises(BadInput, match=f"there is no entity {NOBODY}"):
            there.log.append([LogEntry("s1", "hush", None), odd])
    assert there.log.last() == ()


def test_what_is_deleted_from_the_log_is_found_no_more(there):
    there.log.append([LogEntry("s1", "gold", None), LogEntry("s2", "gold", None)])
    there.log.storage.rows("DELETE FROM log WHERE session_id = 's1'")
    assert [each.session_id for each in there.log.search("gold")] == ["s2"]


# --- texts ---


def test_texts_are_found_by_meaning_nearest_first(there):
    about = [
        Chunk(FORGE.id, "anvil and forge", None),
        Chunk(GRIM.id, "a debt of gold", ()),
        Chunk(ELARA.id, "unknown words", None),
    ]
    there.chunks.add(about)
    first, second, third = there.chunks.search("the forge and its anvil")
    assert first.chunk == about[0] and first.similarity > 0.99 and third.similarity <= second.similarity < 0.5
    assert [each.similarity for each in there.chunks.search("who?")] == [0, 0, 0], (
        "a text of unknown words is like none"
    )
    assert len(there.chunks.search("gold", 1)) == 1


def test_a_text_is_put_in_the_place_of_one_with_its_id_and_goes_with_its_entity(there):
    old, other = Chunk(FORGE.id, "anvil", None), Chunk(GRIM.id, "gold", None)
    there.chunks.add([old, other])
    there.chunks.add([Chunk(ELARA.id, "debt", (GRIM.id,), old.id)])
    assert {
        (each.chunk.entity_id, each.chunk.text, each.chunk.audience) for each in there.chunks.search("gold")
    } == {(ELARA.id, "debt", (GRIM.id,)), (GRIM.id, "gold", None)}
    there.world.delete_entity(ELARA.id)
    assert texts(each.chunk for each in there.chunks.search("gold")) == ["gold"]
    there.chunks.delete(other.id)
    assert there.chunks.search("gold") == ()
    with pytest.raises(BadInput, match=f"there is no chunk {other.id}"):
        there.chunks.delete(other.id)


def test_texts_are_added_all_or_none(there):
    for odd in (Chunk(NOBODY, "gold", None), Chunk(GRIM.id, "gold", (NOBODY,))):
        with pytest.raises(BadInput, match=f"there is no entity {NOBODY}"):
            there.chunks.add([Chunk(GRIM.id, "gold", None), odd])
    assert there.chunks.search("gold") == ()
    there.chunks.add([])


def test_vectors_of_another_embedder_are_not_compared(there):
    other = lsa([Document("1", "anvil gold"), Document("2", "gold debt")])
    late = SemanticIndex(there.world, other)
    there.chunks.add([Chunk(GRIM.id, "gold", None)])
    assert late.search("gold") == ()
    for ask in (lambda: SemanticIndex(there.world, other), lambda: late.add([Chunk(GRIM.id, "gold", None)])):
        with pytest.raises(BadInput, match="vectors of another embedder than lsa: open it with that one"):
            ask()


# --- where they are kept ---


@every(
    ("make", "message"),
    [
        (lambda: LogEntry("s1", " ", None), "the text of an entry is blank"),
        (
            lambda: LogEntry("s1", "hush", GRIM.id),
            "'ids' is a list",
        ),
        (lambda: LogEntry("s1", "hush", ("Grim",)), "the id of an entity is a UUID"),
        (lambda: Chunk(GRIM.id, "a\0b", None), "holds a NUL"),
        (lambda: Chunk("Grim", "gold", None), "the id of an entity is a UUID"),
        (lambda: ContextRanking(hops=0), "hops must be 1 or more"),
        (lambda: ContextRanking(hops=10**9), "hops must be 1 or more, at most 100"),
        (lambda: ContextRanking(limit=0), "limit must be 1 or more"),
        (lambda: ContextRanking(weight=2), "the weight of similarity is a number from 0 to 1"),
        (lambda: SessionLog("town.db"), "layers lie on an NpcWorld"),
    ],
)
def test_what_fits_no_layer_is_refused(make, message):
    with pytest.raises(BadInput, match=message):
        make()
