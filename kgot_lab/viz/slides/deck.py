"""A notebook as slides in one HTML file: arrow keys, notes, one slide a page on paper, nothing fetched."""

from __future__ import annotations

import ast
import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kgot_lab.errors import BadInput
from kgot_lab.io.atomic_write import write_whole
from kgot_lab.viz.page import page_head
from kgot_lab.viz.slides.reading import CODE_LINES, CellShown, CellTold, Heading, inline, notebook_parts
from kgot_lab.viz.static.markup import Markup, element, joined

_HERE = Path(__file__).parent
_LEFT_OUT = ("In the package",)  # sections that are for readers, not for a room
_SENTENCES, _BULLETS = 2, 6
_GIVEN = ("<img", "<table", '<pre class="gave"')  # how a body begins that a cell gave
_DENSE = 1100  # characters of a slide above which they are set smaller
_EXERCISE = re.compile(r"\*\*\d+\.\*\*")  # how the text of one begins
_ROW = 50  # characters whose room a row of a table takes besides its own


@dataclass
class _Slide:
    heading: str
    level: int
    body: list[Markup] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def slides_of(path: Path | str) -> str:
    """The slides of a notebook as the text of an HTML page.

    A slide for each heading, with the first two sentences or the bullets below it, short code and what it
    gave; each further picture or table gets one of its own, and so does each exercise. All that was said
    stands in the notes (key n). Cells that end in a check, and those that a reader types into, are left out.
    Raises BadInput for a notebook that is missing, damaged or has nothing to show.
    """
    path = Path(path)
    slides = [slide for slide in _slides(notebook_parts(path)) if slide.body or slide.level == 1]
    if not slides:
        raise BadInput(
            f"{path.name} has no heading and nothing below one: there is nothing to make slides of"
        )
    script = (_HERE / "deck.js").read_text(encoding="utf-8")
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    head = _with_pictures(
        page_head(
            slides[0].heading, (_HERE / "deck.css").read_text(encoding="utf-8"), script=f"'sha256-{digest}'"
        )
    )
    shown = [_section(slide, number, len(slides)) for number, slide in enumerate(slides, start=1)]
    keys = element("p", "Arrow keys or space: on and back. N: notes. Home, End: first, last.", class_="keys")
    body = element("body", element("main", *shown), keys, element("script", Markup(script)))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def write_slides(paths: Iterable[Path | str], folder: Path | str) -> tuple[Path, ...]:
    """Write the slides of some notebooks into a folder, each as NAME.slides.html, and return their paths;
    raises as `slides_of` does.
    """
    made = {f"{Path(path).stem}.slides.html": slides_of(path) for path in paths}
    return tuple(write_whole(Path(folder) / name, text, "the slides") for name, text in made.items())


def _slides(parts: Iterable[CellTold | Heading | CellShown]) -> Iterator[_Slide]:
    slide, skipped, waiting = (
        _Slide("", 9),
        False,
        list[str](),
    )  # what was said after a picture is about the next one, if there is one
    for part in parts:
        if isinstance(part, Heading):
            slide.notes += waiting
            yield slide
            slide, skipped, waiting = _Slide(part.text, part.level), part.text in _LEFT_OUT, []
        elif skipped:
            continue
        elif isinstance(part, CellTold):
            if slide.body and any(map(_EXERCISE.match, part.blocks)):
                slide.notes += waiting
                yield slide
                slide, waiting = _Slide(slide.heading, slide.level), []
            if not slide.body or (slide.level == 1 and len(slide.body) == 1):
                slide.body += _lead(part.blocks)
                slide.notes += part.blocks
            else:
                waiting += part.blocks
        elif _is_presentable(part):
            if part.gives and any(
                each.startswith(_GIVEN) or (part.pictures and each.startswith("<pre")) for each in slide.body
            ):
                yield slide
                lead = _sentences(waiting[-1])[-1:] if waiting else []
                slide = _Slide(
                    slide.heading, slide.level, [element("p", inline(sentence)) for sentence in lead]
                )
            slide.body += _of_code(part)
            slide.notes += waiting
            waiting = []
    slide.notes += waiting
    yield slide


def _lead(blocks: Sequence[str]) -> list[Markup]:
    bullets = [block[2:] for block in blocks if block.startswith("- ")]
    texts = [
        block
        for block in blocks
        if not block.startswith(("- ", "**Time:**", "**Next:**", "**You will see**"))
    ]
    said = [element("p", inline(" ".join(_sentences(text)[:_SENTENCES]))) for text in texts[:1]]
    asked = [
        element("p", inline(text)) for text in texts if _EXERCISE.match(text)
    ]  # an exercise is shown whole
    listed = (
        [element("ul", *(element("li", inline(bullet)) for bullet in bullets[:_BULLETS]))] if bullets else []
    )
    return [*(asked or said), *listed]


def _sentences(text: str) -> list[str]:
    return [each for each in re.split(r"(?<=[.!?:])\s+(?=[A-Z*`\"])", text.strip()) if each]


def _of_code(part: CellShown) -> list[Markup]:
    short = len(part.code.splitlines()) <= CODE_LINES
    code = [element("pre", element("code", part.code))] if short and not part.pictures else []
    text = (
        [element("pre", part.text, class_="gave")] if part.text and not (part.pictures or part.tables) else []
    )
    return [*code, *part.pictures, *part.tables, *text]


def _is_presentable(part: CellShown) -> bool:
    """Whether a cell shows something, or is short code that makes something; imports, and cells that end in a
    check, are for readers.
    """
    if part.gives:
        return True
    try:
        lines = ast.parse(part.code).body
    except SyntaxError:
        return False
    imports = all(isinstance(line, ast.Import | ast.ImportFrom) for line in lines)
    return len(part.code.splitlines()) <= CODE_LINES and not imports and not isinstance(lines[-1], ast.Assert)


def _section(slide: _Slide, number: int, count: int) -> Markup:
    heading = element("h1" if slide.level == 1 else "h2", slide.heading)
    notes = (
        [
            element(
                "aside",
                *(element("p", inline(each.removeprefix("- "))) for each in slide.notes),
                class_="notes",
            )
        ]
        if slide.notes
        else []
    )
    place = element("p", f"{number} / {count}", class_="place")
    much = sum(len(re.sub("<[^>]*>", "", each)) + _ROW * each.count("<tr>") for each in slide.body)
    return element(
        "section",
        heading,
        *slide.body,
        *notes,
        place,
        class_="dense" if much > _DENSE else None,
        id=f"slide-{number}",
    )


def _with_pictures(head: Markup) -> Markup:
    """The head of a page, whose pictures may be such as hold their own content."""
    return Markup(
        joined([head]).replace(
            "default-src &#x27;none&#x27;", "default-src &#x27;none&#x27;; img-src data:", 1
        )
    )
