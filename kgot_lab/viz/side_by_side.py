"""Things side by side, a column for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kgot_lab.viz.graph.svg import Picture
from kgot_lab.viz.static.markup import Markup, concat, element, shorten
from kgot_lab.viz.static.table import ALIGN_LEFT, MAX_CELL_LENGTH, Table, sheet

_CODE = "white-space:pre-wrap;overflow-wrap:anywhere;font-size:85%;margin:0"


@dataclass(frozen=True)
class Comparison:
    """Several things side by side: in HTML a column for each, in the table and in plain text a row.

    `told` has the texts of each in the order of `columns`, of which the first is its name. Only the HTML has
    the pictures, named `picture_name`, and a text that is `code` in the font of code.
    """

    caption: str
    columns: tuple[str, ...]
    told: tuple[tuple[str, ...], ...]
    pictured: tuple[Picture, ...] = field(repr=False)
    picture_name: str = "graph"
    code: bool = False

    def table(self) -> Table:
        """Return the texts without the pictures, a row for each."""
        return Table((sheet(self.columns, self.told, self.caption),))

    def _repr_html_(self) -> str:
        rows = [(self.picture_name, [Markup(picture._repr_html_()) for picture in self.pictured])]
        tag, style = ("pre", _CODE) if self.code else ("div", "white-space:pre-line")
        for number, name in enumerate(self.columns[1:], start=1):
            texts = [_shorten_lines(texts[number]) for texts in self.told]
            if any(texts):
                rows.append((name, [element(tag, text, style=style) for text in texts]))
        return comparison_table(self.caption, [texts[0] for texts in self.told], rows)

    def __repr__(self) -> str:
        return repr(self.table())


def _shorten_lines(text: str) -> str:
    return "\n".join(shorten(line, MAX_CELL_LENGTH) for line in text.splitlines())


def comparison_table(
    caption: str, heads: Sequence[str], rows: Iterable[tuple[str, Iterable[Markup]]]
) -> Markup:
    """Build a comparison table with columns of equal width and a named row for each trait."""
    names = (element("th", head, scope="col", style=ALIGN_LEFT) for head in heads)
    head = element("thead", element("tr", element("td"), *names))
    columns = element("colgroup", element("col", style="width:7em"), *(element("col") for _ in heads))
    body = element("tbody", *(_table_row(name, cells) for name, cells in rows))
    style, title = "table-layout:fixed;width:100%", element("caption", caption, style=ALIGN_LEFT)
    return element("table", title, columns, head, body, style=style)


def _table_row(name: str, cells: Iterable[Markup]) -> Markup:
    style = f"{ALIGN_LEFT};vertical-align:top"
    columns = (element("td", concat([cell]), style=style) for cell in cells)
    return element("tr", element("th", name, scope="row", style=style), *columns)
