"""The tool that unpacks zip files."""

from __future__ import annotations

from kgot_lab.errors import ToolFailed, require
from kgot_lab.text.cleaning import counted, harmless
from kgot_lab.tools.files import FileShelf
from kgot_lab.tools.tool import Result, TextTool


def extract_zip(shelf: FileShelf, *, name: str = "extract_zip") -> TextTool:
    """A tool that unpacks a zip file of the shelf, so that other tools can read what is in it; the shelf says
    where to.
    """
    require(shelf, FileShelf, "extract_zip() unpacks files of a FileShelf")

    def run(file: str) -> Result:
        try:
            names = shelf.unpack(file)
        except ToolFailed as error:
            raise ToolFailed(f"{name}: {error}") from None
        return Result(
            f"{harmless(file)} holds {counted(len(names), 'file')}:\n" + "\n".join(map(harmless, names))
        )

    description = "Unpacks a zip file and returns the names of the files in it, by which they can be read."
    return TextTool(name, description, {"file": "the name of the zip file"}, run)
