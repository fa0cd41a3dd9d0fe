"""Where experts and conversations are kept, in SQLite and in PostgreSQL alike: ids, owners, chains, opinions,
trials.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from support.claim_places import InPostgres

from kgot_lab.errors import BadInput
from kgot_lab.experts.expert import changed_config, expert_config
from kgot_lab.experts.repository import AlreadyExists, NotFound, hash_messages, open_experts
from kgot_lab.experts.service import expert_summary

NUMBER = count()
START = datetime(2026, 11, 1, tzinfo=UTC)
COOK = {"name": "Cook", "kg_db_id": "cookbook", "persona": {"name": "Py Guru"}}


@pytest.fixture(params=["memory", "file", "postgres"])
def tables(request, tmp_path):
    clock = (START + timedelta(seconds=second) for second in count())
    more = {}
    place = {"memory": ":memory:", "file": tmp_path / "experts.db"}.get(request.param)
    if place is None:
        at = InPostgres(request.getfixturevalue("postgres_url"), f"experts {next(NUMBER)}")
        place, more = at.url, {"namespace": at.namespace}
    opened = open_experts(place, now=lambda: next(clock), **more)
    yield opened
    opened.close()


def cook(tables, **more):
    return tables.add_expert(expert_config({**COOK, **more}))


def test_an_id_is_made_of_the_persona_and_never_comes_again(tables):
    first, second = cook(tables), cook(tables)
    assert (first.id, second.id) == ("expert_py_guru", "expert_py_guru_2")
    assert tables.add_expert(first.config, copy_of=first.id).id == "expert_py_guru_copy_1"
    assert tables.remove_expert(second.id, conversations=False) == ()
    assert cook(tables).id == "expert_py_guru_3"
    assert tables.add_expert(first.config, copy_of=first.id).id == "expert_py_guru_copy_2"
    with pytest.raises(AlreadyExists):
        tables.add_expert(first.config, id=second.id)
    with pytest.raises(NotFound):
        tables.expert(second.id)
    assert next(expert.id for expert in tables.experts()) == first.id
    copy = first.id
    for _ in range(30):
        copy = tables.add_expert(first.config, copy_of=copy).id
    assert len(copy) <= 200, "a copy of a copy of a copy can still be asked for"


def test_a_change_merges_objects_replaces_lists_and_takes_away_what_is_null(tables):
    retrieval = {"alpha": 0.3, "boost_types": ["requires"]}
    made = cook(tables, retrieval=retrieval, playbook_skills=["a", "b"], description="old")
    changed = tables.change_expert(
        made.id,
        lambda before: changed_config(
            before,
            {
                "retrieval": {"delta": 0.2, "boost_types": ["enables"]},
                "playbook_skills": ["c"],
                "description": None,
            },
        ),
    )
    retrieval = changed.retrieval
    assert (retrieval.alpha, retrieval.delta, retrieval.boost_types) == (0.3, 0.2, ("enables",))
    assert changed.playbook_skills == ("c",)
    assert changed.description == ""
    assert changed.updated_at > made.updated_at
    assert tables.expert(made.id) == changed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kg_db_id": None}, "at least one graph"),
        ({"retrieval": {"alpha": 0, "beta": 0, "gamma": 0, "delta": 0}}, "weighs more than 0"),
        ({"retrieval": {"alpha": float("nan")}}, "retrieval.alpha"),
        ({"retrieval": {"colour": "red"}}, "retrieval.colour"),
        ({"dimension_filters": {"token_efficiency": {"min": 0.9, "max": 0.2}}}, "token_efficiency"),
        ({"kg_db_ids": ["a", "a"]}, "twice"),
        ({"kg_db_ids": ["../etc/passwd"]}, "letters, digits"),
        ({"cross_edges": [{"source": "other:x", "type": "t", "target": "cookbook:y"}]}, "none of its graphs"),
        ({"graph_weights": {"other": 2}}, "none of its graphs"),
        ({"persona": {"name": "a\x00b"}}, "control characters"),
        ({"schema_version": 2}, "schema_version"),
        ("no object", "JSON object"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_and_nothing_changes(tables, change, said):
    made = cook(tables)
    with pytest.raises(BadInput, match=said):
        tables.change_expert(made.id, lambda before: changed_config(before, change))
    assert tables.expert(made.id) == made


def test_several_graphs_come_before_the_single_one():
    assert expert_config({**COOK, "kg_db_ids": ["a", "b"]}).graphs == ("a", "b")
    assert expert_config(COOK).graphs == ("cookbook",)


def test_a_conversation_is_its_owners_and_its_experts_alone(tables):
    one, other = cook(tables), cook(tables)
    mine = tables.begin_conversation(one.id, "ann", "What is caching?")
    tables.add_message(mine, "user", "What is caching?")
    tables.add_message(mine, "assistant", "Keeping things.", {"intent": None})
    assert [message.content for message in tables.messages(mine)] == ["What is caching?", "Keeping things."]
    assert tables.conversation(mine, one.id, "ann").message_count == 2
    for expert, owner in ((one.id, "bob"), (other.id, "ann")):
        with pytest.raises(NotFound):
            tables.conversation(mine, expert, owner)
        with pytest.raises(NotFound):
            tables.remove_conversation(mine, expert, owner)
        assert tables.conversations(expert, owner) == ((), 0)
        assert tables.earlier_messages(expert, owner, "", 10) == ()
    assert tables.earlier_messages(one.id, "ann", mine, 10) == ()
    assert len(tables.earlier_messages(one.id, "ann", "another", 10)) == 2
    assert tables.activity("ann")[one.id][0] == 1 and tables.activity("bob") == {}
    assert expert_summary(one, tables.activity("ann")[one.id])["conversation_count"] == 1


def test_a_conversation_is_found_by_what_was_said_in_it(tables):
    expert = cook(tables).id
    said = [("user", "What is caching?"), ("assistant", "Keeping things.")]
    id = tables.begin_conversation(expert, "ann", "What is caching?")
    for role, content in said:
        tables.add_message(id, role, content)
    assert tables.find_conversation(expert, "ann", said) == id
    earlier = [("user", "What is caching?"), ("assistant", " Keeping things.\n")]
    assert tables.find_conversation(expert, "ann", earlier) == id
    assert tables.find_conversation(expert, "bob", said) is None
    assert tables.find_conversation(expert, "ann", said[:1]) is None
    assert tables.find_conversation(expert, "ann", []) is None
    assert hash_messages([("user", "ab"), ("assistant", "c")]) != hash_messages(
        [("user", "a"), ("assistant", "bc")]
    )


def test_what_was_last_said_to_an_expert_is_told_of_everybody(tables):
    expert = cook(tables).id
    for owner in ("ada", "bob", "carol"):
        tables.add_message(tables.begin_conversation(expert, owner, "It is cheap."), "user", "It is cheap.")
    told = [message[::2] for message in tables.user_messages(expert, START, 2)]
    assert told == [("carol", "It is cheap."), ("bob", "It is cheap.")]
    assert tables.user_messages(expert, START + timedelta(days=1), 2) == ()


def test_experts_come_page_by_page_the_oldest_first(tables):
    ids = [cook(tables).id for _ in range(3)]
    first, more = tables.experts_page(None, 2)
    rest, none = tables.experts_page(first[-1].id, 2)
    assert [each.id for each in (*first, *rest)] == ids and (more, none) == (True, False)


def test_conversations_come_page_by_page_the_last_first(tables):
    expert = cook(tables).id
    ids = [tables.begin_conversation(expert, "ann", f"question {number} " + "x" * 200) for number in range(5)]
    first, total = tables.conversations(expert, "ann", limit=2)
    rest, _ = tables.conversations(expert, "ann", limit=9, offset=2)
    assert total == 5 and [each.id for each in (*first, *rest)] == ids[::-1] and len(first[0].preview) == 80
    tables.remove_conversation(ids[0], expert, "ann")
    assert tables.conversations(expert, "ann")[1] == 4
    assert len(tables.remove_expert(expert, conversations=True)) == 4


def test_what_a_deleted_expert_leaves_stays_its_owners(tables):
    gone, stays = cook(tables), cook(tables)
    pairs = [(expert.id, owner) for expert in (gone, stays) for owner in ("ann", "bob")]
    ids = [tables.begin_conversation(*pair, "hello") for pair in pairs]
    assert tables.owned_conversations("ann", expert_deleted=True) == ((), 0)
    tables.remove_expert(gone.id, conversations=False)
    found, total = tables.owned_conversations("ann", expert_deleted=True)
    assert total == 1 and [(each.id, each.expert_id) for each in found] == [(ids[0], gone.id)]
    found, total = tables.owned_conversations("ann", limit=1)
    assert total == 2 and [each.id for each in found] == [ids[2]]
    tables.remove_conversation(ids[0], gone.id, "ann")
    assert tables.owned_conversations("ann", expert_deleted=True) == ((), 0)
    assert tables.owned_conversations("bob", expert_deleted=True)[1] == 1


def test_an_opinion_is_of_an_answer_and_the_last_one_counts(tables):
    expert = cook(tables).id
    id = tables.begin_conversation(expert, "ann", "Q")
    asked = tables.add_message(id, "user", "Q")
    answered = tables.add_message(id, "assistant", "A", {"intent": "x"})
    where = {"conversation": id, "expert": expert, "owner": "ann"}
    for wrong in (asked.id, "msg_none"):
        with pytest.raises(NotFound):
            tables.rate_answer(wrong, 1, **where)
    with pytest.raises(NotFound):
        tables.rate_answer(answered.id, 1, **{**where, "owner": "bob"})
    tables.rate_answer(answered.id, 1, **where)
    tables.rate_answer(answered.id, -1, **where)
    (judged,) = tables.judged_answers(expert)
    assert (judged.thumb, judged.message, judged.about) == (-1, answered.id, {"intent": "x"})
    assert judged.thought_at > judged.at


def test_one_trial_of_an_expert_goes_on_at_a_time(tables):
    expert = cook(tables).id
    first = tables.add_trial(expert, {"plan": {}})
    with pytest.raises(BadInput, match="going on"):
        tables.add_trial(expert, {"plan": {}})
    assert tables.running_trial(expert).id == first.id
    tables.end_trial(first.id)
    assert tables.running_trial(expert) is None and tables.trials(expert)[0].ended is not None
    assert tables.add_trial(expert, {"plan": {"a": 1}}).id != first.id and len(tables.trials(expert)) == 2


def test_what_was_said_is_refused_once_its_conversation_is_gone(tables):
    expert = cook(tables).id
    id = tables.begin_conversation(expert, "ann", "Q")
    tables.remove_conversation(id, expert, "ann")
    with pytest.raises(NotFound):
        tables.add_message(id, "assistant", "A")
    assert tables.messages(id) == ()
