"""A memory that questions share: what one taught, the next begins with, and what was retracted is not read
again.
"""

from __future__ import annotations

import re
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

import kgot_lab as lab
from benchmarks.competence.plain_facts import PlainFacts
from benchmarks.competence.simulated import UNCHECKED, Simulated
from benchmarks.competence.worlds import World, chain_world
from kgot_lab.errors import BadInput, LLMError, ToolFailed
from kgot_lab.graph.changes import supports_of
from kgot_lab.llm.recorded import Recorder, Scripted
from kgot_lab.loop.events import Asked, Event, Started, ToolReturned
from kgot_lab.loop.limits import LOCAL, REFERENCE
from kgot_lab.loop.persistence import (
    KnownSources,
    graph_from_claims,
    initial_graph,
    learn_run,
    nearest_facts,
    open_memory_session,
    without_retracted,
)
from kgot_lab.loop.trace import Trace, load_run
from kgot_lab.memory.claims.claim import Claim, Span
from kgot_lab.memory.claims.claims import Claims, open_claims
from kgot_lab.memory.claims.review import ClaimReview
from kgot_lab.memory.sqlite_tables import SQLiteClaims
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME, SAYS_SENTENCE
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import Result, TextTool, Tool
from kgot_lab.types import Document, Triple

ONE, TWO = chain_world(6, 1), chain_world(6, 2)


def looking(world: World, found: int = 2) -> Tool:
    return search(world.documents, bm25(world.documents), k=found)


def asked(path, world: World, number: int = 0, **more) -> Trace:
    """A question of a world, asked with a memory."""
    with PlainFacts() as store:
        question, model = world.gold.chains[number].question, more.pop("model", Simulated(world.gold))
        return asked_in(store, question, looking(world), model, path, **more)


def asked_in(store, question: str, tool, model, path, limits=UNCHECKED, **more) -> Trace:
    """A question asked with a memory, its graph in this store."""
    return lab.ask(question, tool, model, preset=limits, store=store, memory=path, **more)


def of(kind: type[Event], run: Trace) -> list[Event]:
    return [event for event in run.events if isinstance(event, kind)]


def remembered(path) -> str:
    with open_claims(path, new=False) as claims:
        return claims.graph_hash(claims=True)


def remembered_sources(path) -> set[str]:
    with open_claims(path, new=False) as claims:
        return {claim.source for by in claims.claims_of(claims.facts()).values() for claim in by}


# --- the second time ---


@pytest.mark.parametrize("limits", [UNCHECKED, LOCAL, REFERENCE], ids=lambda limits: limits.preset)
@pytest.mark.parametrize("world", [ONE, TWO], ids=["one hop", "two hops"])
def test_the_same_question_again_is_answered_with_fewer_calls_and_leaves_the_same_memory(
    tmp_path, world, limits
):
    path = tmp_path / "memory.db"
    first = asked(path, world, limits=limits)
    kept = remembered(path)
    second = asked(path, world, limits=limits)
    assert first.answer == second.answer == world.gold.chains[0].answer
    assert len(of(Asked, second)) < len(of(Asked, first))
    assert not of(ToolReturned, second)
    assert of(ToolReturned, first)
    assert remembered(path) == kept and second.about["memory"]["learnt"]["new"] == 0


def test_what_an_answer_rests_on_is_told_as_new_the_first_time_and_as_old_the_second(tmp_path):
    before = datetime.now(UTC)
    first = asked(tmp_path / "memory.db", ONE).about["memory"]
    with open_claims(tmp_path / "memory.db", new=False) as claims:
        learnt = {(fact.subject, fact.relation, fact.object) for fact in claims.facts()}
    second = asked(tmp_path / "memory.db", ONE).about["memory"]
    assert first["new"] and not first["old"] and second["old"] and not second["new"]
    sentences = {each["object"] for each in first["new"] if each["relation"] == SAYS_SENTENCE}
    assert sentences and sentences <= {each["object"] for each in second["old"]}
    assert {(each["subject"], each["relation"], each["object"]) for each in second["old"]} <= learnt
    for each in second["old"]:
        assert before <= datetime.fromisoformat(each["since"]) <= datetime.now(UTC)
        assert each["sources"] and set(each["sources"]) <= {page.id for page in ONE.documents}


