"""How commands end that something stops: a signal, a reader that goes away, a full disk, a locked folder.
Each says how to go on.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from support.answering_server import answering_server, birthplace_questions, told_birthplaces
from support.command_line import FIRST, PAPERS, QUESTION, REST, WRITE, Ran, asking, begun, replies
from support.openai_server import openai_server, refuses
from support.waiting import AMPLE, until

from kgot_lab.loop.trace import load_run

pytestmark = pytest.mark.extended

posix = pytest.mark.skipif(os.name == "nt", reason="signals and limits of POSIX")
SMALL_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
from kgot_lab.cli.app import main
main()
"""


def limited(words: list[object], most: int) -> Ran:
    """How a command ends that can write no file larger than so many bytes, as on a disk that is full."""
    code = [sys.executable, "-c", SMALL_FILES, str(most), *map(str, words)]
    done = subprocess.run(code, capture_output=True, text=True, timeout=AMPLE, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


def question_set(folder: Path) -> list[object]:
    (folder / "born.jsonl").write_text("".join(json.dumps(row) + "\n" for row in birthplace_questions()))
    return ["questions", "born.jsonl", "--folder", "run", "--system", "zero-shot"]


# --- signals ---


@posix
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_that_ends_a_run_says_how_to_go_on(kgot_lab, here, name):
    with answering_server(lambda prompt: json.dumps(FIRST[0])) as server:
        server.hold_after(2)
        # a suite under nohup would hand its deafness on
        ends = partial(signal.signal, getattr(signal, name), signal.SIG_DFL)
        process = begun(asking(server, "--trace", "run.jsonl"), preexec_fn=ends)
        until(lambda: server.held or process.poll() is not None, "the third request waits")
        process.send_signal(getattr(signal, name))
        _, err = process.communicate(timeout=AMPLE)
    assert process.returncode == 128 + getattr(signal, name), err
    assert "Stopped. Everything so far is in run.jsonl." in err
    assert "kgot-lab resume run.jsonl" in err
    assert "Traceback" not in err


@posix
def test_what_nohup_has_a_program_ignore_stays_ignored(kgot_lab, here):
    with answering_server(lambda prompt: json.dumps(FIRST[0])) as server:
        server.hold_after(2)
        process = begun(
            asking(server, "--trace", "run.jsonl"),
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )
        until(lambda: server.held or process.poll() is not None, "the third request waits")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=AMPLE)
    assert process.returncode == 128 + signal.SIGTERM, err


@posix
def test_an_interrupted_fork_says_the_command_that_goes_on_with_it(kgot_lab, finished_run, here):
    finished_run.put()
    at = next(i for i, e in enumerate(load_run("run.jsonl").events) if type(e).__name__ == "ToolReturned")
    with answering_server(lambda prompt: json.dumps(FIRST[0])) as other:
        other.hold_after(0)
        told = ["--change", "Ada Lovelace was born in Paris.", *PAPERS, "--model", f"{other.url}#m"]
        process = begun(["fork", "run.jsonl", at, *told])
        until(lambda: other.held or process.poll() is not None, "the first request waits")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=AMPLE)
    ran = Ran(process.returncode, "", err)
    assert ran.code == 128 + signal.SIGTERM and "Stopped. Everything so far is in" in err, err
    assert ran.again == ["kgot-lab", "resume", f"run_fork_{at}.jsonl", *PAPERS, "--model", f"{other.url}#m"]
    with openai_server(*replies(*REST)) as last:
        resumed = kgot_lab(*ran.again[1:-1], f"{last.url}#m")
    assert resumed.code == 0 and "Answer: London" in resumed.out, resumed.err


# --- readers, pages and folders ---


def test_a_run_whose_reader_goes_away_says_where_it_is(server, here):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        code = [
            sys.executable,
            "-c",
            "from kgot_lab.cli.app import main; main()",
            *asking(server, "--trace", "run.jsonl"),
        ]
        done = subprocess.run(
            list(map(str, code)), stdout=gone, stderr=subprocess.PIPE, text=True, timeout=AMPLE, check=False
        )
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("error: the output could not be written")
    assert "is in run.jsonl" in last
    assert "kgot-lab resume run.jsonl" in last and "Traceback" not in done.stderr


