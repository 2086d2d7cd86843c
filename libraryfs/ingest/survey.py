"""A look at a folder before it is imported: what it is taken for, and how many files would go where."""

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from libraryfs.ingest import kinds
from libraryfs.ingest.ignore import Rules
from libraryfs.ingest.kind import TreeKind
from libraryfs.ingest.layout import Layout, Place
from libraryfs.ingest.options import SourceOptions, over
from libraryfs.ingest.walk import Walk


class Survey(NamedTuple):
    """What was found. `sections` counts files, `left_out` files and folders by reason."""

    kind: str
    taken_as: str
    sections: dict[str, int]
    left_out: dict[str, int]
    size: int


def survey(path: Path, said: Mapping[str, Any], own: frozenset[str] = frozenset()) -> Survey:
    """Looks at the names in a folder; opens none of its files. Raises InvalidRequest for an option that is none."""
    options = over(SourceOptions(), said)
    kind, why = kinds.choose(path, options.kind)
    taken_as = f"{kind.says}{f' ({why})' if why else ''}"
    if not isinstance(kind, TreeKind):
        return Survey(kind.name, taken_as, {kind.section: 1}, {}, path.stat().st_size)
    layout = Layout(path, options, kind.place, is_ring=True)
    places: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    rules = Rules(path, options, kind.wanted)
    size = 0
    real_own = frozenset(os.path.realpath(one) for one in own)
    for found in Walk(path, rules, {}, lambda _path, reason: left_out.update((reason,)), layout.enter, real_own):
        if found.is_folder:
            continue
        place = layout.place(found.path, is_folder=False)
        if isinstance(place, Place):
            places[place.section] += 1
            size += found.stat.size
        elif place is not None:
            left_out[place] += 1
    return Survey(kind.name, taken_as, dict(places.most_common()), dict(left_out.most_common()), size)
