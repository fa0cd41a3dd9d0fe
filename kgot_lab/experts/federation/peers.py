"""The instances that are known, by name and by key: no other is asked or answered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput, UnknownName, require, shortly
from kgot_lab.experts.federation.envelope import is_public_key
from kgot_lab.experts.federation.signing import is_plain_url
from kgot_lab.io.files import read_regular, utf8_text
from kgot_lab.io.http_client import is_loopback

_MOST_FILE, _MOST_PEERS = 1_000_000, 100  # each is asked in a thread of its own
_FIELDS = {"name", "url", "public_key", "plain_http"}


@dataclass(frozen=True)
class Peer:
    """Another instance: what we call it, where it is asked, and the public key that it signs with.

    A question may be private, so an address that is not of this computer begins with https, unless
    `plain_http` allows http, as within a closed network. Raises BadInput.
    """

    name: str
    url: str
    public_key: str
    plain_http: bool = False

    def __post_init__(self) -> None:
        if (
            not isinstance(self.name, str)
            or not self.name.isprintable()
            or not 1 <= len(self.name.strip()) <= 100
        ):
            raise BadInput("the name of a peer is 1 to 100 characters on one line")
        if not is_public_key(self.public_key):
            raise BadInput(
                f"the public key of the peer {shortly(self.name)} is 43 characters of base64url, as its instance shows it"
            )
        require(self.url, str, "the url of a peer is a text")
        if not is_plain_url(self.url):
            raise BadInput(
                f"the url of the peer {shortly(self.name)} is https://HOST[:PORT][/PATH], without a password or a query"
            )
        if self.url.casefold().startswith("http:") and not self.plain_http and not is_loopback(self.url):
            told = (
                "a question may be private: use https, or say plain_http where the network between is yours"
            )
            raise BadInput(f"the url of the peer {shortly(self.name)} begins with http://; {told}")

    def at(self, path: str) -> str:
        """The address of one of its routes."""
        return self.url.rstrip("/") + path


class Peers:
    """Peers with names and keys of their own; raises BadInput for two of one name or one key."""

    def __init__(self, *peers: Peer) -> None:
        self._named = {peer.name: peer for peer in peers}
        self._keyed = {peer.public_key: peer for peer in peers}
        if not len(self._named) == len(self._keyed) == len(peers):
            raise BadInput("two peers have one name or one public key: give each its own")

    def __iter__(self) -> Iterator[Peer]:
        return iter(self._named.values())

    def __len__(self) -> int:
        return len(self._named)

    def __repr__(self) -> str:
        return f"<Peers {', '.join(sorted(self._named)) or 'none'}>"

    def named(self, name: str) -> Peer:
        """A peer by its name; raises UnknownName."""
        if name not in self._named:
            raise UnknownName("peer", name, self._named)
        return self._named[name]

    def with_key(self, public: str) -> Peer | None:
        """The peer with a public key, which is None for a stranger's."""
        return self._keyed.get(public)


def read_peers(path: Path | str) -> Peers:
    """The peers of a file `peers.json`: {"peers": [{"name", "url", "public_key"}, …]}; raises BadInput for
    what is none, or is missing.
    """
    try:
        told: Any = json.loads(utf8_text(read_regular(path, _MOST_FILE), "peers.json"))
    except OSError as error:
        raise BadInput(
            f"the file of peers cannot be read: {error.strerror or type(error).__name__}"
        ) from None
    except (ValueError, RecursionError):
        raise BadInput("the file of peers is no JSON") from None
    return peers_from_json(told)


def peers_from_json(told: object) -> Peers:
    """The peers in a JSON value; raises BadInput with what would do."""
    listed = told.get("peers") if isinstance(told, Mapping) else None
    if (
        not isinstance(listed, list)
        or len(listed) > _MOST_PEERS
        or not all(isinstance(each, dict) for each in listed)
    ):
        raise BadInput(
            f'peers are {{"peers": [{{"name", "url", "public_key"}}, …]}}, at most {_MOST_PEERS:,}'
        )
    for each in listed:
        if not {"name", "url", "public_key"} <= set(each) <= _FIELDS or not isinstance(
            each.get("plain_http", False), bool
        ):
            raise BadInput(
                "a peer has name, url and public_key, perhaps plain_http (true or false), and nothing else"
            )
    return Peers(*(Peer(**each) for each in listed))
