"""Question sets by name, and the selection of their questions."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from urllib.parse import quote, urlencode, urlsplit

from kgot_lab.arguments import POSITIVE, CheckedRecord, bounded
from kgot_lab.benchmark.questions.question import Question, QuestionSet, load_questions
from kgot_lab.errors import BadInput, UnknownName, require_known
from kgot_lab.evaluation.dataset import connected_components, content_id, musique_steps
from kgot_lab.evaluation.grading import contains_answer
from kgot_lab.io.files import bundled_path, write_atomically
from kgot_lab.io.http_client import client_library
from kgot_lab.text.words import sentences
from kgot_lab.types import Document, Json

# Other bundled sets: MuSiQue and 2WikiMultiHopQA with their passages, SimpleQA and FRAMES without.

_MUSIQUE, _MUSIQUE_DEV = "musique-train-100", "musique-498"
_TWOWIKI, _TWOWIKI_PASSAGES = "2wiki-1000", "2wiki-fastgraphrag-101"


def musique() -> QuestionSet:
    """Load 100 questions of two to four hops and 1,890 Wikipedia passages, CC BY 4.0.

    Source: Trivedi et al. 2022, as selected by the HippoRAG project. The level of a question is its number of
    hops. Facts and groups are defined as in musique_dev().
    """
    return _hop_set("musique", _MUSIQUE, "held_out", "dev")


def musique_dev() -> QuestionSet:
    """Load 498 questions of two, three and four hops, evenly, and 5,966 passages, CC BY 4.0.

    They are from MuSiQue's own development part. `facts`: for each step, the sentences of its passage that
    contain its answer as whole words, or the whole passage if none does. A group is all questions linked by
    shared steps, 196 in total. `held_out` is the test split of 150 questions, 50 for each number of
    hops in turn. All are in `test`, and none may be used for tuning.
    """
    return _hop_set("musique-498", _MUSIQUE_DEV, "held_out", "test")


def twowiki() -> QuestionSet:
    """Load 989 questions over two or four of 6,119 Wikipedia passages, Apache-2.0 (texts CC BY-SA).

    Source: Ho et al. 2020. `facts`: for each gold passage and each evidence triple whose object it contains,
    the first sentence with the object, or its first sentence if there is none. `dev` is for tuning,
    `held_out` is the test split of 150 questions, and `test` holds the others like them: none of their
    gold passages is gold for any of the first 101 questions, which other experiments have used.
    """
    passages = packed_passages(_TWOWIKI_PASSAGES)
    gold: dict[str, list[str]] = {}
    for question, document, _ in read_judgements(f"{_TWOWIKI}/qrels.tsv"):
        gold.setdefault(question, []).append(document)
    rows = read_packed_rows(_TWOWIKI, "queries.jsonl.gz")
    questions = [_triple_question(row, [passages[old] for old in gold[row["_id"]]]) for row in rows]
    parts = read_split(_TWOWIKI, "held_out", "test", "dev")
    return QuestionSet(_by_id(passages.values()), questions, "2wiki", parts=parts)


def simpleqa() -> QuestionSet:
    """Load 4,326 short factual questions (Wei et al. 2024), MIT.

    The type of a question is its topic.
    """
    rows = read_packed_rows("simpleqa", "simpleqa.jsonl.gz")
    questions = [Question(row["_id"], row["question"], row["answer"], row["topic"]) for row in rows]
    return QuestionSet([], questions, "simpleqa", "grader")


def frames() -> QuestionSet:
    """Load 824 questions over several Wikipedia pages each (Krishna et al. 2024), Apache-2.0.

    The pages are not included.
    """
    questions = []
    for row in read_packed_rows("frames", "frames.jsonl.gz"):
        text, types = row["question"].strip(), ", ".join(row["reasoning_types"])
        questions.append(Question(row["_id"], text, row["answer"], types))
    return QuestionSet([], questions, "frames", "grader")


# --- packed files ---


def read_packed_rows(folder: str, name: str) -> Iterator[Json]:
    """Yield the rows of a gzipped JSON lines file in a bundled folder."""
    with gzip.open(bundled_path(f"{folder}/{name}"), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


# what split.json calls these splits
_ON_DISK = {"dev": "develop", "held_out": "locked", "search held_out": "search locked"}


def read_split(folder: str, *names: str) -> dict[str, tuple[str, ...]]:
    """Return the question ids of each named split of a bundled folder."""
    split = json.loads(bundled_path(f"{folder}/split.json").read_text(encoding="utf-8"))
    return {name: tuple(split[_ON_DISK.get(name, name)]) for name in names}


def read_judgements(path: str) -> Iterator[tuple[str, str, int]]:
    """Yield the query, the document and the grade of each judgement in a bundled file."""
    for line in bundled_path(path).read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        yield query, document, int(grade)


def packed_passages(folder: str) -> dict[str, Document]:
    """Return the passages of a folder by their ids in its files.

    Each gets an id that does not follow the order of the questions.
    """
    found = {}
    for row in read_packed_rows(folder, "corpus.jsonl.gz"):
        title, text = row["title"], row["text"]
        found[row["_id"]] = Document(content_id(title, text), text, title)
    return found


def _by_id(documents: Iterable[Document]) -> list[Document]:
    return sorted(documents, key=lambda document: document.id)


# --- questions and the sentences that hold their answers ---


def _hop_set(name: str, folder: str, *parts: str) -> QuestionSet:
    passages, rows = packed_passages(folder), list(read_packed_rows(folder, "queries.jsonl.gz"))
    groups = connected_components({row["_id"]: musique_steps(row["_id"]) for row in rows})
    questions = [_hop_question(row, passages, groups[row["_id"]]) for row in rows]
    return QuestionSet(_by_id(passages.values()), questions, name, parts=read_split(folder, *parts))


def _hop_question(row: Json, passages: dict[str, Document], group: str) -> Question:
    steps = [(passages[step["doc_id"]], step["answer"]) for step in row["decomposition"]]
    gold = tuple(sorted({passage.id for passage, _ in steps}))
    facts: list[str] = []
    for passage, answer in steps:
        facts += _sentences_with(passage.text, answer) or [passage.text]
    aliases, level = tuple(row["answer_aliases"]), f"{row['hops']} hops"
    question = Question(row["_id"], row["text"], row["answer"], row["hop_type"], level, gold)
    return replace(question, facts=_distinct(facts), aliases=aliases, group=group)


def _triple_question(row: Json, gold: Sequence[Document]) -> Question:
    facts: list[str] = []
    for passage in gold:
        values = [value for _, _, value in row["evidences"]]
        first = [sentence for value in values for sentence in _sentences_with(passage.text, value)[:1]]
        facts += first or sentences(passage.text)[:1]
    ids = tuple(sorted(document.id for document in gold))
    return Question(row["_id"], row["text"], row["answer"], row["type"], gold=ids, facts=_distinct(facts))


def _sentences_with(text: str, answer: str) -> list[str]:
    """Return the sentences of a text that contain an answer."""
    return [sentence for sentence in sentences(text) if contains_answer(sentence, answer)]


def _distinct(facts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(facts))


# The bundled questions and passages of HotpotQA.

_HOTPOTQA = "hotpotqa-train-100"


def hotpotqa() -> QuestionSet:
    """Load 100 multi-hop questions and 994 Wikipedia passages, CC BY-SA 4.0.

    Source: Yang et al. 2018, as selected by the HippoRAG project. Ids and order of the passages come from a
    hash of their content, since the file lists them in the order of the questions, which would favour the
    relevant ones when ties are broken by id. Exact duplicates are dropped.
    """
    rows = {row["_id"]: row for row in read_packed_rows(_HOTPOTQA, "corpus.jsonl.gz")}
    passages = packed_passages(_HOTPOTQA)
    asked = read_packed_rows(_HOTPOTQA, "queries.jsonl.gz")
    questions = [_hotpot_question(row, rows, passages) for row in asked]
    documents = {document.id: document for document in passages.values()}
    return QuestionSet(_by_id(documents.values()), questions, "hotpotqa", parts=hotpotqa_split())


def hotpotqa_split() -> dict[str, tuple[str, ...]]:
    """Return the question ids of each split of hotpotqa().

    `held_out` and `test` are for evaluation, `dev` is for tuning.
    """
    return read_split(_HOTPOTQA, "held_out", "test", "dev")


def demo_questions() -> list[Question]:
    """Return the three questions of the demo, from the dev split, so that no evaluated question is shown."""
    by_id = {question.id: question for question in hotpotqa().questions}
    dev = hotpotqa_split()["dev"]
    return [by_id[dev[number]] for number in (1, 7, 4)]


def _hotpot_question(row: Json, rows: dict[str, Json], passages: dict[str, Document]) -> Question:
    support = row["supporting_facts"]
    gold = tuple(sorted({passages[document].id for document, _ in support}))
    facts = tuple(rows[document]["sentences"][number].strip() for document, number in support)
    return Question(row["_id"], row["text"], row["answer"], row["type"], row["level"], gold, facts)


# Rows and files of data sets on the Hugging Face hub, downloaded into memory.

TOKEN_VARIABLE = "HF_TOKEN"
_PAGE_ROWS = 100  # rows, the most that one request may ask for
_LARGEST_RESPONSE = 200_000_000  # maximum bytes of a response


@dataclass(frozen=True)
class Hub:
    """The addresses of rows and files, and the user's token.

    The token is sent to these two addresses only, and is in no message.
    """

    rows: str = "https://datasets-server.huggingface.co"
    files: str = "https://huggingface.co"
    token: str = field(default="", repr=False)
    timeout: float = 60.0

    def all_rows(self, dataset: str, config: str, split: str) -> Iterator[Json]:
        """Yield the rows of a data set, page by page. Raises BadInput if they cannot be read."""
        offset, part = 0, {"dataset": dataset, "config": config, "split": split}
        while True:
            page = urlencode(part | {"offset": str(offset), "length": str(_PAGE_ROWS)})
            try:
                answer = json.loads(self._get(f"{self.rows}/rows?{page}", dataset))
                rows = [each["row"] for each in answer["rows"]]
            except (ValueError, KeyError, TypeError) as error:
                raise BadInput(f"{self.rows} did not answer with rows of {dataset}: {error!r}") from None
            yield from rows
            offset += len(rows)
            if len(rows) < _PAGE_ROWS:
                return

    def file(self, dataset: str, path: str) -> bytes:
        """Return the content of a file of a data set. Raises BadInput if it cannot be read."""
        return self._get(f"{self.files}/datasets/{dataset}/resolve/main/{quote(path)}", dataset)

    def _get(self, url: str, dataset: str) -> bytes:
        library, content = client_library(), bytearray()
        # not sent to another server
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        options = {"headers": headers, "timeout": self.timeout, "follow_redirects": True}
        try:
            with library.stream("GET", url, **options) as answer:
                if answer.status_code >= 400:
                    raise BadInput(_advice(dataset, answer.status_code, bool(self.token)))
                for piece in answer.iter_bytes():
                    content += piece
                    if len(content) > _LARGEST_RESPONSE:
                        raise BadInput(f"{url} is larger than {_LARGEST_RESPONSE:,} bytes")
        except (
            library.HTTPError,
            library.InvalidURL,
        ) as error:  # no network, a time-out, an address that is none
            raise BadInput(f"{dataset} cannot be fetched from {urlsplit(url).netloc}: {error}") from None
        return bytes(content)


def user_hub() -> Hub:
    """Return the hub with the user's own token from the environment. Raises BadInput if there is none."""
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token:
        raise BadInput(
            "this set is open to those who agreed to its terms, on its page on huggingface.co: do so, make a token of your own there, and "
            f"set the environment variable {TOKEN_VARIABLE}. The token is not stored."
        )
    return Hub(token=token)