def test_a_recording_of_both_times_gives_the_same_answers_and_the_same_memory(tmp_path):
    recorder = Recorder(Simulated(ONE.gold), tmp_path / "recording.jsonl")
    live = [asked(tmp_path / "live.db", ONE, model=recorder).answer for _ in range(2)]
    recording = lab.connect(f"recorded:{tmp_path / 'recording.jsonl'}")
    again = [asked(tmp_path / "again.db", ONE, model=recording).answer for _ in range(2)]
    assert live == again and remembered(tmp_path / "live.db") == remembered(tmp_path / "again.db")


def test_a_sentence_is_a_claim_of_its_document_at_its_place_and_a_fact_read_from_it_names_the_model(tmp_path):
    run = asked(tmp_path / "memory.db", ONE)
    texts = {page.id: page.text for page in ONE.documents}
    with open_claims(tmp_path / "memory.db") as claims:
        found = [claim for each in claims.claims_of(claims.facts()).values() for claim in each]
        assert {claim.fact.relation for claim in found} >= {SAYS_SENTENCE, MENTIONS_NAME}
        for claim in found:
            by_rule = claim.fact.relation in (SAYS_SENTENCE, MENTIONS_NAME)
            assert texts[claim.source][claim.span.start : claim.span.end] == claim.span.text
            assert claim.said_by == ("" if by_rule else Simulated(ONE.gold).name)
            assert (claim.confidence == 1) is by_rule
        assert [change.by for change in claims.log()] == [f"run {run.run}"]


def test_a_memory_is_the_graph_that_the_run_left(tmp_path):
    with PlainFacts() as store:
        question = TWO.gold.chains[0].question
        asked_in(store, question, looking(TWO), Simulated(TWO.gold), tmp_path / "memory.db")
        left = {(edge.type, s) for edge in store.graph().edges for s in supports_of(edge.properties)}
        with open_claims(tmp_path / "memory.db") as claims:
            graph = initial_graph(claims, "").graph
        assert {(edge.type, s) for edge in graph.edges for s in supports_of(edge.properties)} == left
        assert len(graph.edges) == len(store.graph().edges)


def test_another_question_begins_with_what_the_first_one_taught(tmp_path):
    asked(tmp_path / "memory.db", ONE)
    run = asked(tmp_path / "memory.db", ONE, 1)
    assert of(Started, run)[0].start and run.answer == ONE.gold.chains[1].answer


def test_a_memory_answers_without_documents(tmp_path):
    first = asked(tmp_path / "memory.db", ONE)
    with PlainFacts() as store:
        run = asked_in(store, first.question, None, Simulated(ONE.gold), tmp_path / "memory.db")
    assert run.answer == first.answer
    with pytest.raises(BadInput, match="nothing to take facts from"):
        lab.ask(first.question, None, Scripted(_never), memory=tmp_path / "empty.db")


# --- two at once, and stops ---


def test_two_questions_at_once_lose_nothing(tmp_path):
    path = tmp_path / "memory.db"
    runs = []
    for number in (0, 1):
        with PlainFacts() as store:
            question = ONE.gold.chains[number].question
            runs.append(lab.ask(question, looking(ONE), Simulated(ONE.gold), preset=UNCHECKED, store=store))
    with (
        open_memory_session(path, runs[0].question) as one,
        open_memory_session(path, runs[1].question) as other,
    ):
        assert one.begun.facts == other.begun.facts == 0, "neither knows of the other"
        one.learn(runs[0])
        other.learn(runs[1])
    with Claims(SQLiteClaims()) as after:
        for run in reversed(runs):
            learn_run(after, run)
        assert remembered(path) == after.graph_hash(claims=True)


