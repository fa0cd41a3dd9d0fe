"""What a page fetches from outside is found however it is written, what it does not fetch is left alone, and
a browser agrees.
"""

import base64
import html
import json
import re
from pathlib import Path

import pytest
from support.every import every
from support.external_links import find_external_links

from kgot_lab.diagnostics.components import find_chromium
from kgot_lab.errors import LabError
from kgot_lab.graph import PropertyGraph
from kgot_lab.loop.events import Started
from kgot_lab.types import Edge
from kgot_lab.viz import build_run_page, svg, table
from kgot_lab.viz.external_requests import find_external_requests, find_notebook_requests

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="

AT_ONCE = [  # a browser fetches from //e.example as soon as it has the page
    '<img src="https://e.example/a.png">',
    "<IMG SRC=HTTPS://e.example/a.png>",
    "<img src='//e.example/a'>",
    "<img/src=//e.example/a>",
    '<img src="&#104;ttps://e.example/&amp;a">',
    '<img src="ht\ntps://e.example/a">',
    '<img src="  \\\\e.example\\a">',
    '<img src="/\\e.example/a">',
    '<img src="https:e.example/a">',
    '<img alt=">" src=//e.example/a>',
    "<img alt='\"' src=//e.example/a>",
    f'<img srcset="//e.example/a 1x, {PIXEL} 2x">',
    '<picture><source srcset="//e.example/a 1x"><img></picture>',
    "<link rel=stylesheet href=//e.example/a.css>",
    '<LINK REL="PRECONNECT STYLESHEET" HREF="//e.example/a.css">',
    '<link rel="alternate stylesheet" href="//e.example/a.css">',
    '<link rel=preload as=image imagesrcset="//e.example/a 1x">',
    '<link rel=stylesheet href="data:text/css,@import url(https://e.example/a)">',
    "<script src=//e.example/a.js></script>",
    '<script>fetch("https://e.example/a")</script>',
    '<script type=module>import "https://e.example/a.js"</script>',
    '<script>import("https:\\/\\/e.example/a.js")</script>',
    '<script>new Image().src = "//e.example/a"</script>',
    '<script>const asked = new XMLHttpRequest(); asked.open("GET", "//e.example/a"); asked.send()</script>',
    '<script>document.createElement("img").setAttribute("src", "//e.example/a")</script>',
    "<script>document.write(\"<img src='//e.example/a'>\")</script>",
    '<script/>fetch("//e.example/a")</script>',
    "<script></script x><img src=//e.example/a>",
    "<script></script/><img src=//e.example/a>",
    '<script type=importmap>{"imports": {"x": "https://e.example/a.js"}}</script><script type=module>import "x"</script>',
    '<style>@import "//e.example/a.css"',
    "<style>@import url(//e.example/a.css);</style>",
    '<style>@\\69mport "//e.example/a.css";</style>',
    "<style>body{background:u\\72l(//e.example/a)}</style>",
    '<style>body{background:URL( "//e.example/a" )}</style>',
    '<style>body{background:url("\\2f\\2f e.example/a")}</style>',
    '<style>body{background:url("\\5c\\5c e.example/a")}</style>',
    '<style>body{background:image-set("//e.example/a" 1x)}</style>',
    '<style>/* " */ body{background:url(//e.example/a)} /* " */</style>',
    '<style>body::before{content:"/*";background:url(//e.example/a)} p{content:"*/"}</style>',
    "<style>@font-face{font-family:x;src:url(//e.example/f.woff)} body{font-family:x}</style><p>text",
    '<p style="background:url(&quot;//e.example/a&quot;)">x',
    '<iframe src="//e.example/a"></iframe>',
    '<iframe srcdoc="&lt;img src=//e.example/a&gt;"></iframe>',
    '<iframe src="data:text/html,<img src=https://e.example/a>"></iframe>',
    '<iframe src="data:text/html;base64,PGltZyBzcmM9aHR0cHM6Ly9lLmV4YW1wbGUvYT4="></iframe>',
    "<iframe src=\"javascript:fetch('//e.example/a')\"></iframe>",
    '<object data="//e.example/a"></object>',
    "<object data=\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><image href='https://e.example/a'/></svg>\"></object>",
    '<embed src="//e.example/a">',
    '<video poster="//e.example/a"></video>',
    '<audio src="//e.example/a"></audio>',
    '<input type=image src="//e.example/a">',
    '<body background="//e.example/a">',
    '<table background="//e.example/a"><tr><td>x</table>',
    '<svg><image href="//e.example/a" width=9 height=9 /></svg>',
    '<svg><image xlink:href="//e.example/a" width=9 height=9 /></svg>',
    '<svg><filter id=f><feImage href="//e.example/a"/></filter><rect width=9 height=9 filter=url(#f) /></svg>',
    '<svg><rect width=9 height=9 style="mask:url(//e.example/a#b)"/></svg>',
    '<svg><rect width=9 height=9 mask="url(//e.example/a#b)"/></svg>',
    '<svg><script href="//e.example/a.js"></script></svg>',
    "<svg><style><img src=//e.example/a></style></svg>",
    "<svg><title><img src=//e.example/a></title></svg>",
    "<svg><style>@import &quot;//e.example/a&quot;;</style></svg>",
    '<svg><style><![CDATA[@import "//e.example/a";]]></style></svg>',
    "<svg><foreignObject><img src=//e.example/a></foreignObject></svg>",
    '<svg><image width=9 height=9><set attributeName="href" to="//e.example/a"/></image></svg>',
    '<svg></p><style><a title="</style><img src=//e.example/a>">',
    "<math><mtext><img src=//e.example/a></mtext></math>",
    "<!--> <img src=//e.example/a> -->",
    "<!---> <img src=//e.example/a> -->",
    "<!-- x --!><img src=//e.example/a> -->",
    "<![CDATA[><img src=//e.example/a>]]>",
    "<!x><img src=//e.example/a>",
    "<? x ><img src=//e.example/a>",
    "</ x><img src=//e.example/a>",
    '<meta http-equiv=refresh content="0; url=//e.example/a">',
    "<meta http-equiv=Refresh content=\"0;URL='//e.example/a'\">",
    '<meta http-equiv=refresh content="0;https://e.example/a">',
    '<base href="//e.example/"><img src=a.png>',
    '<img src=x onerror="fetch(&quot;//e.example/a&quot;)">',
]
LATER = [  # not at once, or not by every browser: when clicked, without scripts, on a screen of another kind
    f'<img srcset="{PIXEL} 1x, //e.example/a 2x">',
    "<noscript><img src=//e.example/a></noscript>",
    "<p onclick=\"fetch('//e.example/a')\">x",
    '<a href="#" ping="//e.example/a">x</a>',
    '<form action="//e.example/a"><button>x</form>',
    '<button formaction="//e.example/a">x</button>',
    "<template><img src=//e.example/a></template>",
    '<svg><use href="//e.example/a#b"/></svg>',
    '<?xml-stylesheet href="//e.example/a.css"?><svg/>',
    "<!DOCTYPE svg [<!ENTITY x \"<image href='//e.example/a'/>\">]><svg>&x;</svg>",
    '<!DOCTYPE svg [<!ENTITY x "https://e.example/a">]><svg><image href="&x;"/></svg>',
    '<svg xmlns:y="http://www.w3.org/1999/xlink"><image y:href="//e.example/a"/></svg>',
    '<svg:style xmlns:svg="http://www.w3.org/2000/svg">@import "//e.example/a"</svg:style>',
    '<script type=speculationrules>{"prefetch": [{"urls": ["https://e.example/a"]}]}</script>',
]
NEVER = [
    '<a href="https://e.example/a">x</a>',
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    '<a xlink:href="https://e.example/a"><text y="9">x</text></a></svg>',
    '<p>https://e.example/a url(https://e.example/a) @import "https://e.example/a"',
    '<pre>&lt;img src="https://e.example/a"&gt;</pre>',
    f'<img src="{PIXEL}">',
    '<script type="application/json">{"a": "<img src=https://e.example/a>", "b": "fetch(\'https://e.example/a\')"}</script>',
    '<script>document.createElementNS("http://www.w3.org/2000/svg", "g")</script>',
    '<script>const seen = "https://e.example/a"; // https://e.example/b\n</script>',
    "<textarea><img src=https://e.example/a></textarea>",
    "<title><img src=https://e.example/a></title>",
    "<xmp><img src=https://e.example/a></xmp>",
    "<iframe><img src=https://e.example/a></iframe>",
    "<!-- <img src=https://e.example/a> -->",
    "<style>@namespace svg url(http://www.w3.org/2000/svg); /* url(//e.example/a) */ p { content: 'https://e.example/a' }</style>",
    '<img alt="><img src=https://e.example/a>">',
    '<img alt="><img src=https://e.example/a>',
    "<p><img src=https://e.example/a",
    '<p title="<img src=https://e.example/a>">x',
    '<svg><use href="#a"/><rect fill="url(#b)"/></svg>',
    '<link rel=canonical href="https://e.example/a"><link rel="license" href="https://e.example/a">',
    '<a href="mailto:x@e.example">x</a><form action="javascript:void 0"></form>',
    '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd"><svg></svg>',
    "<img src><img src=''><a href=#top>x</a>",
]