def _advice(dataset: str, status: int, token: bool) -> str:
    if status in {401, 403}:
        problem = "the token in {} may not read it" if token else "it needs a token in {}"
        reason = problem.format(TOKEN_VARIABLE)
        return f"{dataset} was refused (HTTP {status}): {reason}; agree to its terms on its page on huggingface.co"
    return f"{dataset} cannot be fetched: HTTP {status}. Try again later."


# GAIA, downloaded with the user's own token into memory. Its owners ask not to redistribute it, so it is
# not stored here.

_DATASET, _CONFIG, _SPLIT = "gaia-benchmark/GAIA", "2023_all", "validation"


def gaia(hub: Hub, files: Path) -> QuestionSet:
    """Load the validation questions of GAIA (Mialon et al. 2023).

    Attached files are written to `files`, a temporary folder of the run. Raises BadInput if the hub does not
    return the rows, or returns rows of another form.
    """
    try:
        questions = [_gaia_question(row, hub, files) for row in hub.all_rows(_DATASET, _CONFIG, _SPLIT)]
    except (KeyError, TypeError, ValueError) as error:
        wrong = f"another form than they had: {type(error).__name__} at {error}"
        raise BadInput(f"the rows of {_DATASET} have {wrong}") from None
    return QuestionSet([], questions, "gaia", "gaia", private=True)


