"""The command line: whole runs against a model server on this computer, stopped and gone on with, and every
kind of bad input.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from base64 import b64encode
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from support.command_line import (
    ADA,
    ASK,
    FIRST,
    INSERT,
    PAPERS,
    QUESTION,
    REST,
    SEARCH,
    WRITE,
    Ran,
    asking,
    replies,
)
from support.every import every
from support.openai_server import Answer, openai_server, refuses, says
from support.waiting import AMPLE, until

from kgot_lab.cli.app import main
from kgot_lab.cli.configuration import Configuration
from kgot_lab.cli.resume import command_line
from kgot_lab.cli.terminal import DEMO_DOCUMENTS, actual_model_name, new_trace_path, run_documents
from kgot_lab.io.files import bundled_path
from kgot_lab.llm.local import PACKAGE
from kgot_lab.llm.model_file import MODEL_VARIABLE
from kgot_lab.loop.events import Answered, Asked, Started, ToolReturned
from kgot_lab.loop.replay.replay import same_event
from kgot_lab.loop.trace import Trace, load_run
from kgot_lab.stores.files import read_graph
from kgot_lab.viz.external_requests import find_external_requests

pytestmark = pytest.mark.usefixtures("here")

# --- a question ---


def test_a_question_is_answered_shown_and_kept(kgot_lab, server):
    ran = kgot_lab(*asking(server, "--trace", "run.jsonl", "--html", "pages/run.html"))
    assert ran.code == 0, ran.err
    assert "Answer: London" in ran.out
    assert "Ada Lovelace --[born in]--> London" in ran.out
    assert "[ada.md#1]" in ran.out
    assert load_run("run.jsonl").finished and "London" in Path("pages/run.html").read_text()
    assert all(body["model"] == "m" for body in server.bodies)


@pytest.mark.extended
def test_a_certified_answer_is_told_as_far_as_its_sources_hold_it_also_when_the_run_goes_on(kgot_lab, server):
    ran = kgot_lab(*asking(server, "--trace", "run.jsonl", "--certify", "--max-calls", "5"))
    assert ran.code == 1 and "Certificate" not in ran.out
    ran = kgot_lab(*ran.again[1:], "--max-calls", "50")
    certified = json.loads(kgot_lab("certify", "run.jsonl", "--json").out)
    fact = certified["facts"][0]
    assert ran.code == 0 and f"Answer: {certified['told']}" in ran.out, ran.err
    assert (
        f"Certificate: {certified['ruling']}\n    {fact['state']}: {fact['subject']} – {fact['relation']}"
        in ran.out
    )
    assert json.loads(kgot_lab("resume", "run.jsonl", "--json").out)["certificate"] == certified


def test_an_answer_that_no_sentence_says_is_withheld_where_it_is_to_be_certified(kgot_lab, here):
    Path("my papers/ada.md").write_text("Ada Lovelace wrote to Babbage about engines.\n")
    with openai_server(*replies(*FIRST), *replies(*REST)) as server:
        plain = kgot_lab(*asking(server, "--trace", "plain.jsonl"))
    with openai_server(*replies(*FIRST), *replies(*REST)) as server:
        certified = kgot_lab(
            *asking(server, "--trace", "run.jsonl", "--certify", "--html", "run.html", "--memory", "told.db")
        )
    assert (
        "Answer: London" in plain.out
        and "Answer: No answer is given: no sentence that it cites contains" in certified.out
    )
    assert "Certificate: withheld\n    missing: " in certified.out
    as_json = kgot_lab("resume", "run.jsonl", "--json")
    again = kgot_lab("resume", "plain.jsonl", "--certify", "--html", "plain.html")
    assert json.loads(as_json.out)["answer"] is None
    for told in (certified.out, as_json.out, again.out, kgot_lab("certify", "run.jsonl").out):
        assert "London" not in told, (
            "a withheld answer is not on standard output, whichever way it is asked for"
        )
    for page in ("run.html", "plain.html"):
        assert "No answer is given: no sentence that it cites" in Path(page).read_text()
        assert "answer is London" not in Path(page).read_text()


def test_json_is_one_object_on_standard_output_and_the_progress_is_elsewhere(kgot_lab, server):
    ran = kgot_lab(*asking(server, "--json"))
    result = json.loads(ran.out)
    assert ran.out.count("\n") == 1 and result["answer"] == "London" and not result["forced"]
    assert result["evidence"] == ["Ada Lovelace --[born in]--> London"]
    assert result["calls"] == len(server.bodies) == 11
    said = {"document": "ada.md#1", "sentence": "Ada Lovelace was born in London in 1815."}
    assert result["supports"] == [[said]]
    assert load_run(result["trace"]).finished and "wrote " in ran.err and "voted " in ran.err


@pytest.mark.extended
def test_ctrl_c_keeps_the_run_and_says_the_command_that_goes_on(kgot_lab, here):
    kept_to = [
        "--trace",
        "a run.jsonl",
        *"--recording recording.jsonl --max-calls 50 --max-seconds 900 --max-dollars 0".split(),
    ]
    with openai_server(*replies(*FIRST), Answer(sleep=AMPLE), *replies(*REST)) as server:
        heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # a job in the background is started deaf to it
        words = [
            sys.executable,
            "-c",
            f"{heard}; from kgot_lab.cli.app import main; main()",
            *asking(server, *kept_to),
        ]
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        until(lambda: len(server.bodies) >= 5 or process.poll() is not None, "the fifth request is made")
        kept = load_run("a run.jsonl").events
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: everything in the foreground is told
        out, err = process.communicate(timeout=AMPLE)
        ran = Ran(process.returncode, out, err)
        assert ran.code == 130
        assert "Traceback" not in err
        assert "Stopped. Everything so far is in a run.jsonl." in err
        assert sum(isinstance(event, Asked) for event in kept) == 4 and isinstance(kept[-1], ToolReturned)
        assert load_run("a run.jsonl").events == kept
        assert ran.again[:5] == ["kgot-lab", "resume", "a run.jsonl", "--model", f"{server.url}#m"]
        assert ran.again[5:] == [*kept_to[2:-3], "900.0", "--max-dollars", "0.0"]
        resumed = kgot_lab(*ran.again[1:])
        assert resumed.code == 0 and "Answer: London" in resumed.out
        # only the call that was cut off is made again
        assert len(server.bodies) == len(FIRST) + 1 + len(REST)
    assert load_run("a run.jsonl").finished and kgot_lab("verify", "a run.jsonl").code == 0
    assert len(Path("recording.jsonl").read_text().splitlines()) == 1 + len(FIRST) + len(REST)


def test_several_questions_are_answered_in_turn_each_in_a_trace_of_its_own(kgot_lab):
    with openai_server(*replies(*FIRST, *REST, *FIRST, *REST)) as server:
        ran = kgot_lab(*ASK[:2], "And where is she from?", *ASK[2:], "--model", f"{server.url}#m")
    assert ran.code == 0 and ran.out.count("Answer: London") == 2
    asked = {load_run(name).question for name in re.findall(r"run: (\S+)", ran.out)}
    assert asked == {QUESTION, "And where is she from?"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["Who", "founded", "it?"], "between quotation marks"),
        (["Who?", "Where was she?", "--trace", "run.jsonl"], "--trace"),
        (["Who?", "Where was she?", "--save-graph", "graph.jsonl"], "--save-graph"),
        (["谁？", "在哪里？", "--html", "run.html"], "--html"),
    ],
)
def test_several_questions_are_no_words_of_one_and_share_no_file(kgot_lab, words, told):
    ran = kgot_lab("ask", *words, *PAPERS, "--model", "openai:m")
    assert ran.code == 1 and told in ran.err and not Path("run.jsonl").exists()


def test_a_run_out_of_budget_says_where_it_is_kept_and_goes_on_with_its_files(kgot_lab, here):
    (here / "notes").mkdir()
    (here / "notes" / "ada notes.md").write_text(ADA)
    attached = {"calls": [{"tool": "inspect_file", "arguments": {"file": "ada notes.md"}}]}
    with openai_server(*replies(INSERT, INSERT, INSERT, attached, *REST)) as server:
        options = [
            "--attach",
            "notes/ada notes.md",
            *f"--model {server.url}#m --trace run.jsonl --html run.html --json".split(),
        ]
        ran = kgot_lab("ask", QUESTION, *options, "--max-calls", "4")
        assert ran.code == 1
        assert ran.out == ""
        assert "4 of 4 calls are spent" in ran.err
        assert "is in run.jsonl" in ran.err
        forgotten = kgot_lab("resume", "run.jsonl", "--model", f"{server.url}#m")
        assert forgotten.code == 1 and "--attach" in forgotten.err and "ada notes.md" in forgotten.err
        assert ran.again[1:4] == ["resume", "run.jsonl", "--attach"] and len(server.bodies) == 4
        resumed = kgot_lab(*ran.again[1:], "--max-calls", 50)
        assert json.loads(resumed.out)["answer"] == "London"
        assert Path("run.html").exists()
        assert len(server.bodies) == 4 + len(REST)


IN_SPARQL = (
    "INSERT DATA { :Ada_Lovelace :born_in :London }",
    "SELECT ?place WHERE { :Ada_Lovelace :born_in ?place }",
)
IN_CYPHER = (
    "MERGE (a:Person {id: 'Ada Lovelace'}) MERGE (b:City {id: 'London'}) MERGE (a)-[:`born in`]->(b)",
    "MATCH (a {id: 'Ada Lovelace'})-[r]->(b) RETURN b.id AS place",
)


@pytest.mark.extended
@pytest.mark.parametrize(("kind", "said"), [("sparql_embedded", IN_SPARQL), ("cypher_embedded", IN_CYPHER)])
def test_a_run_in_another_language_is_kept_stopped_resumed_and_verified(kgot_lab, kind, said):
    write, read = said
    retrieve = {"choice": "RETRIEVE", "text": read}
    rest = [retrieve, retrieve, retrieve, {"needed": False}, {"answer": "London"}, {"answer": "London"}]
    with openai_server(*replies(*FIRST, {"statements": [write]}, *rest)) as server:
        ran = kgot_lab(
            *asking(server, "--store", kind, "--at", "graph.log", "--trace", "run.jsonl", "--max-calls", "5")
        )
        assert ran.code == 1
        resumed = kgot_lab(*ran.again[1:], "--max-calls", 50)
        assert "Answer: London" in resumed.out, resumed.err
        assert kgot_lab("verify", "run.jsonl").code == 0
        refused = kgot_lab(*asking(server, "--store", kind, "--at", "graph.log"))
        assert refused.code == 1 and "already holds a graph" in refused.err
        assert len(server.bodies) == 5 + len(rest)


def test_a_server_that_fails_in_the_middle_costs_nothing_that_was_answered(kgot_lab):
    with openai_server(*replies(*FIRST), refuses(401, "who are you"), *replies(*REST)) as server:
        ran = kgot_lab(*asking(server))
        assert ran.code == 1
        assert ran.err.splitlines()[-1].startswith("error: ")
        assert "who are you" in ran.err.splitlines()[-1]
        assert "Answer: London" in kgot_lab(*ran.again[1:]).out


def test_a_run_of_the_command_line_goes_on_at_its_address_and_another_must_name_its_server_again(
    kgot_lab, server
):
    kgot_lab(*asking(server, "--max-calls", "4", "--trace", "run.jsonl"))
    lines = without_checks(Path("run.jsonl").read_text()).splitlines(keepends=True)
    head = json.loads(lines[0])
    del head["about"]["configuration"]  # as in a run that was begun in Python
    Path("other.jsonl").write_text("".join([json.dumps(head) + "\n", *lines[1:]]))
    ran = kgot_lab("resume", "other.jsonl", *PAPERS)
    assert ran.code == 1 and "with --model, a server as http://HOST:PORT/v1#MODEL" in ran.err
    assert kgot_lab("resume", "run.jsonl", "--max-calls", "50").code == 0


@pytest.mark.extended
@pytest.mark.parametrize(
    "from_the_start", [True, False], ids=["a recording from the start", "a recording from the first stop on"]
)
def test_a_run_that_stops_every_few_calls_ends_with_a_recording_of_all_its_replies(
    kgot_lab, server, from_the_start
):
    ran = kgot_lab(
        *asking(
            server,
            *"--trace run.jsonl --max-calls 3".split(),
            *(["--recording", "recording.jsonl"] if from_the_start else []),
        )
    )
    stops = 0
    while ran.code == 1:
        stops += 1
        # the budget is the run's, so each goes on with more
        assert f"{3 * stops} of {3 * stops} calls are spent" in ran.err
        more = [
            "--max-calls",
            str(3 * stops + 3),
            *([] if "--recording" in ran.again else ["--recording", "recording.jsonl"]),
        ]
        ran = kgot_lab(*ran.again[1:], *more)
    assert ran.code == 0 and stops == 3 and len(server.bodies) == 11
    again = kgot_lab(*ASK, *"--model recorded:recording.jsonl --trace again.jsonl".split())
    assert again.code == 0 and len(server.bodies) == 11
    assert all(map(same_event, load_run("run.jsonl").events, load_run("again.jsonl").events))


@pytest.mark.extended
def test_a_recording_that_ends_asks_for_a_model_and_never_for_itself(kgot_lab, server):
    kgot_lab(*asking(server, "--trace", "short.jsonl", "--max-calls", "6"))
    ran = kgot_lab(*ASK, "--model", "recorded:short.jsonl", "--trace", "run.jsonl")
    for _ in range(2):
        assert ran.code == 1
        assert "Go on with a model that can answer in place of MODEL: kgot-lab resume run.jsonl" in ran.err
        ran = kgot_lab("resume", "run.jsonl", *PAPERS, "--model", "recorded:short.jsonl")
    words = shlex.split(
        ran.err.strip().partition("in place of MODEL: ")[2].replace("MODEL", f"{server.url}#m")
    )
    assert "Answer: London" in kgot_lab(*words[1:]).out and len(server.bodies) == 11


@pytest.mark.extended
def test_a_run_goes_on_with_recorded_replies_after_those_it_has_had(kgot_lab, finished_run):
    finished_run.put("whole.jsonl")
    kgot_lab(*ASK, *"--model recorded:whole.jsonl --trace run.jsonl --max-calls 6".split())
    ran = kgot_lab(
        *"resume run.jsonl --documents".split(),
        "my papers",
        *"--model recorded:whole.jsonl --max-calls 50".split(),
    )
    assert ran.code == 0 and len(finished_run.server.bodies) == 11
    assert all(map(same_event, load_run("run.jsonl").events, load_run("whole.jsonl").events))


def test_a_budget_that_allows_no_call_at_all_is_not_offered_again(kgot_lab, server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    ran = kgot_lab(*ASK, *"--model openai:gpt-4o-mini --max-dollars 0.000001".split())
    assert ran.code == 1 and "Go on with a budget that allows the next call in place of MORE: " in ran.err
    assert "--max-dollars MORE" in ran.err and "1e-06" not in ran.err.partition("MORE: ")[2]


def test_two_new_runs_never_have_the_same_name():
    assert len({new_trace_path() for _ in range(50)}) == 50


def test_a_finished_run_says_which_options_it_does_not_use(kgot_lab, finished_run):
    finished_run.put()
    ran = kgot_lab("resume", "run.jsonl", "--model", "openai:gpt-4o", "--recording", "recording.jsonl")
    assert "nothing is left to do, and --model and --recording not used" in ran.err
    assert not Path("recording.jsonl").exists()


def test_a_finished_run_needs_no_model_to_be_resumed(kgot_lab, finished_run):
    finished_run.put()
    ran = kgot_lab("resume", "run.jsonl", "--json")
    assert json.loads(ran.out)["answer"] == "London"
    assert "nothing is left to do" in ran.err
    assert len(finished_run.server.bodies) == 11


def test_a_run_of_the_demo_goes_on_with_the_bundled_passages(here):
    run = Trace("r", "", (), {"documents": DEMO_DOCUMENTS})
    assert len(run_documents(run, None)) == 994 and len(run_documents(run, Path("my papers"))) == 2
    assert run_documents(Trace("r", "", ()), None) == []


def test_a_command_is_quoted_for_the_shell_and_says_only_what_was_given():
    said = command_line(
        "resume",
        Path("a run.jsonl"),
        documents=None,
        attach=["x y", "z"],
        json=True,
        unsafe=False,
        execution_model="openai:m",
    )
    assert said == "kgot-lab resume 'a run.jsonl' --attach 'x y' --attach z --json --execution-model openai:m"


@pytest.mark.extended
def test_two_models_share_the_work(kgot_lab, server):
    with openai_server(*replies(SEARCH, {"needed": False})) as other:
        server.answers[:] = replies(
            INSERT, INSERT, INSERT, *(reply for reply in REST if reply != {"needed": False})
        )
        server.answers.insert(7, replies({"needed": False})[0])
        ran = kgot_lab(
            *asking(server, "--execution-model", f"{other.url}#e", "--trace", "run.jsonl", "--max-calls", "3")
        )
        assert ran.code == 1 and other.url + "#e" in ran.again
        assert kgot_lab(*ran.again[1:], "--max-calls", 50).code == 0
        assert [body["model"] for body in other.bodies] == ["e"]


def run_apart(words: list[object], **options: Any) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, whose standard error is read."""
    code = [sys.executable, "-c", "from kgot_lab.cli.app import main; main()"]
    return subprocess.run(
        [*code, *map(str, words)], stderr=subprocess.PIPE, text=True, timeout=AMPLE, check=False, **options
    )


