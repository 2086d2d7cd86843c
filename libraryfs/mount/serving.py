"""One mount, from the call to the kernel to the last request: what the daemon's process does."""

import gc
import logging
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import pyfuse3
import trio

from libraryfs import scheduling
from libraryfs.errors import MountError
from libraryfs.mount import loop
from libraryfs.mount.answerer import Answerer
from libraryfs.mount.attributes import Attributes
from libraryfs.mount.content import Content
from libraryfs.mount.controls import Controls
from libraryfs.mount.exchange import Runner
from libraryfs.mount.guide import Guide
from libraryfs.mount.kernel import KernelCaches
from libraryfs.mount.kinds import control_kinds
from libraryfs.mount.logs import start_logging
from libraryfs.mount.mountpoint import CONTAINER, SUBTYPE, mounted_on
from libraryfs.mount.operations import Operations
from libraryfs.mount.options import MountOptions
from libraryfs.mount.readahead import ReadAhead
from libraryfs.mount.refresh import Refresh
from libraryfs.mount.requests import RequestLog
from libraryfs.mount.view import View
from libraryfs.mount.waiting import MAX_TASKS, Waiting
from libraryfs.mount.warming import Warming
from libraryfs.settings import settings

log = logging.getLogger("libraryfs.mount")

GRACE_SECONDS: Final = 0.5
"""How long requests in work have to end after SIGINT, SIGTERM or SIGHUP."""
SWEEP_SECONDS: Final = 30.0
NO_READDIRPLUS: Final = (
    "FUSE has no READDIRPLUS here, as in gVisor's sandbox and in kernels before 3.9;"
    " 'libraryfs ask', 'tree', 'drilldown' and 'export' work without a mount"
)


def run(options: MountOptions, ready: Callable[[], None], requests: RequestLog | None) -> None:
    """Mounts and serves until the point is unmounted, or SIGINT, SIGTERM or SIGHUP (its terminal closed) comes.

    `ready` is called when the first request can be answered. Raises MountError, SnapshotError.
    """
    start_logging(options.log_file, options.log_level)
    scheduling.answer_soon()
    view = View(options.snapshot, options.principal)
    kernel = KernelCaches()
    try:
        trio.run(partial(_serve, options, view, kernel, requests or RequestLog(), ready), instruments=[loop.install()])
    except Exception as error:
        if _says_too_old(error):
            raise MountError(f"{options.mountpoint}: cannot be mounted: {NO_READDIRPLUS}") from None
        raise
    finally:
        view.close()


def _says_too_old(error: BaseException) -> bool:
    """Whether this, or an error in the group that it is, is pyfuse3's complaint about FUSE without READDIRPLUS."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(_says_too_old, error.exceptions))
    return isinstance(error, RuntimeError) and "Kernel too old" in str(error)


async def _serve(
    options: MountOptions, view: View, kernel: KernelCaches, requests: RequestLog, ready: Callable[[], None]
) -> None:
    attributes = Attributes()
    answerer = Answerer(options, view)
    runner = Runner(view, answerer.answer)
    waiting = Waiting(str(options.mountpoint))
    controls = Controls(
        control_kinds(str(options.mountpoint)), view, runner, waiting, attributes, shared=options.allow_other
    )
    ahead = ReadAhead(kernel.push)
    content = Content(view, ahead, Warming(view))

    def forget_answers(hidden: frozenset[int] | None) -> None:
        if hidden is None:
            answerer.end()
        controls.outdate(hidden)

    interval = settings().refresh_ms / 1000
    guide = Guide(view, attributes, kernel, str(options.mountpoint))
    refresh = Refresh(view, kernel, interval, forget_answers, ahead.open_now)
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1) as signals:
        connected = trio.Event()
        _mount(options, Operations(view, content, controls, attributes, guide, requests, connected.set))
        log.info("%s: mounted for %s from %s", options.mountpoint, options.principal, options.snapshot)
        try:
            async with trio.open_nursery() as nursery:
                runner.work_in(nursery)
                nursery.start_soon(answerer.run)
                nursery.start_soon(_say_ready, options, connected, ready)
                nursery.start_soon(refresh.run)
                nursery.start_soon(refresh.watch)
                nursery.start_soon(guide.watch, interval)
                nursery.start_soon(_sweep, controls)
                nursery.start_soon(_end_on_signal, signals, requests, nursery.cancel_scope)
                gc.collect()
                gc.freeze()  # what is there now stays: later collections need not look at it
                await pyfuse3.main(max_tasks=MAX_TASKS)
                nursery.cancel_scope.cancel()
        finally:
            kernel.end()
            pyfuse3.close(unmount=True)
            log.info("%s: ended", options.mountpoint)


async def _sweep(controls: Controls) -> None:
    while True:
        await trio.sleep(SWEEP_SECONDS)
        controls.sessions.sweep()


async def _end_on_signal(signals: AsyncIterator[int], requests: RequestLog, scope: trio.CancelScope) -> None:
    async for number in signals:
        if number == signal.SIGUSR1:
            log.warning("requests: %s", requests.as_json().decode())
            continue
        log.info("%s: ending", signal.Signals(number).name)
        pyfuse3.terminate()
        await trio.sleep(GRACE_SECONDS)
        scope.cancel()  # requests still in work: their callers get an error when the connection closes
        return


def _mount(options: MountOptions, operations: Operations) -> None:
    chosen = {"nosuid", "nodev", f"fsname={SUBTYPE}", f"subtype={SUBTYPE}", *options.fuse_options}
    if options.allow_other:
        chosen.add("allow_other")
    for option in chosen:
        if not option.isascii():
            raise MountError(f"mount option {option!r}: FUSE options are ASCII")
    # libfuse says why on stderr, and raises nothing: stderr is a file for as long as that may happen
    with tempfile.TemporaryFile() as said:
        sys.stderr.flush()
        kept = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            pyfuse3.init(operations, str(options.mountpoint), chosen)
        except RuntimeError:
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
            raise MountError(_reason(options, lines[-1] if lines else "libfuse does not say why")) from None
        finally:
            os.dup2(kept, 2)
            os.close(kept)


async def _say_ready(options: MountOptions, connected: trio.Event, ready: Callable[[], None]) -> None:
    """Once the kernel has connected: says so, and has it read large files ahead by as much as it asks for at once.

    Only root may set that; the other mounts read ahead by 128 KiB.
    """
    await connected.wait()
    ready()
    _widen_readahead(options)


def _widen_readahead(options: MountOptions) -> None:
    mounted = mounted_on(options.mountpoint)
    if mounted is not None:
        with suppress(OSError):
            Path(f"/sys/class/bdi/{mounted.device}/read_ahead_kb").write_text("1024")


def _reason(options: MountOptions, line: str) -> str:
    text = line.removeprefix("fusermount3: ").removeprefix("fuse: ")
    cure = ""
    if "ermission denied" in text or "not permitted" in text:
        cure = f"; mounting needs fusermount3 with its setuid bit, or CAP_SYS_ADMIN: {CONTAINER}"
    elif "user_allow_other" in text:
        cure = "; 'echo user_allow_other | sudo tee -a /etc/fuse.conf' allows it"
    elif "unknown option" in text:
        cure = "; -o takes the options of mount.fuse3(8)"
    return f"{options.mountpoint}: cannot be mounted: {text}{cure}"
