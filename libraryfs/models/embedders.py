"""Where a local embedder's weights are, and what its files say of it before anything is loaded."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from libraryfs.errors import ModelUnavailable
from libraryfs.models import defaults, wire
from libraryfs.models.tokens import EstimatedTokens, FileTokens, Tokens

Describe = Callable[[], wire.Header]
"""What the loaded model says of itself; loads it."""


class Source(Protocol):
    """A model's files. Everything here may raise ModelUnavailable."""

    @property
    def path(self) -> Path:
        """What the worker loads, once it was found that it can."""

    @property
    def backend(self) -> str:
        """Which runtime loads it: `onnx` or `sentence-transformers`."""

    @property
    def model(self) -> str:
        """Name and the start of the weights' checksum."""

    @property
    def tokens(self) -> Tokens:
        """Its tokeniser."""

    def dimension(self, describe: Describe) -> int:
        """Length of a vector."""

    def window(self, describe: Describe) -> int:
        """Tokens of text in one vector, marks taken off."""


class DefaultSource:
    """all-MiniLM-L6-v2 as it comes with the base installation, on onnxruntime."""

    backend = "onnx"

    @cached_property
    def path(self) -> Path:
        """See `Source`."""
        for package in ("onnxruntime", "onnx", "tokenizers"):
            need(package, "the embedder", "libraryfs")
        defaults.check_vocabulary()
        return defaults.EMBEDDER.check()

    @property
    def model(self) -> str:
        """See `Source`."""
        return defaults.EMBEDDER.model

    @cached_property
    def tokens(self) -> Tokens:
        """See `Source`."""
        need("tokenizers", "the embedder", "libraryfs")
        return FileTokens(defaults.check_vocabulary())

    def dimension(self, _describe: Describe) -> int:
        """See `Source`."""
        return 384

    def window(self, _describe: Describe) -> int:
        """See `Source`."""
        return 254


class FolderSource:
    """Any sentence-transformers folder; the package comes with the extra `models`."""

    backend = "sentence-transformers"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def path(self) -> Path:
        """See `Source`."""
        need("sentence_transformers", "an embedder of your own", "'libraryfs[models]'")
        if not (self._folder / "config.json").is_file():
            raise ModelUnavailable(
                f"{self._folder}: not a sentence-transformers folder (it has no config.json): set LIBRARYFS_EMBEDDER "
                "to one, to `default`, or to `none`"
            )
        return self._folder

    @cached_property
    def model(self) -> str:
        """See `Source`."""
        weights = next(
            (path for pattern in ("*.safetensors", "*.bin") for path in sorted(self.path.glob(pattern))), None
        )
        if weights is None:
            raise ModelUnavailable(f"{self._folder}: no weights in it (*.safetensors): copy the model there again")
        if defaults.is_released(weights):
            return defaults.RELEASED_EMBEDDER.model
        return f"{self._folder.name}@{defaults.fingerprint(weights)[:12]}"

    @cached_property
    def tokens(self) -> Tokens:
        """See `Source`."""
        path = self.path / "tokenizer.json"
        return FileTokens(path) if path.is_file() else EstimatedTokens()

    def dimension(self, describe: Describe) -> int:
        """From the folder when it says so, else from the loaded model."""
        modules = _json(self.path / "modules.json")
        names = [module["path"] for module in modules] if isinstance(modules, list) else []
        for name in reversed(names):
            config = _json(self.path / name / "config.json") if name else {}
            for key in ("out_features", "word_embedding_dimension"):
                if isinstance(config, dict) and key in config:
                    return int(config[key])
        return int(describe()["dimension"])

    def window(self, describe: Describe) -> int:
        """From the folder when it says so, else from the loaded model."""
        config = _json(self.path / "sentence_bert_config.json")
        longest = config.get("max_seq_length") if isinstance(config, dict) else None
        longest = int(longest) if longest else int(describe()["max_tokens"])
        marks = self.tokens.marks if isinstance(self.tokens, FileTokens) else 2
        return longest - marks


def need(package: str, what: str, install: str) -> None:
    """Raises ModelUnavailable when a Python package is missing; `install` is what pip is to be given."""
    if importlib.util.find_spec(package) is None:
        raise ModelUnavailable(f"{what} needs the package {package}: pip install {install}")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"{path}: cannot be read as JSON ({error}): copy the model there again") from None
