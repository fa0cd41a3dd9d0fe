"""Fetching from a real site that does everything that makes the web hard to read."""

import gc
import ipaddress
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support.every import every
from support.waiting import AMPLE
from support.web_site import Seen, Sent, redirect, web_site, zipped_page

from kgot_lab.errors import BadInput, ToolFailed
from kgot_lab.tools.web.engines import JsonApi
from kgot_lab.tools.web.fetching import USER_AGENT, Fetched, FetchSettings, WebFetcher, destination, is_public
from kgot_lab.tools.web.pages import Browser, WebPage, page_from, split_screens

ROBOTS = """User-agent: *
Disallow: /

User-agent: kgot_lab
Disallow: /not-us
Disallow: /secret/
Allow: /secret/open$
"""


class Times:
    """Answers differently each time it is asked; the last answer stays."""

    def __init__(self, *answers: Sent):
        self.answers = list(answers)

    def __call__(self, request: Seen) -> Sent:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


TABLE = "<table><tr><th>Lamp</th><th>Lit</th></tr><tr><td>Grey Point</td><td>1871</td></tr></table>"
PAGES = {
    "/robots.txt": Sent(ROBOTS, "text/plain"),
    "/plain": Sent("Just text.", "text/plain"),
    "/moved": redirect("/plain"),
    "/twice": redirect("moved", 301),
    "/loop": redirect("/loop"),
    "/to-secret": redirect("/secret/key"),
    "/secret/key": Sent("the key"),
    "/secret/open": Sent("<p>open</p>"),
    "/not-us": Sent("x"),
    "/huge.html": Sent("<p>word word word</p>" * 1000, endless=True),
    "/huge.bin": Sent(b"\x00\x01" * 5000, "application/octet-stream", endless=True),
    "/declared-huge.pdf": Sent(b"%PDF-", "application/pdf", headers={"content-length": "900000000"}),
    "/picture.png": Sent(b"\x89PNG\r\n", "image/png"),
    "/archive": Sent(b"PK\x03\x04" + b"\x00" * 100, "application/octet-stream"),
    "/packed": zipped_page("<p>unpacked</p>"),
    "/latin": Sent("<p>café</p>".encode("latin-1"), "text/html; charset=ISO-8859-1"),
    "/said-latin": Sent("<p>naïve café</p>".encode(), "text/html; charset=ISO-8859-1"),
    "/japan": Sent('<meta charset="shift_jis"><p>東京</p>'.encode("shift_jis"), "text/html"),
    "/escapes": Sent("<p>東京</p>".encode("iso-2022-jp"), "text/html; charset=iso-2022-jp"),
    "/wide": Sent("東京".encode("utf-16-le"), "text/plain; charset=utf-16-le"),
    "/nonsense-charset": Sent("<p>café</p>".encode(), "text/html; charset=klingon"),
    "/table": Sent(TABLE),
    "/json": Sent({"lamp": "Grey Point"}),
    "/empty": Sent(""),
    "/frames": Sent('<title>Framed</title><frameset><frame src="left.html" name="menu"><frame src="/r.html"></frameset>'),
    "/inline": Sent('<p>Text</p><iframe src="//other.example/x" title="Map"></iframe>'),
    "/refresh": Sent('<html><head><meta http-equiv="Refresh" content="0; url=plain"></head><body>Moved.</body></html>'),
    "/deep/links.html": Sent(
        '<a href="near.html">near</a> <a href="../up.html?a=b#c">up</a> <a href="//else.example/y">else</a>'
        '<a href="javascript:alert(1)">no</a>'
        '<a href="mailto:a@b.c">mail</a> <img src="lamp.png" alt="a lamp"> <img src="data:image/png;base64,AAAA"><a href="http://[bad">bad</a>'
    ),
    "/based": Sent('<base href="https://base.example/dir/"><a href="x.html">x</a>'),
    "/hidden": Sent(
        "<p>Seen</p><p hidden>one</p><p style='display: none'>two</p><!-- three --><script>four</script><template>five</template>"
    ),
    "/nothing-said": Sent("<html><body><p>still a page</p></body></html>", ""),
}  # fmt: skip


@pytest.fixture(scope="module")
def site():
    with web_site(PAGES) as served:
        yield served


@pytest.fixture
def web(site):
    reader = WebFetcher(
        FetchSettings(private_hosts={site.host}, seconds=60, most_bytes=200_000), sleep=lambda _: None
    )
    yield reader
    reader.close()


@pytest.fixture
def read(site, web):
    return lambda path: page_from(web.fetch(site.url + path))


# --- manners ---


def test_redirects_are_followed_to_the_page_and_its_own_address(site, read):
    assert read("/twice") == WebPage(f"{site.url}/plain", "plain", "Just text.")


