"""The page that a course begins with: every notebook's question, what one will see in it and how long it
takes, in order.
"""

from __future__ import annotations

from collections.abc import Mapping

from kgot_lab.text.counted import counted
from kgot_lab.text.sentences import sentences
from kgot_lab.viz.course import Chapter
from kgot_lab.viz.page import html_document
from kgot_lab.viz.static.markup import Markup, element, joined, shortened

FRONT_PAGE = "index.html"

_STYLE = """
body { font: 17px/1.55 Georgia, "Times New Roman", serif; color: #111; background: #fff; }
body { margin: 2.5rem auto 4rem; max-width: 50rem; padding: 0 1.2rem; }
h1, h2, .minutes, .number, .see { font-family: Helvetica, Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .6rem; }
h2 { font-size: 1.15rem; line-height: 1.3; margin: 0; }
a { color: #00568a; }
a:focus-visible { outline: 3px solid #0072b2; outline-offset: 2px; }
ol { list-style: none; padding: 0; margin: 2rem 0 0; }
ol > li { border-top: 1px solid #bbb; padding: 1.1rem 0 1.2rem; display: grid; grid-template-columns: 3rem 1fr auto; gap: 0 .8rem; }
ol > li > div { grid-column: 2; }
.number, .minutes { color: #555; font-size: .95rem; line-height: 1.6; }
.about { margin: .4rem 0; color: #333; }
.see { margin: .5rem 0 0; font-size: .85rem; color: #555; }
ul { margin: .1rem 0 0; padding-left: 1.2rem; font-size: .95rem; }
@media (max-width: 34rem) { ol > li { grid-template-columns: 2rem 1fr; } .minutes { grid-column: 2; } }
@media (prefers-color-scheme: dark) {
  body { color: #eee; background: #1b1b1b; } a { color: #8accf5; } .about { color: #ccc; } .number, .minutes, .see { color: #b0b0b0; }
}
@media print { body { max-width: none; margin: 0; } li { break-inside: avoid; } }
"""
_ABOUT = 330  # characters of a notebook's first paragraph, in whole sentences


def front_page(title: str, said: str, chapters: Mapping[str, Chapter]) -> str:
    """The text of the page: `chapters` are told in the order given, each by the address of its page; `said`
    stands below the title.
    """
    minutes = sum(chapter.minutes for chapter in chapters.values())
    length = f"{counted(len(chapters), 'notebook')}" + (f", {_hours(minutes)} in all" if minutes else "")
    body = element(
        "main",
        element("h1", title),
        element("p", f"{length}. {said}"),
        element(
            "ol",
            *(
                _entry(number, address, chapter)
                for number, (address, chapter) in enumerate(chapters.items(), start=1)
            ),
        ),
    )
    return html_document(title, _STYLE, body)


def _entry(number: int, address: str, chapter: Chapter) -> Markup:
    about = _opening_of(chapter.about)
    told = joined(
        [
            element("h2", element("a", chapter.title, href=address)),
            element("p", about, class_="about") if about else Markup(),
            element("p", "You will see", class_="see") if chapter.sights else Markup(),
            element("ul", *(element("li", sight) for sight in chapter.sights))
            if chapter.sights
            else Markup(),
        ]
    )
    minutes = element("span", f"{chapter.minutes} min", class_="minutes") if chapter.minutes else Markup()
    return element("li", element("span", number, class_="number"), element("div", told), minutes)


def _opening_of(about: str) -> str:
    """The first sentences of a paragraph, as many as there is room for; of a longer sentence what there is
    room for.
    """
    kept = ""
    for sentence in sentences(about):
        if len(kept) + 1 + len(sentence) > _ABOUT:
            break
        kept = f"{kept} {sentence}".strip()
    return kept or shortened(about, _ABOUT)


def _hours(minutes: int) -> str:
    """A time one would plan with: minutes, or hours and halves of them."""
    if minutes < 90:
        return f"about {counted(minutes, 'minute')}"
    halves = round(minutes / 30)
    return f"about {halves // 2}{' and a half' if halves % 2 else ''} hours"
