"""Requests to an OpenAI-compatible endpoint: one deadline, retries, and every failure as one clear error.

A call runs its own small event loop in the caller's thread, so that a cancellation from another thread, or the
deadline, ends it at any point and closes the connection: the server sees it and stops too. No message shows the key.
"""

from __future__ import annotations

import asyncio
import base64
import email.utils
import json
import logging
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from typing import Any, NoReturn, TypeVar

import httpx
from pydantic import SecretStr

from libraryfs.errors import Cancelled, DeadlineExceeded, ModelBusy, ModelFailed, ModelUnavailable
from libraryfs.models.cancel import Cancel
from libraryfs.settings import BASIC, Address, address

for _name in ("httpx", "httpcore"):  # at info and debug they log addresses and headers
    logging.getLogger(_name).setLevel(logging.WARNING)

_T = TypeVar("_T")
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 300.0
"""An endpoint that sends nothing for that long has failed, also when the caller set no deadline."""
RETRIES = 3
BACKOFF_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 60.0
"""A Retry-After beyond this is not waited for."""
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
_BODY_SHOWN = 300


class Refused(Exception):
    """An answer with an error status that a retry does not mend: its status and the server's own words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"HTTP {status}: {words}")
        self.status = status
        self.words = words


class Endpoint:
    """One endpoint: its address, key and what messages call it."""

    def __init__(self, url: str, key: SecretStr, *, what: str, setting: str) -> None:
        """`setting` is the environment variable that named it; its key's is that and `_KEY`."""
        self._fault = ""
        apart = Address(url, "")
        try:
            apart = address(url)  # again, for one that did not come from the settings
        except ValueError as error:
            self._fault = str(error)
        self._url = apart.url.rstrip("/")
        self._key = SecretStr(apart.authorization) if apart.authorization and not key.get_secret_value() else key
        self._what = what
        self._setting = setting

    @cached_property
    def name(self) -> str:
        """Its address without user, password and query: for messages and identities."""
        try:
            url = httpx.URL(self._url)
        except httpx.InvalidURL:
            return self._what
        port = f":{url.port}" if url.port else ""
        return f"{url.scheme}://{url.host}{port}{url.path}"

    def run(self, work: Callable[[httpx.AsyncClient], Awaitable[_T]], cancel: Cancel) -> _T:
        """Run `work` until it is done, cancelled or late. Raises ModelError only."""
        cancel.check()
        if self._fault:
            raise self._no_url(self._fault)
        headers = self._headers()

        async def main() -> _T:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None

            def stop() -> None:
                with suppress(RuntimeError):  # the loop is closed: the work was done in this moment
                    loop.call_soon_threadsafe(task.cancel)

            timeout = httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
            try:
                async with asyncio.timeout(cancel.remaining()):
                    with cancel.watch(stop):
                        async with httpx.AsyncClient(headers=headers, timeout=timeout, verify=self._tls) as client:
                            return await work(client)
            except TimeoutError:
                raise DeadlineExceeded(f"{self.name} did not answer in the time that there was") from None
            except asyncio.CancelledError:
                if cancel.cancelled:
                    raise Cancelled from None
                raise

        try:
            return asyncio.run(main())
        except Refused as refused:
            self._explain(refused)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            raise ModelUnavailable(
                f"{self.name}: nothing answers there: start the {self._what}'s server, or correct {self._setting}"
            ) from None
        except httpx.TimeoutException:
            raise ModelFailed(f"{self.name}: it was silent for {SILENCE_SECONDS:.0f} s") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise self._no_url() from None
        except UnicodeError:  # of the system's look-up
            raise self._no_url("its host is none") from None
        except httpx.HTTPError as error:
            raise ModelFailed(f"{self.name}: it cut the connection ({type(error).__name__})") from None

    @asynccontextmanager
    async def post(
        self, client: httpx.AsyncClient, path: str, body: dict[str, Any], cancel: Cancel
    ) -> AsyncIterator[httpx.Response]:
        """The response to a JSON body, its content not yet read. Waits and tries again where that can help in time.

        Raises Refused for any other error status.
        """
        for attempt in range(RETRIES + 1):
            request = client.build_request("POST", f"{self._url}/{path}", json=body)
            response = await client.send(request, stream=True)
            try:
                if response.is_success:
                    yield response
                    return
                words = await _words(response)
            finally:
                await response.aclose()
            status = response.status_code
            if status == 500 and "validation error" in words:  # llama-cpp-python's server means: unprocessable
                status = 422
            wait = _retry_after(response.headers.get("retry-after"), attempt)
            left = cancel.remaining()
            too_long = wait > LONGEST_WAIT_SECONDS or (left is not None and wait >= left)
            if status not in _RETRIED or attempt == RETRIES or too_long:
                raise Refused(status, words)
            await asyncio.sleep(wait)

    def failed(self, why: str) -> ModelFailed:
        """The error of an answer that is not one."""
        return ModelFailed(f"{self.name}: {self._hide(why)}")

    def parse(self, text: str | bytes) -> Any:
        """JSON, or ModelFailed."""
        try:
            return json.loads(text)
        except ValueError:
            raise self.failed("its answer is not JSON") from None

    def _no_url(self, why: str = "") -> ModelUnavailable:
        reason = f": {why}" if why else ""
        return ModelUnavailable(f"{self._setting} is not a URL such as http://localhost:8000/v1{reason}")

    def _explain(self, refused: Refused) -> NoReturn:
        words = self._hide(refused.words)
        match refused.status:
            case 401 | 403:
                raise ModelUnavailable(f"{self.name}: it refuses the key: set {self._setting}_KEY") from None
            case 404:
                raise ModelUnavailable(
                    f"{self.name}: no such model or address: correct {self._setting}_MODEL, or {self._setting} (it "
                    f"usually ends in /v1): {words}"
                ) from None
            case 429:
                raise ModelBusy(f"{self.name}: too many requests (HTTP 429): try again later: {words}") from None
        raise ModelFailed(f"{self.name}: HTTP {refused.status}: {words}") from None

    def _headers(self) -> dict[str, str]:
        key = self._key.get_secret_value()
        if not key:
            return {}
        if not (key.isascii() and key.isprintable()):
            raise ModelUnavailable(f"{self._setting}_KEY holds characters that no key has: set it again")
        return {"Authorization": key if key.startswith(BASIC) else f"Bearer {key}"}

    def _hide(self, words: str) -> str:
        for secret in self._secrets:
            words = words.replace(secret, "***")
        return words

    @cached_property
    def _secrets(self) -> list[str]:
        """What a server could say back: the key; of a user and password, the pair, its code and the password."""
        key = self._key.get_secret_value()
        if not key.startswith(BASIC):
            return [key] if key else []
        code = key.removeprefix(BASIC)
        try:
            pair = base64.b64decode(code).decode("utf-8", "replace")
        except ValueError:
            return [key, code]
        return [part for part in (key, code, pair, pair.partition(":")[2]) if part]

    @cached_property
    def _tls(self) -> ssl.SSLContext | bool:
        # Made once: it takes tens of milliseconds.
        return httpx.create_ssl_context() if self._url.startswith("https:") else True


async def _words(response: httpx.Response) -> str:
    """What a server says of its error, one line."""
    data = bytearray()
    async for part in response.aiter_bytes():
        data += part
        if len(data) > 1 << 16:
            break
    text = data.decode("utf-8", "replace")
    with suppress(ValueError):
        answer = json.loads(text)
        error = answer.get("error", answer.get("detail", answer)) if isinstance(answer, dict) else answer
        message = error.get("message", error) if isinstance(error, dict) else error
        text = message if isinstance(message, str) else json.dumps(message)
    return " ".join(text.split())[:_BODY_SHOWN] or "no reason given"


def _retry_after(header: str | None, attempt: int) -> float:
    """Seconds to wait: the header's (seconds or a date), else twice as long each time."""
    if header:
        with suppress(ValueError):
            return max(0.0, float(header))
        with suppress(ValueError, TypeError):
            return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    return float(BACKOFF_SECONDS * 2**attempt)
