"""A MediaWiki service with a few pages, each with its old versions, which speaks as the real one does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from support.web_site import Seen, Sent


@dataclass(frozen=True)
class Version:
    """A version of an article: its number, the second it is from (as 2019-07-04T12:00:00Z), and its HTML."""

    number: int
    when: str
    html: str


def media_wiki(
    articles: Mapping[str, list[Version]], redirects: Mapping[str, str] | None = None
) -> Callable[[Seen], Sent]:
    """What api.php answers; an article of no version is a list of meanings. The last version is the newest."""
    numbered = {version.number: version for versions in articles.values() for version in versions}

    def answer(request: Seen) -> Sent:
        query = request.query
        assert (query["format"], query["formatversion"]) == ("json", "2")
        if query["action"] == "parse":
            version = numbered.get(int(query["oldid"]))
            if version is None:
                info = f"There is no revision with ID {query['oldid']}."
                return Sent({"error": {"code": "nosuchrevid", "info": info}})
            return Sent({"parse": {"title": "", "text": version.html}})
        if query.get("list") == "search":
            hits = [
                {"ns": 0, "title": title}
                for title in articles
                if set(query["srsearch"].lower().split()) & set(title.lower().split())
            ]
            return Sent({"query": {"search": hits}})
        title = (redirects or {}).get(query["titles"], query["titles"])
        if title not in articles:
            return Sent({"query": {"pages": [{"ns": 0, "title": title, "missing": True}]}})
        if query["prop"] == "links":
            return Sent(
                {
                    "query": {
                        "pages": [
                            {
                                "title": title,
                                "links": [{"ns": 0, "title": f"{title} ({n})"} for n in ("planet", "god")],
                            }
                        ]
                    }
                }
            )
        return Sent({"query": {"pages": [_about(title, articles[title], query)]}})

    return answer


def _about(title: str, versions: list[Version], query: Mapping[str, str]) -> dict[str, object]:
    url = f"https://wiki.example/wiki/{title.replace(' ', '_')}"
    page: dict[str, object] = {"ns": 0, "title": title, "fullurl": url}
    if not versions:
        return {
            **page,
            "pageprops": {"disambiguation": ""},
            "revisions": [{"revid": 1, "timestamp": "2020-01-01T00:00:00Z"}],
        }
    known = [version for version in versions if version.when <= query.get("rvstart", "9")]
    revisions = [{"revid": known[-1].number, "timestamp": known[-1].when}] if known else []
    return {**page, "lastrevid": versions[-1].number} | ({"revisions": revisions} if revisions else {})