def test_a_page_and_a_graph_that_could_not_be_written_are_made_again_without_asking(kgot_lab, here):
    def last_reply(body):
        Path("pages").rmdir()  # while the model answers
        Path("pages").write_text("in the way")
        return replies({"answer": "London"})[0]

    with openai_server(*replies(*FIRST, *REST[:-1]), last_reply) as server:
        ran = kgot_lab(*asking(server, "--trace", "run.jsonl", "--html", "pages/run.html"))
        assert ran.code == 1 and "Answer: London" in ran.out and "The whole run is in run.jsonl" in ran.err
        assert ran.err.strip().endswith("kgot-lab resume run.jsonl --html pages/run.html")
        Path("pages").unlink()
        asked = len(server.bodies)
        assert kgot_lab("resume", "run.jsonl", "--html", "pages/run.html").code == 0
        assert Path("pages/run.html").exists()
        assert len(server.bodies) == asked


def test_an_extracted_graph_that_could_not_be_written_is_made_again_without_asking(kgot_lab, here):
    def last_reply(body):
        Path("graphs").rmdir()  # while the model answers
        Path("graphs").write_text("in the way")
        return replies(WRITE)[0]

    Path("graphs").mkdir()
    with openai_server(*replies(WRITE), last_reply) as server:
        words = ["extract", "my papers", "--model", f"{server.url}#m", "--out", "graphs/g.jsonl"]
        ran = kgot_lab(*words, "--trace", "x.jsonl", "--recording", "r.jsonl")
        told = shlex.split(ran.err.strip().splitlines()[-1].split(" made by: ")[-1])
        assert ran.code == 1, ran.err
        assert "The whole run is in x.jsonl" in ran.err, ran.err
        assert told[:5] == ["kgot-lab", *words[:-2]], ran.err
        Path("graphs").unlink()
        Path("graphs").mkdir()
        assert kgot_lab(*told[1:]).code == 0 and Path("graphs/g-2.jsonl").exists()
        assert len(server.bodies) == 2


def test_a_folder_that_takes_no_trace_is_told_before_anything_is_asked(kgot_lab, server, here):
    Path("runs").write_text("in the way")
    for words in (asking(server), ["extract", "my papers", "--model", f"{server.url}#m"], ["demo"]):
        ran = kgot_lab(*words)
        assert ran.code == 1
        assert "Nothing was asked" in ran.err
        assert "--trace FILE" in ran.err
        assert "Everything so far" not in ran.err
    assert server.bodies == []


# --- a full disk ---


@posix
@pytest.mark.parametrize("most", [2_000, 6_000])
def test_questions_on_a_full_disk_end_in_one_line_and_go_on(kgot_lab, here, most):
    words = question_set(here)
    with answering_server(lambda prompt: told_birthplaces(prompt) + " " + "because " * 200) as server:
        ran = limited([*words, "--model", f"{server.url}#m"], most)
        last = ran.err.strip().splitlines()[-1]
        assert ran.code == 1 and "Traceback" not in ran.err, ran.err
        assert last.startswith("error: ")
        assert "File too large" in last
        assert "run/" in last
        assert "the same command goes on" in last
        assert kgot_lab(*words, "--model", f"{server.url}#m").code == 0


@posix
def test_an_ask_on_a_full_disk_ends_in_one_line_and_goes_on(kgot_lab, server, here):
    ran = limited(asking(server, "--trace", "run.jsonl"), 8_000)
    last = ran.err.strip().splitlines()[-1]
    assert ran.code == 1
    assert "File too large" in last
    assert "kgot-lab resume run.jsonl" in last
    assert "Traceback" not in ran.err


