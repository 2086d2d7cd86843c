"""Settings → models. What cannot work says so when it is used, with the cure, and starts no process."""

from __future__ import annotations

from pathlib import Path

import pytest

from libraryfs.errors import ModelUnavailable
from libraryfs.models import factory
from libraryfs.models.cancel import Cancel
from libraryfs.models.endpoint import EndpointEmbedder, EndpointLanguageModel
from libraryfs.models.protocols import Message
from libraryfs.settings import Settings
from tests.conftest import workers

CHAT: list[Message] = [{"role": "user", "content": "Hello"}]


def test_none_is_none() -> None:
    off = Settings(llm="none", embedder="none")
    assert factory.embedder(off) is None
    assert factory.language_model(off) is None


def test_one_instance_for_one_setting() -> None:
    assert factory.embedder(Settings()) is factory.embedder(Settings(max_depth=3))
    assert factory.language_model(Settings()) is factory.language_model(Settings(embedder="none"))
    assert factory.language_model(Settings()) is not factory.language_model(Settings(llm_context=1024))


def test_urls_are_endpoints() -> None:
    remote = Settings(
        llm="http://localhost:1/v1", llm_model="m", embedder="https://localhost:1/v1/", embedder_window=500
    )
    model, embedder = factory.language_model(remote), factory.embedder(remote)
    assert isinstance(model, EndpointLanguageModel)
    assert isinstance(embedder, EndpointEmbedder)
    assert (model.model, model.context) == ("m@http://localhost:1/v1", 8192)
    assert (embedder.model, embedder.window) == ("default@https://localhost:1/v1", 500)


@pytest.mark.models
@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "No such file"), (b"", "not a GGUF file"), (b"PK\3\4 a zip", "not a GGUF file")],
)
def test_a_file_that_is_no_language_model(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    model = factory.language_model(Settings(llm=str(path)))
    assert model is not None
    with pytest.raises(ModelUnavailable, match=f"{path}: {words}.*set LIBRARYFS_LLM"):
        model.generate(CHAT, max_tokens=1, cancel=Cancel())
    assert not workers()


@pytest.mark.models
def test_a_folder_that_is_no_embedder(tmp_path: Path) -> None:
    model = factory.embedder(Settings(embedder=str(tmp_path)))
    assert model is not None
    with pytest.raises(ModelUnavailable, match=f"{tmp_path}: not a sentence-transformers folder.*LIBRARYFS_EMBEDDER"):
        model.embed(["a"], Cancel())
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelUnavailable, match="no weights"):
        _ = model.model
    (tmp_path / "modules.json").write_text("{oops")
    with pytest.raises(ModelUnavailable, match=r"modules\.json: cannot be read as JSON"):
        _ = model.dimension
    assert not workers()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    model, embedder = factory.language_model(Settings(llm_context=512)), factory.embedder(Settings(model_threads=1))
    assert model is not None
    assert embedder is not None
    with pytest.raises(ModelUnavailable, match=r"llama_cpp: pip install 'libraryfs\[models\]'"):
        model.count_tokens(["a"], Cancel())
    with pytest.raises(ModelUnavailable, match=r"onnxruntime: pip install libraryfs$"):
        embedder.embed(["a"], Cancel())
    mine = factory.embedder(Settings(embedder="/a/folder"))
    assert mine is not None
    with pytest.raises(ModelUnavailable, match=r"sentence_transformers: pip install 'libraryfs\[models\]'"):
        mine.embed(["a"], Cancel())
