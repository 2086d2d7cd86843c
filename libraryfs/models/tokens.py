"""Where a text's tokens are, without loading a model: for chunking."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from tokenizers import Tokenizer


VOCABULARY: Final = Path(__file__).parent / "minilm_vocabulary.txt"
"""all-MiniLM-L6-v2's word pieces, a line each: those of BERT base uncased (Apache-2.0, Google)."""
_START: Final = 101
_END: Final = 102
"""The numbers of [CLS] and [SEP] in it: the marks around each text."""


class Tokens(Protocol):
    """A tokeniser's view of a text."""

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """The text's tokens as (start, end) character positions, marks at start and end not among them."""

    def count(self, text: str) -> int:
        """How many there are."""


class FileTokens:
    """The exact tokens, from a model's own tokenizer.json, or from a list of word pieces (.txt)."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        if self._path.suffix == ".txt":
            return wordpieces(self._path)
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._path))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @property
    def marks(self) -> int:
        """Tokens that the model adds to each text."""
        return int(self._tokenizer.num_special_tokens_to_add(False))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """See `Tokens`."""
        offsets: list[tuple[int, int]] = self._tokenizer.encode(clean(text), add_special_tokens=False).offsets
        return offsets

    def count(self, text: str) -> int:
        """See `Tokens`."""
        return len(self._tokenizer.encode(clean(text), add_special_tokens=False))


class EstimatedTokens:
    """Tokens of an unknown tokeniser, more rather than fewer: pieces of at most three Latin letters or two digits, and
    every other visible character alone."""

    _PIECES = re.compile(r"[A-Za-z]{1,3}|[0-9]{1,2}|\S")

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """See `Tokens`."""
        return [piece.span() for piece in self._PIECES.finditer(text)]

    def count(self, text: str) -> int:
        """See `Tokens`."""
        return sum(1 for _ in self._PIECES.finditer(text))


def wordpieces(vocabulary: Path) -> Tokenizer:
    """The tokeniser of BERT base uncased over these word pieces. It cuts and pads nothing."""
    from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordPiece.from_file(str(vocabulary), unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    tokenizer.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in special])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", _END), ("[CLS]", _START))
    return tokenizer


def clean(text: str) -> str:
    """The text without lone surrogates, which no tokeniser takes; as long as before."""
    return text.encode("utf-8", "replace").decode("utf-8")
