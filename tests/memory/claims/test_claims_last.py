"""Claims that last, in a file or in PostgreSQL: erased to the last byte, kept through kills, shared by
threads and processes (for files: tests/faults).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from random import Random

import pytest
from support import claiming_script
from support.saying import fact, inferred, said, year

from kgot_lab.errors import BadInput, StoreUnavailable
from kgot_lab.memory.claims.claim import Claim, Span
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.review import ClaimReview
from kgot_lab.types import Triple

CANARY = "canary-5f3a"


def learn_with_canary(claims: Claims) -> None:
    """A canary in every place that an erasure has to reach, and facts that are to stay."""
    review = ClaimReview(claims)
    claims.learn([said("Ada born_in London", f"{i}") for i in range(50)])
    span = Span(0, 9, f"said {CANARY} again")
    claims.learn(said(f"{CANARY} born_in London", "secret", said_by=CANARY, span=span, valid_from=year(2000)))
    claims.learn(
        inferred(f"Ada knows {CANARY}", f"{CANARY} born_in London", "Ada born_in London", source="notes")
    )
    claims.learn(Claim(Triple("Ada", "wrote", f"{'x' * 100_000}{CANARY}"), "secret"))
    claims.learn(
        [said("Ada knows Charles", "secret", span=Span(3, 5, CANARY)), said("Ada knows Charles", "letters")]
    )
    claims.note_answer("q", f"It is {CANARY}.", [fact(f"{CANARY} born_in London")])
    claims.merge("The bird", CANARY)
    claims.unmerge(CANARY)
    claims.merge(CANARY, "Somebody")
    waiting = said(f"{CANARY} is here", "secret", confidence=0.5)
    claims.learn(waiting)
    review.override(waiting.id, object="there")
    claims.undo(claims.retract_source("secret").change)


def test_an_erased_source_leaves_no_byte_in_the_file_or_the_tables(place):
    with place.opened() as claims, place.opened() as other:
        learn_with_canary(claims)
        assert other.holds(fact("Ada knows Charles")) and place.files_with(CANARY)
        erased = claims.erase_source("secret", by="Grace")
        assert (erased.claims, erased.answers) == (6, 1) and place.files_with(CANARY) == []
        assert claims.facts() == other.facts() == (fact("Ada born_in London"), fact("Ada knows Charles"))
        last = claims.log()[-1]
        assert (last.action, last.by) == ("erase", "Grace")
    assert place.files_with(CANARY) == [] and place.files_with("born_in")


def test_an_erased_fact_takes_what_rests_on_it_alone_and_its_answers_with_it(place):
    with place.opened() as claims:
        twice = [said(f"{CANARY} in London", source) for source in ("1", "2")]
        claims.learn([*twice, said("London in England", "1")])
        derived = inferred(f"{CANARY} in England", f"{CANARY} in London", "London in England")
        claims.learn([derived, said("x is y", "1")])
        claims.merge(CANARY, "bird")
        claims.note_answer("q1", f"{CANARY}!", [fact(f"{CANARY} in England")])
        claims.note_answer("q2", "England.", [fact("London in England")])
        erased = claims.erase_fact(fact("bird in London"))
        assert (erased.facts, erased.claims, erased.answers) == (2, 3, 1) and place.files_with(CANARY) == []
        assert claims.facts() == (fact("London in England"), fact("x is y"))
        assert [answer.id for answer in claims.retract_fact(fact("London in England")).answers] == ["q2"]
        assert claims.erase_fact(fact("no such fact")).change is None


def test_undo_says_what_was_erased_and_restores_the_rest(place):
    with place.opened() as claims:
        learnt = claims.learn([said("Ada is here", "1"), said(f"{CANARY} is here", "1")])
        fallen = claims.retract_source("1")
        erased = claims.erase_fact(fact(f"{CANARY} is here"))
        restored = claims.undo(fallen.change)
        assert restored.risen == (fact("Ada is here"),)
        assert restored.erased == 1
        assert "1 part erased since" in str(restored)
        with pytest.raises(BadInput, match="which nothing brings back"):
            claims.undo(erased.change)
        assert claims.undo(learnt.change).erased == 1 and place.files_with(CANARY) == []


def test_bytes_that_an_interrupted_erasure_left_go_when_the_place_is_opened_again(place):
    with place.opened() as claims:
        claims.learn([said(f"{CANARY} is {i}") for i in range(300)])
        claims.storage.scrub = lambda: None  # as when the process ends here
        claims.erase_source("doc")
    with place.opened() as claims:
        assert claims.facts() == () and place.files_with(CANARY) == []


def test_everything_is_there_when_the_place_is_opened_again(place):
    with place.opened() as claims:
        claims.learn(Claim(Triple("Ada", "wrote", "notes " * 200_000), "book"))
        claims.learn(
            said(
                "Ada knows Charles",
                "b",
                span=Span(1, 2, "x"),
                said_by="Byron",
                valid_from=year(1),
                valid_until=year(9999),
            )
        )
        before, told = claims.graph_hash(claims=True), claims.supports_of(fact("Ada knows Charles"))
    with place.opened() as claims:
        assert claims.graph_hash(claims=True) == before
        assert claims.supports_of(fact("Ada knows Charles")) == told


@pytest.mark.extended
def test_two_processes_that_write_a_thousand_times_each_lose_nothing(postgres):
    command = [sys.executable, claiming_script.__file__, *postgres.arguments]
    writers = [
        subprocess.Popen([*command, source, "1000"], stdout=subprocess.DEVNULL) for source in ("one", "two")
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    with postgres.opened() as claims:
        found = {each.subject for each in claims.facts()}
        assert found == {f"{source}-{i}" for source in ("one", "two") for i in range(1000)}
        assert [each.change for each in claims.log()] == list(range(1, 2001))


@pytest.mark.extended
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_kills_in_the_middle_of_writing_lose_nothing_that_was_acknowledged(postgres):
    rng = Random(0)
    command = [sys.executable, claiming_script.__file__, *postgres.arguments, "forks", "1000000"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as launcher:
        before = acknowledged = 0
        for round in range(20):
            launcher.stdin.write(f"w{round}\n")
            writer = int(launcher.stdout.readline())
            lines = [launcher.stdout.readline() for _ in range(rng.randrange(6))]
            os.kill(writer, signal.SIGKILL)
            lines += iter(launcher.stdout.readline, "ended\n")
            # a server may still be at what the writer asked last
            with (
                postgres.opened() as claims,
                claims.storage.changing(),
            ):
                kept = claims.facts()
            of_round = sum(each.subject.startswith(f"w{round}-") for each in kept)
            assert [int(line) for line in lines] == list(range(len(lines))) and len(lines) <= of_round
            assert len(kept) == before + of_round
            before, acknowledged = len(kept), acknowledged + len(lines)
        launcher.stdin.close()
    assert acknowledged


def test_threads_may_share_a_memory(place):
    with place.opened() as claims:
        threads = [
            threading.Thread(target=lambda i=i: [claims.learn(said(f"t{i} is n{j}")) for j in range(20)])
            for i in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(claims.facts()) == 80


def test_a_closed_memory_and_one_of_the_parent_process_say_so(place):
    claims = place.opened()
    claims.learn(said("a is b"))
    if sys.platform != "win32":
        results = multiprocessing.get_context("fork").SimpleQueue()
        child = multiprocessing.get_context("fork").Process(target=lambda: results.put(_complaint(claims)))
        child.start()
        child.join()
        assert "was opened in another process" in results.get()
    claims.close()
    with pytest.raises(BadInput, match="was closed: open it again"):
        claims.facts()


def _complaint(claims: Claims) -> str:
    try:
        return str(claims.facts())
    except StoreUnavailable as error:
        return str(error)
