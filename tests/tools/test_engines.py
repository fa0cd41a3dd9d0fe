"""Search engines, Wikipedia and the archive, each against a real server that speaks as the service does, and
a folder in their place.
"""

import traceback

import pytest
from support.every import every
from support.web_site import Seen, Sent, web_site
from support.wiki_server import Version, media_wiki

from kgot_lab.errors import BadInput, NotInstalled, ToolFailed, UnknownName
from kgot_lab.tools.search_agent import WebAccess
from kgot_lab.tools.tool import search_argument
from kgot_lab.tools.web.archives import Archived, Mirror, WebArchive, Wikipedia, wikipedia
from kgot_lab.tools.web.engines import Brave, Ddgs, SerpApi, Tavily, WebHit, web_engine
from kgot_lab.tools.web.pages import transcript_page, video_id

KEY = "k3y/with+odd=letters"
LAMP = WebHit("https://lights.example/grey", "Grey Point", "Its lamp & lens, lit in 1871", "1871-05-01")


def serpapi(request: Seen) -> Sent:
    query, key = request.query["q"], request.query.get("api_key")
    if key != KEY:
        return Sent({"error": f"Invalid API key {key}. Your API key should be here: https://…"}, status=401)
    if query == "nothing":
        none = "Google hasn't returned any results for this query."
        return Sent({"search_metadata": {"status": "Success"}, "error": none})
    if query == "broken":
        return Sent({"search_metadata": {"status": "Error"}, "error": f"no results for {KEY}"})
    odd = [{"title": "no link"}, "not a result", {"link": "javascript:alert(1)", "title": "x"}]
    lamp = {
        "position": 1,
        "title": LAMP.title,
        "link": LAMP.address,
        "snippet": LAMP.words,
        "date": LAMP.date,
    }
    return Sent({"organic_results": [*odd, lamp]})


def tavily(request: Seen) -> Sent:
    key, query = request.headers.get("authorization"), request.body["query"]
    if key != f"Bearer {KEY}":
        return Sent({"detail": {"error": f"Unauthorized: {key} is no valid key"}}, status=401)
    lamp = {"title": LAMP.title, "url": LAMP.address, "content": LAMP.words, "published_date": LAMP.date}
    return Sent({"query": query, "results": [lamp] * (query != "nothing"), "response_time": 0.1})


def brave(request: Seen) -> Sent:
    key = request.headers.get("x-subscription-token")
    if key != KEY:
        wrong = {
            "code": "SUBSCRIPTION_TOKEN_INVALID",
            "detail": f"The token {key} is invalid.",
            "status": 422,
        }
        return Sent({"type": "ErrorResponse", "error": wrong}, status=422)
    if request.query["q"] == "nothing":
        return Sent({"type": "search", "query": {}})
    words = "Its <strong>lamp</strong> &amp; lens, lit in 1871"
    lamp = {"title": LAMP.title, "url": LAMP.address, "description": words, "page_age": LAMP.date}
    return Sent({"type": "search", "web": {"results": [lamp]}})


ENGINES = [(SerpApi, serpapi), (Tavily, tavily), (Brave, brave)]


@pytest.mark.parametrize(("engine", "service"), ENGINES)
def test_an_engine_finds_pages_and_finds_none(engine, service):
    with web_site({"/search": service}) as site:
        made = engine(KEY, address=f"{site.url}/search")
        assert made.hits("lamp") == (LAMP,)
        assert made.hits("nothing") == ()


@pytest.mark.parametrize(
    ("engine", "service", "filter"),
    [
        (SerpApi, serpapi, {"tbs": "cdr:1,cd_min:1/1/1999,cd_max:12/31/1999"}),
        (Tavily, tavily, {"start_date": "1999-01-01", "end_date": "1999-12-31"}),
        (Brave, brave, {"freshness": "1999-01-01to1999-12-31"}),
    ],
)
def test_a_year_is_asked_for_as_the_service_takes_it(engine, service, filter):
    with web_site({"/search": service}) as site:
        engine(KEY, address=f"{site.url}/search").hits("lamp", 1999)
        engine(KEY, address=f"{site.url}/search").hits("lamp")
    with_year, without = ({**request.query, **(request.body or {})} for request in site.seen)
    assert filter.items() <= with_year.items() and not filter.keys() & without.keys()


