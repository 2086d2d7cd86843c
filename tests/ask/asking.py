"""A small team's library, and one way to ask it."""

from typing import Any

from libraryfs.ask import request
from libraryfs.ask.pipeline import Models, ask
from libraryfs.ask.result import AskResult, Event
from libraryfs.models.cancel import Cancel
from tests.ask.fake_model import Scripted
from tests.ask.shelf import Shelf

DEPLOY = "We deploy on Tuesdays after the stand-up. Two people must approve a deploy."
BACKUP = "Backups run at night. They are kept for ninety days in the vault in Graz."
SHAPE = {
    "type": "object",
    "properties": {"day": {"type": "string"}},
    "required": ["day"],
    "additionalProperties": False,
}


def fill(shelf: Shelf) -> Shelf:
    """A team's ring with three decisions, and one that it may not see."""
    shelf.memory("/ring/dev", "deploy", "decision", DEPLOY, title="Deploys")
    shelf.memory("/ring/dev", "backup", "policy", BACKUP, title="Backups")
    shelf.memory(
        "/ring/secret", "pin", "decision", "We deploy the secret on Sundays; the code is 4711.", title="Deploys"
    )
    shelf.grant("me", "/ring/dev")
    shelf.embed()
    return shelf


def run(
    shelf: Shelf,
    question: str = "When do we deploy?",
    model: Scripted | None = None,
    *,
    embedder: Any = "own",
    events: list[Event] | None = None,
    cancel: Cancel | None = None,
    **options: Any,
) -> AskResult:
    asked = request.build({"question": question, "paths": ["/ring/dev"], **options})
    models = Models(shelf.embedder if embedder == "own" else embedder, model)
    result = ask(shelf.library(), models, asked, cancel, None if events is None else events.append)
    for cited in result.citations:  # whatever else is tested: each quote is in its file
        library = shelf.library()
        assert cited.quote.encode() in library.content(library.resolve(cited.path))
    return result
