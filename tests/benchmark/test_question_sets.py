"""Question sets: those that are bundled, one of one's own, GAIA from a hub on this computer, and which
questions are asked.
"""

from __future__ import annotations

import json
import os
import runpy
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from support.loopback import serving

from kgot_lab.benchmark.questions.question import load_questions
from kgot_lab.benchmark.questions.sets import (
    Hub,
    Selection,
    frames,
    gaia,
    hotpotqa,
    hotpotqa_split,
    musique,
    open_questions,
    simpleqa,
    user_hub,
)
from kgot_lab.errors import BadInput, UnknownName

# --------------------------------------------------------------------------------------------------------------


def test_musique_has_its_passages_aliases_and_hops_as_levels():
    data = musique()
    known = {document.id for document in data.documents}
    assert (len(data.questions), len(data.documents), data.scored_by) == (100, 1890, "match")
    assert all(set(question.gold) <= known and question.gold for question in data.questions)
    assert {question.level for question in data.questions} == {"2 hops", "3 hops", "4 hops"}
    assert any(question.aliases for question in data.questions)


def test_the_hash_of_a_set_changes_with_any_answer():
    data = hotpotqa()
    assert data.sha256 == hotpotqa().sha256 != data.only([q.id for q in data.questions[:99]]).sha256


# ------------------------------------------------------------------------------------------------------


def test_the_test_questions_are_asked_only_when_they_are_named():
    held_out = set(hotpotqa_split()["held_out"])
    ids = {
        part: {question.id for question in Selection(part=part).select(hotpotqa()).questions}
        for part in ("", "held_out", "dev", "all")
    }
    assert ids["held_out"] == held_out and not ids[""] & held_out and ids["all"] == ids[""] | held_out
    assert len(ids["all"]) == 100


def test_a_sample_is_drawn_by_seed_and_keeps_the_order_of_the_set():
    data = simpleqa()
    one, same, other = (Selection(sample=0.1, seed=seed).select(data).questions for seed in (1, 1, 2))
    assert len(one) == 433 and one == same != other
    assert [each.id for each in one] == sorted(each.id for each in one)


# ------------------------------------------------------------------------------------------------------------


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_a_set_of_ones_own_has_documents_files_and_what_a_person_took(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "tides.md").write_text("# Tides\n\nThe tide turns twice a day.\n")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    rows = [
        {
            "question": "How often?",
            "answer": "twice",
            "documents": ["notes", {"title": "Moon", "text": "Pulls."}],
            "aliases": ["2 times"],
        },
        {
            "id": "sum",
            "question": "What is a + b?",
            "answer": 3,
            "attachments": ["table.csv"],
            "level": 1,
            "steps": 2,
            "tools": ["python"],
        },
        {"question": "Which file?", "answer": "tides", "documents": ["notes/tides.md"]},
    ]
    data = load_questions(write(tmp_path / "mine.jsonl", *rows))
    first, second, third = data.questions
    assert data.name == "mine" and [question.id for question in data.questions] == ["1", "sum", "3"]
    assert [document.title for document in first.documents] == ["Tides", "Moon"] and first.aliases == (
        "2 times",
    )
    assert (second.answer, second.level, second.steps, second.tools) == ("3", "1", 2, ("python",))
    assert second.attachments[0].is_file()
    assert third.documents[0].text.startswith("The tide")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", "line 2, is not JSON"),
        ([1], "is an object with question and answer"),
        ({"answer": "x"}, 'a question is a text under "question"'),
        ({"question": "x"}, 'under "answer"'),
        ({"question": "x", "answer": "y", "anwser": "z"}, "no field 'anwser'"),
        ({"question": "x", "answer": "y", "documents": "notes"}, "documents are a list"),
        ({"question": "x", "answer": "y", "documents": ["gone"]}, "there is no|not 'gone'"),
        ({"question": "x", "answer": "y", "attachments": ["gone.pdf"]}, "no attachment"),
        ({"question": "x", "answer": "y", "id": "1"}, "two questions"),
    ],
)
def test_a_bad_line_is_named(tmp_path, row, said):
    path = write(tmp_path / "mine.jsonl", {"question": "fine?", "answer": "yes"}, row)
    with pytest.raises(BadInput, match=said):
        load_questions(path)


# ---------------------------------------------------------------------------------

TOKEN = "hf_notARealToken"


def row(number: int, **more: Any) -> dict[str, Any]:
    about = {"Number of steps": f"{number}", "Tools": "1. A web browser\n2. A calculator"}
    invented = {
        "task_id": f"t{number}",
        "Question": f"Invented question {number}?",
        "Final answer": str(number),
        "Level": 1 + number % 3,
    }
    return {**invented, "file_name": "", "file_path": "", "Annotator Metadata": about, **more}


@contextmanager
def hub_server(rows: list[dict[str, Any]], files: dict[str, bytes], status: int = 200):
    """A hub of rows and files that sends files from another host; `seen` has each request's path and its
    authorization.
    """
    seen: list[tuple[str, str | None]] = []

    def handler(is_elsewhere: bool) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                seen.append(
                    (("elsewhere " if is_elsewhere else "") + self.path, self.headers.get("authorization"))
                )
                place = urlsplit(self.path)
                if is_elsewhere:
                    self.answer(200, files[place.path.lstrip("/")])
                elif status != 200:
                    self.answer(status, b"{}")
                elif place.path == "/rows":
                    asked = {name: values[0] for name, values in parse_qs(place.query).items()}
                    begin, length = int(asked["offset"]), int(asked["length"])
                    page = [{"row_idx": n, "row": each} for n, each in enumerate(rows)][
                        begin : begin + min(length, 100)
                    ]
                    self.answer(200, json.dumps({"rows": page}).encode())
                else:
                    self.send_response(302)
                    self.send_header(
                        "location",
                        f"{elsewhere.replace('127.0.0.1', 'localhost')}/{place.path.rsplit('/', 1)[-1]}",
                    )
                    self.send_header("content-length", "0")
                    self.end_headers()

            def answer(self, code: int, body: bytes) -> None:
                self.send_response(code)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    with serving(handler(True)) as elsewhere, serving(handler(False)) as here:
        yield Hub(here, here, TOKEN), seen


