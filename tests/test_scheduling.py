"""What the kernel makes of it."""

import ctypes
import json
import os
import platform
import struct
import subprocess
import sys

import pytest

from libraryfs.scheduling import SLICE_NS

GET = {"x86_64": 315, "aarch64": 275, "riscv64": 275}

SCRIPT = """
import json, os, subprocess, sys
from libraryfs import scheduling
scheduling.answer_soon()
child = subprocess.Popen(["sleep", "60"])
print(json.dumps([os.getpid(), child.pid]), flush=True)
sys.stdin.read()
child.kill()
"""


def attributes(pid: int) -> dict[str, int]:
    """Policy, niceness and slice of a process; its runtime is its slice since Linux 6.12."""
    buffer = ctypes.create_string_buffer(56)
    call = ctypes.c_long(GET[platform.machine()])
    assert ctypes.CDLL(None).syscall(call, pid, buffer, 56, 0) == 0
    _, policy, _, nice, _, runtime, *_ = struct.unpack("=IIQiIQQQII", buffer.raw)
    return {"policy": policy, "nice": nice, "slice": runtime}


@pytest.mark.parametrize("nice", [0, 3])
def test_short_turns(nice: int) -> None:
    """The process has them where the kernel knows of them, what it starts has not, and its niceness stays."""
    process = subprocess.Popen(
        ["nice", "-n", str(nice), sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        own, child = (attributes(pid) for pid in json.loads(process.stdout.readline()))
        process.stdin.close()
    release = tuple(int(part) for part in platform.release().split(".")[:2])
    if release >= (6, 12):
        assert own["slice"] == SLICE_NS
        assert child["slice"] != SLICE_NS
    assert own["policy"] == child["policy"] == os.SCHED_OTHER
    assert own["nice"] == child["nice"] == os.getpriority(os.PRIO_PROCESS, 0) + nice