def _gaia_question(row: Json, hub: Hub, files: Path) -> Question:
    about = row.get("Annotator Metadata") or {}
    attached = (_attached(row, hub, files),) if row.get("file_name") else ()
    steps = re.search(r"\d+", str(about.get("Number of steps", "")))
    return Question(
        id=str(row["task_id"]), text=row["Question"], answer=str(row["Final answer"]), level=f"level {row['Level']}", attachments=attached,
        steps=int(steps[0]) if steps else None, tools=_tools(str(about.get("Tools", ""))),
    )  # fmt: skip


def _attached(row: Json, hub: Hub, files: Path) -> Path:
    name = PurePosixPath(str(row["file_name"])).name  # of a path that leads elsewhere the name is left
    path = files / name
    if not path.exists():
        source = str(row.get("file_path") or f"2023/{_SPLIT}/{name}")
        write_atomically(path, hub.file(_DATASET, source), "the file")
    return path


def _tools(listed: str) -> tuple[str, ...]:
    """Parse the tools that a person listed, one per line, with or without numbers. "None" means none."""
    lines = (re.sub(r"^\s*(\d+[.)]|[-*])\s*", "", line).strip() for line in listed.splitlines())
    return tuple(line for line in lines if line and line.lower().rstrip(".") != "none")


