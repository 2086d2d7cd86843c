"""What retrieval finds: evidence items, in the order in which they go to the model and to the reader."""

from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

Origin = Literal["vector", "graph", "fallback"]
"""How an item was found: nearest in its scope, over an edge from such an item, or by keywords."""


WORDS_LEAD_BELOW: float = 0.5
"""Where an embedding model is less readable than this, words lead: in retrieval, in ranking, in what is refused."""


class Near(NamedTuple):
    """A chunk of an evidence file that is near to the question, `start` and `length` in bytes of the file."""

    start: int
    length: int
    similarity: float | None
    """Cosine of the question and the chunk; None where words alone chose it."""


class Evidence(BaseModel):
    """One memory, workspace item or artifact that may hold the answer. `excerpt` is a substring of its file."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(description="the row's id in its store")
    path: str = Field(description="library path of the file")
    score: float = Field(description="1 - rank/100 for a nearest item, 0.05 less over an edge, 0.5 by keywords")
    origin: Origin
    similarity: float | None = Field(None, description="cosine of the question and the best chunk; None without one")
    excerpt: str = Field(description="the best chunk of the file, verbatim")
    superseded_by: str | None = Field(None, description="id of the current memory that replaces this one")
    title: str = ""

    ino: Annotated[int, Field(exclude=True)]
    namespace_id: Annotated[int, Field(exclude=True)]
    start: Annotated[int, Field(exclude=True, description="byte offset of the excerpt in the file")] = 0
    size: Annotated[int, Field(exclude=True, description="size of the whole file in bytes")] = 0
    near: Annotated[tuple[Near, ...], Field(exclude=True)] = ()
    """The chunks of the file that are nearest to the question, the nearest first, at most retrieval.NEAR_CHUNKS; they
    may overlap. Of a file without vectors, or where words alone are searched: the passages with most of the question's
    words, without a similarity."""


class Retrieval(BaseModel):
    """The evidence for a question, and how it came about."""

    model_config = ConfigDict(frozen=True)

    @property
    def words_lead(self) -> bool:
        """Whether the cosines of this question say so little that words have to decide."""
        return self.readable is not None and self.readable < WORDS_LEAD_BELOW

    evidence: tuple[Evidence, ...] = ()
    """In the order for the prompt: by score, but a current memory stands before those that it supersedes."""
    degraded: tuple[str, ...] = ()
    """What did not run as it should, in plain words; empty when all is well."""
    left_out: int = 0
    """Items that matched and were cut by a cap."""
    sources: int = 0
    """How many lists of hits were merged: scopes, times legs; over edges counts as one."""
    vector: bytes | None = None
    """The question's vector, float32, of length 1; None where keywords alone were searched."""
    readable: float | None = None
    """How surely the embedding model reads the question and the texts in its language, 0 to 1, by measure (see
    fusion.readable); the least of the scopes. None where it was not measured: by vectors or by words alone."""
    notes: tuple[str, ...] = ()
    """What the trace has to say besides: that words led."""
    milliseconds: dict[str, float] = {}
    """Time of each step: embed, search, graph, load."""
