"""The figures of the replies on file: of citations, with intervals, and of words, paired with those of the
same model without the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.experts.gold import ExpertQuestion, NodeWords
from benchmarks.experts.measuring import OF_CITATIONS, OF_WORDS, answer_measures
from benchmarks.experts.replies import ARMS, Arm, KeptReply
from kgot_lab.evaluation.significance import Estimate, holm, interval, sign_flip_p, wins_ties_losses
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_signed
from kgot_lab.types import Json

MeasuredAnswers = Mapping[Arm, Mapping[str, Mapping[str, float]]]  # by arm, measure, id of the question


def measured_answers(
    questions: Iterable[ExpertQuestion], replies: Iterable[KeptReply], words: NodeWords
) -> MeasuredAnswers:
    """Each measure of each reply; replies to questions that are not asked for are left out."""
    by_id = {question.id: question for question in questions}
    found: dict[Arm, dict[str, dict[str, float]]] = {arm: {} for arm in ARMS}
    for reply in replies:
        if reply.id in by_id:
            for measure, value in answer_measures(by_id[reply.id], reply, words).items():
                found[reply.arm].setdefault(measure, {})[reply.id] = value
    return found


def citations_grid(measured: MeasuredAnswers) -> Grid:
    """The measures of citations, each over the questions that have it."""
    rows = []
    for measure in OF_CITATIONS:
        values = list(measured["graph"].get(measure, {}).values())
        rows.append((Cell(measure), Cell(str(len(values))), Cell(_spanned(values))))
    return Grid(
        "Citations of the expert with its graph", ("measure", "questions", "mean [95 %]"), tuple(rows)
    )


def words_grid(measured: MeasuredAnswers) -> Grid:
    """The measures of words with the graph and without, on the questions to which both replied; p-values are
    one family, by Holm.
    """
    rows, ps = [], []
    for measure in OF_WORDS:
        ours, plain = (measured[arm].get(measure, {}) for arm in ARMS)
        both = [id for id in ours if id in plain]
        left, right = [ours[id] for id in both], [plain[id] for id in both]
        gaps = [one - other for one, other in zip(left, right, strict=True)]
        p = sign_flip_p(gaps) if len(both) > 1 else 1.0
        ps.append(p)
        won = "/".join(map(str, wins_ties_losses(gaps))) if len(both) > 1 else ""
        rows.append(
            [measure, str(len(both)), _spanned(left), _spanned(right), _spanned(gaps, sign=True), won]
        )
    cells = tuple(
        (*map(Cell, row), Cell(format_decimal(p), p < 0.05)) for row, p in zip(rows, holm(ps), strict=True)
    )
    columns = (
        "measure",
        "questions",
        "with the graph",
        "without",
        "difference [95 %]",
        "more/same/less",
        "p Holm",
    )
    return Grid("Words of the answer, with the graph and without", columns, cells)


def choices_grid(questions: Iterable[ExpertQuestion], replies: Iterable[KeptReply]) -> Grid:
    """What the model cites beside other choices of as many sources from its context: how much is lost in
    choosing, and how much was never found.
    """
    by_id = {question.id: question for question in questions if question.answerable}
    pairs = [(by_id[reply.id], reply) for reply in replies if reply.arm == "graph" and reply.id in by_id]
    rows = []
    for name, chosen in (
        ("cited by the model", lambda question, reply: reply.cited),
        ("as many, the first that the search found", lambda question, reply: reply.told[: len(reply.cited)]),
        (
            "as many, a perfect choice from the context",
            lambda question, reply: [id for id in reply.told if id in question.wanted][: len(reply.cited)],
        ),
        ("the whole context", lambda question, reply: reply.told),
    ):
        picked = [(question, set(chosen(question, reply))) for question, reply in pairs]
        right = [len(ids & question.wanted) / len(ids) for question, ids in picked if ids]
        recalled = [
            len(ids & set(question.gold_nodes)) / len(question.gold_nodes) for question, ids in picked
        ]
        rows.append((Cell(name), Cell(_spanned(right)), Cell(_spanned(recalled))))
    return Grid("Choosing among the sources", ("sources", "precision", "recall"), tuple(rows))


def card_scores(measured: MeasuredAnswers, model: str) -> dict[str, Json]:
    """The scores that a card of the expert tells: of each measure with the graph its mean, interval and
    number of questions.
    """
    found: dict[str, Json] = {"model": model}
    for measure in (*OF_CITATIONS, *OF_WORDS):
        values = list(measured["graph"].get(measure, {}).values())
        if len(values) > 1:
            each = interval(values)
            found[measure] = {
                "mean": round(each.mean, 3),
                "from": round(each.low, 3),
                "to": round(each.high, 3),
                "questions": len(values),
            }
    return found


def answers_report(
    split: str, questions: Sequence[ExpertQuestion], replies: Sequence[KeptReply], words: NodeWords
) -> str:
    """All tables as Markdown, under a line that says what was asked of which model."""
    measured = measured_answers(questions, replies, words)
    model = ", ".join(sorted({reply.model for reply in replies})) or "no model"
    done = {arm: sum(reply.arm == arm for reply in replies) for arm in ARMS}
    seconds = sum(reply.seconds for reply in replies) / len(replies) if replies else 0.0
    head = (
        f"{split}: {len(questions)} questions, {done['graph']} replies with the graph and {done['plain']} without; model {model}; "
        f"{seconds:.0f} s a reply on the mean"
    )
    note = (
        "Words are the graph's own: the arm that reads them is more likely to say them, and a right answer in other words does not count. "
        "They tell what of the gold reaches the answer, and not whether it is right."
    )
    grids = citations_grid(measured), choices_grid(questions, replies), words_grid(measured)
    return "\n\n".join([head, *(grid.markdown for grid in grids), note]) + "\n"


def _spanned(values: Sequence[float], *, sign: bool = False) -> str:
    """The mean of some values and its bootstrap interval, where there are two or more."""
    shown = format_signed if sign else format_decimal
    if not values:
        return "–"
    if len(values) < 2:
        return shown(values[0])
    found: Estimate = interval(values)
    return f"{shown(found.mean)} [{shown(found.low)}, {shown(found.high)}]"
