"""Retrieval pipelines with two operators: `a >> b` (then) and `a % k` (keep the best k)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kgot_lab.arguments import check_arguments, check_fields, check_names
from kgot_lab.errors import BadInput, attribute_errors, require, require_count, short_repr
from kgot_lab.types import Query, Ranking


@check_arguments
@dataclass(frozen=True, eq=False)
class Stage:
    """A step from a ranking to a ranking.

    A retriever reads only the query of its input, a re-ranker also reads the hits. A stage equals only
    itself, since two of one name may search different documents. `inputs` are the stages that it is made of,
    each with its weight as text, or "".
    """

    name: str
    step: Callable[[Ranking], Ranking] = field(repr=False)
    version: str = field(default="", repr=False)  # without one, a benchmark always runs the stage again
    inputs: tuple[tuple[str, Stage], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        check_fields(self, plain=True)
        if not self.name.strip() or not self.name.isprintable():
            raise BadInput(f"a stage is named by a text on one line, not by {short_repr(self.name)}")

    @check_names
    def __call__(self, ranking: Ranking) -> Ranking:
        require(
            ranking, Ranking, f"the stage {self.name!r} takes a Ranking; stage.search(query) takes a text"
        )
        with attribute_errors(f"the stage {self.name!r} failed on {short_repr(ranking.query.text)}"):
            found: object = self.step(ranking)
        if not isinstance(found, Ranking):
            made = f"the stage {self.name!r} gave a {type(found).__name__}, not a Ranking"
            raise BadInput(f"{made}; make one with ranked(ranking.query, scores by id)")
        return replace(found, system=self.name)

    def search(self, query: str | Query) -> Ranking:
        """Run the pipeline on a question and return its ranking.

        Raises BadInput if `query` is not a text or a Query.
        """
        return self(Ranking(query if isinstance(query, Query) else Query(query), ()))

    def __rshift__(self, then: Stage) -> Stage:
        require(then, Stage, "what comes behind >> is a Stage")
        inputs = ("", self), ("", then)
        return Stage(f"{self.name} >> {then.name}", lambda ranking: then(self(ranking)), inputs=inputs)

    def __mod__(self, k: int) -> Stage:
        require_count(k, 1, "k", "% keeps the best k hits")
        name = f"({self.name})" if ">>" in self.name else self.name
        return Stage(f"{name} % {k}", lambda ranking: best(self(ranking), k), inputs=(("", self),))

    def __repr__(self) -> str:
        return f"<{self.name}>"


def fixed_stage(name: str, found: Ranking) -> Stage:
    """Wrap a computed ranking as a stage."""
    return Stage(name, lambda _: found)


def best(ranking: Ranking, k: int) -> Ranking:
    """Return a ranking of the first k hits."""
    return replace(ranking, hits=ranking.hits[:k])