def test_a_loop_of_redirects_ends(site, web):
    before = site.visits["/loop"]
    with pytest.raises(ToolFailed, match="redirects more than 5 times"):
        web.fetch(f"{site.url}/loop")
    assert site.visits["/loop"] - before == 6


@pytest.mark.parametrize("path", ["/secret/key", "/to-secret", "/not-us"])
def test_what_robots_txt_forbids_is_not_asked_for_even_after_a_redirect(site, web, path):
    with pytest.raises(ToolFailed, match=r"robots\.txt of 127\.0\.0\.1 asks programs not to visit"):
        web.fetch(site.url + path)
    assert not site.visits["/secret/key"] and not site.visits["/not-us"]


def test_what_robots_txt_allows_is_read_and_robots_txt_is_asked_for_once(site, web):
    before = site.visits["/robots.txt"]
    assert page_from(web.fetch(f"{site.url}/secret/open")).text == "open"
    web.fetch(f"{site.url}/plain")
    assert site.visits["/robots.txt"] - before == 1


def test_a_site_without_robots_txt_may_be_read_and_one_whose_robots_txt_fails_may_not():
    with (
        web_site({"/a": "<p>a</p>"}) as free,
        web_site({"/robots.txt": Sent(status=500), "/a": "<p>a</p>"}) as broken,
    ):
        web = WebFetcher(FetchSettings(private_hosts={free.host, broken.host}), sleep=lambda _: None)
        assert page_from(web.fetch(f"{free.url}/a")).text == "a"
        with pytest.raises(ToolFailed, match="HTTP 500") as caught:
            web.fetch(f"{broken.url}/a")
        assert caught.value.again and not broken.visits["/a"]


def test_a_cookie_is_not_kept():
    with web_site({"/a": Sent("<p>a</p>", headers={"set-cookie": "who=you; Path=/"})}) as site:
        web = WebFetcher(FetchSettings(private_hosts={site.host}))
        web.fetch(f"{site.url}/a")
        web.fetch(f"{site.url}/a")
    assert site.visits["/a"] == 2 and not any("cookie" in request.headers for request in site.seen)


def test_manners_that_mean_nothing_are_refused():
    for wrong, message in (
        ({"private_hosts": "127.0.0.1:80"}, "'private_hosts' is a list"),
        ({"attempts": 0}, "attempts must be a number, 1 or more"),
        ({"redirects": -1}, "0 or more"),
    ):
        with pytest.raises(BadInput, match=message):
            FetchSettings(**wrong)


def test_a_server_that_fails_once_is_asked_again_after_the_wait_it_asks_for():
    waits: list[float] = []
    flaky = Times(Sent(status=500), Sent(status=503, headers={"retry-after": "3"}), Sent("<p>there</p>"))
    with web_site({"/a": flaky}) as site:
        web = WebFetcher(FetchSettings(private_hosts={site.host}), sleep=waits.append)
        assert page_from(web.fetch(f"{site.url}/a")).text == "there"
    assert len(waits) == 2 and waits[0] <= 0.5 and waits[1] == 3


@every(
    ("sent", "message", "again", "asked"),
    [
        (Sent(status=500), "HTTP 500", True, 3),
        (Sent(status=429, headers={"retry-after": "900"}), "HTTP 429", True, 1),
        (Sent(status=429, headers={"retry-after": "\xb2"}), "HTTP 429", True, 3),
        (Sent(status=429, headers={"retry-after": "Thu, 31 Dec 2099 23:59:59 GMT"}), "HTTP 429", True, 1),
        (Sent(status=404), "HTTP 404: there is no page", False, 1),
        (Sent(status=403), "HTTP 403", False, 1),
    ],
)
def test_a_failure_says_whether_trying_again_may_help(sent, message, again, asked):
    with web_site({"/a": sent}) as site:
        web = WebFetcher(FetchSettings(private_hosts={site.host}), sleep=lambda _: None)
        with pytest.raises(ToolFailed, match=message) as caught:
            web.fetch(f"{site.url}/a")
        assert (caught.value.again, site.visits["/a"]) == (again, asked)


def test_a_server_that_never_ends_its_answer_is_left():
    ended = threading.Event()

    def wait(request: Seen) -> Sent:
        ended.wait(60)
        return Sent("late")

    with web_site({"/slow": wait}) as site:
        web = WebFetcher(FetchSettings(private_hosts={site.host}, seconds=0.3, attempts=1))
        with pytest.raises(ToolFailed, match=r"did not answer within 0\.3 s") as caught:
            web.fetch(f"{site.url}/slow")
        ended.set()
    assert caught.value.again


def test_what_nobody_holds_any_more_is_closed():
    web = WebFetcher()
    client = web._client
    del web
    gc.collect()
    assert client.is_closed


