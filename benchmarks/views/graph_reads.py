"""How well the bundled graphs read, live and still, measured in Chromium at 1280 x 800.

python -m benchmarks.views.graph_reads              prints the table and writes results/views/graph_reads.json
python -m benchmarks.views.graph_reads --quick      prints it, writes nothing python -m
benchmarks.views.graph_reads
--only town  those whose names hold a word; writes nothing python -m benchmarks.views.graph_reads --pictures
runs/reads   a screenshot of each, live and still, in light and dark

"on others": names that lie on another name or on a node that is not theirs. "wordless": edges without words
at rest; "mute": also when one points at them. "through": edges drawn through a node that is none of their
ends. "used": the box around the drawing over the canvas.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.requirements import require_browser
from kgot_lab.diagnostics.components import find_chromium

if TYPE_CHECKING:
    from browser.reading import Reading

HERE = Path(__file__).parent
REPORT = HERE.parent / "results" / "views" / "graph_reads.json"
AIM = "aim: 0 through, under 5 % on others, 0 mute, 85 % used"


def row(name: str, way: str, read: Reading) -> str:
    """One line of the table."""
    counts = (
        f"{read.nodes:6}{read.edges:6}   {len(read.overlapping):4} of {read.names:3} ({read.overlap:4.0%})"
    )
    return f"{name:>30} {way:5} {counts}{len(read.cut):6}{read.wordless:9}{read.mute:6}{len(read.through):9}{read.used:7.0%}"


def totals(found: dict[str, dict[str, Reading]]) -> str:
    """What all graphs together say, live and still."""
    lines = []
    for way in ("live", "still"):
        reads = [each[way] for each in found.values()]
        names, edges = sum(read.names for read in reads), sum(read.edges for read in reads)
        on_others = sum(len(read.overlapping) for read in reads)
        lines.append(
            f"{way}: {on_others} of {names} names on others ({on_others / max(names, 1):.1%}, "
            f"worst graph {max(read.overlap for read in reads):.0%}); "
            f"{sum(len(read.cut) for read in reads)} cut; {sum(read.wordless for read in reads)} of {edges} edges wordless at rest, "
            f"{sum(read.mute for read in reads)} mute; {sum(len(read.through) for read in reads)} through a node of others; "
            f"canvas used {sum(read.used for read in reads) / len(reads):.0%}, least {min(read.used for read in reads):.0%}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="write nothing")
    parser.add_argument("--only", default="", help="graphs whose names hold this; writes nothing")
    parser.add_argument("--pictures", type=Path, help="a folder for screenshots")
    options = parser.parse_args()
    require_browser()
    sys.path.append(str(HERE.parents[1] / "tests"))  # the measuring is that of the tests
    from browser.reading import GRAPHS, WINDOW, read_live, read_still
    from playwright.sync_api import sync_playwright

    found: dict[str, dict[str, Reading]] = {}
    print(
        f"{'graph':>30} {'':5} {'nodes':>6}{'edges':>6}   {'on others':>18}{'cut':>6}{'wordless':>9}{'mute':>6}{'through':>9}{'used':>7}"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), timeout=300_000)
        page = browser.new_page(viewport=WINDOW)
        for name, made in GRAPHS.items():
            if options.only not in name:
                continue
            view = made()
            found[name] = {}
            for way, read in (("live", read_live), ("still", read_still)):
                found[name][way] = read(page, view)
                print(row(name, way, found[name][way]), flush=True)
                for theme in ("light", "dark") if options.pictures else ():
                    options.pictures.mkdir(parents=True, exist_ok=True)
                    page.emulate_media(color_scheme=theme)
                    page.mouse.move(0, 0)
                    page.wait_for_timeout(150)
                    page.screenshot(
                        path=options.pictures / f"{name.replace(' ', '_').replace(':', '')}-{way}-{theme}.png"
                    )
        browser.close()
    print(f"\n{totals(found)}\n{AIM}")
    if not (options.quick or options.only):
        kept = {
            name: {way: asdict(read) | {"used": round(read.used, 3)} for way, read in each.items()}
            for name, each in found.items()
        }
        REPORT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
