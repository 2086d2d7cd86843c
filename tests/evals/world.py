"""A small library with an eval set, and a pipeline whose answers the test decides."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from libraryfs.ask.evidence import Evidence
from libraryfs.ask.pipeline import Models
from libraryfs.ask.request import AskRequest
from libraryfs.ask.result import AskResult, Citation
from libraryfs.errors import PathNotFound
from libraryfs.evals.report import EvalReport
from libraryfs.evals.request import build
from libraryfs.evals.runner import Progress, Surroundings, run
from libraryfs.library.resolver import Library
from libraryfs.models.cancel import Cancel
from libraryfs.store import workspace
from tests.store.build import Builder

RING = "/ring/dev"
SET = "eval-set.md"
HOUR = 3600 * 10**9


def set_text(count: int = 10, extra: str = "") -> str:
    """A set of questions `What is n?`, each expecting `value n`."""
    return extra + "\n".join(f"## What is {n}?\n- value {n}\n" for n in range(count))


class World:
    """`wrong` are the questions that the pipeline answers wrongly from now on."""

    def __init__(self, path: Path, count: int = 10) -> None:
        self.build = Builder(path)
        self.path = path
        self.build.namespace(RING, "alice")
        self.build.namespace("/ring/secret")
        for n in range(count):
            self.build.memory(RING, f"m{n}", content=f"The value {n} is the value of {n}.")
        self.build.item(RING, "set", name=SET, content=set_text(count))
        self.wrong: set[int] = set()
        self.abstain: set[int] = set()
        self.asked: list[str] = []
        self.now = self.build.now
        self.pipeline: Any = self.ask
        self.hook: Callable[[int], object] = lambda number: None
        self.progress: list[Progress] = []

    def ask(self, library: Library, models: Models, request: AskRequest, cancel: Cancel | None = None) -> AskResult:
        """As the pipeline: resolves the paths, and says what the test wants."""
        for path in request.paths:
            library.resolve(path)
        self.asked.append(request.question)
        number = int("".join(filter(str.isdigit, request.question)) or 0)
        self.hook(number)
        if models.language_model is not None:
            models.language_model.count_tokens([request.question], cancel or Cancel())
        if number in self.abstain:
            return AskResult(message="not in the library")
        entry = library.resolve(f"{RING}/skills/m{number}.md")
        path = library.path_of(entry)
        evidence = Evidence(
            id=f"m{number}", path=path, score=1, origin="vector", excerpt="", ino=entry.ino, namespace_id=1
        )
        answer = "something else" if number in self.wrong else f"It is VALUE {number}."
        quote = Citation(id=f"m{number}", path=path, quote=f"value {number}")
        return AskResult(answer=answer, grounding="grounded", citations=(quote,), evidence=(evidence,))

    def run(
        self,
        *,
        principal: str = "alice",
        ring: str = RING,
        models: Models = Models(None, None),  # noqa: B008
        cancel: Cancel | None = None,
        **fields: Any,
    ) -> EvalReport:
        self.now += HOUR
        around = Surroundings(self.pipeline, lambda: self.now, self.progress.append)
        return run(self.path, principal, ring, build(fields), models, cancel, around)

    def metadata(self) -> dict[str, Any]:
        found = workspace.get(self.build.db, self.build.entry(workspace, RING, "set").ino)
        assert found is not None
        return found.metadata

    def stored(self) -> dict[str, Any]:
        """All that a run may have written."""
        tables = ("items", "entries", "eval_runs", "eval_verdicts", "eval_questions", "changes")
        return {table: list(self.build.db.execute(f"SELECT * FROM {table}")) for table in tables}

    def rewrite(self, text: str) -> None:
        self.build.item(RING, "set", name=SET, content=text)


def without_times(report: EvalReport) -> str:
    """The report as JSON but for times."""
    found = report.model_dump(mode="json", exclude={"at": True, "trace": {"milliseconds", "question_milliseconds"}})
    for point in found["history"]:
        del point["at"]
    return json.dumps(found, sort_keys=True)


def paths_not_found(errors: Sequence[PathNotFound], names: Sequence[str]) -> set[str]:
    """The errors' words, each without the name that was asked for."""
    return {str(error).replace(name, "…") for error, name in zip(errors, names, strict=True)}
