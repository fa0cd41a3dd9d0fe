"""The tool that reads a file of any kind, and can have a model answer a question about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kgot_lab.documents.archives import zip_members
from kgot_lab.documents.files import text_of
from kgot_lab.errors import BadInput, NotInstalled, ToolFailed, require, require_count
from kgot_lab.text.cleaning import FENCES, counted, fenced, harmless, shorten, tokens
from kgot_lab.tools.files import FileShelf
from kgot_lab.tools.media import AUDIO, SPEECH_NEEDS, Transcript
from kgot_lab.tools.tool import Metered, Result, TextTool
from kgot_lab.types import LLM, Document, Message, Prompt, Usage

_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic")
_FILMS = (".mov", ".avi", ".mkv", ".mpeg", ".mpg")
_ANSWER = "Answer the question from the file alone, with every name, number and date that matters. If the file does not say, say so."
_MOST_LISTED = 500  # files of a zip file


def inspect_file(
    shelf: FileShelf,
    llm: LLM | None = None,
    *,
    transcribe: Callable[[Path], Transcript] | None = None,
    deaf: str = SPEECH_NEEDS,
    most_tokens: int = 18_000,
    reply: int = 700,
    name: str = "inspect_file",
) -> TextTool:
    """A tool that returns the text of a file of the shelf: Office, PDF, HTML, data, plain text; a zip file's
    list; what is said in audio.

    With a model, the caller may add a question, which the model answers from the first `most_tokens` tokens
    of the text. `deaf` says why nothing is there to `transcribe` with.
    """
    require(shelf, FileShelf, "inspect_file() reads files of a FileShelf")
    require_count(most_tokens, 1, "most_tokens")

    def run(file: str, question: str = "") -> Result:
        try:
            title, text, usage = _read(shelf.path(file), transcribe, deaf)
        except (BadInput, NotInstalled) as error:
            raise ToolFailed(f"{name}: {harmless(file)}: {error}") from error
        except ToolFailed as error:
            raise ToolFailed(f"{name}: {error}", again=error.again, usage=error.usage) from None
        if question and llm is not None:
            return _answered(Metered(llm, usage), file, text, question)
        return Result(text, (Document(file, text, title or file),), usage)

    def _answered(model: Metered, file: str, text: str, question: str) -> Result:
        read = shorten(text, most_tokens)
        asked = f"Question: {question}\n\n{_ANSWER}\n\n{fenced(read, file)}"
        told = model(
            Prompt((Message("system", FENCES), Message("user", asked)), max_tokens=reply)
        ).text.strip()
        if not told:
            raise ToolFailed(
                f"{name}: the model said nothing about {harmless(file)}; ask in another way",
                usage=model.usage,
            )
        cut = f"\n(From its first {most_tokens:,} of about {tokens(text):,} tokens.)" if read != text else ""
        return Result(told + cut, (Document(file, read, file),), model.usage)

    description = f"Returns the text of a file, or answers a question about it. Files: {shelf.listed()}."
    may = (
        {"question": "what to find out from it; leave it out for the text itself"} if llm is not None else {}
    )
    description = description if may else f"Returns the text of a file. Files: {shelf.listed()}."
    return TextTool(name, description, {"file": "the name of the file as listed"}, run, may=may)


def _read(
    path: Path, transcribe: Callable[[Path], Transcript] | None, deaf: str
) -> tuple[str, str, tuple[Usage, ...]]:
    """The title that a file declares, its text, and what reading it cost; raises BadInput, NotInstalled,
    ToolFailed.
    """
    extension = path.suffix.lower()
    if extension == ".zip":
        return "", _listing(path), ()
    if extension in _PICTURES:
        raise BadInput(
            "a picture holds no text; a tool that looks at pictures can answer a question about it, where there is one"
        )
    if extension in AUDIO:
        if transcribe is None:
            raise BadInput(deaf)
        written = transcribe(path)
        return "", written.text, (written.usage,)
    if extension in _FILMS:
        raise BadInput("films are not read; of a video on YouTube, the search agent can read the transcript")
    found = text_of(path)
    return found.title, found.text, ()


def _listing(path: Path) -> str:
    found = zip_members(path)
    lines = [f"{harmless(member.name)} ({member.size:,} bytes)" for member in found[:_MOST_LISTED]]
    more = [f"and {len(found) - _MOST_LISTED:,} more"] if len(found) > _MOST_LISTED else []
    return "\n".join([f"A zip file with {counted(len(found), 'file')}:", *lines, *more])
