"""The search agent on a real site: a planted answer three clicks deep."""

import json
import re
from contextlib import closing

import pytest
from support.loop_script import FEW, WRITE, call, scripted, votes
from support.web_site import web_site

import kgot_lab as lab
from kgot_lab.errors import LLMError, ToolFailed
from kgot_lab.llm.recorded import Scripted
from kgot_lab.loop.events import Asked, ToolReturned
from kgot_lab.tools.search_agent import AgentLimits, WebAccess, ask_search_agent
from kgot_lab.tools.web.archives import Mirror
from kgot_lab.tools.web.engines import WebHit
from kgot_lab.tools.web.fetching import FetchSettings, WebFetcher
from kgot_lab.tools.web.pages import page_from, page_opener
from kgot_lab.types import Prompt, Usage

PAGES = {
    "/": '<title>Lighthouses</title><p>All about lighthouses: <a href="coasts/">by coast</a>, <a href="/keepers.html">by keeper</a>.</p>',
    "/coasts/": '<title>Coasts</title><ul><li><a href="north.html">North coast</a></li><li><a href="south.html">South coast</a></li></ul>',
    "/coasts/north.html": '<title>North coast</title><p>See <a href="../lights/grey-point.html">Grey Point</a>.</p>'
    + "<p>Rocks and gulls.</p>" * 900,
    "/lights/grey-point.html": "<title>Grey Point</title><p>Its lamp was lit in 1871 by Ines Marlow.</p>",
}  # fmt: skip


class FrontPage:
    """A search engine that knows one page."""

    name = "front page"

    def __init__(self, url: str):
        self.url = url
        self.years: list[int | None] = []

    def hits(self, query: str, year: int | None = None) -> tuple[WebHit, ...]:
        self.years.append(year)
        return (
            (WebHit(f"{self.url}/", "Lighthouses", "All about lighthouses"),) if "lighthouse" in query else ()
        )


@pytest.fixture
def site():
    with web_site(PAGES) as served:
        yield served


@pytest.fixture
def reach(site):
    web = WebFetcher(FetchSettings(private_hosts={site.host}))
    yield WebAccess(FrontPage(site.url), lambda address: page_from(web.fetch(address)))
    web.close()


def move(name: str, **arguments: str) -> str:
    return json.dumps({"thought": "so", "move": name, "arguments": arguments})


def last(prompt: Prompt) -> str:
    return prompt.messages[-1].text


def follow(*wanted: str):
    """A model that searches, then opens the link with each of these texts, then says what stands on the last
    page.
    """
    steps = iter(wanted)

    def reply(prompt: Prompt) -> str:
        text = last(prompt)
        if text.startswith("Question"):
            return move("web_search", query="lighthouse lamps")
        if hit := re.search(r"1\. Lighthouses\n  (\S+)", text):
            return move("visit", address=hit[1])
        if lit := re.search(r"lit in (\d+) by ([\w ]+)\.", text):
            return move("answer", text=f"{lit[2]}, {lit[1]}")
        link = re.search(rf"\[{next(steps)}\]\((\S+)\)", text)
        assert link, text
        return move("visit", address=link[1])

    return reply


def test_the_agent_finds_an_answer_three_clicks_deep_and_names_the_pages_it_read(reach, site):
    llm = Scripted(follow("by coast", "North coast", "Grey Point"))
    result = ask_search_agent(llm, reach)(query="Who lit the lamp of Grey Point lighthouse, and when?")
    assert result.text.startswith("Ines Marlow, 1871\n\nPages read:\n- Lighthouses: ")
    assert [source.id.removeprefix(site.url) for source in result.sources] == list(PAGES)
    assert result.sources[-1].title == "Grey Point"
    assert "lit in 1871 by Ines Marlow" in result.sources[-1].text
    assert len(result.usage) == 6
    assert all(isinstance(each, Usage) and each.prompt_tokens for each in result.usage)


def test_every_move_of_the_browser_works_and_says_where_it_is(reach, site):
    moves = [
        move("visit", address=f"{site.url}/coasts/north.html"), move("page_down"), move("page_up"), move("page_up"),
        move("find", text="GREY   point"), move("find_next"), move("find", text="whale"),
        move("visit", address="../lights/grey-point.html"), move("back"), move("page_down"), move("nonsense"), move("answer", text="done"),
    ]  # fmt: skip
    llm = Scripted(moves)
    result = ask_search_agent(llm, reach)(query="x")
    told = [last(prompt) for prompt in llm.asked[1:]]
    expected = [
        "page 1 of 4", "page 2 of 4", "page 1 of 4", "beginning of the page", "page 1 of 4", "no further", "nowhere on",
        "page 1 of 1", "page 1 of 4", "page 2 of 4", "there is no move 'nonsense'; there are: web_search",
    ]  # fmt: skip
    assert [words in text for words, text in zip(expected, told, strict=True)] == [True] * 11, told
    assert told[8].count("visited before") == 1 and "Turns left: 1." in told[10]
    north = result.sources[0]
    assert 9_000 < len(north.text) < 10_100, "the two screens that were looked at, not the four there are"


def test_a_year_reaches_the_engine_and_a_bad_one_does_not(reach):
    llm = Scripted([
        move("web_search", query="lighthouse", year="1999"), move("web_search", query="lighthouse", year="last"),
        move("web_search", query="gulls"), move("web_search", query="lighthouse", year=""), move("answer", text="x"),
    ])  # fmt: skip
    ask_search_agent(llm, reach)(query="x")
    assert reach.engine.years == [1999, None, None]
    assert "a year is four digits" in last(llm.asked[2])
    assert "nothing was found; search for fewer or other words" in last(llm.asked[3])


