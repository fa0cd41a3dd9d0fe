"""What a memory recalls of chats: personal questions, and facts that ended, were replaced, or are still true.

Each question is asked of a memory that was told the messages before its date, with 100 or 300 tokens for what it recalls.
*Recalled*: every value asked for is in it. *Right*: and, no line tells as current what is stale; a line with a stale
value counts unless a note of the line says that it is over, or its own words do. *Ended wrongly*: a value that holds
is told only as over. *Hinted wrongly*: a line with a value that holds has a hint ("until 2026-05-01? …") at a sentence
that seems to end it; counted apart, since a hint ends no fact. Beside the memory stand the same without an embedder,
the sentences nearest in meaning, and the last of the chat. The first rules were written with `dev`, before `test` was
opened; the present ones with both, and no text of `heldout` was read for them.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

from kgot_lab import embedder
from kgot_lab.io.files import bundled_path
from kgot_lab.memory.user_memory import open_memory
from kgot_lab.text.cleaning import estimate_tokens
from kgot_lab.text.words import text_sentences

BUDGETS = (100, 300)  # tokens; 300 is the default of `recall`
RESULTS = Path(__file__).parents[1] / "results" / "user_memory"
ARMS = ("memory", "memory without an embedder", "meaning alone", "last messages")
SETS = ("personal", "endings")
_OVER = re.compile(
    r"\b(?:no longer|any ?more|left|sold|quit|used to|stopped|gave up|dropped|died|passed away|moved out|broke|split|"
    r"divorce|for good|last|zero|goodbye|instead of|over|ended|cancel\w*|gone|lost|traded|swapped|switched|replaced|"
    r"done with|until|till|fired|laid off)\b",
    re.I,
)
_HINT = re.compile(r"[(;] ?until \d{4}-\d\d-\d\d\? ")


def questions(name: str, half: str) -> Iterator[dict[str, Any]]:
    """Each question with the messages before its date."""
    for chat in json.loads(bundled_path(f"chat-memory/{name}_{half}.json").read_text(encoding="utf-8")):
        for number, check in enumerate(chat.get("questions") or chat["checks"]):
            at = datetime.fromisoformat(check["at"])
            yield {
                "id": f"{chat['id']}/{number}", "kind": chat.get("kind", "personal"), "user": chat["user"],
                "question": check["question"], "at": at,
                "messages": [each for each in chat["messages"] if datetime.fromisoformat(each["at"]) <= at],
                "holds": check.get("expect", check.get("holds")),
                "stale": [[value] for value in check["reject"]] if "reject" in check else check.get("ended", []),
            }  # fmt: skip


def recalled(arm: str, case: dict[str, Any], meaning: Any, budgets: Sequence[int] = BUDGETS) -> list[str]:
    """What an arm puts into the prompt of a question, for each number of tokens."""
    if arm not in ("last messages", "meaning alone"):
        near = None if arm == "memory without an embedder" else meaning
        with open_memory(user=case["user"], embedder=near) as memory:
            memory.add(case["messages"])
            return [str(memory.recall(case["question"], at=case["at"], tokens=tokens)) for tokens in budgets]
    return [_recalled_without_rules(arm, case, meaning, tokens) for tokens in budgets]


def _recalled_without_rules(arm: str, case: dict[str, Any], meaning: Any, tokens: int) -> str:
    if arm == "last messages":
        lines, used = list[str](), 0
        for message in reversed(case["messages"]):
            line = f"- {message['at'][:10]}: {message['content']}"
            used += estimate_tokens(line)
            if used > tokens:
                break
            lines += [line] if message["role"] == "user" else []
        return "\n".join(lines)
    said = (message for message in case["messages"] if message["role"] == "user")
    told = [(m["at"][:10], sentence) for m in said for sentence in text_sentences(m["content"])]
    near = meaning.embed([text for _, text in told]) @ meaning.embed([case["question"]])[0]
    best = [f"- {told[place][0]}: {told[place][1]}" for place in (-near).argsort()]
    ends = accumulate(map(estimate_tokens, best))
    return "\n".join(line for line, end in zip(best, ends, strict=True) if end <= tokens)


def judged(case: dict[str, Any], text: str) -> dict[str, bool]:
    """Whether everything asked for is recalled, nothing stale is told as current, and nothing that holds as over."""
    lines = text.casefold().splitlines()

    def tells(line: str, value: str) -> bool:
        head, _, note = line.partition(" (until ")
        return value.casefold() in head and value.casefold() not in note

    def is_in(values: list[str]) -> bool:
        return any(value.casefold() in line for value in values for line in lines)

    def is_current(values: list[str]) -> bool:
        return any(tells(line, value) for value in values for line in lines)

    stale = any(
        tells(line, v) and not _OVER.search(line)
        for values in case["stale"]
        for v in values
        for line in lines
    )
    needs_now = case["kind"] != "personal"
    found = all(is_current(values) if needs_now else is_in(values) for values in case["holds"])
    wrongly = any(is_in(values) and not is_current(values) for values in case["holds"]) and needs_now
    hinted = any(
        _HINT.search(line) and value.casefold() in line.partition(" (until ")[0]
        for values in case["holds"]
        for value in values
        for line in lines
    )
    verdicts = {"recalled": found, "right": found and not stale, "ended wrongly": wrongly}
    return verdicts | {"hinted wrongly": hinted and needs_now}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("half", choices=("dev", "test", "heldout"))
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS, help="the rows of others stay")
    options = parser.parse_args()
    meaning, file = embedder("minilm"), RESULTS / f"{options.half}.jsonl"
    rows = {
        (f"{name}, {tokens} tokens", arm, case["id"]): {"kind": case["kind"], **judged(case, text)}
        for name in SETS
        for arm in options.arms
        for case in questions(name, options.half)
        for tokens, text in zip(BUDGETS, recalled(arm, case, meaning), strict=True)
    }
    stored = map(json.loads, file.read_text(encoding="utf-8").splitlines() if file.exists() else ())
    kept = {(row.pop("set"), row.pop("arm"), row.pop("id")): row for row in stored}
    order = sorted({**kept, **rows}.items(), key=lambda row: (_place(row[0]), row[0][2]))
    found = [{"set": name, "arm": arm, "id": id, **row} for (name, arm, id), row in order]
    RESULTS.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
    print(table(found))


def _place(key: tuple[str, str, str]) -> tuple[int, int, int]:
    name, _, budget = key[0].partition(", ")
    return SETS.index(name), BUDGETS.index(int(budget.split()[0])), ARMS.index(key[1])


def table(rows: list[dict[str, Any]]) -> str:
    """The counts of each set and arm as a table of Markdown."""
    columns = ("recalled", "right", "ended wrongly", "hinted wrongly")
    lines = [f"| set | arm | questions | {' | '.join(columns)} |", "|---|---|---:|---:|---:|---:|---:|"]
    for name, arm in dict.fromkeys((row["set"], row["arm"]) for row in rows):
        of_arm = [row for row in rows if (row["set"], row["arm"]) == (name, arm)]
        cells = (
            name,
            arm,
            len(of_arm),
            *(sum(row.get(column, False) for row in of_arm) for column in columns),
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    for kind in dict.fromkeys(row["kind"] for row in rows if row["kind"] != "personal"):
        of_kind = [
            row["right"]
            for row in rows
            if row["kind"] == kind and row["arm"] == "memory" and "300" in row["set"]
        ]
        lines.append(f"| endings: {kind} | memory | {len(of_kind)} | | {sum(of_kind)} | | |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