BUNDLED_SETS: Mapping[str, Callable[[], QuestionSet]] = {
    "hotpotqa": hotpotqa, "2wiki": twowiki, "musique": musique, "musique-498": musique_dev, "simpleqa": simpleqa, "frames": frames,
}  # fmt: skip
GAIA = "gaia"
HELD_OUT = "held_out"  # the test split


@contextmanager
def open_questions(name: str) -> Iterator[QuestionSet]:
    """Open a question set by its name or from a JSON lines file. Its temporary files are deleted afterwards.

    Raises UnknownName for an unknown name, and BadInput if the set cannot be read.
    """
    if name in BUNDLED_SETS:
        yield BUNDLED_SETS[name]()
    elif name == GAIA:
        hub = user_hub()
        with TemporaryDirectory(prefix="kgot_lab_") as files:
            yield gaia(hub, Path(files))
    elif Path(name).is_file():
        yield load_questions(Path(name))
    elif re.search(r"[/\\]|\.\w+$", name):
        known = ", ".join([*BUNDLED_SETS, GAIA])
        raise BadInput(f"there is no file {name}: a question set is a file of JSON lines, or one of {known}")
    else:
        raise UnknownName("question set", name, [*BUNDLED_SETS, GAIA, "FILE.jsonl"])


@dataclass(frozen=True)
class Selection(CheckedRecord):
    """A selection of questions: by part and level, then a sample by seed, then the first `limit`."""

    part: str = ""  # "": all but the test split; "all": including it
    level: str = ""
    sample: float = bounded(1.0, POSITIVE, 1)  # a share, as .1 for a tenth
    seed: int = 0
    limit: int | None = bounded(None, 1)

    def select(self, questions: QuestionSet) -> QuestionSet:
        """Return the selected questions, in the order of the set.

        Raises UnknownName for an unknown part or level, and BadInput if nothing is left.
        """
        parts, chosen = questions.parts or {}, questions.questions
        require_known("part", ["all", *parts], self.part or "all")
        if self.part in parts:
            chosen = [question for question in chosen if question.id in set(parts[self.part])]
        elif not self.part:
            chosen = [question for question in chosen if question.id not in set(parts.get(HELD_OUT, ()))]
        if self.level:
            levels = {question.level for question in chosen} - {""}
            if not levels:
                raise BadInput(f"the questions of {questions.name} have no levels")
            named = {level for level in levels if self.level in (level, *re.findall(r"\d+", level))}
            if not named:
                raise UnknownName("level", self.level, levels)
            chosen = [question for question in chosen if question.level in named]
        ids = [question.id for question in chosen]
        if self.sample < 1:
            drawn = set(random.Random(self.seed).sample(ids, max(1, round(self.sample * len(ids)))))
            ids = [id for id in ids if id in drawn]
        if not ids:
            raise BadInput(f"no question of {questions.name} is left to ask")
        return questions.only(ids[: self.limit])
