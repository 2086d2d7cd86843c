"""How a source is to be read: what the user said of it, remembered with it."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from libraryfs.errors import InvalidRequest
from libraryfs.paths import SECTIONS
from libraryfs.rows import complaint

MAP_FORM: Final = "PATH=SECTION, for example docs/adr=decisions"


def check_target(value: str) -> str:
    """A section, or a folder below one (`workspace/site`), without slashes at its ends. Raises ValueError."""
    target = value.strip("/")
    section, *below = target.split("/")
    if section not in SECTIONS:
        raise ValueError(f"{value!r}: a place is a section or a folder in one; the sections are {', '.join(SECTIONS)}")
    if any(part in ("", ".", "..") for part in below):
        raise ValueError(f"{value!r}: a place has no empty part, no . and no ..")
    return target


def check_map(value: str) -> str:
    """`PATH=SECTION`, the path without slashes at its ends. Raises ValueError."""
    path, equals, target = value.rpartition("=")
    path = path.strip().removeprefix("./").strip("/")
    if not equals or not path:
        raise ValueError(f"{value!r}: write {MAP_FORM}")
    return f"{path}={check_target(target.strip())}"


Target = Annotated[str, AfterValidator(check_target)]
Map = Annotated[str, AfterValidator(check_map)]


class SourceOptions(BaseModel):
    """What holds for every import of one source. `kind` is what the user called it; None: it is found by looking."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: str | None = None
    section: Target | None = None
    maps: tuple[Map, ...] = ()
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    hidden: bool = False
    allow_secrets: bool = False
    names: Literal["file", "title"] = "file"


def over(before: SourceOptions, said: Mapping[str, Any]) -> SourceOptions:
    """What was remembered, with what the user says now. Raises InvalidRequest naming the option."""
    try:
        return SourceOptions.model_validate({**before.model_dump(), **said})
    except ValidationError as error:
        name = _OPTION.get(str(error.errors()[0]["loc"][0]), str(error.errors()[0]["loc"][0]))
        raise InvalidRequest(f"--{name}: {complaint(error)}") from None


_OPTION: Final = {"maps": "map", "kind": "from", "allow_secrets": "allow-secrets"}
