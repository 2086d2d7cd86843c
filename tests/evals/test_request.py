"""What is written to `.eval`."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraryfs.errors import InvalidRequest
from libraryfs.evals.request import EvalRequest, parse


@pytest.mark.parametrize("data", [b"run", b"run\n", b" RUN \r\n", b"\xef\xbb\xbfrun", b"{}", b'{"default": true}', b""])
def test_the_default_set(data: bytes) -> None:
    assert parse(data).workspace_item_id is None


def test_fields() -> None:
    found = parse(b'{"workspace_item_id": "x", "llm_judge": false, "repeats": 3, "baseline": "7", "cache": false}')
    assert found == EvalRequest(workspace_item_id="x", llm_judge=False, repeats=3, baseline="7", cache=False)


def test_a_run_by_its_number() -> None:
    assert parse(b'{"baseline": 999}').baseline == "999"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"walk", "request: write 'run'"),
        (b"\xff", "request: write 'run'"),
        (b"{", "request: Invalid JSON"),
        (b'{"item": "x"}', "item: no such field; there are default, workspace_item_id"),
        (b'{"workspace_item_id": 3}', "workspace_item_id: "),
        (b'{"workspace_item_id": ""}', "workspace_item_id: "),
        (b'{"workspace_item_id": "x", "default": true}', "request: exactly one of default and workspace_item_id"),
        (b'{"default": false}', "request: exactly one of default and workspace_item_id"),
        (b'{"repeats": 51}', "repeats: "),
        (b'{"baseline": "0"}', "baseline: wants the number of a run, or 'this'; '0' is neither"),
        (b'{"baseline": "foo"}', "baseline: wants the number of a run, or 'this'; 'foo' is neither"),
        (b'{"baseline": "7\\n"}', "baseline: wants the number of a run"),
        (b'{"baseline": true}', "baseline: wants the number of a run"),
        (b'{"baseline": -1}', "baseline: wants the number of a run"),
        (b'{"baseline": 1' + b"0" * 18 + b"}", "baseline: wants the number of a run"),
        (b'{"aa": true, "baseline": "this"}', "request: aa stores no run, so there is none to pin"),
        (b'{"aa": 1}', "aa: "),
        (b'{"llm_judge": "\xff"}', "request: "),
    ],
)
def test_refused(data: bytes, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(data)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
_fields = st.dictionaries(st.sampled_from([*EvalRequest.model_fields, "other"]), _json, max_size=4)


@given(st.binary(max_size=60) | _fields.map(lambda fields: json.dumps(fields).encode()))
def test_any_bytes_give_a_request_or_one_line(data: bytes) -> None:
    message = ""
    try:
        found = parse(data)
    except InvalidRequest as error:
        message = str(error)
        message.encode()
    if not message:
        assert isinstance(found, EvalRequest)
        assert not (found.default and found.workspace_item_id)
    assert "\n" not in message