@pytest.mark.parametrize(("engine", "service"), ENGINES)
def test_a_key_is_in_no_error_and_no_repr(engine, service):
    wrong = "wr0ng/key+that=is"
    with web_site(
        {
            "/search": service,
            "/odd": Sent("<h1>no JSON</h1>"),
            "/list": Sent([1]),
            "/busy": Sent({"detail": wrong}, status=429),
        }
    ) as site:
        asked = [engine(wrong, address=f"{site.url}/{path}") for path in ("search", "odd", "list", "busy")]
    asked.append(engine(wrong, address=f"{site.url}/search"))  # nobody is there any more
    for each in asked:
        with pytest.raises(ToolFailed) as caught:
            each.hits("lamp")
        told = (
            "".join(traceback.format_exception(caught.value)) + repr(each) + repr(each.__dict__.get("_api"))
        )
        assert wrong not in told and "wr0ng" not in told, told


def test_what_an_engine_refuses_says_whether_trying_again_may_help():
    busy = {
        "/429": Sent({"error": "slow down"}, status=429),
        "/401": Sent({"error": "no"}, status=401),
        "/500": Sent("oops", status=500),
    }
    with web_site({**busy, "/serp": serpapi}) as site:
        outcomes = {}
        for path in busy:
            with pytest.raises(
                ToolFailed, match=f"SerpAPI answered HTTP {path[1:]}: (slow down|no|oops)"
            ) as caught:
                SerpApi(KEY, address=site.url + path).hits("x")
            outcomes[path] = caught.value.again
        with pytest.raises(ToolFailed, match="SerpAPI: no results for …") as caught:
            SerpApi(KEY, address=f"{site.url}/serp").hits("broken")
    assert outcomes == {"/429": True, "/401": False, "/500": True} and caught.value.again


def test_the_engine_is_the_one_that_was_named_or_whose_key_there_is():
    both = {"BRAVE_API_KEY": KEY, "TAVILY_API_KEY": f" {KEY} "}
    assert [
        web_engine(both).name,
        web_engine(both, "brave").name,
        web_engine({"SERPAPI_API_KEY": " "}).name,
    ] == ["Tavily", "Brave", "ddgs"]
    with pytest.raises(BadInput, match="set the environment variable SERPAPI_API_KEY"):
        web_engine(both, "serpapi")
    with pytest.raises(UnknownName, match="unknown search engine 'bing'"):
        web_engine(both, "bing")


def test_the_keyless_engine_reads_what_its_package_returns_and_adds_the_year_to_the_words():
    from ddgs.exceptions import DDGSException, RatelimitException

    asked = []

    def ask(query, **how):
        asked.append((query, how))
        if query == "busy":
            raise RatelimitException("202 Ratelimit")
        if query == "nothing":
            raise DDGSException("No results found.")
        return [{"title": LAMP.title, "href": LAMP.address, "body": LAMP.words}]

    engine = Ddgs(ask=ask)
    assert engine.hits("lamp", 1999)[0].address == LAMP.address
    assert asked == [("lamp 1999", {"max_results": 10})]
    assert engine.hits("nothing") == ()
    with pytest.raises(ToolFailed, match="ddgs got no answer") as caught:
        engine.hits("busy")
    assert caught.value.again


def test_without_a_key_and_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ddgs", None)
    with pytest.raises(NotInstalled, match=r"ddgs: pip install 'kgot_lab\[web\]'"):
        web_engine({})


# --- a folder in place of the web ---


