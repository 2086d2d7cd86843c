"""What of a folder is not looked at: rules of the folder itself (.gitignore and its like), of the user, and built in.

A rule that stands deeper, or later, wins, as in git. `--exclude` wins over the folder's own rules, and `--include` over
all but what is named as a secret.
"""

import re
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

from pathspec import GitIgnoreSpec

from libraryfs.ingest.options import SourceOptions

RULE_FILES: Final = (".gitignore", ".ignore", ".libraryfsignore")
"""The later one wins within a folder."""

HIDDEN: Final = "hidden"
EXCLUDED: Final = "--exclude"
MACHINE_MADE: Final = "version control, caches, builds and installed packages"
SECRET_NAME: Final = "kept for secrets"

_MACHINE_FOLDERS: Final = frozenset(
    [
        ".git",
        ".hg",
        ".svn",
        ".bzr",
        ".jj",
        ".sl",
        "CVS",
        "_darcs",
        "node_modules",
        "bower_components",
        "jspm_packages",
        "__pycache__",
        ".venv",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".hypothesis",
        ".cache",
        ".parcel-cache",
        ".gradle",
        ".next",
        ".nuxt",
        ".svelte-kit",
        ".turbo",
        ".terraform",
        ".serverless",
        ".dart_tool",
        ".eggs",
        ".ipynb_checkpoints",
        ".idea",
        ".vscode",
        ".vs",
        ".fleet",
        ".obsidian",
        ".trash",
        ".Trash",
        ".library",
        ".libraryfs",
        ".stversions",
        ".sync",
        ".dropbox.cache",
        ".Spotlight-V100",
        ".fseventsd",
        "site-packages",
    ]
)
_MACHINE_FILES: Final = re.compile(
    r"\.git|\.DS_Store|Thumbs\.db|ehthumbs\.db|desktop\.ini|Icon\r|\.?#.*#?~?|.*~|.*\.(?:swp|swo|swx|pyc|pyo|class)"
    r"|\._.*|\.directory|\.nfs[0-9a-f]+|~\$.*|\.libraryfs-.*",
    re.DOTALL,
)
_BUILD_FOLDERS: Final = frozenset(
    ["build", "dist", "out", "target", "_build", "_site", ".output", "coverage", "htmlcov"]
)
_BUILD_FILES: Final = frozenset(
    [
        "package.json",
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "Cargo.toml",
        "pom.xml",
        "build.gradle",
        "build.gradle.kts",
        "CMakeLists.txt",
        "Makefile",
        "meson.build",
        "go.mod",
        "composer.json",
        "conf.py",
        "mkdocs.yml",
        "_config.yml",
        "build.sbt",
        "mix.exs",
    ]
)
_MADE_BY: Final = ("CACHEDIR.TAG", "pyvenv.cfg")
"""Files that a cache and a virtual environment have at their top."""
_SECRET_FOLDERS: Final = frozenset(
    [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".gcloud"]
)
_SECRET_FILES: Final = re.compile(
    r"\.env|\.env\.(?!example|sample|template|dist|schema).*|\.netrc|_netrc|\.pgpass|\.npmrc|\.pypirc|\.htpasswd"
    r"|\.git-credentials|id_(?:rsa|dsa|ecdsa|ed25519)|.*\.(?:p12|pfx|jks|keystore|kdbx|ppk)",
    re.DOTALL | re.IGNORECASE,
)


class _Spec(NamedTuple):
    """The rules of one file: where it stands (relative, "" the source itself), what it is called, its patterns."""

    folder: str
    name: str
    patterns: GitIgnoreSpec


Chain = tuple[_Spec, ...]
"""The rules that hold in a folder, the strongest last."""