@every("text", [*AT_ONCE, *LATER])
def test_what_a_browser_would_fetch_is_found(text):
    assert find_external_requests(text) and all(
        "e.example" in address.lower() for address in find_external_requests(text)
    )


@every("text", NEVER)
def test_what_a_browser_would_not_fetch_is_left_alone(text):
    assert find_external_requests(text) == ()


@pytest.mark.extended
def test_a_real_browser_fetches_what_is_found_and_nothing_else():
    sync = pytest.importorskip("playwright.sync_api").sync_playwright
    try:
        program = find_chromium()
    except LabError as error:
        pytest.skip(str(error))
    texts = [(n, text) for n, text in enumerate([*AT_ONCE, *NEVER]) if "e.example" in text]
    cases = [text.replace("e.example", f"e{number}.example") for number, text in texts]
    body = "".join(f'<iframe srcdoc="{html.escape(text)}"></iframe>' for text in cases)
    asked = set()

    def answer(route):
        if route.request.url == "http://page.example/":
            route.fulfill(body=f"<!DOCTYPE html>{body}", content_type="text/html")
        else:
            asked.add(route.request.url.split("/")[2])
            route.abort()

    with sync() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        opened = browser.new_page()
        opened.route("**/*", answer)
        opened.goto("http://page.example/")
        opened.wait_for_timeout(1000)
        browser.close()
    fetched = {text for text in cases if asked & set(re.findall(r"e\d+\.example", text))}
    assert fetched == {text for text in cases if find_external_requests(text)}


