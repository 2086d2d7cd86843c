"""`.tree` and `.drilldown`: read, they give the defaults; a JSON request (`{"depth": 2}`) sets the caps."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from libraryfs.errors import InvalidRequest
from libraryfs.mount.control import Call
from libraryfs.nodes import Entry

if TYPE_CHECKING:  # and in the functions: their models cost a mount's start more than the rest of this module
    from pydantic import BaseModel

Request = TypeVar("Request", bound="BaseModel")


def parse(model: type[Request], request: bytes) -> Request:
    """The request, validated. Raises InvalidRequest that names the field."""
    from pydantic import ValidationError

    try:
        return model.model_validate_json(request)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        what = f"{where}: {first['msg']}" if where else first["msg"]
        raise InvalidRequest(f"{what}; a request is a JSON object of {', '.join(model.model_fields)}") from None


class _Everywhere:
    """What both have in common: they answer in every folder and no listing shows them, for they have content."""

    silent = False
    elsewhere = False
    parallel = 4

    def answers_in(self, folder: Entry) -> bool:
        """In every folder."""
        return True

    def listed_in(self, folder: Entry) -> bool:
        """Nowhere: a walk that reads what it finds would read these too."""
        return False


class TreeControl(_Everywhere):
    """`.tree`: what is below its folder, to a depth."""

    name = b".tree"
    number = 1

    def patience(self, request: bytes) -> float | None:
        """As long as it takes."""
        return None

    def idle(self, call: Call) -> bytes:
        """The folder's entries, as text."""
        from libraryfs.library.tree import render, tree

        return render(tree(call.library, call.path)).encode("utf-8", "surrogatepass")

    def answer(self, call: Call) -> Iterator[bytes]:
        """JSON, as `libraryfs tree --json` prints it. A blank request is none."""
        if not call.request.strip():
            yield self.idle(call)
            return
        from libraryfs.library.tree import TreeRequest, tree

        request = parse(TreeRequest, call.request)
        yield _json(tree(call.library, call.path, request.depth))


class DrilldownControl(_Everywhere):
    """`.drilldown`: what is below its folder, with excerpts, under caps."""

    name = b".drilldown"
    number = 2

    def patience(self, request: bytes) -> float | None:
        """As long as it takes."""
        return None

    def idle(self, call: Call) -> bytes:
        """The walk under the default caps, as text."""
        from libraryfs.library.drilldown import drilldown, render

        return render(drilldown(call.library, call.path)).encode("utf-8", "surrogatepass")

    def answer(self, call: Call) -> Iterator[bytes]:
        """JSON, as `libraryfs drilldown --json` prints it. A blank request is none."""
        if not call.request.strip():
            yield self.idle(call)
            return
        from libraryfs.library.drilldown import DrilldownRequest, drilldown

        request = parse(DrilldownRequest, call.request)
        yield _json(drilldown(call.library, call.path, request))


def _json(result: "BaseModel") -> bytes:
    return json.dumps(result.model_dump(), indent=2).encode() + b"\n"  # ASCII: names may hold lone surrogates
