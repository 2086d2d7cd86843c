"""Errors: one class a code, and an error that crosses a process border keeps its class."""

import re

import pytest

from libraryfs import errors
from libraryfs.errors import LibraryError, of_code


def kinds() -> list[type[LibraryError]]:
    found = [LibraryError]
    for kind in found:
        found += kind.__subclasses__()
    return [kind for kind in found if kind.__module__ == "libraryfs.errors"]


def test_each_class_has_a_code_of_its_own_and_a_line_in_the_tree() -> None:
    codes = [kind.code for kind in kinds()]
    assert len(set(codes)) == len(codes)
    listed = dict(re.findall(r"(?m)^.*── (\w+) +(LIBRARY_\w+) ", errors.__doc__ or ""))
    assert listed == {kind.__name__: kind.code for kind in kinds() if kind is not LibraryError}


@pytest.mark.parametrize("kind", kinds())
def test_an_error_that_crosses_keeps_its_class_and_message(kind: type[LibraryError]) -> None:
    crossed = of_code(kind.code, "x.md: line 3: wrong")
    assert type(crossed) is kind
    assert (crossed.message, crossed.errno, crossed.http_status) == (
        "x.md: line 3: wrong",
        kind.errno,
        kind.http_status,
    )


def test_a_code_that_is_not_known_is_a_plain_error() -> None:
    assert type(of_code("LIBRARY_OF_TOMORROW", "new")) is LibraryError
