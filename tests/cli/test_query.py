"""`kgot-lab query` as a user types it: forms, filters, folders, several graphs, words, and how a command
ends.
"""

import csv
import io
import json
import subprocess
import sys

import pytest
from support.command_line import run_here
from support.every import every
from support.openai_server import openai_server, says
from support.workers import local_cluster

from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.stores.files import read_graph, write_graph

GRAPH = cookbook()


@pytest.fixture
def file(tmp_path):
    """The cookbook in a file."""
    write_graph(GRAPH, tmp_path / "cook.json")
    return tmp_path / "cook.json"


@pytest.fixture
def ask(kgot_lab, here):
    """A question to the cookbook, which lies in a file."""
    write_graph(GRAPH, "cook.json")
    return lambda *words, graph="cook.json", before=(): kgot_lab("query", *before, graph, *words)


def test_an_answer_comes_as_a_table_json_csv_and_markdown_with_the_same_rows(ask):
    table = ask("want-to", "reduce API costs", "--limit", "3")
    rows = json.loads(ask("want-to", "reduce API costs", "--limit", "3", "--json").out)["rows"]
    assert table.code == 0 and [row["id"] in table.out for row in rows] == [True] * 3
    read = list(csv.DictReader(io.StringIO(ask("want-to", "reduce API costs", "--limit", "3", "--csv").out)))
    assert [row["id"] for row in read] == [row["id"] for row in rows]
    assert ask("want-to", "reduce API costs", "--limit", "3", "--format", "markdown").out.count("\n| ") == 5
    assert "\x1b" not in table.out and "\x1b[" in ask("rank", "--color").out


def test_explain_tells_the_score_by_lane(ask):
    short, long = ask("search", "reduce costs"), ask("search", "reduce costs", "--explain")
    assert "embedding" not in short.out.split("\n")[1] and "embedding" in long.out.split("\n")[1]
    assert "classify_intent" in long.out


def test_rows_are_cut_and_filtered(ask):
    assert len(json.loads(ask("rank", "--max-results", "2", "--json").out)["rows"]) == 2
    assert all(
        row["score"] >= 0.6
        for row in json.loads(ask("want-to", "reduce API costs", "--threshold", "0.6", "--json").out)["rows"]
    )


# a time limit may strike between the opening of a file and its `with`: the file is then closed by the collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("find", "xyzzy"), 3, "xyzzy"),
        (("used-by", "nothing_like_it"), 1, "unknown node"),
        (("no-such-question",), 2, "No such command"),
        (("rank", "--json", "--csv"), 1, "one form"),
        (("emerge", "--timeout", "0.001"), 124, "--timeout"),
    ],
)
def test_how_a_command_ends_is_said_by_its_code(ask, words, code, said):
    ran = ask(*words)
    assert ran.code == code and said in ran.err


@pytest.mark.parametrize("where", ["nothing.json", "bolt://127.0.0.1:1"])
def test_a_graph_that_is_none_is_refused_in_one_line(kgot_lab, here, where):
    ran = kgot_lab("query", where, "stats")
    assert ran.code == 1 and ran.err.startswith("error: ") and ran.err.count("\n") == 1


def test_a_folder_is_read_first_and_only_once(ask, here):
    (here / "code").mkdir()
    (here / "code" / "shop.py").write_text("def buy():\n    pay()\n\n\ndef pay():\n    pass\n")
    first = ask("used-by", "pay", "--json", graph="code")
    second = ask("used-by", "pay", "--json", graph="code")
    assert json.loads(first.out) == json.loads(second.out)
    assert json.loads(first.out)["rows"][0]["id"] == "shop.buy"
    assert "1 read now" in first.err
    assert "1 unchanged" in second.err
    assert ask("stats", "--quiet", graph="code").err == ""


def test_a_dry_run_asks_nothing(ask):
    ran = ask("want-to", "x", before=("--dry-run",), graph="no such file")
    assert ran.code == 0 and ran.out == "" and "would ask want-to" in ran.err


