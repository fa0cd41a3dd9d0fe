"""Reading an item of news with a model: asked once, answered in a shape, and only what holds is a fact."""

from __future__ import annotations

from kgot_lab.domains.investment.monitor.news import NewsFacts, NewsItem, StatedNews, news_prompt
from kgot_lab.domains.investment.monitor.news_reader import MOST_STATED, Sifter
from kgot_lab.domains.investment.view import InvestmentView
from kgot_lab.errors import BadReply
from kgot_lab.llm.structured import structured
from kgot_lab.types import LLM


def read_item(llm: LLM, item: NewsItem, view: InvestmentView) -> NewsFacts:
    """The facts that a model reads in an item, by one call; a bad reply is mended once, and then only the
    item itself is a fact.

    Names are resolved in `view`. Raises LLMError where the model cannot be asked.
    """
    try:
        stated = structured(llm, news_prompt(item, view.vocabulary), StatedNews)
    except BadReply as error:
        why = f"nothing was read: the model's reply is not in the shape asked for ({error.reason})"
        return Sifter(item, view).facts([why])
    return sifted(stated, item, view)


def sifted(stated: StatedNews, item: NewsItem, view: InvestmentView) -> NewsFacts:
    """The facts of a reply that hold, and why the others do not."""
    with view.reading():
        sifter = Sifter(item, view, stated.sentiment)
        for thing in stated.things[:MOST_STATED]:
            sifter.take_thing(thing)
        events = [sifter.take_event(event) for event in stated.events[:MOST_STATED]]
        for link in stated.links[:MOST_STATED]:
            sifter.take_link(link)
        for call in stated.withdrawn[:MOST_STATED]:
            sifter.take_back(call)
        for words in stated.untrue[:MOST_STATED]:
            sifter.take_untrue(words)
        for link in stated.ended[:MOST_STATED]:
            sifter.take_ended(link)
        for insight in stated.insights[:MOST_STATED]:
            sifter.take_insight(insight, events)
    kinds = (
        stated.things,
        stated.events,
        stated.links,
        stated.insights,
        stated.withdrawn,
        stated.untrue,
        stated.ended,
    )
    return sifter.facts(
        f"more than {MOST_STATED} of a kind were stated, and the others left out"
        for kind in kinds
        if len(kind) > MOST_STATED
    )
