"""The tool that searches the web: a model that searches, opens and reads pages for a few turns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from kgot_lab.arguments import CheckedRecord, bounded, check_arguments
from kgot_lab.errors import (
    BadReply,
    LabError,
    LLMError,
    OutOfMemory,
    ToolFailed,
    is_out_of_memory,
    require_count,
)
from kgot_lab.llm.adapters import as_model
from kgot_lab.llm.structured import compact_schema, parse, repair_prompt
from kgot_lab.text.cleaning import FENCES, estimate_tokens, fence_text, truncate_to_tokens
from kgot_lab.tools.tool import MeteredLLM, Result, TextTool, Tool, object_schema
from kgot_lab.tools.web.archives import WebArchive
from kgot_lab.tools.web.engines import SearchEngine
from kgot_lab.tools.web.pages import SCREEN, Browser, Screen, WebPage
from kgot_lab.types import LLM, Json, Message, Prompt

_SYSTEM = (
    "You answer a question by searching and reading. Each turn you make one move. Read the pages themselves; the few words that a search "
    "shows are seldom enough. Follow links whose text promises what is missing. When a move fails, try another way. When the pages read "
    "give the answer, move `answer`, with everything that was asked for, names, numbers and dates exactly as they stand there. "
    f"{FENCES}"
)
_FINISH = "That was the last turn. Answer now from what was found, as fully as it allows; found is false if it does not give the answer."
_SUMMARIZE = "Answer from this page alone, with every name, number and date that matters, and the links worth following."
_OMITTED_RESULT = "(What this gave is left out here, since it was long ago; make the move again to see it.)"


@dataclass(frozen=True)
class WebAccess:
    """The resources of a search agent: search engine, page opener, optional Wikipedia and archive."""

    engine: SearchEngine
    open_page: Callable[[str], WebPage]
    encyclopedia: Tool | None = None  # takes an article and an optional date, and returns sources
    archive: WebArchive | None = None


@dataclass(frozen=True)
class AgentLimits(CheckedRecord):
    """Limits of a search agent."""

    turns: int = bounded(12, 1)
    screen: int = bounded(SCREEN, 1)  # characters of a page shown at a time
    summarised: int = 12_000  # tokens of a page to summarise
    remembered: int = 12_000  # tokens of earlier results in a prompt
    reply: int = bounded(700, 1)  # tokens


class _Move(BaseModel):
    """A turn of the agent: why, which move, and what it takes."""

    thought: str = ""
    move: str
    arguments: dict[str, Any] = {}


class _Finish(BaseModel):
    """What the agent found in the end."""

    found: bool
    answer: str


@check_arguments
def ask_search_agent(
    llm: LLM, access: WebAccess, *, stamina: AgentLimits = AgentLimits(), name: str = "ask_search_agent"
) -> TextTool:
    """Create a tool that answers a question with a model that searches and reads pages.

    Its sources are the screens that were read. The result carries the model's cost, as does the ToolFailed of
    an unsuccessful search. The model's LLMError is passed on, except for replies that are not a valid move.
    """
    llm = as_model(llm, "ask_search_agent()")
    require_count(stamina.turns, 1, "turns", "an agent needs one to answer")

    def run(query: str) -> Result:
        return _Search(MeteredLLM(llm), access, stamina, name).result(query)

    description = "Lets an assistant search the web, read pages and follow links, and returns what it found on a question."
    takes = {"query": "a complete question in one sentence, with every name, date and detail that it needs"}
    return TextTool(name, description, takes, run, finds="query")


class _Search:
    """A running search: the question, the moves and their results."""

    def __init__(self, llm: MeteredLLM, access: WebAccess, stamina: AgentLimits, name: str):
        self._llm, self._access, self._stamina, self._name = llm, access, stamina, name
        self._browser = Browser(access.open_page, stamina.screen)
        self._turns: list[tuple[str, str]] = []  # the model's reply and its result
        self._moves = {move.name: move for move in self._available_moves()}

    def result(self, query: str) -> Result:
        """Return the answer with its sources and costs.

        Raises ToolFailed if nothing was found, and LLMError if the model fails.
        """
        for turn in range(1, self._stamina.turns + 1):
            try:
                reply, move = self._next_move(query)
            except BadReply as error:
                self._turns.append((error.text[:500] or "(nothing)", f"That is not a move: {error.reason}."))
                continue
            if move.move == "answer" and (text := str(move.arguments.get("text") or "").strip()):
                return self._found_result(text)
            turns_left = self._stamina.turns - turn
            self._turns.append((reply, f"{self._run_move(move)}\n\nTurns left: {turns_left}."))
        return self._final_answer(query)

    def _next_move(self, query: str) -> tuple[str, _Move]:
        prompt = Prompt(self._messages(query), self._schema(), max_tokens=self._stamina.reply)
        reply = self._llm(prompt).text
        try:
            return reply, parse(reply, _Move)
        except BadReply as error:
            reply = self._llm(repair_prompt(prompt, reply, error)).text
            return reply, parse(reply, _Move)

    def _final_answer(self, query: str) -> Result:
        messages = (*self._messages(query), Message("user", _FINISH))
        prompt = Prompt(messages, compact_schema(_Finish), max_tokens=self._stamina.reply)
        try:
            finish = parse(self._llm(prompt).text, _Finish)
        except BadReply as error:
            raise self._failure(f"no answer after {self._stamina.turns} turns ({error.reason})") from None
        if not finish.found or not finish.answer.strip():
            problem = f"nothing that answers it was found in {self._stamina.turns} turns"
            raise self._failure(f"{problem}; ask for less, or in other words")
        return self._found_result(finish.answer.strip())

    def _found_result(self, text: str) -> Result:
        pages = self._browser.seen_documents()
        listed = "".join(f"\n- {' '.join(page.title.split())}: {page.id}" for page in pages)
        return Result(f"{text}\n\nPages read:{listed}" if pages else text, pages, self._llm.usage)

    def _failure(self, why: str) -> ToolFailed:
        return ToolFailed(f"{self._name}: {why}", usage=self._llm.usage)

    def _messages(self, query: str) -> tuple[Message, ...]:
        """Build the conversation. Results of older moves are omitted if it would be too long."""
        moves = "\n".join(
            f"- {m.name}({', '.join(_format_arguments(m))}): {m.description}" for m in self._moves.values()
        )
        form = 'Reply as JSON: {"thought": "...", "move": "...", "arguments": {...}}'
        opening = f"Question: {query}\n\nMoves:\n{moves}\n- answer(text: the complete answer): Ends the search.\n\n{form}"
        budget, shown = self._stamina.remembered, []
        for number, (reply, found) in enumerate(reversed(self._turns)):
            budget -= estimate_tokens(found)
            text = found if budget >= 0 or number == 0 else _OMITTED_RESULT
            shown.append((Message("assistant", reply), Message("user", text)))
        turns = (message for pair in reversed(shown) for message in pair)
        return Message("system", _SYSTEM), Message("user", opening), *turns

    def _schema(self) -> Mapping[str, Json]:
        """Return the JSON schema of `_Move`, restricted to the available moves and their arguments."""
        answer = object_schema({"text": {"type": "string"}})
        arguments = {**{move.name: dict(move.arguments) for move in self._moves.values()}, "answer": answer}
        moves = (
            {"thought": {"type": "string"}, "move": {"const": name}, "arguments": takes}
            for name, takes in arguments.items()
        )
        return {"anyOf": list(map(object_schema, moves))}

    def _run_move(self, move: _Move) -> str:
        """Run a move and return its result, fenced.

        A failure is fenced too, since it may quote a page.
        """
        try:
            if move.move not in self._moves:
                known = ", ".join([*self._moves, "answer"])
                raise ToolFailed(f"there is no move {move.move!r}; there are: {known}")
            result = self._moves[move.move](**move.arguments)
        except (LLMError, OutOfMemory):
            raise
        except Exception as error:  # any parser error: the search continues, and its cost is kept
            if is_out_of_memory(error):
                raise OutOfMemory(f"the move {move.move}") from error
            again = " Trying again may help." if isinstance(error, ToolFailed) and error.again else ""
            why = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {str(error)[:300]}"
            return f"The move failed.{again}\n{fence_text(why, 'why it failed')}"
        return result.text

    # --- moves ---

    def _available_moves(self) -> list[TextTool]:
        page = {"address": "a whole address, or one relative to the open page"}
        words = {"query": "words that the page would contain"}
        text = {"text": "what to find"}
        question = {"question": "what to look for"}
        browser, shown = self._browser, self._screen_result
        year = {"year": "four digits"}
        place = "Goes to the first place of a text on the open page."
        moves = [
            TextTool("web_search", "Searches for pages.", words, self._search, may=year),
            TextTool("visit", "Opens a page.", page, lambda address: shown(browser.visit(address))),
            TextTool(
                "page_down", "Shows the next part of the open page.", {}, lambda: shown(browser.page_down())
            ),
            TextTool("page_up", "Shows the part before.", {}, lambda: shown(browser.page_up())),
            TextTool("back", "Opens the page before this one.", {}, lambda: shown(browser.back())),
            TextTool("find", place, text, lambda text: shown(browser.find(text))),
            TextTool(
                "find_next", "Goes to the next place of the text.", {}, lambda: shown(browser.find_next())
            ),
            TextTool("summarize_page", "Reads all of the open page for you.", question, self._summarize),
        ]
        if self._access.encyclopedia:
            may = {"date": "YYYY-MM-DD, for an older version"}
            takes = {"article": "the title of an article"}
            moves.append(
                TextTool("wikipedia", "Opens an article of Wikipedia.", takes, self._article, may=may)
            )
        if self._access.archive:
            takes, opens = {**page, "date": "YYYYMMDD"}, "Opens the page as it was kept nearest to a date."
            moves.append(TextTool("find_archived", opens, takes, self._archived))
        return moves

    def _search(self, query: str, year: str = "") -> Result:
        if year and not re.fullmatch(r"(1\d|20)\d\d", year):
            raise ToolFailed(f"a year is four digits, not {year[:20]!r}")
        hits = self._access.engine.hits(query, int(year) if year else None)
        if not hits:
            without_year = ", or without the year" if year else ""
            raise ToolFailed(f"nothing was found; search for fewer or other words{without_year}")
        listed = "\n".join(f"{number}. {hit}" for number, hit in enumerate(hits, start=1))
        return Result(fence_text(listed, f"{self._access.engine.name} on {query}"))

    def _article(self, article: str, date: str = "") -> Result:
        assert self._access.encyclopedia is not None
        result = self._access.encyclopedia(article=article, **({"date": date} if date else {}))
        if not result.sources:
            return Result(fence_text(result.text, "wikipedia"))
        source = result.sources[0]
        return self._screen_result(self._browser.show(WebPage(source.id, source.title, source.text)))

    def _archived(self, address: str, date: str) -> Result:
        assert self._access.archive is not None
        copy = self._access.archive.nearest(address, date)
        shown = self._screen_result(self._browser.visit(copy.address))
        return Result(f"A copy of {copy.day}.\n{shown.text}")

    def _summarize(self, question: str) -> Result:
        """Summarise the open page with a model, or as much of it as fits."""
        page = self._browser.page
        text = truncate_to_tokens(page.text, self._stamina.summarised)
        request = f"{question}\n\n{_SUMMARIZE}\n\n{fence_text(text, page.address)}"
        prompt = Prompt((Message("system", FENCES), Message("user", request)), max_tokens=self._stamina.reply)
        summary = self._llm(prompt).text.strip()
        if not summary:
            raise ToolFailed("the summary came out empty; read the page with page_down")
        self._browser.mark_seen(len(text))
        cut = "" if text == page.text else f" (of its first {len(text):,} of {len(page.text):,} characters)"
        return Result(fence_text(summary, f"a summary of {page.address}{cut}"))

    def _screen_result(self, screen: Screen) -> Result:
        page = screen.page
        earlier_visits = sum(earlier.address == page.address for earlier in self._browser.history[:-1])
        remarks = "; ".join(filter(None, (page.remark, "visited before" if earlier_visits else "")))
        head = f"Title: {page.title}" + (f"\nNote: {remarks}" if remarks else "")
        return Result(fence_text(f"{head}\n\n{screen.text}", screen.where))


def _format_arguments(move: TextTool) -> list[str]:
    optional = {name: f"{meaning}, may be left out" for name, meaning in move.may.items()}
    return [f"{name}: {meaning}" for name, meaning in {**move.takes, **optional}.items()]