class Rules:
    """The rules of one source. `digest()` after a walk tells whether they are those of another walk."""

    def __init__(self, root: Path, options: SourceOptions, wanted: frozenset[str]) -> None:
        """`wanted` are paths that come in though they are hidden: files that the kind of source needs."""
        self._root = root
        self._options = options
        self._wanted = wanted
        self._exclude = _spec(options.exclude)
        self._include = _spec(options.include)
        self._include_below = tuple(_literal(pattern) for pattern in options.include if "/" in pattern.strip("/"))
        self._seen = blake2b(options.model_dump_json().encode(), digest_size=16)

    def above(self) -> Chain:
        """The rules of the folders above the source, up to the repository that it is in."""
        chain: list[_Spec] = []
        root = self._root.resolve()
        folders = [root, *root.parents]
        repository = next((number for number, folder in enumerate(folders) if (folder / ".git").exists()), 0)
        for number in range(repository, 0, -1):
            text = _text(folders[number] / RULE_FILES[0])
            if text:
                below = "/".join(folder.name for folder in reversed(folders[:number]))
                chain.append(_Spec(f"../{below}", RULE_FILES[0], GitIgnoreSpec.from_lines(text.splitlines())))
                self._seen.update(text.encode("utf-8", "surrogateescape"))
        return tuple(chain)

    def enter(self, chain: Chain, folder: str, names: Iterable[str]) -> Chain:
        """The rules in a folder that holds `names`, given those of the folder above it."""
        for name in RULE_FILES:
            if name in names and (text := _text(self._root / folder / name)):
                chain = (*chain, _Spec(folder, name, GitIgnoreSpec.from_lines(text.splitlines())))
                self._seen.update(f"{folder}/{name}\0{text}\0".encode("utf-8", "surrogateescape"))
        return chain

    def reason(self, chain: Chain, path: str, is_folder: bool, siblings: frozenset[str] | set[str]) -> str | None:
        """Why a file or folder is left out; None when it is wanted. `siblings` are the names in its folder."""
        name = path.rpartition("/")[2]
        if path in self._wanted:
            return None
        if not self._options.allow_secrets and _is_secret(name, is_folder):
            return SECRET_NAME
        matched = path + "/" if is_folder else path
        if self._include is not None and self._include.match_file(matched):
            return None
        if self._exclude is not None and self._exclude.match_file(matched):
            return EXCLUDED
        if self._is_machine_made(path, name, is_folder, siblings):
            return MACHINE_MADE
        if name.startswith(".") and not self._options.hidden:
            return HIDDEN
        return _ignored(chain, matched)

    def may_hold_included(self, path: str) -> bool:
        """Whether something below a folder that is left out is wanted: by the kind, or an `--include` with a path."""
        if any(one.startswith(path + "/") for one in self._wanted):
            return True
        return any(f"{one}/".startswith(f"{path}/") or f"{path}/".startswith(f"{one}/") for one in self._include_below)

    def is_included(self, path: str) -> bool:
        """Whether a file within a folder that is left out is wanted all the same."""
        return path in self._wanted or (self._include is not None and self._include.match_file(path))

    def digest(self) -> bytes:
        """Of all rules that the walk met, with the options."""
        return self._seen.digest()

    def _is_machine_made(self, path: str, name: str, is_folder: bool, siblings: frozenset[str] | set[str]) -> bool:
        if not is_folder:
            return _MACHINE_FILES.fullmatch(name) is not None
        if name in _MACHINE_FOLDERS:
            return True
        if name in _BUILD_FOLDERS and not _BUILD_FILES.isdisjoint(siblings):
            return True
        return any((self._root / path / made).exists() for made in _MADE_BY)


def is_noise(path: str) -> bool:
    """Whether a path is in a folder that no rule lets in by itself: what changes there is no news."""
    return not _MACHINE_FOLDERS.isdisjoint(path.split("/"))


def _is_secret(name: str, is_folder: bool) -> bool:
    return name in _SECRET_FOLDERS if is_folder else _SECRET_FILES.fullmatch(name) is not None


def _ignored(chain: Chain, matched: str) -> str | None:
    for spec in reversed(chain):
        below = f"{spec.folder[3:]}/{matched}" if spec.folder.startswith("../") else matched
        if spec.folder and not spec.folder.startswith("../"):
            below = matched[len(spec.folder) + 1 :]
        verdict = spec.patterns.check_file(below).include
        if verdict is not None:
            return f"ignored by {spec.name}" if verdict else None
    return None


def _spec(patterns: Iterable[str]) -> GitIgnoreSpec | None:
    given = list(patterns)
    return GitIgnoreSpec.from_lines(given) if given else None


def _literal(pattern: str) -> str:
    """The folders that a pattern names before its first wildcard."""
    parts = pattern.strip("/").split("/")
    plain = next((number for number, part in enumerate(parts) if re.search(r"[*?\[]", part)), len(parts))
    return "/".join(parts[:plain])


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape") if path.is_file() else ""
    except OSError:
        return ""