def test_a_summary_reads_the_whole_page_and_counts_it_as_read(reach, site):
    llm = Scripted([move("visit", address=f"{site.url}/coasts/north.html"), move("summarize_page", question="what is there?"), "Rocks.",
                    move("answer", text="rocks")])  # fmt: skip
    result = ask_search_agent(llm, reach)(query="x")
    assert "what is there?" in last(llm.asked[2]) and last(llm.asked[2]).count("Rocks and gulls.") == 900
    assert "Rocks." in last(llm.asked[3]) and result.sources[0].text.count("Rocks and gulls.") == 900
    assert len(result.usage) == 4


def test_after_the_last_turn_the_agent_answers_from_what_it_found(reach):
    said = [
        move("web_search", query="lighthouse"),
        move("web_search", query="gulls"),
        '{"found": true, "answer": "by coast"}',
    ]
    llm = Scripted(said)
    assert ask_search_agent(llm, reach, stamina=AgentLimits(turns=2))(query="x").text == "by coast"
    assert "That was the last turn" in last(llm.asked[2])


@pytest.mark.parametrize(
    "end", ['{"found": false, "answer": "no"}', '{"found": true, "answer": " "}', "I do not know"]
)
def test_a_search_that_finds_nothing_fails_and_still_tells_its_cost(reach, end):
    llm = Scripted([move("web_search", query="gulls"), end])
    with pytest.raises(ToolFailed, match=r"ask_search_agent: (nothing that answers it|no answer)") as caught:
        ask_search_agent(llm, reach, stamina=AgentLimits(turns=1))(query="x")
    assert len(caught.value.usage) == 2 and not caught.value.again


def test_a_reply_that_is_no_move_is_asked_again_and_costs_a_turn_if_it_stays_so(reach):
    llm = Scripted(
        ["what?", move("web_search", query="lighthouse"), "what?", "still what?", move("answer", text="x")]
    )
    assert len(ask_search_agent(llm, reach)(query="x").usage) == 5
    assert "That is not a move" in last(llm.asked[4])


def test_a_model_that_cannot_answer_ends_the_search_with_its_own_error(reach):
    llm = Scripted([move("web_search", query="lighthouse")])
    with pytest.raises(LLMError, match="no reply left") as caught:
        ask_search_agent(llm, reach)(query="x")
    assert caught.value.spent == Usage(
        caught.value.spent.prompt_tokens, len(move("web_search", query="lighthouse").split())
    )


@pytest.mark.parametrize("mirrored", [True, False])
def test_a_markdown_link_as_an_address_is_a_failed_move_whose_cost_is_kept(tmp_path, mirrored):
    (tmp_path / "ada.html").write_text("<p>Ada Lovelace</p>")
    mirror = Mirror(tmp_path)
    llm = Scripted([move("visit", address="[Ada](https://x.org/a)"), move("answer", text="none")])
    with closing(WebFetcher()) as web:
        result = ask_search_agent(llm, WebAccess(mirror, mirror.open_page if mirrored else page_opener(web)))(
            query="x"
        )
    assert "The move failed." in last(llm.asked[1])
    assert "is not an address" in last(llm.asked[1])
    assert len(result.usage) == 2


def test_whatever_breaks_in_a_move_is_a_failed_move_and_the_search_goes_on(tmp_path):
    def broken(address: str):
        raise RecursionError("a page too deep")

    (tmp_path / "ada.html").write_text("<p>Ada Lovelace</p>")
    llm = Scripted([move("visit", address="https://x.org/a"), move("answer", text="none")])
    assert len(ask_search_agent(llm, WebAccess(Mirror(tmp_path), broken))(query="x").usage) == 2
    assert "The move failed." in last(llm.asked[1])
    assert "RecursionError: a page too deep" in last(llm.asked[1])


@pytest.mark.extended
def test_what_was_found_long_ago_is_left_out_of_the_prompt(reach, site):
    visit = move("visit", address=f"{site.url}/coasts/north.html")
    llm = Scripted([visit, visit, visit, visit, move("answer", text="x")])
    ask_search_agent(llm, reach, stamina=AgentLimits(remembered=2_700))(query="x")
    assert [message.text.count("Rocks and gulls.") > 0 for message in llm.asked[4].messages[3::2]] == [
        False,
        False,
        True,
        True,
    ]
    assert all(sum(len(message.text) for message in prompt.messages) < 14_000 for prompt in llm.asked)


def test_the_loop_asks_the_agent_and_its_pages_and_costs_are_in_the_trace(tmp_path):
    (tmp_path / "ada.html").write_text(
        "<title>Ada Lovelace</title><p>Ada Lovelace was born in London in 1815.</p>"
    )
    mirror = Mirror(tmp_path)
    visit = move("visit", address="http://offline.invalid/ada.html")
    inner = Scripted([move("web_search", query="Ada Lovelace"), visit, move("answer", text="London")])
    agent = ask_search_agent(inner, WebAccess(mirror, mirror.open_page))
    calls = call("Where was Ada Lovelace born?", tool="ask_search_agent")
    outer = scripted(vote=votes(*"IIIR"), tools=calls, write=WRITE, parse={"answer": "London"})
    made = lab.ask("Where was Ada Lovelace born?", agent, outer, preset=FEW)
    assert made.answer == "London"
    returned = next(event for event in made.events if isinstance(event, ToolReturned))
    assert [source.id for source in returned.sources] == ["http://offline.invalid/ada.html"]
    assert not returned.failed
    inside = [e for e in made.events if isinstance(e, Asked) and e.role == "inside ask_search_agent"]
    assert len(inside) == 3 and Usage.total(event.usage for event in inside).prompt_tokens > 500
