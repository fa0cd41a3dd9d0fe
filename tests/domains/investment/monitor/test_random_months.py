"""Random months of news, with pauses, failures and a clock that goes back: no briefing twice, none without a
signal, no user elsewhere.
"""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from support.claim_places import holding
from support.small_market import SetClock
from support.small_news import FIRST, item, prompt_counts, reply_on

from kgot_lab.domains.investment.monitor.events import StageFailed
from kgot_lab.domains.investment.monitor.monitor import Monitor, open_places
from kgot_lab.domains.investment.monitor.news import FeedResult
from kgot_lab.errors import LLMError, ToolFailed
from kgot_lab.types import Prompt, Reply

pytestmark = pytest.mark.extended

HOUR = timedelta(hours=1)
COMPANIES = {"Lantern Devices": "LNTN", "Orchard Chips": "ORCH", "Brook Mills": "BRKM"}
USERS = ("canary-user-a77", "canary-user-b31")
SHARES, COST, GOAL, WISH = "73110.0417", "9183.0666", "canary-goal-88", "canary-wish-12"
PLANTED = (*USERS, SHARES, COST, GOAL, WISH)


class Reader:
    """A simulated reader of random replies, some of which it does not give; it keeps all that it was asked."""

    name = "simulated"

    def __init__(self, random: Random) -> None:
        self.random, self.asked, self.answered = random, list[str](), list[str]()
        self.replies: dict[str, str] = {}

    def knows(self, headline: str, reply: object) -> None:
        self.replies[headline] = json.dumps(reply)

    def __call__(self, prompt: Prompt) -> Reply:
        self.asked.append(repr(prompt))
        if self.random.random() < 0.2:
            raise LLMError("the model is away")
        self.answered.append(repr(prompt))
        return Reply(
            next(
                reply
                for headline, reply in self.replies.items()
                if f"\n{headline}\n" in prompt.messages[1].text
            )
        )


class Receiver:
    """Takes briefings, or is away, sometimes after it took one."""

    def __init__(self, random: Random) -> None:
        self.random, self.taken = random, list[str]()

    def __call__(self, entry) -> None:
        if (luck := self.random.random()) < 0.2:
            raise ToolFailed("away", again=luck < 0.1)
        self.taken.append(entry.key)


def play(folder: Path, random: Random) -> tuple[str, Reader, Receiver]:
    """A month of ticks; what it told, as lines and as values."""
    clock, reader, receiver, items, told = SetClock(FIRST), Reader(random), Receiver(random), [], []
    for tick in range(random.randint(4, 12)):
        for _ in range(random.randrange(4)):
            company = random.choice(sorted(COMPANIES))
            new = item(
                len(items),
                company,
                COMPANIES[company],
                f"says {len(items)}",
                after=clock.time - FIRST + random.randint(-50, 20) * HOUR,
            )
            reader.knows(
                new.headline,
                reply_on(
                    company,
                    COMPANIES[company],
                    f"says {len(items)}",
                    action=random.choice(["", "buy", "sell"]),
                ),
            )
            items.append(new)
        with open_places(folder, now=clock) as places:
            if not tick:
                for user, symbol in zip(USERS, ("LNTN", "ORCH"), strict=True):
                    places.accounts.set_profile(user, goals=[GOAL], preferences={"note": WISH})
                    places.accounts.set_position(user, symbol, SHARES, COST)
                    places.accounts.watch(user, "BRKM")
            monitor = Monitor(
                places, reader, lambda: FeedResult(tuple(items)), receiver, most=random.randint(1, 5)
            )
            walk = monitor.tick(places.journal.next_tick(HOUR))
            # some are left in the middle
            events = [event for event, _ in zip(walk, range(random.choice([3, 5, 99])), strict=False)]
            told += [f"{event!r}\n{event}" for event in events]
        clock.time += random.choice([HOUR, 24 * HOUR, 200 * HOUR, -5 * HOUR])
    return "\n".join(told), reader, receiver


@pytest.mark.parametrize("seed", range(6))
def test_a_random_month_briefs_once_and_only_of_signals_and_tells_of_nobody(seed, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    told, reader, receiver = play(tmp_path, Random(seed))
    with open_places(tmp_path, now=SetClock(FIRST)) as places:
        outbox, graph = places.accounts.outbox(), places.graph
        assert (
            len({entry.key for entry in outbox})
            == len({(entry.user, entry.body["signal"]) for entry in outbox})
            == len(outbox)
        )
        assert (
            len(receiver.taken)
            == len(set(receiver.taken))
            == sum(entry.sent_at is not None for entry in outbox)
        )
        for entry in outbox:
            (signal, *_) = graph.view().history(entry.body["signal"])
            assert (signal.node.properties["type"], signal.node.properties["action"]) == (
                "signal",
                entry.body["action"],
            )
            holds = {USERS[0]: {"LNTN", "BRKM"}, USERS[1]: {"ORCH", "BRKM"}}[entry.user]
            assert entry.body["symbols"] and set(entry.body["symbols"]) <= holds
        assert len(reader.answered) == len(set(reader.answered)) == prompt_counts(places.journal)[2], (
            "no reply is paid for twice"
        )
    out, err = capfd.readouterr()
    texts = {"events": told, "prompts": "".join(reader.asked), "logs": caplog.text + out + err}
    assert {where: word for where, text in texts.items() for word in PLANTED if word in text} == {}
    found = {word: {name.split("-")[0].split(".")[0] for name in holding(tmp_path, word)} for word in PLANTED}
    assert found == {word: {"accounts"} for word in PLANTED}


def test_the_months_are_not_empty(tmp_path):
    months = [play(tmp_path / str(seed), Random(seed)) for seed in range(6)]
    assert sum(len(receiver.taken) for _, _, receiver in months) > 5
    assert sum(StageFailed.__name__ in told for told, _, _ in months) > 2
