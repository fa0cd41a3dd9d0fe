"""The way to a server: straight to this computer's own addresses, elsewhere through the proxy that the
environment names.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from kgot_lab.errors import BadInput

_SCHEMES = ("http", "https", "socks5", "socks5h")


def is_loopback(address: str) -> bool:
    """Whether an address is one of this computer alone, as localhost and 127.0.0.1 are."""
    host = (urlsplit(address).hostname or "").rstrip(".").lower()
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def way_to(address: str) -> Mapping[str, Any]:
    """What an httpx client is made with for an address: for one of this computer no proxy, elsewhere nothing
    special.

    Raises BadInput, which names the environment variable, for a proxy that cannot be used; clients fail on
    any, whether it is for the address or not.
    """
    if is_loopback(address):
        # it reads SSL_CERT_FILE all the same
        tls = {"verify": ssl.create_default_context()} if address.startswith("https:") else {}
        return {"trust_env": False, **tls}
    for scheme, proxy in _proxies().items():
        kind = urlsplit(proxy).scheme.lower() if "://" in proxy else "http"
        if kind not in _SCHEMES:
            raise BadInput(
                f"the environment variable {_variable(scheme)} names a proxy of the kind {kind}://: use {', '.join(_SCHEMES)}"
            )
        if kind.startswith("socks") and find_spec("socksio") is None:
            raise BadInput(
                f"the environment variable {_variable(scheme)} names a SOCKS proxy: pip install 'httpx[socks]', or unset it"
            )
    return {}


def proxy_variable(address: str) -> str:
    """The environment variable that names the proxy through which an address is asked; "" where it is asked
    without one.
    """
    parts = urlsplit(address)
    proxies = _proxies()
    if is_loopback(address) or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return ""
    return next((_variable(scheme) for scheme in (parts.scheme, "all") if scheme in proxies), "")


def through_proxy(address: str) -> str:
    """Words for a message that an address was not reached: " through the proxy that HTTP_PROXY names", ""
    where it is asked without one.
    """
    variable = proxy_variable(address)
    return variable and f" through the proxy that {variable} names"


def _proxies() -> dict[str, str]:
    """The proxies of the environment that clients read, by http, https and all; none where NO_PROXY names
    every server.
    """
    found = getproxies_environment()
    if "*" in map(str.strip, found.get("no", "").split(",")):
        return {}
    return {scheme: found[scheme] for scheme in ("http", "https", "all") if found.get(scheme)}


def _variable(scheme: str) -> str:
    """How a proxy's variable is spelt in this environment."""
    small = f"{scheme}_proxy"
    return (
        small
        if os.environ.get(small)
        else next((name for name in os.environ if name.lower() == small), small.upper())
    )
