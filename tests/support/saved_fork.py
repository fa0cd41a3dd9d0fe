"""A fork on file, without running it again."""

from kgot_lab.loop.replay.forks import changeable_text
from kgot_lab.loop.trace import record


def save_fork(fork, path, original, **about):
    """Write a fork to a new file, with the run, the event and the change in its head."""
    at = fork.first_difference
    change = changeable_text(fork.events, at)
    head = {"fork_of": original.run, "at": at, "change": change, "stopped": fork.stopped, **about}
    for _ in record(fork.events, path, run=f"{original.run}, event {at} changed", metadata=head):
        pass