def test_a_run_that_is_stopped_leaves_nothing_and_the_same_call_goes_on_and_learns(tmp_path):
    path, trace = tmp_path / "memory.db", tmp_path / "run.jsonl"
    with pytest.raises(LLMError, match="no more"):
        asked(path, ONE, model=_Failing(Simulated(ONE.gold), after=1), trace=trace)
    with open_claims(path) as claims:
        assert not claims.log()
    gone_on = asked(path, ONE, trace=trace)
    assert gone_on.answer == ONE.gold.chains[0].answer and gone_on.about["memory"]["learnt"]["new"]
    assert load_run(trace).finished


def _never(_):
    raise AssertionError("no model is asked")


class _Failing:
    """A model that answers so many times and no more."""

    def __init__(self, llm, after: int):
        self.name, self._llm, self._left = llm.name, llm, after

    def __call__(self, prompt):
        if not self._left:
            raise LLMError("no more")
        self._left -= 1
        return self._llm(prompt)


def test_a_run_is_learnt_once_and_not_again_where_it_was_erased_since(tmp_path):
    run = asked(tmp_path / "memory.db", ONE)
    with open_claims(tmp_path / "memory.db") as claims:
        for fact in claims.facts():
            claims.erase_fact(fact)
        assert learn_run(claims, run).learnt.new == 0 and not claims.facts()


# --- retraction ---


def test_a_retracted_source_names_the_answer_and_is_not_used_by_the_next_question(tmp_path):
    path = tmp_path / "memory.db"
    first = asked(path, ONE)
    rests_on = asked(path, ONE).about["memory"]["old"]
    (source,) = {source for each in rests_on if first.answer in each["object"] for source in each["sources"]}
    with open_claims(path) as claims:
        fallen = claims.retract_source(source)
    assert [(answer.id, answer.text) for answer in fallen.answers] == [(first.question, first.answer)]
    next_one = asked(path, ONE, model=Scripted(lambda _: "unknown"))
    told = [document.id for returned in of(ToolReturned, next_one) for document in returned.sources]
    supports = {
        s.source for edge in of(Started, next_one)[0].start.edges for s in supports_of(edge.properties)
    }
    assert source not in told and source not in supports and told
    with open_claims(path) as claims:
        assert source not in {
            claim.source for by in claims.claims_of(claims.facts()).values() for claim in by
        }
        claims.undo(fallen.change)
    assert asked(path, ONE).answer == first.answer


def test_what_was_retracted_is_not_learnt_again_from_the_same_sentence(tmp_path):
    path = tmp_path / "memory.db"
    run = asked(path, ONE)
    with open_claims(path) as claims:
        fact = next(fact for fact in claims.facts() if fact.relation not in (SAYS_SENTENCE, MENTIONS_NAME))
        claims.retract_fact(fact)
        learnt = learn_run(claims, Trace("another", "", run.events))
        assert learnt.learnt.left == 1 and not claims.holds(fact)


def test_what_an_answer_rests_on_and_was_retracted_meanwhile_is_not_told_as_new(tmp_path):
    path = tmp_path / "memory.db"
    run = asked(path, ONE)
    with open_claims(path) as claims:
        rests_on = {fact for fact in claims.facts() if claims.answers_on(fact)}
        for source in claims.sources():
            claims.retract_source(source)
        learnt = learn_run(claims, Trace("another", "", run.events))
    assert rests_on and set(learnt.unheld) == rests_on and not learnt.new and not learnt.old