@posix
def test_a_benchmark_on_a_full_disk_ends_in_one_line_and_goes_on(kgot_lab, here):
    told = [{"_id": f"d{i}", "title": f"Person {i}", "text": f"Born in place {i}."} for i in range(60)]
    rows = [json.dumps(row) for row in told]
    asked = [json.dumps({"_id": f"q{i}", "text": f"Where was person {i} born?"}) for i in range(60)]
    set_ = here / "mine"
    (set_ / "qrels").mkdir(parents=True)
    (set_ / "corpus.jsonl").write_text("\n".join(rows))
    (set_ / "queries.jsonl").write_text("\n".join(asked))
    judged = "".join(f"q{number}\td{number}\t1\n" for number in range(60))
    (set_ / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    words = ["bench", "mine", "--only", "bm25", "--folder", "out"]
    ran = limited(words, 3_000)
    last = ran.err.strip().splitlines()[-1]
    assert ran.code == 1, ran.err
    assert "Traceback" not in ran.err, ran.err
    assert "cannot write the results" in last, ran.err
    assert "File too large" in last, ran.err
    assert "the same command goes on" in last and kgot_lab(*words).code == 0


def test_an_untraced_file_that_is_empty_is_named(kgot_lab, here):
    words = question_set(here)
    with answering_server(told_birthplaces) as server:
        kgot_lab(*words, "--limit", 1, "--model", f"{server.url}#m")
        Path("run/untraced.json").write_text("")
        ran = kgot_lab(*words, "--limit", 1, "--model", f"{server.url}#m")
    assert ran.code == 1 and "untraced.json" in ran.err and "delete it" in ran.err
    assert "Traceback" not in ran.err


# --- a model that may not be asked ---


@pytest.mark.parametrize("status", [401, 403])
def test_questions_stop_at_a_key_that_is_refused(kgot_lab, here, status):
    words = question_set(here)
    with openai_server(refuses(status, "who are you?")) as server:
        ran = kgot_lab(*words, "--model", f"{server.url}#m")
        assert ran.code == 1
        assert len(server.bodies) == 1
        assert "may not be asked" in ran.err
        assert "the same command goes on" in ran.err


def test_a_question_that_a_server_refuses_among_others_is_no_reason_to_stop(kgot_lab, here):
    words = question_set(here)
    answer, refused = replies({"answer": "London"})[0], refuses(403, "flagged")
    with openai_server(answer, refused, answer) as server:
        ran = kgot_lab(*words, "--model", f"{server.url}#m")
    assert ran.code == 1
    assert len(server.bodies) == 4
    assert "1 question ended in an error; the same command asks for it again" in ran.err


# --- little memory, other locales ---


LITTLE_MEMORY = """
import os, resource, sys
from kgot_lab.cli.app import main
if sys.argv.pop(1) == "in a search":
    import kgot_lab.tools.search
    held = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (held + 160_000_000,) * 2)
else:
    import kgot_lab.cli.question_setup
    kgot_lab.cli.question_setup.check_engine = lambda chosen: bytearray(1 << 60)
main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of the address space, and how much is taken")
@pytest.mark.parametrize("where", ["in a search", "anywhere"])
def test_too_little_memory_is_one_sentence_and_no_answer_is_guessed(server, here, where):
    pytest.importorskip("onnxruntime")
    code = [sys.executable, "-c", LITTLE_MEMORY, where, *asking(server, "--trace", "run.jsonl")]
    done = subprocess.run(list(map(str, code)), capture_output=True, text=True, timeout=AMPLE, check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr and "Answer" not in done.stdout, (
        done.stderr
    )
    last = done.stderr.strip().splitlines()[-1]
    assert (
        last.startswith("error: there is too little memory for ") and "raise the limit (ulimit -v)" in last
    ), done.stderr
    assert not server.bodies


@posix
def test_a_question_arrives_as_it_was_typed_whatever_the_locale(server, here):
    environment = {**os.environ, "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = [
        sys.executable,
        "-c",
        "from kgot_lab.cli.app import main; main()",
        *map(str, asking(server, "--trace", "run.jsonl")),
    ]
    typed = [word.encode() for word in words]
    place = words.index(QUESTION)
    typed[place] = "Où Ada Lovelace est-elle née ?".encode()
    done = subprocess.run(typed, capture_output=True, env=environment, timeout=AMPLE, check=False)
    assert done.returncode == 0 and load_run("run.jsonl").question == "Où Ada Lovelace est-elle née ?", (
        done.stderr
    )
    typed[place] = b"O\xf9 Ada Lovelace est-elle n\xe9e ?"
    done = subprocess.run(
        [*typed[:-1], b"other.jsonl"], capture_output=True, env=environment, timeout=AMPLE, check=False
    )
    assert (
        done.returncode == 1 and b"error: the question holds characters that are not UTF-8" in done.stderr
    ), done.stderr
    assert not Path("other.jsonl").exists()