@pytest.mark.parametrize(
    ("most", "seconds", "message", "again"),
    [(1000, 60, "answered with more than", False), (10**12, 0.3, r"did not answer within 0\.3 s", True)],
)
def test_a_service_that_sends_without_end_is_left(monkeypatch, most, seconds, message, again):
    monkeypatch.setattr("kgot_lab.tools.web.engines._MAX_BYTES", most)
    page = Sent('{"a": 1}', "application/json", endless=True)
    with (
        web_site({"/api": page}) as site,
        pytest.raises(ToolFailed, match=f"the service {message}") as caught,
    ):
        JsonApi("the service", f"{site.url}/api", seconds=seconds).get({})
    assert caught.value.again == again


def test_a_connection_that_is_refused_may_be_tried_again(site):
    with web_site({}) as gone:
        pass
    web = WebFetcher(FetchSettings(private_hosts={gone.host}, attempts=2), sleep=lambda _: None)
    with pytest.raises(ToolFailed, match=r"the connection to 127\.0\.0\.1 broke") as caught:
        web.fetch(gone.url)
    assert caught.value.again


# --- size and kind ---


def test_of_a_page_without_end_the_beginning_is_read_and_the_page_says_so(read):
    page = read("/huge.html")
    assert 100_000 < len(page.text) < 200_000 and page.remark == "only the first 0.2 MB were read"


def test_a_page_of_more_markup_than_can_be_read_soon_is_cut(monkeypatch):
    monkeypatch.setattr("kgot_lab.tools.web.pages._MAX_MARKUP", 1000)
    page = page_from(Fetched("http://a.example/", "text/html", "", b"<p>word</p>" * 1000))
    assert len(page.text) < 1000 and page.remark.startswith("only the first")


@pytest.mark.parametrize(
    ("path", "message"), [("/huge.bin", "larger than 0.2 MB"), ("/declared-huge.pdf", "a file of 900 MB")]
)
def test_a_file_that_is_too_large_is_left(read, path, message):
    with pytest.raises(ToolFailed, match=message):
        read(path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/picture.png", "image/png, which holds no text"),
        ("/archive", "cannot be read as text"),
        ("/empty", "cannot be read as text.*empty"),
    ],
)
def test_what_holds_no_text_is_refused_with_its_kind(read, path, message):
    with pytest.raises(ToolFailed, match=message):
        read(path)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/packed", "unpacked"), ("/latin", "café"), ("/said-latin", "naïve café"), ("/japan", "東京"), ("/escapes", "東京"),
        ("/wide", "東京"),
        ("/nonsense-charset", "café"), ("/json", '{"lamp": "Grey Point"}'), ("/nothing-said", "still a page"),
        ("/table", "| Lamp | Lit |\n| --- | --- |\n| Grey Point | 1871 |"), ("/hidden", "Seen"),
    ],
)  # fmt: skip
def test_pages_are_read_as_a_reader_sees_them(read, path, text):
    assert read(path).text == text


def test_links_come_out_whole_and_those_that_lead_to_no_page_come_out_as_text(site, read):
    text = read("/deep/links.html").text
    for link in (
        f"[near]({site.url}/deep/near.html)",
        f"[up]({site.url}/up.html?a=b#c)",
        "[else](http://else.example/y)",
        "a lamp",
    ):
        assert link in text
    assert not any(scheme in text for scheme in ("javascript:", "mailto:", "data:", "[bad"))
    assert read("/based").text == "[x](https://base.example/dir/x.html)"


def test_frames_and_page_made_redirects_become_links(site, read):
    assert read("/frames").title == "Framed"
    assert read("/frames").text == f"[Frame: menu]({site.url}/left.html)\n\n[Frame: frame]({site.url}/r.html)"
    assert read("/inline").text == "Text\n\n[Frame: Map](http://other.example/x)"
    assert read("/refresh").text == f"Moved.\n\n[This page leads on to]({site.url}/plain)"


# --- private addresses ---

PRIVATE = [
    "127.0.0.1", "127.1.2.3", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1", "::1", "::",
    "fe80::1", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1", "nonsense",
]  # fmt: skip


@every("ip", PRIVATE)
def test_a_private_number_is_known_in_every_spelling(ip):
    assert not is_public(ip)


@pytest.mark.parametrize(
    "ip", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)
def test_a_public_number_is_public(ip):
    assert is_public(ip) and ipaddress.ip_address(ip)


@every(
    "address",
    [
        "http://127.0.0.1/", "http://localhost/", "http://[::1]/", "http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/",
        "http://[::ffff:127.0.0.1]/", "http://169.254.169.254/latest/meta-data", "http://0/",
    ],
)  # fmt: skip
def test_a_private_address_is_refused_however_it_is_spelt(address):
    with pytest.raises(ToolFailed, match=r"is a private address|no computer called|is not an address"):
        destination(address)