def test_another_text_under_the_id_of_one_that_was_read_is_a_source_of_its_own(tmp_path):
    path, other = tmp_path / "memory.db", chain_world(6, 1, seed=9)
    assert {page.id for page in ONE.documents} == {page.id for page in other.documents}
    asked(path, ONE)
    first = remembered_sources(path)
    met = asked(path, other).about["memory"]["remarks"]
    new = remembered_sources(path) - first
    apart = {source for source in new if re.fullmatch(r".+@[0-9a-f]{8}", source)}
    assert apart and {source.partition("@")[0] for source in apart} <= first
    assert {line.split()[0] for line in met} >= {source.partition("@")[0] for source in apart}
    assert asked(path, other, 1).answer == other.gold.chains[1].answer
    assert remembered_sources(path) >= first | new
    assert not {source for source in remembered_sources(path) if source.count("@") > 1}
    with open_claims(path) as claims:
        for source in first:
            claims.retract_source(source)
    assert remembered_sources(path) >= apart and not remembered_sources(path) & first
    assert asked(path, other).answer == other.gold.chains[0].answer


def test_a_document_of_which_a_part_was_written_again_is_the_same_and_said_to_have_changed():
    text = "Ada was born in London. Bob was born in Rome."
    with Claims(SQLiteClaims()) as claims:
        spans = [Span(0, 23, text[:23]), Span(24, 45, text[24:])]
        claims.learn([Claim(Triple("x", "says", span.text), "notes.md#1", span) for span in spans])
        sources = KnownSources(claims)
        for same in (text, text.replace(" ", "\n"), f"News. {text}"):
            assert sources.distinguish_sources(Document("notes.md#1", same)).id == "notes.md#1"
            assert not sources.remarks
        changed = Document("notes.md#1", text.replace("Rome", "Paris"))
        assert sources.distinguish_sources(changed) == changed
    assert "notes.md#1 has changed: 1 of 2 sentences" in sources.remarks["notes.md#1"]


def test_a_tool_leaves_out_what_was_retracted_and_finds_nothing_where_that_is_all():
    pages = (Document("a", "Ada was born.", "Ada"), Document("b", "Bob was born.", "Bob"))
    tool = TextTool(
        "search", "Finds.", {"query": "words"}, lambda query: Result("[1] Ada: both", pages), finds="query"
    )
    (careful,) = without_retracted([tool], {"a"})
    assert careful(query="born") == Result("[1] Bob Bob was born.", pages[1:]) and careful.finds == "query"
    (nothing,) = without_retracted([tool], {"a", "b"})
    with pytest.raises(ToolFailed, match="was retracted"):
        nothing(query="born")


# --- what a question begins with ---


def test_of_a_large_memory_the_facts_near_the_question_are_taken_and_those_that_they_lead_to():
    facts = [
        *(Triple(f"Thing {number}", "lies in", f"Place {number}") for number in range(50)),
        Triple("Mira Tolland", "works for", "Harrow Brewing"), Triple("Harrow Brewing", "founded in", "1984"), Triple("1984", "was", "dry"),
    ]  # fmt: skip
    near = nearest_facts(facts, "When was the company of Mira Tolland founded?", 3)
    assert near[0].subject == "Mira Tolland" and set(near) == set(facts[-3:])
    with Claims(SQLiteClaims()) as claims:
        claims.learn([Claim(fact, "page") for fact in facts])
        begun = initial_graph(claims, "When was the company of Mira Tolland founded?", max_facts=3)
        assert (begun.facts, begun.held, str(begun)) == (3, 53, "3 of 53 facts")
        assert {edge.target for edge in begun.graph.edges} == {"Harrow Brewing", "1984", "dry"}


