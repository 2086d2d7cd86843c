#!/usr/bin/env python3
"""A mount beside the disk, squashfuse and ratarmount: the same tree, one run, medians.

    scripts/bench/mount.py                     the table of walks, the large file, start and memory
    scripts/bench/mount.py --scale 1000000     the curve of a look-up's cost too
    scripts/bench/mount.py --write PAGE   puts the tables between the bench:mount markers

Needs root (it drops the kernel's caches) and, beside libraryfs, `apt-get install squashfuse squashfs-tools` and
`pip install libraryfs[bench]` (ratarmount).
"""

import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from markers import write_between
from rich.console import Console
from rich.progress import Progress

BIN = Path(sys.executable).parent
SECTION = "memories"
WALKS = {
    "grep -r, cold": ("grep -r needle-that-is-nowhere {}", True),
    "grep -r, warm": ("grep -r needle-that-is-nowhere {}", False),
    "find -type f, warm": ("find {} -type f", False),
    "find -type f, cold": ("find {} -type f", True),
    "ls -l, warm": ("ls -l {}", False),
    "ls -l, cold": ("ls -l {}", True),
    "tar c, warm": ("tar cf - -C {} . | cat", False),
    "tar c, cold": ("tar cf - -C {} . | cat", True),
}
progress = Progress(console=Console(stderr=True))


def run(command: str, **options: object) -> float:
    """Seconds that a shell command takes, its output thrown away."""
    start = time.perf_counter()
    subprocess.run(command, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, **options)  # type: ignore[call-overload]
    return time.perf_counter() - start


def drop_caches() -> None:
    """Pages, names and inodes, of every file system."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


def make_tree(folder: Path, count: int) -> None:
    """`count` Markdown files of 0.2 to 3 KB in one folder, the same at each call."""
    chance = random.Random(20)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 10))) for _ in range(2000)]
    folder.mkdir(parents=True)
    for number in range(count):
        size = chance.randint(200, 3000)
        text = " ".join(chance.choices(words, k=size // 6 + 1))[:size]
        (folder / f"note-{number:06}.md").write_text(text)


def libraryfs(*arguments: str | Path) -> None:
    """Runs the command line; stops the bench with its message when it fails."""
    done = subprocess.run([BIN / "libraryfs", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(f"libraryfs {arguments[0]}: {done.stderr.strip()}")


def daemon_pid(mountpoint: Path) -> int:
    """The process that serves a mount: the one whose command line names the mount point."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"libraryfs" in command and bytes(mountpoint) in command:
                return int(entry.name)
    raise click.ClickException(f"no daemon serves {mountpoint}")


def rss_mb(pid: int) -> float:
    """Resident memory in MB (10^6 bytes)."""
    match = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert match is not None
    return int(match[1]) * 1024 / 1e6


