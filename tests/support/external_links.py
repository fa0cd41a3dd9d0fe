"""The external addresses of a page that a reader may click."""

from __future__ import annotations

from kgot_lab.viz.external_requests import _find_addresses, _is_external


def find_external_links(text: str) -> tuple[str, ...]:
    """Every external address that a reader may click, once each, in order."""
    clicked = [address.address for address in _find_addresses(text) if address.clicked]
    return tuple(dict.fromkeys(address for address in clicked if _is_external(address, False)))
