"""Secrets that the suite plants in environments and URLs. No output and no log may hold one: conftest.py looks."""

import base64
from pathlib import Path

KEY = "sk-planted-8c1f2e7a"
PASSWORD = "hunter2-in-the-url"
SECRETS = (KEY, PASSWORD, base64.b64encode(f"me:{PASSWORD}".encode()).decode())
ENVIRONMENT = {"LIBRARYFS_LLM_KEY": KEY, "LIBRARYFS_EMBEDDER_KEY": KEY}
"""Harmless where no endpoint is set, and that is nearly everywhere."""


def found(text: str) -> list[str]:
    """The planted secrets that stand in a text."""
    return [secret for secret in SECRETS if secret in text]


def logs_with_secrets(folder: Path) -> list[str]:
    """The logs below a folder that hold one; what is mounted there is not looked at."""
    return [
        f"{path}: {found(path.read_text(errors='replace'))}"
        for depth in ("*.log", "*/*.log", "*/*/*.log")
        for path in folder.glob(depth)
        if path.is_file() and found(path.read_text(errors="replace"))
    ]