def test_a_link_to_click_is_told_apart_from_what_is_fetched():
    text = '<a href="https://a.example">a</a> <a href="b.html">b</a> <area href=//c.example> <img src="https://d.example">'
    assert find_external_links(text) == ("https://a.example", "//c.example") and find_external_requests(
        text
    ) == ("https://d.example",)


def test_files_beside_the_page_are_told_on_request():
    text = '<img src="a.png"><script src="lib/b.js"></script><style>p{background:url(e.png)}</style>'
    text += '<a href="c.html">c</a><img src="#d"><img src="data:,">'
    assert find_external_requests(text) == () and find_external_requests(text, beside=True) == (
        "a.png",
        "lib/b.js",
        "e.png",
    )


def test_css_is_read_as_css_even_where_it_holds_a_picture():
    text = 'a { background: url("data:image/svg+xml,<svg></svg>") } b { background: url(//e.example/a) }'
    assert find_external_requests(text) == ("//e.example/a",) and find_external_requests(
        "@import 'http://e.example/a.css'"
    ) == ("http://e.example/a.css",)


def test_texts_within_texts_are_read_to_a_depth_and_beyond_it_reported():
    inner = "<img src=https://e.example/a>"
    for _ in range(3):
        inner = f"<iframe src='data:text/html;base64,{base64.b64encode(inner.encode()).decode()}'></iframe>"
    assert find_external_requests(inner) == ("https://e.example/a",)
    for _ in range(9):
        inner = f"<iframe src='data:text/html;base64,{base64.b64encode(inner.encode()).decode()}'></iframe>"
    assert len(find_external_requests(inner)) == 1 and find_external_requests(inner)[0].startswith(
        "too-deep:data:text/html"
    )


def test_our_own_outputs_fetch_nothing():
    graph = PropertyGraph.of((), [Edge("a <img src=//e.example>", "url(//e.example)", "b")], dangling="add")
    for made in (
        svg(graph).svg,
        table(graph).html,
        build_run_page([Started(question="?", start=graph)], title="<script src=//e.example>"),
    ):
        assert find_external_requests(made, beside=True) == ()


# --- notebooks ---


def notebook(tmp_path, *cells, **metadata):
    path = tmp_path / "some.ipynb"
    whole = {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(whole), encoding="utf-8")
    return path


def code(*outputs):
    displayed = [{"output_type": "display_data", "data": output} for output in outputs]
    return {"cell_type": "code", "source": "fetch('https://e.example')", "outputs": displayed}


@every("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebooks_of_this_project_fetch_nothing_and_hold_no_widget(path):
    text = path.read_text(encoding="utf-8")
    assert find_notebook_requests(json.loads(text)) == () and "jupyter.widget" not in text


def test_what_a_notebook_would_fetch_is_told_with_its_place(tmp_path):
    path = notebook(
        tmp_path,
        {
            "cell_type": "markdown",
            "source": [
                "![a](https://a.example/a.png) and [a link](https://l.example)\n",
                "![b][c]\n\n[c]: //c.example/c.png",
            ],
        },
        code(
            {"text/plain": "<img src=//e.example>"},
            {"text/html": ["<img src=", "//d.example>"], "text/plain": "d"},
        ),
        code(
            {"image/svg+xml": "<svg><image href='//f.example'/></svg>"},
            {"application/javascript": "import('https://g.example')"},
        ),
    )
    assert list(find_notebook_requests(json.loads(path.read_text()))) == [
        "cell 1, text: https://a.example/a.png",
        "cell 1, text: //c.example/c.png",
        "cell 2, output 2, text/html: //d.example",
        "cell 3, output 1, image/svg+xml: //f.example",
        "cell 3, output 2, application/javascript: https://g.example",
    ]


def test_damaged_addresses_are_no_trouble():
    images = '<img src="data:text/html;base64,%%%"><img src="data:text/html"><img src="data:;base64,A">'
    assert find_external_requests(images) == ()
    assert not any(map(find_external_requests, ("", "<", "<>", "</", "<a b='")))


def test_addresses_are_told_once_and_in_order():
    text = '<img src="https://b.example"><img src=" https://b.example "><link rel=icon href=//a.example>'
    assert find_external_requests(text) == ("https://b.example", "//a.example")
