"""Draw docs/layers.svg: the layers of the package, as the contract of import-linter in pyproject.toml lists them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
WIDTH, ROW, GAP, LEFT = 720, 34, 6, 40
FONT = 'font-family="system-ui, sans-serif" font-size="14"'


def layers() -> list[list[str]]:
    """Return the packages of each layer, the highest layer first; of optional ones (in brackets) the first."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = (each for each in tool["contracts"] if each["type"] == "layers")
    rows = [[name.strip() for name in layer.split(":")] for layer in contract["layers"]]
    return [[name.strip("()") for name in (row[:1] if "(" in row[0] else row)] for row in rows]


def layers_svg() -> str:
    """Draw a row a layer with a box a package."""
    rows = layers()
    height = len(rows) * (ROW + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        ' role="img" aria-label="The twelve layers of the package, the highest first">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for at, names in enumerate(rows):
        y = GAP + at * (ROW + GAP)
        parts.append(f'<text x="12" y="{y + 22}" {FONT} fill="#666666">{len(rows) - at}</text>')
        width = (WIDTH - LEFT - GAP * len(names)) / max(len(names), 1)
        for column, name in enumerate(names):
            x = LEFT + column * (width + GAP)
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW}" rx="5" fill="#eaf1fb" stroke="#5b7fb5"/>'
            )
            middle = f'x="{x + width / 2:.1f}" y="{y + 22}"'
            parts.append(f'<text {middle} {FONT} text-anchor="middle" fill="#1b2a41">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "layers.svg").write_text(layers_svg(), encoding="utf-8")
