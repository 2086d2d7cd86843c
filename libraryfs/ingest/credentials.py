"""What looks like a key, a token or a password in a text, by the kept rules of detect-secrets.

Its rules of one service each, which hardly ever err, and its keywords (`password = …`) without values that are
placeholders. Its entropy rules are left out: a digest or an identifier in a document is no secret.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

SCANNED: Final = 4 * 1024 * 1024
"""Characters at the head of a text that are looked at."""

_NEEDS: Final = {
    "ArtifactoryDetector": ("AKC", "artifactory", "Artifactory"),
    "CloudantDetector": ("cloudant", "Cloudant"),
    "IbmCloudIamDetector": ("ibm", "IBM"),
    "IbmCosHmacDetector": ("ibm", "IBM", "cos_hmac"),
    "SoftlayerDetector": ("softlayer", "SoftLayer"),
}
"""Rules that are slow, and the words without which they find nothing that is theirs."""
_NOT_USED: Final = frozenset(
    {"Base64HighEntropyString", "HexHighEntropyString", "IPPublicDetector", "KeywordDetector", "JwtTokenDetector"}
)
_OURS: Final = {
    "Anthropic API key": r"sk-ant-[a-z0-9]{3,8}-[A-Za-z0-9_-]{40,}",
    "OpenAI API key": r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}",
    "GitHub token": r"github_pat_[A-Za-z0-9_]{60,}",
    "Google API key": r"AIza[0-9A-Za-z_-]{35}\b",
    "Hugging Face token": r"hf_[A-Za-z]{34}\b",
    "JSON Web Token": r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
}
_PLACEHOLDER: Final = re.compile(
    r"(?i)your|example|placeholder|dummy|change.?me|xxx|\*\*\*|\.\.\.|…|<|>|\{|\}|\[|\]|\(|\)|\$|%|-here|sample|fake"
    r"|redacted|todo|test|secret|passw|token|api.?key|null|none|true|false|undefined|optional|required|string|foo|bar"
)
_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]*|[a-z]+(?:[_.-][a-z]+)*|[a-z]+(?:[A-Z][a-z]+)+")
_LEAST: Final = 6


class Credential(NamedTuple):
    """What was found, and the line that it stands in. The value itself is not kept."""

    line: int
    what: str


def find(text: str) -> Credential | None:
    """The first that a text has; None when nothing looks like one."""
    text = text[:SCANNED]
    found = next(_of_services(text), None)
    by_keyword = _by_keyword(text)
    both = [one for one in (found, by_keyword) if one is not None]
    return min(both) if both else None


def _of_services(text: str) -> Iterator[Credential]:
    for what, patterns, needs in _rules():
        if needs and not any(word in text for word in needs):
            continue
        for pattern in patterns:
            for match in pattern.finditer(text):
                if what != _BASIC or not _is_placeholder(match[1]):
                    yield Credential(text.count("\n", 0, match.start()) + 1, what)


_BASIC: Final = "Basic Auth Credentials"


@cache
def _rules() -> tuple[tuple[str, tuple[re.Pattern[str], ...], tuple[str, ...]], ...]:
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    kept: list[tuple[str, tuple[re.Pattern[str], ...], tuple[str, ...]]] = []
    classes: dict[str, Any] = get_mapping_from_secret_type_to_class()
    for what, rule in classes.items():
        if rule.__name__ not in _NOT_USED:
            kept.append((what, tuple(rule().denylist), _NEEDS.get(rule.__name__, ())))
    kept += [(what, (re.compile(pattern),), ()) for what, pattern in _OURS.items()]
    return tuple(kept)


def _by_keyword(text: str) -> Credential | None:
    """A value given to a name such as `password`: `password: hunter2`, `DB_PASSWORD="…"`."""
    folded = text.lower()
    if not any(word in folded for word in ("pass", "pwd", "secret", "key")):
        return None
    for match in _assignment().finditer(folded):
        quoted, bare = match["quoted"], match["bare"]
        value = quoted or bare.rstrip(".,;:!?")
        if not _is_placeholder(value) and (quoted or any(char.isdigit() for char in value)):
            return Credential(folded.count("\n", 0, match.start()) + 1, "a password or key")
    return None


@cache
def _assignment() -> re.Pattern[str]:
    """In small letters: a name with one of detect-secrets' keywords, `=` or `:`, and a value."""
    from detect_secrets.plugins.keyword import DENYLIST

    words = "|".join(DENYLIST)
    return re.compile(
        rf"(?:{words})[\w-]{{0,20}}[\"'`]{{0,2}}[ \t]{{0,5}}(?::=|=>|=|:)[ \t]{{0,5}}"
        r"(?:[\"'`](?P<quoted>[^\"'`\s]{6,200})[\"'`]|(?P<bare>[^\"'`\s]{6,200}))"
    )


def _is_placeholder(value: str) -> bool:
    """Whether a value is no secret: a sample, a variable, a word of the documentation, or too short."""
    if len(value) < _LEAST or not value.isascii() or any(char.isspace() for char in value):
        return True
    return len(set(value)) < 4 or bool(_PLACEHOLDER.search(value)) or bool(_NAME.fullmatch(value))
