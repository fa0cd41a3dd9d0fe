"""Ask experts of other instances when an expert's own graphs hardly cover a question."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kgot_lab.errors import BadInput, require_known
from kgot_lab.experts.chat.citations import CITATION_PATTERN, CitableNode
from kgot_lab.experts.error_messages import log
from kgot_lab.experts.federation.delegation import DelegatedAnswer, Federation, delegate_to_all, join_answers
from kgot_lab.experts.federation.marketplace import PeerOffer, best_match, request_offers
from kgot_lab.experts.federation.signing import Peer
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.kgos.methods.search.results import SearchResult
from kgot_lab.text.words import content_words, stem

_WORD = re.compile(r"\w+")
# the share of a question's content words that the nodes found contain; below it others are asked
_MIN_COVERAGE = 0.5
_CACHE_SECONDS = 300.0  # seconds for which offers are cached


_Chosen = list[tuple[Peer, str]]  # peers with the ids of their experts


@dataclass
class Consultants:
    """Experts of other instances that can be asked.

    What they offer is requested when needed, and cached for a while.
    """

    federation: Federation
    seconds: float = 90.0  # for an answer, of a model that may have to be loaded first
    clock: Callable[[], float] = time.monotonic
    _offered: dict[str, tuple[float, PeerOffer]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def _select_expert(self, question: str, names: Sequence[str]) -> tuple[_Chosen, list[DelegatedAnswer]]:
        """Select, of experts named PEER/EXPERT, the one whose offer fits a question best.

        Also returns an unanswered result for each expert whose instance did not say what it offers, with the
        reason.
        """
        peers = self.federation.peers
        wanted = [(peers.with_name(name), expert) for name, expert in map(split_remote_name, names)]
        offered, failures = self._request_offers({peer.name: peer for peer, _ in wanted})
        failed = ((peer.name, expert) for peer, expert in wanted if peer.name in failures)
        unanswered = [DelegatedAnswer(name, expert, reason=failures[name]) for name, expert in failed]
        allowed = {(peer.name, expert) for peer, expert in wanted}
        allowed_offers = [
            replace(each, experts=tuple(one for one in each.experts if (each.peer.name, one.id) in allowed))
            for each in offered
        ]
        best = best_match(question, allowed_offers)
        if best is None:  # of a graph that is still being read, nobody knows yet whether it fits
            unread = [(each.peer, one) for each in allowed_offers for one in each.experts if one.is_unread]
            best = unread[0] if unread else None
        return [] if best is None else [(best[0], best[1].id)], unanswered

    def ask(self, question: str, names: Sequence[str]) -> tuple[DelegatedAnswer, ...]:
        """Ask the best-fitting one of the named experts, and return its answer or why there is none in time.

        Returns an empty tuple if no expert fits. An expert whose instance does not say what it offers, for
        example because it is still loading its graphs, is included with the reason. Missing answers are also
        logged.
        """
        chosen, unanswered = self._select_expert(question, names)
        answers: tuple[DelegatedAnswer, ...] = ()
        if chosen:
            answers = delegate_to_all(question, chosen, self.federation.key, timeout=self.seconds)
        for answer in (*answers, *unanswered):
            if answer.answer is None:  # the part after a colon may be the words of the other server
                reason = answer.reason.partition(":")[0]
                log.warning("no answer from the expert %s of %s: %s", answer.expert, answer.instance, reason)
        return (*answers, *unanswered)

    def _request_offers(self, peers: dict[str, Peer]) -> tuple[list[PeerOffer], dict[str, str]]:
        """Return what peers offer, and the reason for each peer that does not say it.

        Offers are cached. Only peers without a recent one are asked.
        """
        failures: dict[str, str] = {}
        now, offered = self.clock(), self._offered
        oldest = now - _CACHE_SECONDS
        with self._lock:
            stale = [
                peer for name, peer in peers.items() if name not in offered or offered[name][0] <= oldest
            ]
        if stale:
            offers = request_offers(stale, self.federation.key, timeout=min(20.0, self.seconds))
            with self._lock:
                for offer in offers:
                    if offer.signed_at is not None:  # a peer without an offer is asked again next time
                        is_partial = any(expert.is_unread for expert in offer.experts)
                        self._offered[offer.peer.name] = (oldest if is_partial else now, offer)
                    elif offer.peer.name not in self._offered:
                        failures[offer.peer.name] = offer.reason
        with self._lock:
            return [self._offered[name][1] for name in peers if name in self._offered], failures


def split_remote_name(text: str) -> tuple[str, str]:
    """Split a name such as "clinic/expert_devops" into the peer and the expert.

    Raises BadInput if the name is not PEER/EXPERT.
    """
    peer, sign, expert = text.partition("/")
    if not sign or not peer or not expert:
        raise BadInput("an expert of another instance is named PEER/EXPERT, as in clinic/expert_devops")
    return peer, expert


def require_known_peers(names: Sequence[str], consultants: Consultants | None) -> None:
    """Raise UnknownName if an expert of an unknown peer is named."""
    for peer, _ in map(split_remote_name, names):
        known_peers = [] if consultants is None else [peer.name for peer in consultants.federation.peers]
        require_known("peer", known_peers, peer)


class UncoveredWords(NamedTuple):
    """The content words of a question that no node found contains, and the number of its content words."""

    words: tuple[str, ...]
    asked: int

    @property
    def is_majority(self) -> bool:
        """Whether these are more than half of the content words.

        A question rarely has the very words of its answer, so fewer mean nothing.
        """
        return len(self.words) > (1 - _MIN_COVERAGE) * self.asked

    @property
    def is_all(self) -> bool:
        """Whether the nodes found share no word with the question."""
        return 0 < self.asked == len(self.words)


def uncovered_words(question: str, found: SearchResult) -> UncoveredWords:
    """Return the content words of a question that the nodes found do not contain.

    Words are compared by stem with the names and descriptions of the nodes.
    """
    asked = {stem(told): word for word in _WORD.findall(question) for told in content_words(word)}
    index = graph_index(found.graph)
    covered: set[str] = set()
    for node in found.nodes:
        for id in node.sources:
            row = index.graph.row(id)
            description = index.graph.node_properties[row].get("description", "")
            covered |= set(map(stem, content_words(f"{index.names[row]} {description}")))
    return UncoveredWords(tuple(word for told, word in asked.items() if told not in covered), len(asked))


def format_answers(answers: Sequence[DelegatedAnswer]) -> str:
    """Format the answers of other instances for a prompt, each in its own fence.

    Citations get the name of the instance before that of the graph.
    """

    def with_instance(answer: DelegatedAnswer) -> DelegatedAnswer:
        source = rf"[Source: {answer.instance}/"
        cited = CITATION_PATTERN.sub(lambda match: f"{source}{match[1].strip()}]", answer.answer or "")
        return replace(answer, answer=cited or None)

    return join_answers(map(with_instance, answers))


def remote_citables(answers: Sequence[DelegatedAnswer]) -> tuple[CitableNode, ...]:
    """Return the nodes that remote answers cite, as they can be cited here: INSTANCE/GRAPH:NODE."""
    nodes = []
    for answer in answers:
        for source in answer.provenance.sources if answer.provenance else ():
            graph, _, node = source.partition(":")
            nodes.append(CitableNode(f"{answer.instance}/{graph}", node, node, "remote"))
    return tuple(nodes)