def test_a_fact_that_several_sources_claim_has_them_all_and_a_sentence_has_a_node_a_source():
    sentence, fact = "Ada was born in London.", Triple("Ada", "born in", "London")
    said = Triple("Ada", SAYS_SENTENCE, sentence)
    span = Span(0, len(sentence), sentence)
    with Claims(SQLiteClaims()) as claims:
        claims.learn([Claim(each, source, span) for each in (fact, said) for source in ("d1", "d2")])
        claims.learn(Claim(Triple(sentence, MENTIONS_NAME, "London"), "d1", span))
        graph = graph_from_claims(claims.claims_of(claims.facts()))
    by_type = {
        type: [edge for edge in graph.edges if edge.type == type]
        for type in ("born in", SAYS_SENTENCE, MENTIONS_NAME)
    }
    assert [{s.source for s in supports_of(edge.properties)} for edge in by_type["born in"]] == [{"d1", "d2"}]
    assert {edge.target for edge in by_type[SAYS_SENTENCE]} == {"Ada §1", "Ada §2"}
    assert [(edge.source, edge.target) for edge in by_type[MENTIONS_NAME]] == [("Ada §1", "London")]


def test_at_an_earlier_time_a_question_sees_what_was_believed_then_and_teaches_nothing(tmp_path):
    path = tmp_path / "memory.db"
    asked(path, ONE)
    then = datetime.now(UTC)
    with Claims(SQLiteClaims(path), now=lambda: then + timedelta(days=1)) as claims:
        for source in claims.sources():
            claims.retract_source(source)
        kept = claims.graph_hash(claims=True)
    with open_claims(path) as claims:
        run = asked(claims.as_of(then, then), ONE)
    assert run.answer == ONE.gold.chains[0].answer and run.about["memory"]["old"]
    assert not of(ToolReturned, run)
    assert remembered(path) == kept
    with open_claims(path) as claims:
        assert not claims.facts()


def test_a_fact_that_nothing_says_waits_for_review(tmp_path):
    from support.loop_script import FEW, call, scripted, votes

    tool = TextTool(
        "search",
        "Finds.",
        {"query": "words"},
        lambda query: Result("It says nothing of the kind."),
        finds="query",
    )
    model = scripted(
        vote=votes(*"IIIRRR"), tools=call(), parse={"answer": "Lagos"},
        write={"statements": ['add("Nigeria", "capital", "Lagos")']},
    )  # fmt: skip
    run = lab.ask("What is the capital of Nigeria?", tool, model, preset=FEW, memory=tmp_path / "memory.db")
    assert run.about["memory"]["learnt"] | {"change": None} == {
        "change": None,
        "new": 1,
        "known": 0,
        "back": 0,
        "queued": 1,
        "left": 0,
    }
    assert not run.about["memory"]["new"]
    assert run.about["memory"]["unheld"] == [{"subject": "Nigeria", "relation": "capital", "object": "Lagos"}]
    with open_claims(tmp_path / "memory.db") as claims:
        (waiting,) = ClaimReview(claims).queue()
        assert not claims.facts()
        assert waiting.claim.source == "search(query='Ada Lovelace')"
        assert waiting.claim.said_by == "scripted"


# --- what is refused ---


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "is a folder"),
        ("notes.txt", "not an SQLite file"),
        ("other.db", "something else made"),
        ("bolt://host/db", "at postgresql://"),
    ],
)
def test_what_is_no_memory_is_refused_before_a_model_is_asked(tmp_path, name, why):
    (tmp_path / "notes.txt").write_text("These are notes and no memory. " * 100)
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE mine (x)")
    held = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(BadInput, match=why):
        asked(name if "://" in name else tmp_path / name, ONE, model=Scripted(_never))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == held


def test_a_store_that_holds_a_graph_beside_a_memory_and_a_time_before_there_is_one_are_refused(tmp_path):
    asked(tmp_path / "memory.db", ONE)
    with PlainFacts() as store:
        store.write(store.dialect.add([(Triple("a", "b", "c"), {})]))
        with pytest.raises(BadInput, match="holds a graph"):
            asked_in(store, "Who?", looking(ONE), Scripted(_never), tmp_path / "memory.db")
    with (
        pytest.raises(BadInput, match="no memory at"),
        open_memory_session(tmp_path / "none.db", "Who?", at=datetime.now(UTC)),
    ):
        pass