def test_gaia_is_read_page_by_page_with_the_token_which_goes_nowhere_else(tmp_path):
    rows = [row(number) for number in range(1, 165)] + [
        row(165, file_name="table.csv", file_path="2023/validation/table.csv")
    ]
    with hub_server(rows, {"table.csv": b"a,b\n1,2\n"}) as (hub, seen):
        data = gaia(hub, tmp_path)
    assert len(data.questions) == 165 and data.scored_by == "gaia" and data.private
    last = data.questions[-1]
    assert (last.level, last.steps, last.tools) == ("level 1", 165, ("A web browser", "A calculator"))
    assert last.attachments == (tmp_path / "table.csv",) and last.attachments[0].read_bytes() == b"a,b\n1,2\n"
    assert [token for path, token in seen if not path.startswith("elsewhere")] == [f"Bearer {TOKEN}"] * 3
    # a file lies on another host
    assert [token for path, token in seen if path.startswith("elsewhere")] == [None]


def test_a_file_name_cannot_lead_out_of_the_folder(tmp_path):
    (tmp_path / "files").mkdir()
    with hub_server([row(1, file_name="../../escaped.txt")], {"escaped.txt": b"x"}) as (hub, _):
        data = gaia(hub, tmp_path / "files")
    assert data.questions[0].attachments[0].parent == tmp_path / "files"
    assert not (tmp_path / "escaped.txt").exists()


@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_refusal_says_what_to_do_and_never_the_token(tmp_path, status):
    with hub_server([], {}, status) as (hub, _), pytest.raises(BadInput) as refused:
        gaia(hub, tmp_path)
    assert TOKEN not in str(refused.value) and TOKEN not in repr(hub)
    assert ("agree to its terms" if status < 500 else "Try again later") in str(refused.value)


def test_without_a_token_gaia_is_refused_before_anything_is_sent(monkeypatch):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with pytest.raises(BadInput, match="HF_TOKEN"):
        user_hub()


def test_the_script_that_packs_the_sets_reads_the_owners_files_and_finds_what_differs(tmp_path):
    script = runpy.run_path(str(Path(__file__).parents[2] / "data" / "make" / "question_sets.py"))
    rows = [{"_id": q.id, "question": q.text, "answer": q.answer} for q in simpleqa().questions]
    assert script["differing"]("simpleqa", rows) == []
    assert script["differing"]("simpleqa", [{**rows[0], "answer": "another"}, *rows[1:]]) == [rows[0]["_id"]]
    csv = tmp_path / "new.csv"
    csv.write_text(
        "metadata,problem,answer\n\"{'topic': 'Art', 'answer_type': 'Person', 'urls': []}\",Who?,Ada \n"
    )
    assert list(script["simpleqa_rows"](csv)) == [
        {
            "_id": "sq0000",
            "question": "Who?",
            "answer": "Ada",
            "topic": "Art",
            "answer_type": "Person",
            "urls": [],
        }
    ]


def test_no_file_of_gaia_is_in_the_repository():
    root = Path(__file__).parents[2]
    names = [name for _, _, files in os.walk(root / "data") for name in files]
    assert names and not [name for name in names if "gaia" in name.lower()]


def test_a_file_is_cut_at_line_ends_alone_and_may_begin_with_a_mark(tmp_path):
    odd = {"question": "Where\u2028was\u0085she born?", "answer": "London"}
    rows = [odd, {"question": "When?", "answer": "1815"}]
    text = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path = tmp_path / "own.jsonl"
    path.write_bytes(f"\ufeff{text}\r\n".encode())
    assert [question.text for question in load_questions(path).questions] == [row["question"] for row in rows]


@pytest.mark.extended
def test_a_level_is_named_by_its_number_or_whole():
    found = Selection(level="3").select(musique()).questions
    assert found == Selection(level="3 hops").select(musique()).questions
    found = {question.level for question in Selection(level="hard", part="all").select(hotpotqa()).questions}
    assert found == {"hard"}
    with pytest.raises(UnknownName, match="2 hops"):
        Selection(level="7").select(musique())
    with pytest.raises(BadInput, match="have no levels"):
        Selection(level="1").select(simpleqa())


def test_an_empty_file_and_a_missing_one_are_refused(tmp_path):
    with pytest.raises(BadInput, match="holds no question"):
        load_questions(write(tmp_path / "empty.jsonl"))
    with (
        pytest.raises(BadInput, match=r"there is no file .*gone\.jsonl: .* hotpotqa"),
        open_questions(str(tmp_path / "gone.jsonl")),
    ):
        pass


def test_rows_of_another_form_are_refused(tmp_path):
    with hub_server([{"question": "renamed"}], {}) as (hub, _), pytest.raises(BadInput, match="another form"):
        gaia(hub, tmp_path)


def test_simpleqa_and_frames_are_whole_and_have_no_documents():
    for data, count in ((simpleqa(), 4326), (frames(), 824)):
        assert len(data.questions) == len({question.id for question in data.questions}) == count
        assert data.documents == [] and data.scored_by == "grader"
        assert all(question.text and question.answer for question in data.questions)
