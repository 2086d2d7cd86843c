"""Settings from the environment: what is wrong is said in one line that names the variable, and shows no secret."""

import base64
import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from pydantic import ValidationError

from libraryfs.errors import InvalidRequest, LibraryError, ModelError
from libraryfs.models import factory
from libraryfs.models.cancel import Cancel
from libraryfs.settings import Settings, address, settings, shown_url
from tests.planted import PASSWORD

LOGIN = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()


@pytest.fixture(autouse=True)
def _models_end() -> Iterator[None]:
    yield
    factory.close()


@pytest.mark.parametrize("name", ["llm", "embedder"])
def test_a_login_leaves_the_url_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And becomes the header of the key's field, which prints as stars."""
    monkeypatch.setenv(f"LIBRARYFS_{name.upper()}", f"http://me:{PASSWORD}@example.com:8000/v1")
    found = settings()
    assert getattr(found, name) == "http://example.com:8000/v1"
    assert getattr(found, f"{name}_key").get_secret_value() == LOGIN
    assert PASSWORD not in repr(found) + str(found) + found.model_dump_json()
    assert LOGIN[6:] not in repr(found) + str(found) + found.model_dump_json()
    assert Settings.model_validate({name: f"http://me:{PASSWORD}@h/v1"}).model_dump()[name] == "http://h/v1"


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"LLM": f"http://me:{PASSWORD}@h/v1", "LLM_KEY": "sk-1"}, "LIBRARYFS_LLM_KEY is set too"),
        ({"LLM": "http://127.0.0.1:99999/v1"}, "LIBRARYFS_LLM is not a URL such as http://localhost:8000/v1: its port"),
        ({"LLM": f"http://me:{PASSWORD}@h:port/v1"}, "LIBRARYFS_LLM is not a URL"),
        ({"EMBEDDER": f"http://me:{PASSWORD}@[::1/v1"}, "LIBRARYFS_EMBEDDER is not a URL"),
        ({"EMBEDDER": "https://"}, "LIBRARYFS_EMBEDDER is not a URL"),
        ({"MAX_DEPTH": "9" * 5000}, "LIBRARYFS_MAX_DEPTH='9999"),
        ({"MODEL_IDLE_SECONDS": "nan"}, "LIBRARYFS_MODEL_IDLE_SECONDS='nan'"),
    ],
)
def test_refused(variables: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"LIBRARYFS_{name}", value)
    with pytest.raises(InvalidRequest) as caught:
        settings()
    message = str(caught.value)
    assert said in message
    assert PASSWORD not in message
    assert len(message) < 300
    assert "\n" not in message


def test_a_home_folder_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Was a bug's traceback."""
    for name in ("SNAPSHOT", "CACHE", "LLM", "EMBEDDER"):
        monkeypatch.setenv(f"LIBRARYFS_{name}", "~nobody-of-this-name/x")
    found = settings()
    for use in (
        lambda: found.snapshot_path,
        lambda: found.cache_path,
        lambda: factory.embedder(found),
        lambda: factory.language_model(found),
    ):
        with pytest.raises(InvalidRequest, match="no home folder of that user"):
            use()


def test_urls_as_they_are_shown() -> None:
    assert shown_url(f"http://me:{PASSWORD}@h:1/v1?api_key=x#y") == "http://h:1/v1"
    assert address("http://h/v1") == ("http://h/v1", "")
    assert address("http://a%40b:c%3Ad@h/v1").authorization == "Basic " + base64.b64encode(b"a@b:c:d").decode()


HOSTS = st.one_of(
    st.sampled_from(
        ["127.0.0.1:1", "127.0.0.1:99999", "[::1]:1", "[::", "..", "a..b", "a" * 70 + ".invalid", "%zz", "@@", ""]
    ),
    st.text(max_size=12).map(lambda text: f"{text}.invalid:1"),
)
VALUES = st.one_of(
    st.text(max_size=20),
    st.builds(lambda login, host: f"http://{login}@{host}/v1", st.text(max_size=8), HOSTS),
    HOSTS.map(lambda host: f"https://{host}/v1"),
)


@examples(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(Settings.model_fields)), VALUES, max_size=3))
def test_any_value_is_taken_or_refused(values: dict[str, str]) -> None:
    """With an error of ours and nothing else, also from a model's first use."""
    try:
        found = Settings.model_validate(values)
    except ValidationError:
        return
    for name in ("llm", "embedder"):
        if str(values.get(name, "")).startswith("http"):
            try:
                if name == "llm":
                    model = factory.language_model(found)
                    assert model is not None
                    model.generate([{"role": "user", "content": "?"}], max_tokens=1, cancel=Cancel.after(2))
                else:
                    embedder = factory.embedder(found)
                    assert embedder is not None
                    embedder.embed(["a"], Cancel.after(2))
            except ModelError:
                continue


@examples(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(Settings.model_fields)), VALUES, max_size=3))
def test_any_environment(values: dict[str, str]) -> None:
    kept = dict(os.environ)
    try:
        for name, value in values.items():
            if "\0" not in value and not any(
                0xD800 <= ord(char) < 0xDC80 or 0xDCFF < ord(char) < 0xE000 for char in value
            ):
                os.environ[f"LIBRARYFS_{name.upper()}"] = value
        found = settings()
        assert found.snapshot_path
        assert found.cache_path
    except LibraryError as error:
        assert str(error).startswith("LIBRARYFS_")
    finally:
        os.environ.clear()
        os.environ.update(kept)
