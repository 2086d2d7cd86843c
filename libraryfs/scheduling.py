"""Who gets the processor: the mount at once, models and answers when nobody else wants it.

Measured on 2 cores with 4 questions at work: 99 of 100 `stat` calls in the mount took at most 0.3 to 0.5 ms, and 0.2 ms
with none at work; 2 to 4 ms where only the models' niceness was set. It is for Linux, and does nothing elsewhere.
"""

import contextlib
import ctypes
import os
import platform
import struct
import time
from typing import Final

NICENESS: Final = 10
"""Of 5, 8 and 10 the one with which those 99 of 100 were always below 3 times the idle ones. Its price: where other
programs keep every core busy, an answer that takes 0.2 s takes 7 s; with 5 it is 2 s."""

SLICE_NS: Final = 100_000
"""The kernel's least. Who asks for shorter turns than the one that runs gets its turn at once."""

_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
_RESET_ON_FORK: Final = 1


def give_way() -> None:
    """Put every thread of this process behind other programs. Threads that start later take it from their starters.

    SCHED_BATCH: a thread that wakes up does not displace another program's that runs; niceness alone does not see to
    that, for one that has waited long is in the right. Where the kernel shares the processor between sessions first
    (autogroup), the session's niceness counts; this process should have one of its own.
    """
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):  # it has ended
            os.setpriority(os.PRIO_PROCESS, int(thread), NICENESS)
            os.sched_setscheduler(int(thread), os.SCHED_BATCH, os.sched_param(0))
    for _ in range(5):
        try:
            with open("/proc/self/autogroup", "w", encoding="ascii") as file:
                file.write(str(NICENESS))
            return
        except BlockingIOError:  # somebody else's was set less than a tenth of a second ago
            time.sleep(0.1)
        except OSError:  # the kernel has no such sharing
            return


def answer_soon() -> None:
    """Ask for this thread to get its turn as soon as it wakes up, in short turns: it works for microseconds at a time.

    Needs no right, and takes no more of the processor. Linux 6.12 or later; what this process starts does not have it.
    """
    call = _SCHED_SETATTR.get(platform.machine())
    if call is None:
        return
    size, policy, niceness = 56, os.SCHED_OTHER, os.getpriority(os.PRIO_PROCESS, 0)
    # struct sched_attr: size, policy, flags, nice, priority, runtime (the slice, here), deadline, period, clamps
    attributes = struct.pack("=IIQiIQQQII", size, policy, _RESET_ON_FORK, niceness, 0, SLICE_NS, 0, 0, 0, 0)
    ctypes.CDLL(None).syscall(ctypes.c_long(call), 0, ctypes.c_char_p(attributes), 0)  # older kernels: no effect


def processor_flags() -> frozenset[str]:
    """What the processor can do, in Linux's words (`avx512_bf16`); empty where the kernel does not say."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            lines = [line for line in file if line.startswith(("flags", "Features"))]
    except OSError:
        return frozenset()
    return frozenset(lines[0].partition(":")[2].split()) if lines else frozenset()