@pytest.fixture
def folder(tmp_path):
    """A mirrored site with links, beside a file that belongs to nobody."""
    root = tmp_path / "mirror"
    (root / "lights").mkdir(parents=True)
    (root / "index.html").write_text(
        '<title>Home</title><a href="lights/">Lights</a> <a href="/notes.txt">Notes</a>'
    )
    (root / "lights" / "index.html").write_text(
        '<title>Lights</title><p>Grey Point was lit in 1871.</p><a href="../a%20b.html">next</a>'
    )
    (root / "a b.html").write_text("<title>Spaces</title><p>A page with a space. Gulls nest here.</p>")
    (root / "notes.txt").write_text("Notes on gulls, 1999.")
    (root / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (root / ".hidden.txt").write_text("hidden gulls")
    (tmp_path / "secret.txt").write_text("secret gulls")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    return root


def test_a_folder_is_searched_and_visited_as_a_site(folder):
    mirror = Mirror(folder)
    home = mirror.open_page("http://offline.invalid/")
    assert home.title == "Home" and "[Lights](http://offline.invalid/lights/)" in home.text
    assert (
        "[next](http://offline.invalid/a%20b.html)" in mirror.open_page("http://offline.invalid/lights/").text
    )
    assert mirror.open_page("http://offline.invalid/lights").title == "Lights"
    assert mirror.open_page("http://offline.invalid/a%20b.html").title == "Spaces"
    (best, *_) = mirror.hits("When was Grey Point lit?")
    assert best == WebHit("http://offline.invalid/lights/", "Lights", best.words)
    assert "lit in 1871" in best.words
    assert {hit.title for hit in mirror.hits("gulls")} == {"Spaces", "notes.txt"}
    assert [hit.title for hit in mirror.hits("gulls", 1999)] == ["notes.txt"]
    assert mirror.hits("zebra") == ()


@pytest.mark.parametrize(
    "address",
    ["../secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "link.txt", ".hidden.txt", "lights/../../secret.txt", "/etc/passwd", "no"],
)  # fmt: skip
def test_nothing_outside_the_folder_is_read(folder, address):
    with pytest.raises(ToolFailed, match="there is no page"):
        Mirror(folder).open_page(f"http://offline.invalid/{address}")
    assert not any(
        "secret" in hit.words or "hidden" in hit.words for hit in Mirror(folder).hits("secret hidden gulls")
    )


def test_what_is_not_on_the_mirrored_site_is_refused_without_a_look(folder):
    mirror = Mirror(folder)
    assert mirror.open_page("http://offline.invalid/notes.txt").text == "Notes on gulls, 1999."
    for address in ("https://lights.example/notes.txt", "http://127.0.0.1/", "file:///etc/passwd"):
        with pytest.raises(ToolFailed, match="all that can be visited"):
            mirror.open_page(address)
    with pytest.raises(ToolFailed, match="image/png, which holds no text"):
        mirror.open_page("http://offline.invalid/photo.png")


def test_a_folder_of_hosts_serves_each_of_them(tmp_path):
    for name, text in {
        "a.example/index.html": '<a href="https://b.example/x?id=2">x</a>',
        "b.example/x?id=2": "<html><p>two</p>",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    mirror = Mirror(tmp_path)
    assert "(https://b.example/x?id=2)" in mirror.open_page("http://a.example/").text
    assert mirror.open_page("https://b.example/x?id=2").text == "two"
    assert repr(mirror).endswith("2 pages at its hosts>")


def test_a_mirror_is_a_folder_with_pages(tmp_path):
    for wrong, message in (
        (tmp_path / "gone", "not a folder"),
        (tmp_path, "holds no files"),
        (3, "named by its path"),
    ):
        with pytest.raises(BadInput, match=message):
            Mirror(wrong)
    (tmp_path / "a.txt").write_text("x")
    assert WebAccess(Mirror(tmp_path), Mirror(tmp_path).open_page).encyclopedia is None


# --- Wikipedia ---

TABLE = (
    "<table class='wikitable'><tr><th>Year</th><th>Lamp</th></tr><tr><td>1871</td><td>oil</td></tr></table>"
)
EDITING = '<h2>Lamp<span class="mw-editsection">[edit]</span></h2><p>Lit<sup class="reference">[1]</sup> in <a href="/wiki/1871">1871</a>.</p>'
ARTICLES = {
    "Grey Point": [
        Version(10, "2018-01-01T00:00:00Z", "<p>Nothing is known.</p>"),
        Version(20, "2019-07-04T12:00:00Z", "<p>It was lit in 1870.</p>"),
        Version(30, "2024-02-02T00:00:00Z", f"<div class='mw-parser-output'>{EDITING}{TABLE}</div>"),
    ],
    "Mercury": [],
}


@pytest.fixture
def wiki():
    with web_site({"/w/api.php": media_wiki(ARTICLES, {"Gray Point": "Grey Point"})}) as site:
        yield wikipedia(Wikipedia(address=f"{site.url}/w/api.php", user_agent="test (mail@lab.example)"))
    assert {request.headers["user-agent"] for request in site.seen} <= {"test (mail@lab.example)"}


def test_an_article_is_read_with_its_tables_and_without_what_is_for_editors(wiki):
    result = wiki(article="Gray Point")
    assert result.text == (
        "# Grey Point\n\n## Lamp\n\nLit in [1871](https://wiki.example/wiki/1871).\n\n| Year | Lamp |\n| --- | --- |\n| 1871 | oil |"
    )
    assert [(source.id, source.title) for source in result.sources] == [
        ("https://wiki.example/wiki/Grey_Point", "Grey Point")
    ]
    assert search_argument(wiki) == "article" and wiki.arguments["required"] == ["article"]


@pytest.mark.parametrize(
    ("day", "text"),
    [("2019-07-04", "lit in 1870"), ("2019-07-03", "Nothing is known"), ("2023-12-31", "lit in 1870")],
)
def test_an_article_is_read_as_it_was_on_a_day(wiki, day, text):
    result = wiki(article="Grey Point", date=day)
    assert text in result.text
    assert result.sources[0].id.startswith("https://wiki.example/wiki/Grey_Point?oldid=")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"article": "Blue Point"}, r"no article 'Blue Point'; there are: Grey Point"),
        ({"article": "Zzz"}, r"no article 'Zzz'$"),
        (
            {"article": "Mercury"},
            r"'Mercury' has several meanings; ask for one of them: Mercury \(planet\); Mercury \(god\)",
        ),
        ({"article": "Grey Point", "date": "2017-01-01"}, "did not exist yet on 2017-01-01"),
        ({"article": "Grey Point", "date": "4 July"}, "written YYYY-MM-DD"),
        ({"article": "Grey|Point#x"}, "no article"),
    ],
)
def test_what_is_not_there_says_what_to_do(wiki, arguments, message):
    with pytest.raises(ToolFailed, match=message):
        wiki(**arguments)


