#!/usr/bin/env python3
"""A mount in use for N minutes: readers, walkers, askers, imports, grants, revocations at once; what leaks or fails.

    scripts/bench/soak.py                       30 minutes, without models; the table on stdout
    scripts/bench/soak.py --minutes 2           a short one
    scripts/bench/soak.py --write FILE          writes the page (Markdown with front matter)

Each file says its own digest, so that a reader knows whole content from torn content. A question about the hidden ring
must not be answered from it, two seconds after a revocation and until the next grant. Exit code 1 when anything failed.
"""

import contextlib
import errno
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import click

CLI = [sys.executable, "-P", "-m", "libraryfs.cli.main"]
NO_MODELS = {"LIBRARYFS_EMBEDDER": "none", "LIBRARYFS_LLM": "none"}
SETTLE_SECONDS = 2.0
"""So long after a commit at most, the mount shows it."""
SECRET = "quokka"
SURPRISING = re.compile(r"\b(WARNING|ERROR|CRITICAL)\b|Traceback")


class Sample(NamedTuple):
    """What the processes of a mount hold at a moment: daemon, and the process that answers."""

    minute: float
    rss_kb: int
    handles: int
    threads: int
    answering_rss_kb: int
    answering_handles: int
    answering_threads: int


class Soak:
    """The state that all threads share."""

    def __init__(self, folder: Path, notes: int) -> None:
        self.folder = folder
        self.snapshot = folder / "library.db"
        self.source = folder / "notes"
        self.point = folder / "mnt"
        self.log = folder / "mount.log"
        self.environment = os.environ | NO_MODELS | {"XDG_CACHE_HOME": str(folder / "c"), "XDG_DATA_HOME": str(folder)}
        self.notes = notes
        self.stop = threading.Event()
        self.done: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.samples: list[Sample] = []
        self.lock = threading.Lock()
        self.hidden_since = 0.0  # monotonic; 0: the ring is granted, or was a moment ago

    def count(self, what: str) -> None:
        """One more that was done."""
        with self.lock:
            self.done[what] += 1

    def fail(self, what: str) -> None:
        """One more that went wrong."""
        with self.lock:
            self.errors[what] += 1

    def run(self, *arguments: object) -> None:
        """One command of libraryfs."""
        done = subprocess.run(
            [*CLI, "--snapshot", str(self.snapshot), *map(str, arguments)],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            self.fail(f"libraryfs {arguments[0]}: {done.stderr.strip()[:200]}")

    def write(self, number: int, version: int) -> None:
        """Note `number`, whose first line is the digest of the rest."""
        rest = f"Note {number} in version {version}. " + " ".join(f"word{number + n}" for n in range(80 + version % 50))
        digest = hashlib.sha256(rest.encode()).hexdigest()
        (self.source / "skills" / f"note-{number:05}.md").write_text(f"{digest}\n{rest}")


def reader(soak: Soak) -> None:
    """Opens notes at random; each must be whole, and as long as its size says."""
    path = soak.point / "ring" / "dev" / "skills" / f"note-{random.randrange(soak.notes):05}.md"
    with path.open("rb") as file:
        data = file.read()
        size = os.fstat(file.fileno()).st_size
    digest, _, rest = data.partition(b"\n")
    if hashlib.sha256(rest).hexdigest().encode() != digest:
        soak.fail("a file that is not whole")
    elif len(data) != size:
        soak.count("reads that a commit overtook")
    soak.count("files read")


def walker(soak: Soak) -> None:
    """find, and grep -r, over the whole mount."""
    command = ["grep", "-rc", "no such word", str(soak.point)] if random.random() < 0.5 else ["find", str(soak.point)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # What a revocation hides while the walk is on its way is missing by right.
    wrong = [line for line in done.stderr.splitlines() if "No such file" not in line and "/ring/secret" not in line]
    for line in wrong[:3]:
        soak.fail(f"{command[0]}: {re.sub(r'[0-9]+', 'N', line[-80:])}")
    soak.count("walks")
    time.sleep(1)


def asker(soak: Soak) -> None:
    """A question on a handle of its own, and by path in turn."""
    number = random.randrange(soak.notes)
    question = f"What holds word{number}?" if random.random() < 0.7 else f"Where does the {SECRET} live?"
    hidden = soak.hidden_since
    if random.random() < 0.5:
        handle = os.open(soak.point / ".ask", os.O_RDWR)
        try:
            os.write(handle, json.dumps({"question": question}).encode())
            data = b"".join(iter(lambda: os.read(handle, 65_536), b""))
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
            soak.count("answers ended by a revocation")
            return
        finally:
            os.close(handle)
    else:
        request = json.dumps({"question": question})
        script = f"echo '{request}' > .ask; exec cat .ask"
        done = subprocess.run(
            ["sh", "-c", script], cwd=soak.point, capture_output=True, check=False, start_new_session=True
        )
        data = done.stdout
        if done.returncode:
            raise OSError(errno.EIO, done.stderr.decode()[-100:])
    judge(soak, data, question, hidden)


def judge(soak: Soak, data: bytes, question: str, hidden: float) -> None:
    """Counts an answer; one that was interrupted by a revocation says so, and is asked again by a user."""
    stayed = hidden and hidden == soak.hidden_since and time.monotonic() - hidden > SETTLE_SECONDS
    if not data:
        soak.count("answers emptied by a revocation")
        return
    if b"ask again" in data:  # a part of an answer may stand before it
        soak.count("answers ended by a revocation")
        return
    try:
        result = json.loads(data)
    except ValueError:
        soak.fail(f"an answer that is no JSON: {data[:60]!r}")
        return
    if "evidence" not in result:
        soak.fail(f"an answer: {str(result.get('error', {}).get('message'))[:100]}")
        return
    if stayed and b"/ring/secret" in data.replace(question.encode(), b""):
        soak.fail("an answer from a ring that is hidden")
    soak.count("questions answered")


def importer(soak: Soak) -> None:
    """Twenty notes change, one goes, one comes back."""
    version = soak.done["imports"] + 1
    for number in random.sample(range(soak.notes), 20):
        soak.write(number, version)
    passing = soak.source / "skills" / "passing.md"
    if passing.exists():
        passing.unlink()
    else:
        passing.write_text("Here for a while.")
    soak.run("import", soak.source, "--ring", "dev", "--no-embed")
    soak.count("imports")
    time.sleep(4)


def granter(soak: Soak) -> None:
    """The secret ring comes and goes; what was opened before a revocation gives nothing after it."""
    secret = soak.point / "ring" / "secret" / "skills"
    soak.hidden_since = 0.0
    soak.run("grant", "me", "/ring/secret")
    time.sleep(SETTLE_SECONDS)
    with contextlib.ExitStack() as stack:
        try:
            opened = stack.enter_context((secret / "habitat.md").open("rb", buffering=0))
        except OSError as error:
            soak.fail(f"a granted ring is not there: {errno.errorcode.get(error.errno or 0)}")
            return
        time.sleep(2)
        soak.run("revoke", "me", "/ring/secret")
        soak.hidden_since = time.monotonic()
        time.sleep(SETTLE_SECONDS)
        try:
            if SECRET.encode() in opened.read():
                soak.fail("an open file of a revoked ring still reads")
        except OSError:
            pass  # ESTALE or EIO, as it should be
        if os.path.exists(secret):
            soak.fail("a revoked ring is still there")
    soak.count("grants and revocations")
    time.sleep(5)


def looped(soak: Soak, work: Callable[[Soak], None], pause: float) -> Callable[[], None]:
    """Does the work again and again; what it raises is counted."""

    def loop() -> None:
        while not soak.stop.is_set():
            try:
                work(soak)
            except OSError as error:
                soak.fail(f"{work.__name__}: {errno.errorcode.get(error.errno or 0, error)}")
                time.sleep(0.2)
            time.sleep(pause)

    return loop


def figures(pid: int) -> tuple[int, int, int]:
    """Resident memory in kB, open handles, threads of a process; zeros when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        handles = len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0, 0, 0
    values = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return int(values.get("VmRSS", "0 kB").split()[0]), handles, int(values["Threads"])


def answering(pid: int) -> int:
    """The process that answers for this daemon; 0 when there is none now."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text().split():
                if b"mount.answering" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return int(child)
    return 0


def page(soak: Soak, minutes: float, every: float) -> str:
    """The figures as a page of the library."""
    rows = []
    due = 0.0
    for sample in soak.samples:
        if sample.minute >= due or sample is soak.samples[-1]:
            rows.append(
                f"| {sample.minute:.0f} | {sample.rss_kb / 1000:.1f} | {sample.handles} | {sample.threads} "
                f"| {sample.answering_rss_kb / 1000:.1f} | {sample.answering_handles} | {sample.answering_threads} |"
            )
            due = sample.minute + every
    done = ", ".join(f"{number:,} {what}" for what, number in sorted(soak.done.items()))
    wrong = "; ".join(f"{number} × {what}" for what, number in soak.errors.most_common()) or "none"
    return "\n".join(
        [
            "---",
            "id: soak",
            "title: A mount in use for half an hour",
            "---",
            "# A mount in use for half an hour",
            "",
            f"Measured by `scripts/bench/soak.py --minutes {minutes:g}` over {soak.notes:,} notes, without models, on",
            "two cores that other programs used too. Readers, walkers and askers work in one mount, while other",
            "processes import, grant and revoke. Zeros: there was no answering process then, for a revocation",
            "had ended it.",
            "",
            f"Done: {done}.",
            "",
            f"Failed: {wrong}.",
            "",
            "| minute | daemon, MB | handles | threads | answering, MB | handles | threads |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


@contextlib.contextmanager
def mounted(soak: Soak) -> Iterator[subprocess.Popen[bytes]]:
    """The daemon, ended whatever happens."""
    soak.point.mkdir()
    command = [*CLI, "--snapshot", str(soak.snapshot), "mount", str(soak.point), "--as", "me", "--foreground"]
    daemon = subprocess.Popen([*command, "--log-file", str(soak.log)], env=soak.environment)
    try:
        end = time.monotonic() + 60
        while not os.path.ismount(soak.point) and daemon.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        if not os.path.ismount(soak.point):
            raise click.ClickException(f"no mount: {soak.log.read_text() if soak.log.exists() else 'no log'}")
        yield daemon
    finally:
        daemon.terminate()
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            soak.fail("the daemon does not end")
            daemon.kill()
            daemon.wait()
        if os.path.ismount(soak.point):
            subprocess.run(["fusermount3", "-u", "-z", str(soak.point)], check=False)


def prepare(soak: Soak) -> None:
    """The notes and the secret ring, imported."""
    (soak.source / "skills").mkdir(parents=True)
    for number in range(soak.notes):
        soak.write(number, 0)
    hidden = soak.folder / "hidden" / "skills"
    hidden.mkdir(parents=True)
    (hidden / "habitat.md").write_text(f"The {SECRET} lives on Rottnest Island.")
    soak.run("import", soak.source, "--ring", "dev", "--no-embed", "--as", "me")
    soak.run("import", soak.folder / "hidden", "--ring", "secret", "--no-embed", "--no-grant")


@click.command()
@click.option("--minutes", default=30.0, show_default=True, help="How long.")
@click.option("--notes", default=2000, show_default=True, help="How many notes the library has.")
@click.option("--write", "target", type=click.Path(path_type=Path), help="Write the page to this file.")
def main(minutes: float, notes: int, target: Path | None) -> None:
    """Run it, and print what was found."""
    with tempfile.TemporaryDirectory(prefix="libraryfs-soak-") as name:
        soak = Soak(Path(name), notes)
        prepare(soak)
        with mounted(soak) as daemon:
            workers = [(reader, 0.01)] * 3 + [
                (walker, 0.0),
                (asker, 0.2),
                (asker, 0.2),
                (importer, 0.0),
                (granter, 0.0),
            ]
            threads = [threading.Thread(target=looped(soak, *worker), daemon=True) for worker in workers]
            for thread in threads:
                thread.start()
            began = time.monotonic()
            while (passed := (time.monotonic() - began) / 60) < minutes and daemon.poll() is None:
                time.sleep(min(10.0, max(0.1, (minutes - passed) * 60)))
                minute = (time.monotonic() - began) / 60
                soak.samples.append(Sample(minute, *figures(daemon.pid), *figures(answering(daemon.pid))))
            if daemon.poll() is not None:
                soak.fail(f"the daemon ended with {daemon.returncode}")
            soak.stop.set()
            for thread in threads:
                thread.join(60)
        for line in soak.log.read_text().splitlines() if soak.log.exists() else ():
            if SURPRISING.search(line):
                soak.fail(f"log: {line[24:160]}")
        text = page(soak, minutes, max(minutes / 10, 0.2))
        click.echo(text)
        if target is not None:
            target.write_text(text, encoding="utf-8")
        sys.exit(bool(soak.errors))


if __name__ == "__main__":
    main()
