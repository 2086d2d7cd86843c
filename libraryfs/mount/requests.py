"""How often the kernel asked for what: fewer requests is what makes a FUSE mount quick, so they are counted."""

import json


class RequestLog:
    """Counts of requests by handler name since the mount began."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def count(self, name: str) -> None:
        """One more request of this kind. Called inside the handler's guard: what it raises, the request gets."""
        self.counts[name] = self.counts.get(name, 0) + 1

    def as_json(self) -> bytes:
        """The counts as a JSON object."""
        return json.dumps(self.counts, sort_keys=True).encode()
