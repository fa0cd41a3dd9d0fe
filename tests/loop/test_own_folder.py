"""The recorded answers over the invented folder: each is what the loop does with the recorded replies; the
heads say whose these are.
"""

import pytest

from kgot_lab.api.ask import ask
from kgot_lab.io.files import bundled_path
from kgot_lab.llm.model_file import QWEN_CODER
from kgot_lab.loop.replay.replay import verify
from kgot_lab.loop.trace import load_run
from kgot_lab.stores import InMemory

# only the first is, and the last is told as not in the sources
RIGHT = {"keys_along_paths": "Olive Tarn", "keys_by_writing": "Dunmore Tools", "treasurer": "Olive Tarn"}


@pytest.mark.parametrize("name", RIGHT)
def test_a_recorded_answer_is_what_the_loop_does_with_its_replies(name):
    path = bundled_path(f"own-folder/{name}.jsonl")
    run = load_run(path)
    with InMemory() as store:
        assert verify(run.events, store) is None
    again = ask(
        run.question, bundled_path("own-folder/allotment"), f"recorded:{path}", preset=run.events[0].preset
    )
    assert again.answer == run.answer == RIGHT[name]
    assert run.about["model_sha256"] == QWEN_CODER.sha256
    assert run.about["model"].startswith("Qwen2.5-Coder-1.5B")