def test_a_busy_wiki_may_be_asked_again():
    busy = Sent({"error": {"code": "maxlag", "info": "Waiting for a database."}})
    with (
        web_site({"/api": busy}) as site,
        pytest.raises(ToolFailed, match="Wikipedia: Waiting for a database") as caught,
    ):
        Wikipedia(address=f"{site.url}/api").article("Grey Point")
    assert caught.value.again


# --- the archive and videos ---


def test_the_archive_finds_the_copy_nearest_to_a_day():
    def available(request: Seen) -> Sent:
        assert request.query["timestamp"] == "20190704"
        if request.query["url"] != "grey.example":
            return Sent({"url": request.query["url"], "archived_snapshots": {}})
        closest = {
            "available": True,
            "url": "http://web.archive.org/web/20190701/http://grey.example",
            "timestamp": "20190701120000",
            "status": "200",
        }
        return Sent({"url": "grey.example", "archived_snapshots": {"closest": closest}})

    with web_site({"/available": available}) as site:
        archive = WebArchive(address=f"{site.url}/available")
        assert archive.nearest("grey.example", "2019-07-04") == Archived(
            "https://web.archive.org/web/20190701/http://grey.example", "2019-07-01"
        )
        with pytest.raises(ToolFailed, match="holds no copy"):
            archive.nearest("other.example", "20190704")
        with pytest.raises(ToolFailed, match="written YYYYMMDD"):
            archive.nearest("grey.example", "July")


