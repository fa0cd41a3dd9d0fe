"""Failure analysis: the questions each system failed on, what it missed, and what it returned instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kgot_lab.errors import BadInput, require_known
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.runs import Run
from kgot_lab.evaluation.tables import Cell, Grid, escaped_cell
from kgot_lab.text.cleaning import printable_line

_UNTYPED = "(no type)"
_SHOWN = 50  # questions in a repr; `questions` has all


@dataclass(frozen=True)
class Missed:
    """The titles of relevant passages that a system missed for a question, and of those returned instead."""

    missing: tuple[str, ...]
    instead: tuple[str, ...]


@dataclass(frozen=True)
class FailedQuestion:
    """A question with its type, the titles of its relevant passages, and what each failing system missed."""

    id: str
    text: str
    type: str
    relevant: tuple[str, ...]
    missed: Mapping[str, Missed]


@dataclass(frozen=True, repr=False)
class Failures:
    """All questions of a data set, with the systems that missed a relevant passage in the first k."""

    dataset: str
    k: int
    systems: tuple[str, ...]
    questions: tuple[FailedQuestion, ...]

    def where(self, *, fails: str = "", works: str = "", type: str = "") -> Failures:
        """Filter the questions by a system that fails, one that works, and question type.

        An argument that is empty does not filter. Raises UnknownName for an unknown system or type.
        """
        require_known("system", self.systems, *filter(None, (fails, works)))
        require_known("type of question", {each.type for each in self.questions}, *filter(None, (type,)))
        kept = (
            question
            for question in self.questions
            if (not fails or fails in question.missed)
            and (not works or works not in question.missed)
            and type in ("", question.type)
        )
        return replace(self, questions=tuple(kept))

    def by_type(self) -> dict[str, dict[str, tuple[int, int]]]:
        """Return, for each question type and system, the number of failures and of questions."""
        total = Counter(question.type for question in self.questions)
        failed = Counter((question.type, system) for question in self.questions for system in question.missed)
        return {type: {s: (failed[type, s], total[type]) for s in self.systems} for type in sorted(total)}

    def grid(self) -> Grid:
        """Return the failures by question type as a table."""
        counted = self.by_type()
        rows = [
            (Cell(system), *(Cell("{} of {}".format(*counted[type][system])) for type in counted),
             Cell(str(sum(counted[type][system][0] for type in counted))))
            for system in self.systems
        ]  # fmt: skip
        title = f"{self.dataset}: on how many of {len(self.questions)} questions a relevant passage is missing from the first {self.k}"
        return Grid(title, ("system", *counted, "in all"), tuple(rows))

    def html(self, limit: int = _SHOWN) -> str:
        """Render the table, then at most `limit` failed questions, folded, as HTML.

        All text is escaped.
        """
        failed = [question for question in self.questions if question.missed]
        more = f"<p>… and {len(failed) - limit} more</p>" if len(failed) > limit else ""
        return "".join([self.grid().html, *map(self._question_html, failed[:limit]), more])

    def _question_html(self, question: FailedQuestion) -> str:
        rows = "".join(
            f"<tr><th>{escaped_cell(system)}</th><td>{_html_list(missed.missing)}</td><td>{_html_list(missed.instead)}</td></tr>"
            for system, missed in question.missed.items()
        )
        head = "<tr><th>system</th><th>missing</th><th>found instead</th></tr>"
        counted = f"failed by {len(question.missed)} of {len(self.systems)}"
        summary = f"{escaped_cell(question.text)} <small>({escaped_cell(question.type)}; {counted})</small>"
        relevant = f"<p>Relevant: {escaped_cell('; '.join(question.relevant))}</p>"
        return f'<details class="failure"><summary>{summary}</summary>{relevant}<table>{head}{rows}</table></details>'

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        failed = [question for question in self.questions if question.missed]
        lines = [self.grid().text]
        for question in failed[:_SHOWN]:
            lines.append(f"\n{printable_line(question.text)} [{printable_line(question.type)}]")
            for system, missed in question.missed.items():
                lines.append(f"  {system} missed {printable_line('; '.join(missed.missing))}")
        if len(failed) > _SHOWN:
            lines.append(f"\n… and {len(failed) - _SHOWN} more")
        return "\n".join(lines)


def failures(dataset: Dataset, runs: Iterable[Run], k: int = 5) -> Failures:
    """Collect what each run missed in its first k hits, for each question of a data set.

    Raises BadInput if a run stores fewer than k hits a query.
    """
    runs = tuple(runs)
    for run in runs:
        if not 1 <= k <= run.kept:
            problem = f"the run of {run.system} kept {run.kept} hits of a query"
            raise BadInput(f"{problem}, so k must be from 1 to {run.kept}, not {k}")
    titles = {document.id: document.title or document.text[:60] for document in dataset.documents}
    questions = []
    for query in dataset.queries:
        relevant = [id for id, grade in dataset.qrels[query.id].items() if grade > 0]
        missed = {}
        for run in runs:
            first = run.ids(query.id)[:k]
            if missing := [id for id in relevant if id not in first]:
                instead = [id for id in first if id not in relevant]
                missed[run.system] = Missed(_titles(missing, titles), _titles(instead, titles))
        type = dataset.types.get(query.id) or _UNTYPED
        questions.append(FailedQuestion(query.id, query.text, type, _titles(relevant, titles), missed))
    return Failures(dataset.name, k, tuple(run.system for run in runs), tuple(questions))


def _titles(ids: Iterable[str], titles: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(titles.get(id, id) for id in ids)


def _html_list(titles: Iterable[str]) -> str:
    return "<br>".join(map(escaped_cell, titles)) or "nothing"
