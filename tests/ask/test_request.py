"""What may be asked, and how each bad thing is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraryfs.ask import request
from libraryfs.ask.request import MAX_PATHS, MAX_REQUEST_BYTES, parse
from libraryfs.errors import InvalidRequest, LibraryError, LimitExceeded


def refused(data: bytes) -> str:
    with pytest.raises((InvalidRequest, LimitExceeded)) as caught:
        parse(data, "/")
    assert "\n" not in str(caught.value)
    str(caught.value).encode()
    return str(caught.value)


def as_json(**fields: Any) -> bytes:
    return json.dumps({"question": "When?", **fields}).encode()


def test_plain_text_asks_the_default_path() -> None:
    asked = parse(b"  When do we deploy?\n", "/ring/dev")
    assert (asked.question, asked.paths, asked.retrieval) == ("When do we deploy?", ("/ring/dev",), "hybrid")
    assert (asked.shape, asked.ground, asked.latency_budget_ms) == (None, False, None)
    assert not request.wants_json(b"When?")


def test_an_object_sets_every_option() -> None:
    data = as_json(
        paths=["/ring/a", "/ring/b", "/ring/a"],
        shape={"type": "object"},
        ground=True,
        latency_budget_ms=500,
        retrieval="hybrid",
    )
    asked = parse(b"\xef\xbb\xbf \n" + data, "/")
    assert request.wants_json(b"\xef\xbb\xbf \n" + data)
    assert asked.paths == ("/ring/a", "/ring/b")
    assert (asked.shape, asked.ground, asked.latency_budget_ms, asked.retrieval) == (
        {"type": "object"},
        True,
        500,
        "hybrid",
    )


def test_an_object_without_paths_asks_the_default_path() -> None:
    assert parse(as_json(), "/agent/a/memory").paths == ("/agent/a/memory",)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "question: is empty"),
        (b" \n\t", "question: is empty"),
        (b"a\0b", "question: holds the control character U+0000 at 1"),
        (b"\x7fELF\x02\x01\x01", "question: holds the control character U+007F at 0"),
        (b"caf\xe9?", "request: not UTF-8 text (byte 3)"),
        (b"\x89PNG\r\n\x1a\n", "request: not UTF-8 text (byte 0)"),
        ("🙂🚀👍🏽".encode(), "question: has no letter or digit in it"),
        (b"?!", "question: has no letter or digit in it"),
        (b"a" * 8001, "question: has 8001 characters; at most 8000"),
        (b'{"question": "When?"', "request: not JSON: "),
        (b'{"question": "When?"} {}', "request: not JSON: Extra data"),
        (b"{'question': 1}", "request: not JSON: "),
        (b"{}", "question: Field required"),
        (b'{"question": "a", "question": "b"}', "request: 'question' is given twice"),
        (b'{"question": "a", "shape": {"x": 1, "x": 2}}', "request: 'x' is given twice"),
        (b'{"question": "a", "latency_budget_ms": NaN}', "request: NaN is not JSON"),
        (b'{"question": "a", "latency_budget_ms": ' + b"9" * 5000 + b"}", "request: Exceeds the limit"),
        (b'{"question": "\\ud800"}', "question: is not valid Unicode"),
        (b'{"question": null}', "question: Input should be a valid string"),
        (b'{"question": ["When?"]}', "question: Input should be a valid string"),
        (as_json(limit=3), "limit: unknown field; the fields are question, paths, shape"),
        (as_json(**{"a\nb": 3}), "a b: unknown field"),
        (as_json(paths=[]), "paths: is empty"),
        (as_json(paths="/ring/a"), "paths: Input should be a list"),
        (as_json(paths=[3]), "paths[0]: Input should be a valid string"),
        (as_json(paths=["/", "ring/a"]), "paths[1]: 'ring/a': a library path starts with /"),
        (as_json(paths=["/ring/a/../b"]), "paths[0]: '/ring/a/../b': '..' is refused"),
        (as_json(paths=[f"/ring/r{n}" for n in range(1000)]), f"paths: 1000 paths given; at most {MAX_PATHS}"),
        (as_json(ground="yes"), "ground: Input should be a valid boolean"),
        (as_json(ground=1), "ground: Input should be a valid boolean"),
        (as_json(latency_budget_ms=0), "latency_budget_ms: Input should be greater than or equal to 1"),
        (as_json(latency_budget_ms=1.5), "latency_budget_ms: Input should be a valid integer"),
        (as_json(latency_budget_ms=True), "latency_budget_ms: Input should be a valid integer"),
        (as_json(latency_budget_ms=10**9), "latency_budget_ms: Input should be less than or equal to 3600000"),
        (as_json(retrieval="bm25"), "retrieval: Input should be 'vector' or 'hybrid'"),
        (as_json(shape="object"), "shape: Input should be a valid dictionary"),
        (as_json(shape={"type": "objekt"}), "shape: not a JSON Schema: type: "),
    ],
)
def test_each_bad_thing_names_its_field(data: bytes, said: str) -> None:
    assert refused(data).startswith(said)


def test_size() -> None:
    assert refused(b"a" * (MAX_REQUEST_BYTES + 1)) == f"request: {MAX_REQUEST_BYTES + 1} bytes; at most 65536"
    assert refused(b"a" * 1_000_000).startswith("request: 1000000 bytes; at most")


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_deep_json(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    for depth in (70, 900, 10_000):
        data = b'{"question": "a", "shape": ' + opening * depth + b"1" + closing * depth + b"}"
        said = refused(data)
        assert said.startswith(("request: nested deeper than 64", "request: 7", "request: 6")), said


def test_forty_scripts() -> None:
    for text in SCRIPTS:
        assert parse(text.encode(), "/").question == text
        assert parse(json.dumps({"question": text}).encode(), "/").question == text


SCRIPTS = (
    "When do we deploy?",
    "Quand déployons-nous ?",
    "Πότε αναπτύσσουμε;",
    "Когда мы разворачиваем?",
    "Коли ми розгортаємо?",
    "Ե՞րբ ենք տեղակայում",
    "როდის ვავრცელებთ?",
    "מתי אנחנו פורסים?",
    "متى ننشر؟",
    "چه زمانی مستقر می‌کنیم؟",
    "ہم کب تعینات کرتے ہیں؟",
    "ܐܡܬܝ ܦܪܣܝܢܢ",
    "ކޮންއިރަކުތޯ",
    "መቼ ነው የምናሰማራው?",
    "हम कब तैनात करते हैं?",
    "আমরা কখন স্থাপন করি?",
    "ਅਸੀਂ ਕਦੋਂ ਤਾਇਨਾਤ ਕਰਦੇ ਹਾਂ?",
    "આપણે ક્યારે ગોઠવીએ છીએ?",
    "ଆମେ କେବେ ନିୟୋଜନ କରୁ?",
    "நாம் எப்போது பயன்படுத்துகிறோம்?",
    "మనం ఎప్పుడు అమలు చేస్తాము?",
    "ನಾವು ಯಾವಾಗ ನಿಯೋಜಿಸುತ್ತೇವೆ?",
    "നമ്മൾ എപ്പോൾ വിന്യസിക്കും?",
    "අපි යොදවන්නේ කවදාද?",
    "เราจะปรับใช้เมื่อไหร่",
    "ພວກເຮົານຳໃຊ້ເວລາໃດ",
    "ང་ཚོས་ནམ་བཀོད་སྒྲིག་བྱེད་དམ།",
    "ဘယ်အချိန်မှာ ဖြန့်ကျက်မလဲ",
    "តើយើងដាក់ពង្រាយនៅពេលណា",
    "我们什么时候部署？",
    "我們什麼時候部署？",
    "いつデプロイしますか？",
    "우리는 언제 배포합니까?",
    "ᠪᠢᠳᠡ ᠬᠡᠵᠢᠶᠡ",
    "ꀉꑌꁌꄮ",
    "ᏙᎢᏳᏍᏗ",
    "ᑕᐃᒪ ᖃᖓ",
    "ⴰⵙⵎⴰⵏ ⵎⴰⵏⵜⵓⵔ",
    "ߊ߬ ߕߎ߬ߡߊ",
    "𐐎𐐇𐐤 𐐔𐐅 𐐎𐐀",
    "𞤲𞤣𞤫𞤴",
)


@given(st.binary(max_size=400) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_a_request_or_one_line_of_refusal(data: bytes) -> None:
    try:
        asked = parse(data, "/")
    except LibraryError as error:
        assert "\n" not in error.message
        error.message.encode()
    else:
        assert asked.question == asked.question.strip() != ""


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_NAMES = st.sampled_from([*request.AskRequest.model_fields, "type", "$ref"]) | st.text(max_size=8)


@given(st.dictionaries(_NAMES, _VALUES, max_size=6))
def test_any_object_is_a_request_or_one_line_of_refusal(fields: dict[str, Any]) -> None:
    data = json.dumps(fields).encode()
    try:
        asked = parse(data, "/")
    except LibraryError as error:
        assert "\n" not in error.message
        error.message.encode()
    else:
        assert asked.question == fields["question"].strip()
        assert set(fields) <= set(request.AskRequest.model_fields)