@every(
    ("address", "video"),
    [
        ("https://www.youtube.com/watch?v=abcdefghijk&t=3", "abcdefghijk"), ("https://youtu.be/abcdefghijk?si=x", "abcdefghijk"),
        ("https://m.youtube.com/shorts/abcdefghijk", "abcdefghijk"), ("https://www.youtube.com/@someone", ""),
        ("https://www.youtube.com/", ""), ("https://[Ada](https://youtu.be/abcdefghijk)", ""), ("https://[youtu.be/abcdefghijk", ""),
        ("https://example.org/watch?v=abcdefghijk", ""), ("https://youtube.com.example.org/watch?v=abcdefghijk", ""),
    ],
)  # fmt: skip
def test_a_video_is_known_by_its_address(address, video):
    assert video_id(address) == video


def test_a_transcript_is_read_with_times_in_english_where_there_is_one():
    import requests

    def player(request: Seen) -> Sent:
        if request.body["videoId"] != "abcdefghijk":
            return Sent({"playabilityStatus": {"status": "ERROR", "reason": "This video is unavailable"}})
        tracks = [
            {
                "baseUrl": f"https://www.youtube.com/captions?{code}",
                "name": {"runs": [{"text": code}]},
                "languageCode": code,
                "isTranslatable": False,
            }
            for code in ("de", "en")
        ]
        return Sent(
            {
                "playabilityStatus": {"status": "OK"},
                "captions": {"playerCaptionsTracklistRenderer": {"captionTracks": tracks}},
            }
        )

    def captions(request: Seen) -> Sent:
        return Sent(
            '<transcript><text start="3.5" dur="2">The lamp</text><text start="65" dur="1">was lit.</text></transcript>',
            "text/xml",
        )

    class Near(requests.Session):
        """Takes what is meant for YouTube to the site on this computer."""

        def request(self, method, url, *args, **kwargs):
            return super().request(method, url.replace("https://www.youtube.com", site.url), *args, **kwargs)

    pages = {
        "/watch": Sent('<script>{"INNERTUBE_API_KEY":"abc"}</script>'),
        "/youtubei/v1/player": player,
        "/captions": captions,
    }
    with web_site(pages) as site, Near() as session:
        page = transcript_page("abcdefghijk", session=session)
        assert page.text == "[0:03] The lamp\n[1:05] was lit." and page.remark == "in en"
        with pytest.raises(ToolFailed, match="no transcript of the video lmnopqrstuv"):
            transcript_page("lmnopqrstuv", session=session)
        with pytest.raises(ToolFailed, match=r"YouTube sent more than 0\.0 MB") as caught:
            transcript_page("abcdefghijk", session=session, max_bytes=100)
        assert not caught.value.again
    with web_site({"/watch": Sent("<p>.</p>", endless=True)}) as site, Near() as session:
        with pytest.raises(
            ToolFailed, match=r"did not hand out the transcript of abcdefghijk \(ReadTimeout\)"
        ) as caught:
            transcript_page("abcdefghijk", session=session, seconds=0.3, max_bytes=10**12)
        assert caught.value.again
    with Near() as session, pytest.raises(ToolFailed, match="did not hand out the transcript") as caught:
        transcript_page("abcdefghijk", session=session)
    assert caught.value.again
