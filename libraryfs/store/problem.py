"""One finding of a check."""

from typing import Literal, NamedTuple

ProblemKind = Literal[
    "workspace_cycle",
    "workspace_orphan",
    "shadowed_charter",
    "changed_name",
    "dangling_edge",
    "damaged_row",
    "damaged_content",
    "damaged_file",
    "secret",
    "no_text",
]


class Problem(NamedTuple):
    """`id` is the row's id in `namespace` ("/ring/dev"); both are empty for the file itself."""

    kind: ProblemKind
    namespace: str
    id: str
    message: str
