"""Write the API reference from docstrings: the names of `kgot_lab`, and each module that a page of docs/ imports.

python docs/make_api.py FOLDER [MODULE ...]     # works offline; what is not installed is left out with a note
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import warnings
from pathlib import Path

PAGES = Path(__file__).parent


def documented_modules() -> list[str]:
    """Return `kgot_lab` and the modules that the Python of the pages imports."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES.glob("*.md"))
    return ["kgot_lab", *sorted(set(re.findall(r"^from (kgot_lab\.[\w.]+) import", text, re.M)))]


def is_importable(module: str) -> bool:
    """Import a module; say which package is missing where it cannot be imported."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        print(f"{module} is left out: {error}", file=sys.stderr)
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="these modules alone")
    options = parser.parse_args()
    import pdoc

    pdoc.render.configure(show_source=False, footer_text="kgot_lab")
    modules = [module for module in options.modules or documented_modules() if is_importable(module)]
    with warnings.catch_warnings():
        # types that are imported for type checkers only stay as they are written
        warnings.simplefilter("ignore")
        pdoc.pdoc(*modules, output_directory=options.folder)
    print(f"{len(modules)} modules: {options.folder / 'index.html'}")


if __name__ == "__main__":
    main()
