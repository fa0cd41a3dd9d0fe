"""Related questions one after the other: no reply is asked for twice however often it is stopped, and a
folder keeps to its plan.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.waiting import AMPLE, until

from kgot_lab.benchmark.questions.question import Question
from kgot_lab.errors import BadInput, LLMError
from kgot_lab.experiments.competence.simulated import Competence, Simulated
from kgot_lab.experiments.competence.worlds import chain_world
from kgot_lab.experiments.pays.chains import GRAPHS_OF_A_CHAIN, Chained
from kgot_lab.llm.recorded import prompt_digest
from kgot_lab.loop.limits import PATHS
from kgot_lab.loop.trace import load_run
from kgot_lab.retrieval.bm25 import bm25
from kgot_lab.tools.search import search

WORLD = chain_world(3, 2)
CHAIN = tuple(
    Question(f"q{number}", chain.question, chain.answer) for number, chain in enumerate(WORLD.gold.chains)
)
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "lasting_graph.py"


class Stopping:
    """The simulated model, which is stopped when it has given so many replies; `given` counts them by their
    prompts.
    """

    def __init__(self, name: str = ""):
        self._llm, self.given, self.left = Simulated(WORLD.gold, Competence()), Counter(), 0
        self.name = name or self._llm.name

    def __call__(self, prompt):
        if not self.left:
            raise LLMError("stopped")
        self.left -= 1
        self.given[prompt_digest(prompt, self.name)] += 1
        return self._llm(prompt)


def chained(folder, llm, limits=PATHS) -> Chained:
    return Chained(folder, llm, [search(WORLD.documents, bm25(WORLD.documents), k=2)], limits)


@pytest.mark.parametrize("graph", GRAPHS_OF_A_CHAIN)
def test_no_reply_is_asked_for_twice_when_every_second_reply_is_followed_by_a_stop(tmp_path, graph):
    whole = Stopping()
    whole.left = 1000
    expected = list(chained(tmp_path / "whole", whole).answers(CHAIN, graph))
    llm, stops, receipts = Stopping(), 0, []
    while not receipts:
        llm.left = 2
        try:
            receipts = list(chained(tmp_path / "stopped", llm).answers(CHAIN, graph))
        except LLMError:
            stops += 1
    assert stops >= 3 and llm.given == whole.given and set(llm.given.values()) == {1}
    assert [(row.id, row.predicted, row.calls, row.correct) for row in receipts] == [
        (row.id, row.predicted, row.calls, row.correct) for row in expected
    ]
    assert all(row.correct for row in receipts)
    traces = sorted((tmp_path / "stopped").rglob("traces/*"))
    assert [path.name for path in traces if ".start." not in path.name] == [
        "q0.jsonl",
        "q1.jsonl",
        "q2.jsonl",
    ]
    assert all(
        load_run(path).finished for path in traces if ".start." not in path.name
    )  # with the graphs that they began with
    again = Stopping()
    assert list(chained(tmp_path / "stopped", again).answers(CHAIN, graph)) == receipts and not again.given


def test_the_seconds_of_an_answer_outlive_a_stop_at_a_later_question(tmp_path):
    llm = Stopping()
    llm.left = 1000
    answers = chained(tmp_path, llm).answers(CHAIN, "lasting")
    first = next(answers)
    answers.close()
    assert next(chained(tmp_path, llm).answers(CHAIN, "lasting")).seconds == first.seconds


KILLED = """
import sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_chains import CHAIN, Stopping, chained
class Held(Stopping):
    def __call__(self, prompt):
        if not self.left:
            Path(sys.argv[1], "held").touch()
            threading.Event().wait()
        reply = super().__call__(prompt)
        with Path(sys.argv[1], "given").open("a") as file:
            file.write(next(reversed(self.given)) + "\\n")
        return reply
llm = Held()
llm.left = 2
for receipt in chained(Path(sys.argv[1], "out"), llm).answers(CHAIN, "lasting"):
    pass
"""


def test_killed_twice_in_the_same_question_it_keeps_the_replies_of_both(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for _ in range(3):
        (tmp_path / "held").unlink(missing_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path), str(Path(__file__).parent)], env=environment
        )
        until(
            lambda process=process: (tmp_path / "held").exists() or process.poll() is not None,
            "the third reply is held",
        )
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=AMPLE) == -signal.SIGKILL
    given = (tmp_path / "given").read_text().split()
    llm = Stopping()
    llm.left = 1000
    list(chained(tmp_path / "out", llm).answers(CHAIN, "lasting"))
    assert len(given) == len(set(given)) == 6 and not set(given) & set(llm.given)


# --- the plan
# -------------------------------------------------------------------------------------------------------------


def test_a_folder_keeps_to_the_model_the_limits_and_the_chains_it_was_begun_with(tmp_path):
    chained(tmp_path, Stopping()).keep_plan([CHAIN], 7)
    chained(tmp_path, Stopping()).keep_plan([CHAIN], 7)
    for another, chains, seed, said in (
        (chained(tmp_path, Stopping("another")), [CHAIN], 7, r"model\.name is .* there and \"another\" now"),
        (
            chained(tmp_path, Stopping(), PATHS.but(hops=False)),
            [CHAIN],
            7,
            r"limits\.hops is .* there and false now",
        ),
        (chained(tmp_path, Stopping()), [CHAIN, CHAIN], 7, "chains is 1 there and 2 now"),
        (chained(tmp_path, Stopping()), [CHAIN], 8, "seed is 7 there and 8 now"),
    ):
        with pytest.raises(BadInput, match=f"another plan: .*{said}.*--folder DIR"):
            another.keep_plan(chains, seed)


def test_answers_without_a_plan_are_refused(tmp_path):
    (tmp_path / "fresh").mkdir()
    with pytest.raises(BadInput, match=r"has no plan.json but holds fresh"):
        chained(tmp_path, Stopping()).keep_plan([CHAIN], 7)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--table"], "there is no out/plan.json: python benchmarks/lasting_graph.py makes it"),
        (["--chains", "0"], "--chains must be 1 or more"),
        (["--model", "nosuch"], "unknown model 'nosuch'"),
        (["--table", "--chains", "2"], "leave --chains and --model out"),
    ],
)
def test_the_benchmark_says_what_cannot_be_done_in_one_line(monkeypatch, capsys, tmp_path, words, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(BENCHMARK), "--folder", "out", *words])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(BENCHMARK), run_name="__main__")
    told = capsys.readouterr().err
    assert ended.value.code == 2 and told.count("\n") == 1 and said in told and not Path("out").exists()
