"""What a server's `/metrics` said at one moment, and what happened between two moments.

A histogram counts since the server started; the difference between two scrapes tells how long what came
between them took.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import inf
from typing import Final

from attrs import frozen
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

#: Histograms that are read, and the label that tells their rows apart; other labels are added up.
TOOLS, ACTORS = "lithos_tool_duration_seconds", "lithos_actor_processing_seconds"
_ROWS: Final[Mapping[str, str]] = {TOOLS: "tool", ACTORS: "actor"}


@frozen
class Histogram:
    """Durations: `counts[i]` took at most `bounds[i]` seconds; the last bound is infinite, `total` a sum."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    total: float

    @property
    def count(self) -> float:
        """How many there were."""
        return self.counts[-1]

    def plus(self, other: Histogram) -> Histogram:
        """Both together; they have the same bounds."""
        counts = tuple(map(sum, zip(self.counts, other.counts, strict=True)))
        return Histogram(self.bounds, counts, self.total + other.total)

    def since(self, earlier: Histogram | None) -> Histogram:
        """What came after `earlier`, None for the beginning."""
        if earlier is None:
            return self
        counts = tuple(now - then for now, then in zip(self.counts, earlier.counts, strict=True))
        return Histogram(self.bounds, counts, self.total - earlier.total)

    def quantile(self, share: float) -> float | None:
        """The seconds that a `share` of all took at most, None when there were none.

        Inside a bucket it is interpolated, beyond the last finite bound it is that bound, as in Prometheus.
        """
        if not self.count:
            return None
        rank = share * self.count
        steps = pairwise(zip((0.0, *self.bounds), (0.0, *self.counts), strict=True))
        for (lower, before), (upper, here) in steps:
            if here >= rank and here > before:
                return lower if upper == inf else lower + (upper - lower) * (rank - before) / (here - before)
        return self.bounds[-2]  # rounding kept the rank above every count


@frozen
class Scrape:
    """Single values by name, values with one label by name and label, histograms by name and row."""

    values: Mapping[str, float]
    labelled: Mapping[str, Mapping[str, float]]
    histograms: Mapping[str, Mapping[str, Histogram]]

    def value(self, name: str) -> float:
        """A value without labels; 0 when the server dropped it for this once."""
        return self.values.get(name, 0.0)

    def rows(self, name: str) -> Mapping[str, float]:
        """A gauge or counter by its first label, others added up."""
        return self.labelled.get(name, {})


def read_scrape(text: str) -> Scrape:
    """Read Prometheus text; raises `ValueError` when it is none."""
    values: dict[str, float] = {}
    labelled: dict[str, dict[str, float]] = {}
    histograms: dict[str, dict[str, Histogram]] = {}
    for family in text_string_to_metric_families(text):
        if family.name in _ROWS:
            histograms[family.name] = _read_histograms(family.samples, _ROWS[family.name])
        elif family.type != "histogram":
            for sample in family.samples:
                if not sample.labels:
                    values[sample.name] = sample.value
                else:
                    rows = labelled.setdefault(sample.name, {})
                    row = next(iter(sample.labels.values()))
                    rows[row] = rows.get(row, 0.0) + sample.value
    return Scrape(values, labelled, histograms)


def _read_histograms(samples: list[Sample], label: str) -> dict[str, Histogram]:
    series: dict[tuple[tuple[str, str], ...], dict[float, float]] = {}
    totals: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in samples:
        key = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
        if sample.name.endswith("_bucket"):
            series.setdefault(key, {})[float(sample.labels["le"])] = sample.value
        elif sample.name.endswith("_sum"):
            totals[key] = sample.value
    rows: dict[str, Histogram] = {}
    for key, buckets in series.items():
        bounds = tuple(sorted(buckets))
        one = Histogram(bounds, tuple(buckets[bound] for bound in bounds), totals[key])
        row = dict(key)[label]
        rows[row] = rows[row].plus(one) if row in rows else one
    return rows
