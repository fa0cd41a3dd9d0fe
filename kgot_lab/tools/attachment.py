"""The tool that reads the files attached to a question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kgot_lab.documents.files import text_of
from kgot_lab.errors import BadInput, NotInstalled, ToolFailed, described_value
from kgot_lab.tools.tool import Result, TextTool
from kgot_lab.types import Document


def read_attachment(paths: Sequence[str | Path], *, name: str = "read_attachment") -> TextTool:
    """A tool that reads one of the given files, asked for by its bare name; nothing else on the disk can be
    reached.

    Raises BadInput when a file is not there or two share a name.
    """
    if (
        isinstance(paths, str | Path)
        or not isinstance(paths, Sequence)
        or not all(isinstance(path, str | Path) for path in paths)
    ):
        raise BadInput(f"attachments are a list of paths, not {described_value(paths)}")
    files = {Path(path).name: Path(path).resolve() for path in paths}
    missing = [str(path) for path in paths if not Path(path).is_file()]
    if not paths or missing or len(files) < len(paths):
        raise BadInput(
            f"attachments must be files with different names; not there: {', '.join(missing) or 'none'}, given: {len(paths)}"
        )

    def run(file: str) -> Result:
        if file not in files:
            raise ToolFailed(
                f"{name}: there is no attachment {file!r}; there are: {', '.join(sorted(files))}"
            )
        try:
            found = text_of(files[file])
        except (BadInput, NotInstalled) as error:
            raise ToolFailed(f"{name}: {file}: {error}") from error
        return Result(found.text, (Document(file, found.text, found.title or file),))

    description = (
        f"Returns the text of an attached file. Attached: {' '.join(', '.join(sorted(files)).split())}."
    )
    return TextTool(name, description, {"file": "the name of the file, without a folder"}, run)
