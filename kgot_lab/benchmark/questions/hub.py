"""Rows and files of data sets on the Hugging Face hub, read over the network and kept in memory."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPMessage
from typing import IO
from urllib.parse import quote, urlencode, urlsplit

from kgot_lab.errors import BadInput
from kgot_lab.types import Json

TOKEN_VARIABLE = "HF_TOKEN"
_PAGE = 100  # rows, the most that one request may ask for
_LARGEST = 200_000_000  # bytes of an answer; a file that is larger is not for us


@dataclass(frozen=True)
class Hub:
    """Where rows and files are, and the user's token, which is sent to these two places only and is in no
    text.
    """

    rows: str = "https://datasets-server.huggingface.co"
    files: str = "https://huggingface.co"
    token: str = field(default="", repr=False)
    timeout: float = 60.0

    def all_rows(self, dataset: str, config: str, split: str) -> Iterator[Json]:
        """The rows of a data set, page by page; raises BadInput."""
        offset = 0
        while True:
            where = urlencode(
                {"dataset": dataset, "config": config, "split": split, "offset": offset, "length": _PAGE}
            )
            try:
                page = [
                    each["row"]
                    for each in json.loads(self._get(f"{self.rows}/rows?{where}", dataset))["rows"]
                ]
            except (ValueError, KeyError, TypeError) as error:
                raise BadInput(f"{self.rows} did not answer with rows of {dataset}: {error!r}") from None
            yield from page
            offset += len(page)
            if len(page) < _PAGE:
                return

    def file(self, dataset: str, path: str) -> bytes:
        """The content of a file of a data set; raises BadInput."""
        return self._get(f"{self.files}/datasets/{dataset}/resolve/main/{quote(path)}", dataset)

    def _get(self, url: str, dataset: str) -> bytes:
        request = urllib.request.Request(url)
        if self.token:
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        try:
            with urllib.request.build_opener(_Elsewhere()).open(request, timeout=self.timeout) as answer:
                content: bytes = answer.read(_LARGEST + 1)
        except urllib.error.HTTPError as error:
            error.close()
            raise BadInput(_advice(dataset, error.code, bool(self.token))) from None
        except (OSError, ValueError) as error:  # no network, a time-out, an address that is none
            raise BadInput(f"{dataset} cannot be fetched from {urlsplit(url).netloc}: {error}") from None
        if len(content) > _LARGEST:
            raise BadInput(f"{url} is larger than {_LARGEST:,} bytes")
        return content


class _Elsewhere(urllib.request.HTTPRedirectHandler):
    """Follows to where a file really is, which is another host with a signed address: the token does not go
    there.
    """

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        token = req.unredirected_hdrs.get("Authorization")
        if following is not None and token and urlsplit(newurl).netloc == urlsplit(req.full_url).netloc:
            following.add_unredirected_header("Authorization", token)
        return following


def own_hub() -> Hub:
    """The hub with the user's own token, from the environment; raises BadInput where there is none."""
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token:
        raise BadInput(
            "this set is open to those who agreed to its terms, on its page on huggingface.co: do so, make a token of your own there, and "
            f"set the environment variable {TOKEN_VARIABLE}. The token is not stored."
        )
    return Hub(token=token)


def _advice(dataset: str, status: int, token: bool) -> str:
    if status in {401, 403}:
        told = (
            f"the token in {TOKEN_VARIABLE} may not read it"
            if token
            else f"it needs a token in {TOKEN_VARIABLE}"
        )
        return (
            f"{dataset} was refused (HTTP {status}): {told}; agree to its terms on its page on huggingface.co"
        )
    return f"{dataset} cannot be fetched: HTTP {status}. Try again later."
