"""An instance in a process of its own: FOLDER ASKER, the folder of its key and nonces, and the public key of
the one peer it answers.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from kgot_lab.errors import RefusedEnvelope
from kgot_lab.experts.federation.delegation import Federation, refusal_reply
from kgot_lab.experts.federation.envelope import canonical_json, load_instance_key
from kgot_lab.experts.federation.signing import Peer, Peers, open_nonces
from support.federation import acting_server, answered_question, echo, send


def main(folder: Path, asker: str) -> None:
    """Say address and public key on one line, and answer until the process is ended."""
    key = load_instance_key(folder / "key.pem")
    federation = Federation(
        key, Peers(Peer("asker", "http://127.0.0.1:1", asker)), open_nonces(folder / "seen.db")
    )

    def act(handler: Any, body: bytes) -> None:
        try:
            send(handler, 200, answered_question(body, federation, echo))
        except RefusedEnvelope as error:
            body, status = refusal_reply(error)
            send(handler, status, canonical_json(body))

    with acting_server(act) as address:
        print(address, key.public, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