@pytest.mark.parametrize(
    ("embedder", "said"), [("minilm", "by words and meaning"), ("none", "by words only")]
)
def test_a_search_says_by_what_it_goes(ask, embedder, said):
    ran = ask("search", "reduce API costs", before=("--embedder", embedder))
    assert ran.code == 0 and f"searched {said}" in ran.err
    assert ask("stats", before=("--embedder", embedder)).err == ""


def test_several_graphs_are_searched_as_one(ask):
    ran = ask("search", "reduce API costs", "--json", before=("--with", "twin=cook.json"))
    ids = [row["id"] for row in json.loads(ran.out)["rows"]]
    assert ids[0] == "graph:goal:reduce_api_costs" and len(ids) == len({id.partition(":")[2] for id in ids})
    assert ask("stats", before=("--with", "cook.json")).code == 1


def test_an_answer_is_written_whole_into_a_file(ask, here):
    assert ask("rank", "--csv", "--output", "rank.csv").out == ""
    assert (here / "rank.csv").read_text().startswith("id,name,type,pagerank")


def test_a_batch_answers_all_and_says_that_one_failed(ask, here, monkeypatch):
    (here / "asked.txt").write_text(
        'want-to "reduce API costs" --limit 1\nnonsense\n{"ask": "rank", "top_k": 2}\n'
    )
    ran = ask("batch", "asked.txt")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 1
    assert [len(row.get("rows", [])) for row in rows] == [1, 0, 2]
    assert "unknown question" in rows[1]["error"]
    monkeypatch.setattr("sys.stdin", io.StringIO("rank --top-k 1\n"))
    assert ask("batch", "-").code == 0


def test_a_pipeline_tells_the_last_answer_and_the_steps_beside_it(ask):
    ran = ask("pipeline", 'want-to "reduce API costs" | similar-to {2}', "--format", "json")
    assert json.loads(ran.out)["title"].startswith("similar to goal:reduce_api_costs")
    assert ran.err.count("→") == 2


def test_a_graph_that_breaks_a_rule_ends_with_its_own_code(ask, here):
    assert ask("validate").code == 0
    (here / "bad.json").write_text('{"type": "node", "id": "1", "labels": ["gadget"], "properties": {}}\n')
    ran = ask("validate", graph="bad.json")
    assert ran.code == 4 and "gadget" in ran.out and "its name is None" in ran.out


def test_graphs_are_compared_merged_and_written_in_another_form(ask, here):
    write_graph(GRAPH.subgraph(GRAPH.ids[:100]), "part.json")
    assert ask("compare", "cook.json").code == 3
    assert ask("whats-new", "--since", "part.json", "--format", "csv").out.count("added,node") == 191
    assert ask("import-graph", "cook.json", "--output", "whole.ttl", graph="part.json").code == 0
    assert read_graph("whole.ttl") == GRAPH
    again = ask("export-graph", "--output", "whole.ttl")
    assert again.code == 1 and "would be lost" in again.err


def test_without_a_model_the_context_is_told_as_it_is(ask):
    ran = ask("ask", "how do I reduce costs?")
    assert ran.code == 0 and "goal:reduce_api_costs" in ran.out and "--model local" in ran.err
    assert json.loads(ask("context", "reduce costs", "--json").out)["nodes"]
    assert "Prompt caching" in ask("explain", "prompt_caching").out and "291 nodes" in ask("summarize").out
    assert ask("ask", "zzz qqq xxx").code == 3


