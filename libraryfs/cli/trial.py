"""A model put to work once, for `doctor`: one embedding, or one token, in the process that everybody uses it in."""

import time
from typing import Final

from libraryfs.errors import ModelError
from libraryfs.models import factory
from libraryfs.models.cancel import Cancel
from libraryfs.models.local import LocalEmbedder, LocalLanguageModel
from libraryfs.models.protocols import Embedder, LanguageModel, Message
from libraryfs.settings import Settings

SECONDS: Final = 120.0
"""More than a large model takes to load from a slow disk."""


def embedder(chosen: Settings) -> str:
    """What one embedding took, in words. Raises ModelError."""
    model = factory.embedder(chosen)
    assert model is not None
    _forgive(model)
    began = time.monotonic()
    vectors = model.embed(["Does the embedder work?"], Cancel.after(SECONDS))
    return f"embeds ({vectors.shape[1]} dimensions) in {_took(model, began)}"


def language_model(chosen: Settings) -> str:
    """What one token took, in words. Raises ModelError."""
    model = factory.language_model(chosen)
    assert model is not None
    _forgive(model)
    began = time.monotonic()
    chat: list[Message] = [{"role": "user", "content": "Say yes."}]
    model.generate(chat, max_tokens=1, cancel=Cancel.after(SECONDS))
    return f"writes a token in {_took(model, began)}"


def _forgive(model: Embedder | LanguageModel) -> None:
    if isinstance(model, LocalEmbedder | LocalLanguageModel):
        model.forgive()


def _took(model: Embedder | LanguageModel, began: float) -> str:
    seconds = f"{time.monotonic() - began:.2f} s"
    process = model.process if isinstance(model, LocalEmbedder | LocalLanguageModel) else None
    return seconds if process is None else f"{seconds}, loading included; process {process} has {_resident(process)}"


def _resident(process: int) -> str:
    try:
        with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as file:
            found = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
    except (OSError, StopIteration):
        raise ModelError(f"its process {process} ended right after its first answer") from None
    return f"{found / 1000:,.0f} MB of memory"
