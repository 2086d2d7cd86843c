"""Text in any coding: what is decoded, and what is no text."""

import codecs

import pytest

from libraryfs.store.charset import decode

GERMAN = "Der Bär grüßt die Äpfel im Grünen und fährt über die Brücke.\n"
JAPANESE = "東京は日本の首都です。人口は千四百万人です。\n"
RUSSIAN = "Москва является столицей России и крупнейшим городом страны.\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        *((GERMAN, one) for one in ("utf-8", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32")),
        *((JAPANESE, one) for one in ("shift_jis", "euc_jp", "iso2022_jp", "utf-16", "utf-8")),
        *((RUSSIAN, one) for one in ("koi8_r", "cp1251", "utf-16")),
    ],
)
def test_texts_are_decoded(text: str, encoding: str) -> None:
    found = decode((text * 4).encode(encoding))
    assert found is not None
    assert found.text.lstrip("\ufeff") == text * 4


def test_what_is_declared_is_believed() -> None:
    head = '<?xml version="1.0" encoding="iso-8859-7"?>\n<p>Αθήνα</p>'
    found = decode(head.encode("iso-8859-7"))
    assert found is not None
    assert "Αθήνα" in found.text


def test_a_byte_order_mark_decides() -> None:
    found = decode(codecs.BOM_UTF16_BE + "Ω".encode("utf-16-be"))
    assert found is not None
    assert (found.text, found.encoding) == ("Ω", "utf-16")


@pytest.mark.parametrize("data", [bytes(range(256)) * 4, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\0" * 100, b"a\0b"])
def test_what_is_no_text(data: bytes) -> None:
    assert decode(data) is None