def test_a_model_tells_it_in_words_and_what_it_cites_is_checked(ask, here):
    with openai_server(
        says("Cache work [cost_strategy:cache_repeated_work] and pray [tool:prayer]."),
        says("It may be stale [technique:prompt_caching]."),
    ) as server:
        model = ("--model", f"{server.url}#any")
        ran = ask("ask", "how do I reduce costs?", "--session", "talk.json", *model)
        assert ran.out.startswith("Cache work") and "cited: cost_strategy:cache_repeated_work" in ran.err
        assert "[tool:prayer] is cited, and was not in what the model was given" in ran.err
        follow = ask("follow-up", "and the risk?", "--session", "talk.json", *model)
        assert follow.out.startswith("It may be stale")
    assert len(json.loads((here / "talk.json").read_text())["turns"]) == 2
    none = ask("follow-up", "and?", "--session", "nothing.json")
    assert none.code == 1 and "no question to follow" in none.err
    (here / "odd.json").write_text("[]")
    assert "no conversation" in ask("ask", "x", "--session", "odd.json").err


@pytest.mark.parametrize(
    ("options", "said"),
    [(["stats", "--csv"], "what is asked"), (["search", "cache", "--json"], "what is asked")],
)
def test_an_answer_is_not_written_over_the_graph_that_is_asked(file, options, said):
    before = file.read_bytes()
    done = run_here("query", file, *options, "--output", file)
    assert done.code == 1 and said in done.err and file.read_bytes() == before


def test_an_answer_is_not_written_over_a_file_of_the_folder_that_is_asked(tmp_path):
    source = tmp_path / "shop.py"
    source.write_text("def price(): ...\n")
    done = run_here("query", tmp_path, "list", "--output", source)
    assert done.code == 1 and "which is asked" in done.err and source.read_text() == "def price(): ...\n"
    assert run_here("query", tmp_path, "list", "--output", tmp_path / "new.txt").code == 0


def test_two_graphs_of_one_name_are_refused(file):
    assert "twice" in run_here("query", "--with", f"a={file}", "--with", f"a={file}", file, "list").err
    assert "give another" in run_here("query", "--with", f"graph={file}", file, "list").err


def test_the_workers_of_an_address_read_a_folder_and_the_answer_is_the_same(tmp_path):
    (tmp_path / "a.py").write_text("def price():\n    return 1\n\n\ndef total():\n    return price()\n")
    here = run_here("query", "--no-cache", tmp_path, "used-by", "price")
    with local_cluster(processes=False) as cluster:
        there = run_here(
            "query", "--no-cache", "--dask", cluster.scheduler_address, tmp_path, "used-by", "price"
        )
    assert there.code == 0 and there.out == here.out and "a.total" in there.out


@every(
    ("before", "after", "said"),
    [
        ("--dask tcp://127.0.0.1:1", "list", "--dask has an effect on a folder only"),
        ("--no-cache", "list", "--no-cache has an effect on a folder only"),
        ("--namespace x", "list", "--namespace has an effect on the address of a server only"),
        ("--with ../g=g.csv", "list", "with a name of letters"),
        ("", "stats --threshold 1", "no score"),
        ("", "schema --threshold 1", "no score"),
        ("", "critical --threshold nan", "0 or more, not nan"),
        ("", "critical --threshold 9", "reaches --threshold 9"),
        ("", "list --csv --output a.json", "a.json would hold a csv"),
        ("", "list --output a.csv", "give --format csv"),
    ],
)
def test_an_option_that_would_change_nothing_or_something_else_is_refused(file, before, after, said):
    done = run_here("query", *before.split(), file, *after.split())
    assert done.code in (1, 3) and said in done.err


def test_an_address_of_no_scheduler_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    assert "tcp://HOST:8786" in run_here("query", "--dask", "127.0.0.1:1", tmp_path / "folder", "rank").err


def test_a_bar_in_quotes_is_no_end_of_a_question(file):
    done = run_here("query", file, "pipeline", "find 'a|b' | related prompt_caching")
    assert done.code == 0 and "find 'a|b' →" in done.err


@pytest.mark.extended
def test_a_closed_standard_input_is_said(file):
    code = "import os; os.close(0)\nimport sys; sys.stdin = None\nfrom kgot_lab.cli.app import main\nmain()"
    for words in (["query", file, "batch", "-"], ["mcp", file]):
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert "standard input is closed" in done.stderr
        assert "Traceback" not in done.stderr