@every(
    ("address", "message"),
    [
        ("file:///etc/passwd", "only http and https"), ("ftp://example.org/", "only http"), ("gopher://127.0.0.1:70/", "only http"),
        ("/etc/passwd", "only http and https"), ("", "only http and https"), ("http://", "only http"), ("http://a\nb/", "not an address"),
        ("http://user:pass@example.org/", "user name or password"), ("http://no-such-host.invalid/", "no computer called"),
    ],
)  # fmt: skip
def test_what_is_no_web_address_is_refused_with_the_reason(address, message):
    with pytest.raises(ToolFailed, match=message):
        destination(address)


def test_a_private_site_is_reached_only_where_its_host_and_port_were_named(site):
    with pytest.raises(ToolFailed, match="private address"):
        WebFetcher().fetch(f"{site.url}/plain")
    with web_site({"/robots.txt": Sent(status=404), "/x": redirect(f"{site.url}/plain")}) as door:
        before = len(site.seen)
        web = WebFetcher(FetchSettings(private_hosts={door.host}))
        with pytest.raises(ToolFailed, match="private address"):
            web.fetch(f"{door.url}/x")
        assert len(site.seen) == before, "a redirect from an allowed host to a private one is not followed"


def test_a_name_that_changes_its_number_between_two_look_ups_is_connected_to_where_it_was_checked(
    site, monkeypatch
):
    port = int(site.host.rpartition(":")[2])
    answers = iter(["127.0.0.1", "127.0.0.2", "127.0.0.2"])
    asked = []

    def look_up(host, port, *_, **__):
        asked.append(host)
        return [(2, 1, 6, "", (next(answers) if host == "moving.example" else host, port))]

    monkeypatch.setattr("kgot_lab.tools.web.fetching.socket.getaddrinfo", look_up)
    where = destination(f"http://moving.example:{port}/plain", {f"moving.example:{port}"})
    web = WebFetcher(FetchSettings(private_hosts={f"moving.example:{port}"}))
    answer = web._request(where, 1000, time.monotonic() + AMPLE)
    assert (answer.data, where.ip) == (b"Just text.", "127.0.0.1")
    assert asked.count("moving.example") == 1 and site.seen[-1].headers["host"] == f"moving.example:{port}"


def test_a_certificate_is_checked_for_the_name_and_not_for_the_number(tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=right.example",
            "-addext", "subjectAltName=DNS:right.example", "-keyout", str(key), "-out", str(certificate)]  # fmt: skip
    try:
        subprocess.run(made, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no openssl here")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/plain")
            self.end_headers()
            self.wfile.write(b"safe")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    port = server.server_address[1]
    look_up = lambda host, port, *_, **__: [(2, 1, 6, "", ("127.0.0.1", port))]  # noqa: E731
    monkeypatch.setattr("kgot_lab.tools.web.fetching.socket.getaddrinfo", look_up)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    web = WebFetcher(
        FetchSettings(private_hosts={f"right.example:{port}", f"wrong.example:{port}"}, attempts=1)
    )
    try:
        assert web.fetch(f"https://right.example:{port}/").data == b"safe"
        with pytest.raises(ToolFailed, match="certificate"):
            web.fetch(f"https://wrong.example:{port}/")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# --- the browser ---


def test_screens_joined_are_the_text_and_end_where_words_do():
    text = "\n\n".join(f"Paragraph {number} " + "word " * 40 for number in range(100))
    parts = split_screens(text, 1000)
    assert "".join(parts) == text
    assert all(len(part) <= 1000 for part in parts)
    assert all(part[-1].isspace() for part in parts[:-1])
    assert split_screens("x" * 2500, 1000) == ["x" * 1000, "x" * 1000, "x" * 500]
    assert split_screens("") == [""]


def test_a_text_is_found_across_the_end_of_a_screen_and_through_emphasis():
    page = WebPage(
        "https://a.example/", "A", "word " * 199 + "the **Grey\nPoint** lamp " + "word " * 300 + "grey point"
    )
    browser = Browser(lambda address: page, 1000)
    browser.visit("a.example")
    assert browser.find("the grey point lamp").number == 1
    assert browser.find("POINT  lamp").number == 2
    browser.find("grey point")
    assert browser.find_next().number == len(split_screens(page.text, 1000))
    with pytest.raises(ToolFailed, match="no further"):
        browser.find_next()


def test_without_a_page_every_move_says_so():
    browser = Browser(lambda address: WebPage(address, "", ""))
    for move in (
        browser.page_down,
        browser.page_up,
        browser.back,
        browser.find_next,
        lambda: browser.find("x"),
    ):
        with pytest.raises(ToolFailed, match=r"no page|nothing was sought|end of the page|beginning"):
            move()


def test_the_project_names_itself(site, read):
    read("/plain")
    assert {request.headers["user-agent"] for request in site.seen} == {USER_AGENT}
    assert USER_AGENT.startswith("kgot_lab/")
