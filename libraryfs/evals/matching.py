"""How texts are made comparable: what "the answer says this fragment" means without a model.

Folding, in this order: Unicode NFKC (full-width letters, ligatures and the like become the plain ones), case folding,
every run of white space becomes one space, none at the ends. A fragment also loses punctuation at its edges: quotation
marks, brackets and sentence marks. Signs that carry meaning at an edge (`C#`, `50%`, `-5`, `/ring`, `$5`) stay.
"""

import unicodedata
from typing import Final

_CARRIES_MEANING: Final = frozenset("#%&*@/\\‰′″")
_EDGE_CATEGORIES: Final = frozenset({"Ps", "Pe", "Pi", "Pf", "Po"})  # not dashes and underscores


def fold(text: str) -> str:
    """The text as it is compared. Folding twice changes nothing more."""
    # Case folding can undo NFKC (and the other way round), so NFKC comes again, as in Unicode's NFKC_Casefold (D146).
    once = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(once.split())


def fold_fragment(text: str) -> str:
    """Like `fold`, without punctuation at the edges; a fragment that is nothing but punctuation keeps it."""
    folded = fold(text)
    start, end = 0, len(folded)
    while start < end and _is_edge(folded[start]):
        start += 1
    while end > start and _is_edge(folded[end - 1]):
        end -= 1
    return folded[start:end] or folded


def says(folded_text: str, fragment: str) -> bool:
    """Whether a folded text holds the fragment (given as written)."""
    return fold_fragment(fragment) in folded_text


def _is_edge(char: str) -> bool:
    return char == " " or (unicodedata.category(char) in _EDGE_CATEGORIES and char not in _CARRIES_MEANING)