@pytest.mark.extended
def test_a_letter_that_the_terminal_does_not_have_does_not_end_the_run(here):
    with openai_server(*replies(*FIRST, *REST[:-2], {"answer": "倫敦"}, {"answer": "倫敦"})) as server:
        words = [sys.executable, "-c", "from kgot_lab.cli.app import main; main()", *asking(server)]
        western = {**os.environ, "PYTHONIOENCODING": "cp1252"}
        done = subprocess.run(words, capture_output=True, encoding="cp1252", timeout=AMPLE, env=western)
    assert done.returncode == 0 and "Answer: ??" in done.stdout


@pytest.mark.extended
@every("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@every(
    "words", [["--version"], ["--help"], [], ["show", bundled_path("traces/hotpotqa_demo.jsonl")]], ids=str
)
def test_output_that_cannot_be_written_is_one_line_and_exit_code_1(words, unbuffered):
    with Path("/dev/full").open("w") as full:
        done = run_apart(words, stdout=full, env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    assert (done.returncode, done.stderr) == (
        1,
        "error: the output could not be written: No space left on device\n",
    )


def test_a_reader_that_goes_away_is_told_nothing():
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        done = run_apart(["show", bundled_path("traces/hotpotqa_demo.jsonl")], stdout=gone)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.extended
def test_what_a_library_warns_of_is_a_note_told_once(here):
    (here / "cache").write_text("in the way")
    with openai_server(*replies(*FIRST, *REST)) as serving:
        done = run_apart(asking(serving), stdout=subprocess.PIPE)
    told = [line for line in done.stderr.splitlines() if "embedding cache" in line]
    assert done.returncode == 0, done.stderr
    assert len(told) == 1, done.stderr
    assert told[0].startswith("note: the embedding cache cannot be used now"), done.stderr
    assert "warnings.warn" not in done.stderr and "Warning" not in done.stderr


# --- bad input ---


def without_checks(trace: str) -> str:
    """A trace as somebody leaves it who changes it knowingly."""
    return re.sub(r',"check":"[0-9a-f]{16}"', "", trace)


def one_line(ran: Ran, *words: str) -> None:
    """The command failed with one line on standard error that holds these words, and printed nothing else."""
    assert ran.code == 1 and ran.out == "", ran
    last = ran.err.strip().splitlines()[-1]
    assert last.startswith("error: ") and all(word in last for word in words), last
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ask", "Q?", "--model", "openai:m"], ["--documents DIR", "--attach FILE"]),
        (["ask", "Q?", "--documents", "nowhere", "--model", "openai:m"], ["nowhere is not a folder"]),
        (["ask", "Q?", "--documents", "empty", "--model", "openai:m"], ["it is empty"]),
        (
            ["ask", "Q?", "--documents", "unreadable", "--model", "openai:m"],
            ["nothing in unreadable could be read", "data.bin: binary, not text"],
        ),
        (["ask", "Q?", *PAPERS, "--model", "opnai:m"], ["unknown model 'opnai'", "did you mean 'openai'"]),
        (["ask", "Q?", *PAPERS, "--model", "openai"], ["openai:MODEL"]),
        (["ask", "Q?", *PAPERS, "--model", "http://127.0.0.1:1/v1"], ["/v1#MODEL"]),
        (["ask", "Q?", *PAPERS, "--model", "openai:gpt-4o"], ["OPENAI_API_KEY"]),
        (["ask", "Q?", *PAPERS, "--model", "local:nothing.gguf"], ["nothing.gguf"]),
        (["ask", "Q?", *PAPERS], ["no such file" if find_spec(PACKAGE) else "pip install 'kgot_lab[local]'"]),
        (["find", "Q?", *PAPERS, *PAPERS], ["--documents is given 2 times", "give it once"]),
        (["memory", "m.db", "log", "--user", "a", "--user", "b"], ["--user is given 2 times"]),
        (["ask", " ", *PAPERS], ["the value after ask is blank: give one, or leave it out"]),
        (["ask", "Q?", "--documents", ""], ["the value after --documents is blank"]),
        (["ask", "Q?", "--documents="], ["the value after --documents is blank"]),
        (["export", ""], ["the value after export is blank"]),
        (["doctor", ""], ["the value after doctor is blank"]),
        (["mcp", "\t"], ["the value after mcp is blank"]),
        (["ask", "Q?", *PAPERS, "--preset", "lokal"], ["unknown preset", "did you mean 'local'"]),
        (["ask", "Q?", *PAPERS, "--format", "xml"], ["--format is default or gaia"]),
        (
            ["ask", "Q?", "--attach", "nothing.md", "--model", "http://127.0.0.1:1/v1#m"],
            ["not there: nothing.md"],
        ),
        (["ask", "Q?", *PAPERS, "--html", "my papers"], ["cannot write my papers"]),
        (["ask", "Q?", *PAPERS, "--html", "text.txt/page.html"], ["cannot write text.txt/page.html"]),
        (
            [
                *"ask Q? --documents".split(),
                "my papers",
                *"--trace text.txt --model http://127.0.0.1:1/v1#m".split(),
            ],
            ["exists already"],
        ),
        *[([command, "text.txt"], ["text.txt"]) for command in ("show", "verify", "resume")],
        *[
            ([command, "nothing.jsonl"], ["cannot read the trace nothing.jsonl"])
            for command in ("show", "verify", "resume")
        ],
        *[
            ([command, "my papers"], ["cannot read the trace my papers"])
            for command in ("show", "verify", "resume")
        ],
        *[([command, "head.jsonl"], ["do not begin with Started"]) for command in ("verify", "resume")],
        (["extract", "nowhere", "--model", "http://127.0.0.1:1/v1#m"], ["nowhere is not a folder"]),
        (["extract", "my papers", "--out", "text.txt"], ["text.txt exists already"]),
        (["model"], ["no such file"]),
    ],
    ids=lambda value: " ".join(value)[:60],
)
def test_bad_input_is_one_clear_line(kgot_lab, here, words, said):
    (here / "empty").mkdir()
    (here / "unreadable").mkdir()
    (here / "unreadable" / "data.bin").write_bytes(b"\x00\x01")
    (here / "text.txt").write_text("my own words\n")
    (here / "head.jsonl").write_text('{"trace": 1, "run": "r", "created": "", "version": "", "about": {}}\n')
    one_line(kgot_lab(*words), *said)
    assert (here / "text.txt").read_text() == "my own words\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--trace", "a.html", "--html", "a.html"], ["trace and html are the same file, a.html"]),
        (["--trace", "a.jsonl", "--recording", "./a.jsonl"], ["trace and recording are the same file"]),
        (["--recording", "a.html", "--html", "below/../a.html"], ["html and recording are the same file"]),
        (["--at", "a.log", "--trace", "a.log"], ["trace and at are the same file"]),
        (["--attach", "mine.html", "--html", "mine.html"], ["html and attach are the same file"]),
        (["--html", "a.jsonl"], ["--html a.jsonl does not end in .html"]),
        (["--html", "my papers/page.html"], ["is one of the documents"]),
        (["--max-calls", "-1"], ["--max-calls is 1 or more, not -1"]),
        (["--max-calls", "0"], ["--max-calls is 1 or more, not 0"]),
        (["--max-seconds", "0"], ["--max-seconds is more than 0"]),
        (["--max-dollars", "-0.5"], ["--max-dollars is 0 or more, not -0.5"]),
        (["--max-dollars", "nan"], ["--max-dollars is 0 or more, not nan"]),
    ],
    ids=lambda value: " ".join(value),
)
@pytest.mark.parametrize("name", ["ask", "resume"])
def test_no_file_is_written_over_another_and_no_budget_is_nonsense(
    kgot_lab, here, stopped_run, name, words, said
):
    (here / "mine.html").write_text("my own words\n")
    (here / "my papers" / "page.html").write_text("<p>my own words about Ada</p>\n")
    stopped_run.put()
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    if name == "ask":
        one_line(kgot_lab(*asking(stopped_run.server, *words)), *said)
    elif "--trace" in words:
        option, file = next(
            pair for pair in zip(words[::2], words[1::2], strict=True) if pair[0] != "--trace"
        )
        trace = file if file.endswith(".html") else "run.jsonl"
        Path(trace).write_bytes(Path("run.jsonl").read_bytes())
        before[here / trace] = Path(trace).read_bytes()
        one_line(
            kgot_lab("resume", trace, *PAPERS, option, trace), f"trace and {option[2:]} are the same file"
        )
    else:
        one_line(kgot_lab("resume", "run.jsonl", *PAPERS, *words), *said)
    assert before == {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    assert len(stopped_run.server.bodies) == 3


def test_a_shown_run_and_an_extracted_graph_are_not_written_over(kgot_lab, here, finished_run):
    finished_run.put("run.html")
    before = Path("run.html").read_bytes()
    one_line(kgot_lab("show", "run.html", "--html", "run.html"), "trace and html are the same file")
    model = ["--model", f"{finished_run.server.url}#m"]
    one_line(
        kgot_lab("extract", "my papers", *model, "--out", "g.jsonl", "--trace", "g.jsonl"),
        "trace and out are the same file",
    )
    one_line(
        kgot_lab("extract", "my papers", *model, "--trace", "x.jsonl", "--out", "graph.html"),
        "graph file",
        ".html",
    )
    assert Path("run.html").read_bytes() == before and not Path("g.jsonl").exists()


def test_a_model_that_says_nothing_useful_ends_in_one_line_and_the_run_is_kept(kgot_lab):
    with openai_server(says("lorem ipsum")) as server:
        ran = kgot_lab(*asking(server, "--preset", "local", "--trace", "run.jsonl"))
    assert ran.code == 1
    assert "lorem ipsum" in ran.err.splitlines()[-1]
    assert "is in run.jsonl" in ran.err.splitlines()[-1]
    assert isinstance(load_run("run.jsonl").events[0], Started)


def test_a_server_that_is_not_there_is_tried_in_view_and_then_given_up(kgot_lab, monkeypatch):
    monkeypatch.setattr("kgot_lab.llm.openai_compatible.random.uniform", lambda *_: 0.0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    ran = kgot_lab(*ASK, "--model", f"{address}#m")
    assert ran.code == 1
    assert "after 6 requests" in ran.err.splitlines()[-1]
    assert f"running at {address}" in ran.err
    assert ran.err.count("of 6, the next in") == 5


def test_a_run_that_is_to_be_approved_needs_a_terminal(kgot_lab):
    one_line(
        kgot_lab(*ASK, "--model", "http://127.0.0.1:9/v1#m", "--approve"), "--approve asks on the terminal"
    )


def test_a_damaged_trace_is_named_with_its_line(kgot_lab, here):
    (here / "bad.jsonl").write_text(
        '{"trace": 1}\n{"event": "Started", "nonsense": 1}\n{"event": "Nothing"}\n'
    )
    one_line(kgot_lab("show", "bad.jsonl"), "bad.jsonl, event 1")


def test_a_key_is_in_no_output_and_no_trace(kgot_lab, monkeypatch):
    key = "sk-verysecretverysecret"
    monkeypatch.setenv("KGOT_LAB_SERVER_KEY", key)
    with openai_server(refuses(401, f"the key {key} is wrong")) as server:
        ran = kgot_lab(*asking(server, "--trace", "run.jsonl"))
    assert server.headers[0]["authorization"].endswith(key)
    assert ran.code == 1 and key not in ran.out + ran.err + Path("run.jsonl").read_text()


def test_an_error_of_ours_still_gives_a_traceback(kgot_lab, monkeypatch):
    monkeypatch.setattr("kgot_lab.loop.trace.load_run", lambda _: 1 // 0)
    monkeypatch.setattr(sys, "argv", ["kgot-lab", "show", "x.jsonl"])
    with pytest.raises(ZeroDivisionError):
        main()


def test_an_option_that_is_not_there_and_no_command_at_all_show_the_way(kgot_lab):
    assert kgot_lab("ask", "--nothing").code == 2 and "Usage" in kgot_lab().out + kgot_lab().err
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", kgot_lab("--version").out)


# --- recorded runs ---


def test_the_demo_can_be_replayed_without_a_model(kgot_lab):
    ran = kgot_lab("demo", "--replay")
    assert ran.code == 0
    assert "Answer: " in ran.out
    assert "It rests on these facts" in ran.out
    assert "recorded 20" in ran.err
    assert stands_alone(Path("runs/demo.html").read_text())


def test_a_demo_without_a_model_says_why_and_replays(kgot_lab):
    ran = kgot_lab("demo")
    assert ran.code == 0 and "no live model" in ran.err and "Answer: " in ran.out


def test_a_demo_whose_page_cannot_be_written_has_shown_its_answer_and_says_so(kgot_lab, here):
    (here / "runs").write_text("in the way")
    ran = kgot_lab("demo", "--replay")
    assert ran.code == 0 and "Answer: Botswana" in ran.out
    assert ran.err.strip().splitlines()[-1].startswith("note: cannot write the page runs/demo.html: ")
    assert kgot_lab("show", bundled_path("traces/hotpotqa_demo.jsonl"), "--html", "runs/demo.html").code == 1


@pytest.mark.extended
@pytest.mark.parametrize("home", ["run.jsonl", "x" * 300], ids=["below a file", "a name that no disk takes"])
def test_a_home_that_cannot_be_used_is_named_in_one_line_and_the_demo_is_replayed(
    kgot_lab, monkeypatch, here, home
):
    pytest.importorskip("xllamacpp")
    monkeypatch.delenv(MODEL_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / home))
    (here / "run.jsonl").write_text("")
    ran = kgot_lab("demo")
    assert ran.code == 0 and "Answer: Botswana" in ran.out
    assert [
        line
        for line in ran.err.splitlines()
        if str(here / home) in line and MODEL_VARIABLE in line and line.startswith("no live model: ")
    ]
    ran = kgot_lab("model")
    told = ran.err.strip().splitlines()[-1]
    assert ran.code == 1 and told.startswith("error: ") and str(here / home) in told
    assert MODEL_VARIABLE in told


def test_a_recorded_run_is_shown_with_its_costs_and_as_a_page(kgot_lab):
    trace = bundled_path("traces/winter_storm.jsonl")
    ran = kgot_lab("show", trace, "--html", "storm.html", "--ledger")
    events = load_run(trace).events
    assert ran.code == 0
    assert next(event.text for event in events if isinstance(event, Answered)).split()[0] in ran.out
    assert f"all             {sum(isinstance(event, Asked) for event in events):6}" in ran.out
    assert stands_alone(Path("storm.html").read_text())


def test_a_question_is_answered_again_from_its_recording_and_from_its_trace_without_the_model(
    kgot_lab, server
):
    first = kgot_lab(*asking(server, "--trace", "run.jsonl", "--recording", "recording.jsonl"))
    asked = len(server.bodies)
    assert first.code == 0 and asked, first.err
    for number, recording in enumerate(("recording.jsonl", "run.jsonl")):
        ran = kgot_lab(*ASK, "--model", f"recorded:{recording}", "--trace", f"again{number}.jsonl")
        assert ran.code == 0 and "Answer: London" in ran.out, ran.err
        assert all(map(same_event, load_run("run.jsonl").events, load_run(f"again{number}.jsonl").events))
    assert len(server.bodies) == asked
    miss = kgot_lab("ask", "Who was Ada?", *PAPERS, "--model", "recorded:recording.jsonl")
    assert miss.code == 1 and "recording.jsonl has no reply" in miss.err and len(server.bodies) == asked


def test_a_recording_is_of_one_model(kgot_lab, server):
    refused = kgot_lab(*asking(server, "--recording", "recording.jsonl", "--execution-model", "openai:other"))
    assert refused.code == 1
    assert "a recording holds the replies of one model" in refused.err
    assert not Path("recording.jsonl").exists()


def test_a_recorded_run_is_asked_with_its_own_preset_and_a_small_model_along_paths():
    recorded = f"recorded:{bundled_path('traces/winter_storm.jsonl')}"
    assert Configuration(model=recorded).limits_for(actual_model_name(recorded)).preset == "local"
    assert Configuration().limits_for("local").preset == "paths"


def stands_alone(page: str) -> bool:
    """Whether a page loads nothing, and runs no script but the ones whose hash its own policy names."""
    runs = re.findall(r"<script(?! type=\"application/json\")[^>]*>(.*?)</script>", page, re.DOTALL)
    hashes = [
        f"&#x27;sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}&#x27;" for text in runs
    ]
    head = page[: page.find("</head>")]
    return (
        find_external_requests(page, beside=True) == ()
        and all(known in head for known in hashes)
        and "</html>" in page
    )


def test_a_page_that_loads_something_would_be_seen():
    assert stands_alone("<!DOCTYPE html><head></head><a href='#a'></html>")
    for loads in (
        '<img src="//x.org/a.png">',
        "<script>alert(1)</script>",
        '<link rel="stylesheet" href="style.css">',
    ):
        assert not stands_alone(f"<!DOCTYPE html><head></head>{loads}</html>")


@pytest.mark.parametrize("trace", ["hotpotqa_demo", "hotpotqa_two_hops", "winter_storm"])
def test_a_recorded_run_is_executed_again_in_the_sandbox_and_is_the_same(kgot_lab, trace):
    path = bundled_path(f"traces/{trace}.jsonl")
    ran = kgot_lab("verify", path)
    assert ran.code == 0 and ran.out == f"{len(load_run(path).events)} events, all identical\n", ran.err


def test_a_forged_run_is_found_out(kgot_lab, finished_run):
    finished_run.put()
    text = Path("run.jsonl").read_text()
    Path("forged.jsonl").write_text(
        text.replace('"rows":[{"subject":"Ada Lovelace"', '"rows":[{"subject":"Eve"')
    )
    assert Path("forged.jsonl").read_text() != text
    one_line(kgot_lab("verify", "forged.jsonl"), "is not as it was written")
    Path("forged.jsonl").write_text(without_checks(Path("forged.jsonl").read_text()))
    one_line(kgot_lab("verify", "forged.jsonl"), "differs", "Eve")


def test_a_limit_given_as_an_option_is_told_with_the_option_that_takes_it(kgot_lab):
    assert "--set steps=VALUE" in kgot_lab("ask", "Who?", "--steps", "3").err
    assert "--set" not in kgot_lab("find", "Who?", "papers", "--steps", "3").err


# --- a graph without a question ---


def test_a_graph_is_extracted_and_an_extraction_that_stopped_goes_on(kgot_lab):
    babbage = {"statements": ['add("Charles Babbage", "designed", "Analytical Engine")']}
    Path("out").mkdir()
    with openai_server(*replies(WRITE), refuses(401, "no"), *replies(babbage)) as server:
        ran = kgot_lab(
            "extract", "my papers", *f"--model {server.url}#m --out out/graph.jsonl --trace run.jsonl".split()
        )
        assert ran.code == 1 and not Path("out/graph.jsonl").exists()
        one_line(kgot_lab("resume", "run.jsonl"), "is an extraction")
        one_line(kgot_lab("verify", "run.jsonl"), "is an extraction")
        again = kgot_lab(*ran.again[1:])
        assert again.code == 0, again.err
        assert len(server.bodies) == 3  # Ada's passage is not asked about again
    graph = read_graph("out/graph.jsonl")
    assert {(edge.source, edge.type, edge.target) for edge in graph.edges} == {
        ("Ada Lovelace", "born in", "London"), ("Charles Babbage", "designed", "Analytical Engine"),
    }  # fmt: skip
    assert kgot_lab("show", "run.jsonl", "--html", "page.html").code == 0
    assert stands_alone(Path("page.html").read_text())
