"""What is measured at one size of the knowledge base. Each part is None when its stage did not succeed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import Factory, frozen

from bench.calls import CallFigures
from bench.claims import ClaimFigures
from bench.client import Latencies
from bench.starts import Starts
from bench.write import MixFigures


@frozen
class Actor:
    """One actor under writes: the share of time it worked, and its batches, in milliseconds."""

    name: str
    busy: float
    batches: int
    p50: float | None
    p95: float | None


@frozen
class Front:
    """`alone`: 1 client, `together`: 16; keys bare, noop, hybrid.

    `overhead` and `search_ratio` are medians of ratios of p50 inside rounds, 1 client.
    """

    alone: Mapping[str, Latencies]
    together: Mapping[str, Latencies]
    overhead: float
    search_ratio: float


@frozen
class Writes:
    """Durable writes. `raw` is how many files a second four threads write of the same bytes.

    `ratio` is 16 clients beside them; `to_noop` and `update_to_noop` are p50s of 1 client beside the no-op's,
    medians of the ratios inside rounds.
    """

    alone: Latencies
    update: Latencies
    together: Latencies
    raw: float
    ratio: float
    to_noop: float
    update_to_noop: float
    actors: Sequence[Actor]


@frozen
class Memory:
    """MiB after 2,000 searches of 16 clients, and the most there ever was."""

    resident: float
    peak: float


@frozen
class Figures:
    """Everything measured at one size; `index_s` is the first start until all is searchable, in seconds.

    `floor_s`: seconds of the libraries alone by part. `problems`: stages that failed, and why. `seconds`: how
    long each stage took.
    """

    notes: int
    floor_s: Mapping[str, float] | None = None
    index_s: float | None = None
    front: Front | None = None
    calls: CallFigures | None = None
    memory: Memory | None = None
    writes: Writes | None = None
    mix: MixFigures | None = None
    claims: ClaimFigures | None = None
    starts: Starts | None = None
    profile: str | None = None
    problems: Sequence[str] = ()
    seconds: Mapping[str, float] = Factory(dict)

    @property
    def index_ratio(self) -> float | None:
        """The first start beside the libraries alone."""
        if self.index_s is None or self.floor_s is None:
            return None
        return self.index_s / sum(self.floor_s.values())
