"""The tool that reads Wikipedia: one object, offered to the loop and to the search agent alike."""

from __future__ import annotations

from kgot_lab.errors import NotInstalled, ToolFailed
from kgot_lab.tools.tool import Result, TextTool
from kgot_lab.tools.web.archives import Wikipedia
from kgot_lab.types import Document


def wikipedia(wiki: Wikipedia | None = None, *, name: str = "wikipedia") -> TextTool:
    """A tool that returns an article of Wikipedia, with its tables, as it is or as it was on a day."""
    source = wiki or Wikipedia()

    def run(article: str, date: str = "") -> Result:
        try:
            page = source.article(article, date)
        except NotInstalled as error:
            raise ToolFailed(f"{name}: {error}") from error
        except ToolFailed as error:
            raise ToolFailed(f"{name}: {error}", again=error.again) from None
        return Result(page.text, (Document(page.address, page.text, page.title),))

    description = (
        "Returns an article of Wikipedia by its title, with its tables; with a date, as it was on that day."
    )
    may = {"date": "YYYY-MM-DD, only if the question is about an older version"}
    return TextTool(name, description, {"article": "the title of the article"}, run, finds="article", may=may)
