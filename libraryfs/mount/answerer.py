"""The daemon's side of the process that answers questions (answering.py): started when the first one comes."""

import json
import logging
import math
import signal
import socket
import subprocess
import sys
from itertools import count
from typing import Any, Final

import trio

from libraryfs.errors import LibraryError, of_code
from libraryfs.mount.control import render_error
from libraryfs.mount.exchange import Exchange
from libraryfs.mount.options import MountOptions
from libraryfs.mount.view import View

log = logging.getLogger(__name__)

STAND_BY_SECONDS: Final = 2.0
"""Nothing asked for so long, the process is started ahead of the first question: to start takes it half a second, more
than some askers have. A mount that ends before costs none. One that ends sooner than this is not started ahead again.
"""


class Answerer:
    """Has exchanges answered elsewhere. `run` owns the process; it must be running while `answer` is called."""

    def __init__(self, options: MountOptions, view: View) -> None:
        self._view = view
        self._opening = {
            "snapshot": str(options.snapshot),
            "principal": options.principal,
            "mountpoint": str(options.mountpoint),
            "log_file": None if options.log_file is None else str(options.log_file),
            "log_level": options.log_level,
        }
        self._numbers = count(1)
        self._open: dict[int, Exchange] = {}
        self._begin()
        self._process: subprocess.Popen[bytes] | None = None

    def _begin(self) -> None:
        """What is said from here on is for the next process."""
        self._wanted = trio.Event()
        self._outgoing, self._messages = trio.open_memory_channel[dict[str, Any]](math.inf)
        self._outgoing.send_nowait(self._opening)

    async def answer(self, exchange: Exchange, *, streaming: bool) -> None:
        """Has the exchange answered, and returns when it is."""
        number = next(self._numbers)
        self._open[number] = exchange
        message = {
            "id": number,
            "kind": exchange.kind.number,
            "folder": exchange.folder,
            "request": bytes(exchange.request).decode("latin-1"),
            "streaming": streaming,
            "since": exchange.since,
        }
        try:
            self._wanted.set()
            self._outgoing.send_nowait(message)
            exchange.stop.on_stop(lambda: self._outgoing.send_nowait({"stop": number}))
            await exchange.finished.wait()
        finally:
            self._open.pop(number, None)

    def end(self) -> None:
        """Ends the process, with what it is at. The next question starts another one."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)

    async def run(self) -> None:
        """Starts the process when a question comes or soon may, whenever there is none. Until it is cancelled."""
        ahead = True
        while True:
            with trio.move_on_after(STAND_BY_SECONDS if ahead else math.inf):
                await self._wanted.wait()
            began = trio.current_time()
            try:
                await self._serve()
            except Exception:
                log.exception("the answering process could not be used")
            finally:
                ahead = trio.current_time() - began > STAND_BY_SECONDS
                self._begin()
                lost = LibraryError("the process that answers has ended; ask again")
                for exchange in list(self._open.values()):
                    exchange.add(render_error(lost, bytes(exchange.request)))
                    exchange.finish()

    async def _serve(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = await trio.to_thread.run_sync(_start, theirs.fileno())
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        try:
            async with stream, trio.open_nursery() as nursery:
                nursery.start_soon(_write, stream, self._messages)
                await self._read(stream)
                nursery.cancel_scope.cancel()
        finally:
            self._process.kill()
            self._process.wait()
            self._process = None

    async def _read(self, stream: trio.SocketStream) -> None:
        rest = b""
        try:
            async for data in stream:
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._hear(json.loads(line))
        except trio.BrokenResourceError:
            pass  # killed: the same as its end

    def _hear(self, message: dict[str, Any]) -> None:
        exchange = self._open.get(message["id"])
        if exchange is None:
            return
        if "touched" in message:
            self._touched(exchange, frozenset(message["touched"]))
            return
        if "part" in message:
            exchange.add(message["part"].encode("latin-1"))
            return
        if message["end"] is not None:
            exchange.add(render_error(of_code(*message["end"]), bytes(exchange.request)))
        exchange.finish()

    def _touched(self, exchange: Exchange, namespaces: frozenset[int]) -> None:
        # They were visible when the process looked. What has been hidden since, the refresh may have told already.
        try:
            exchange.touch(namespaces)
            if not namespaces <= self._view.library.visible():
                exchange.withdraw()
        except LibraryError:
            exchange.withdraw()


def _start(descriptor: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "libraryfs.mount.answering", str(descriptor)]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[descriptor], start_new_session=True)


async def _write(stream: trio.SocketStream, messages: trio.MemoryReceiveChannel[dict[str, Any]]) -> None:
    async for message in messages:
        try:
            await stream.send_all(json.dumps(message).encode() + b"\n")
        except trio.BrokenResourceError:
            return  # the reader sees it too
