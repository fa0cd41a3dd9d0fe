"""Retrieval pipelines with two operators: `a >> b` (then) and `a % k` (keep the best k)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from kgot_lab.arguments import check_fields
from kgot_lab.errors import BadInput, attribute_errors, describe_value, require, require_count, short_repr
from kgot_lab.types import Hit, HitColumns, Query, Ranking, are_finite


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

    def __call__(self, ranking: Ranking) -> Ranking:
        require(
            ranking, Ranking, f"the stage {self.name!r} takes a Ranking; stage.search(query) takes a text"
        )
        with attribute_errors(f"the stage {self.name!r} failed on {short_repr(ranking.query.text)}"):
            found: object = self.step(ranking)
        if not isinstance(found, Ranking):
            made = f"the stage {self.name!r} gave a {type(found).__name__}, not a Ranking"
            raise BadInput(f"{made}; make one with ranked(ranking.query, scores by id)")
        if not isinstance(found.hits, HitColumns):
            self._check(found.hits)
        return replace(found, system=self.name)

    def _check(self, hits: Sequence[Hit]) -> None:
        """Raise BadInput if the score of a hit is not a finite number."""
        if not all(issubclass(kind, str) for kind in set(map(type, map(itemgetter(0), hits)))):
            id = next(hit.id for hit in hits if not isinstance(hit.id, str))
            raise BadInput(f"the stage {self.name!r} gave a hit whose id is {describe_value(id)}, not a text")
        if not are_finite(list(map(itemgetter(1), hits))):
            id, score = next(hit for hit in hits if not are_finite([hit.score]))
            problem = f"the stage {self.name!r} gave document {short_repr(id)} the score {short_repr(score)}"
            raise BadInput(f"{problem}, which is no finite number")

    def search(self, query: str | Query) -> Ranking:
        """Run the pipeline on a question and return its ranking.

        Raises BadInput if `query` is not a text or a Query.
        """
        require(query, (str, Query), "a query is a text or a Query")
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