@contextmanager
def mounted(command: list[str | Path], mountpoint: Path) -> Iterator[Path]:
    """A file system mounted by `command`, unmounted at the end whatever happens."""
    mountpoint.mkdir(exist_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise click.ClickException(f"{command[0]}: {done.stderr.strip()}")
    deadline = time.monotonic() + 30
    while not os.path.ismount(mountpoint) and time.monotonic() < deadline:
        time.sleep(0.02)
    try:
        yield mountpoint
    finally:
        subprocess.run(["fusermount3", "-u", mountpoint], check=False, capture_output=True)
        if os.path.ismount(mountpoint):
            subprocess.run(["umount", "-l", mountpoint], check=False)


def median_of(times: int, measure: Callable[[], float]) -> float:
    """The median of `times` runs."""
    return statistics.median(measure() for _ in range(times))


def walk_times(folder: Path, runs: int, step: Callable[[], None]) -> dict[str, float]:
    """Seconds of each walk over a folder: a cold run drops the caches first, a warm one follows a run not counted."""
    found = {}
    for label, (template, cold) in WALKS.items():
        command = template.format(folder)

        def once(command: str = command, cold: bool = cold) -> float:
            if cold:
                drop_caches()
            step()
            return run(command)

        if not cold:
            run(command)
        found[label] = median_of(runs, once)
    return found


def table(title: str, columns: list[str], rows: list[list[str]]) -> str:
    """A Markdown table under a line of text."""
    lines = [title, "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def walks(work: Path, count: int, runs: int) -> str:
    """The table of walks over `count` files."""
    plain = work / "ring" / SECTION
    make_tree(plain, count)
    snapshot = work / "library.db"
    libraryfs("--snapshot", snapshot, "import", work / "ring", "--ring", "bench", "--as", "bench", "--no-embed")
    image, archive = work / "tree.sqfs", work / "tree.tar"
    run(f"mksquashfs {work / 'ring'} {image} -quiet -no-progress")
    run(f"tar cf {archive} -C {work / 'ring'} .")
    peers: dict[str, tuple[list[str | Path], str]] = {
        "libraryfs": (
            [BIN / "libraryfs", "--snapshot", snapshot, "mount", work / "m-libraryfs", "--as", "bench"],
            f"ring/bench/{SECTION}",
        ),
        "squashfuse": (["squashfuse", image, work / "m-squashfuse"], SECTION),
        "ratarmount": ([BIN / "ratarmount", archive, work / "m-ratarmount"], SECTION),
    }
    task = progress.add_task("walks", total=(len(peers) + 1) * len(WALKS) * runs)
    times = {"disk": walk_times(plain, runs, lambda: progress.advance(task))}
    for name, (command, inside) in peers.items():
        with mounted(command, work / f"m-{name}") as point:
            times[name] = walk_times(point / inside, runs, lambda: progress.advance(task))
    names = ["libraryfs", "disk", "squashfuse", "ratarmount"]
    rows = [
        [label, *(f"{times[name][label]:.2f} s" for name in names)]
        + [f"{times['libraryfs'][label] / times[name][label]:.2f}" for name in names[1:]]
        for label in WALKS
    ]
    columns = ["", *names, "÷ disk", "÷ squashfuse", "÷ ratarmount"]
    return table(f"{count:,} files of 0.2 to 3 KB in one folder; medians of {runs} runs.", columns, rows)


def large_file(work: Path, megabytes: int, runs: int) -> str:
    """Sequential read of one large artifact: first time with the caches dropped, then again from the page cache."""
    ring = work / "large"
    (ring / "artifacts").mkdir(parents=True)
    block = random.Random(3).randbytes(1 << 20)
    with (ring / "artifacts" / "large.bin").open("wb") as file:
        for _ in range(megabytes):
            file.write(block)
    snapshot, image = work / "large.db", work / "large.sqfs"
    libraryfs("--snapshot", snapshot, "import", ring, "--ring", "bench", "--as", "bench", "--no-embed")
    run(f"mksquashfs {ring} {image} -quiet -no-progress")
    ways: dict[str, tuple[list[str | Path], str]] = {
        "libraryfs": (
            [BIN / "libraryfs", "--snapshot", snapshot, "mount", work / "l-libraryfs", "--as", "bench"],
            "ring/bench/artifacts/large.bin",
        ),
        "squashfuse": (["squashfuse", image, work / "l-squashfuse"], "artifacts/large.bin"),
    }
    task = progress.add_task("large file", total=3)

    def rates(path: Path) -> list[str]:
        def first() -> float:
            drop_caches()
            return run(f"dd if={path} of=/dev/null bs=1M")

        cold = median_of(runs, first)
        warm = median_of(runs, lambda: run(f"dd if={path} of=/dev/null bs=1M"))
        near_end = median_of(runs, lambda: read_at_end(path))
        progress.advance(task)
        return [f"{megabytes / cold:,.0f} MiB/s", f"{megabytes / warm:,.0f} MiB/s", f"{near_end * 1000:.1f} ms"]

    def read_at_end(path: Path) -> float:
        drop_caches()
        start = time.perf_counter()
        with path.open("rb") as file:
            file.seek(-4096, os.SEEK_END)
            file.read(4096)
        return time.perf_counter() - start

    rows = [["disk", *rates(ring / "artifacts" / "large.bin")]]
    for name, (command, inside) in ways.items():
        with mounted(command, work / f"l-{name}") as point:
            rows.append([name, *rates(point / inside)])
    columns = ["", "first time", "again", "4 KB at the end, cold"]
    return table(f"One artifact of {megabytes} MiB, read in order; medians of {runs} runs.", columns, rows)


def start_and_memory(work: Path, runs: int) -> str:
    """The time until a mount serves, beside the time that its imports take; memory idle and over 20 walks."""
    snapshot, point = work / "library.db", work / "m-start"
    point.mkdir()
    imports = f"{sys.executable} -c 'import pyfuse3, trio, apsw, pydantic'"
    mount: list[str | Path] = [BIN / "libraryfs", "--snapshot", snapshot, "mount", point, "--as", "bench"]

    def start() -> float:
        begin = time.perf_counter()
        subprocess.run(mount, check=True)
        seconds = time.perf_counter() - begin
        subprocess.run([BIN / "libraryfs", "umount", point], check=True, capture_output=True)
        return seconds

    start()
    importing, ready = median_of(runs, lambda: run(imports)), median_of(runs, start)
    with mounted(mount, point):
        pid = daemon_pid(point)
        folder = point / "ring" / "bench" / SECTION
        memory = {"idle": rss_mb(pid)}
        for number in range(20):
            drop_caches()
            run(f"grep -r needle-that-is-nowhere {folder}; find {folder} -type f")
            if number in (0, 19):
                memory[f"after walk {number + 1}"] = rss_mb(pid)
    rows = [
        ["importing pyfuse3, trio, apsw, pydantic", f"{importing:.2f} s"],
        ["`libraryfs mount` until it serves", f"{ready:.2f} s ({ready / importing:.2f} ×)"],
        *([f"daemon's memory, {label}", f"{value:.0f} MB"] for label, value in memory.items()),
    ]
    return table("Start and memory.", ["", ""], rows)


def scale(work: Path, largest: int, runs: int) -> str:
    """What a look-up costs as the snapshot grows: `stat` of names not seen before, caches dropped, a thousand a run."""
    rows = []
    sizes = [size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= largest]
    task = progress.add_task("scale", total=len(sizes))
    for size in sizes:
        lines, snapshot, point = work / "rows.jsonl", work / f"scale-{size}.db", work / "m-scale"
        with lines.open("w") as file:
            for number in range(size):
                file.write(
                    '{"store": "memory", "namespace": "/ring/bench", "memory_type": "semantic",'
                    f' "id": "n{number}", "title": "note {number}", "content": "content of note {number}"}}\n'
                )
        begin = time.perf_counter()
        libraryfs("--snapshot", snapshot, "import", lines, "--ring", "bench", "--as", "bench", "--no-embed")
        importing = time.perf_counter() - begin
        command: list[str | Path] = [BIN / "libraryfs", "--snapshot", snapshot, "mount", point, "--as", "bench"]
        begin = time.perf_counter()
        with mounted(command, point):
            ready = time.perf_counter() - begin
            folder = os.fsencode(point / "ring" / "bench" / SECTION)

            def stats(size: int = size, folder: bytes = folder) -> float:
                drop_caches()
                names = [b"%s/note-%d.md" % (folder, number) for number in random.sample(range(size), 1000)]
                os.stat(names[0])
                start = time.perf_counter()
                for name in names:
                    os.stat(name)
                return (time.perf_counter() - start) / len(names)

            cost = median_of(runs, stats)
            memory = rss_mb(daemon_pid(point))
        rows.append(
            [
                f"{size:,}",
                f"{size / importing:,.0f} rows/s",
                f"{ready:.2f} s",
                f"{cost * 1e6:.0f} µs",
                f"{memory:.0f} MB",
            ]
        )
        snapshot.unlink()
        progress.advance(task)
    columns = ["memories", "import", "mount ready", "a look-up", "daemon's memory"]
    return table("One section, growing.", columns, rows)


@click.command(help=__doc__)
@click.option("--files", default=20_000, show_default=True, help="Files of the walks.")
@click.option("--runs", default=5, show_default=True, help="Runs of each measure; their median is printed.")
@click.option("--large", default=1024, show_default=True, help="MiB of the large artifact; 0 leaves it out.")
@click.option("--scale", "largest", default=0, help="Memories of the largest snapshot of the curve; 0 leaves it out.")
@click.option("--write", type=click.Path(path_type=Path, exists=True), help="A Markdown file with bench:mount markers.")
@click.option("--tmp", type=click.Path(path_type=Path), help="Where to work; a disk, not a tmpfs.")
def main(files: int, runs: int, large: int, largest: int, write: Path | None, tmp: Path | None) -> None:
    if os.geteuid():
        raise click.ClickException("run as root: a cold run drops the kernel's caches")
    for tool in ("squashfuse", "mksquashfs"):
        if not shutil.which(tool):
            raise click.ClickException(f"{tool} is missing: apt-get install squashfuse squashfs-tools")
    if not (BIN / "ratarmount").exists():
        raise click.ClickException("ratarmount is missing: pip install 'libraryfs[bench]'")
    with tempfile.TemporaryDirectory(dir=tmp, prefix="libraryfs-bench-") as name, progress:
        work = Path(name)
        parts = [walks(work, files, runs)]
        if large:
            parts.append(large_file(work, large, runs))
        parts.append(start_and_memory(work, runs))
        if largest:
            parts.append(scale(work, largest, runs))
    text = "\n".join(parts)
    click.echo(text)
    if write:
        write_between(write, "bench:mount", text)


if __name__ == "__main__":
    main()
