"""Histograms of `/metrics` by actor, and their difference between two scrapes."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from math import inf

from attrs import frozen
from prometheus_client.parser import text_string_to_metric_families

ACTORS = "lithos_actor_processing_seconds"


@frozen
class Histogram:
    """Durations: `counts[i]` took at most `bounds[i]` seconds; the last bound is infinite, `total` a sum."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    total: float

    @property
    def count(self) -> float:
        """The number of durations."""
        return self.counts[-1]

    def since(self, earlier: Histogram | None) -> Histogram:
        """The durations that came after `earlier`; None stands for the beginning."""
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


def read_actors(text: str) -> dict[str, Histogram]:
    """The processing times of each actor in Prometheus text."""
    buckets: defaultdict[str, dict[float, float]] = defaultdict(dict)
    totals: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples if family.name == ACTORS else ():
            actor = sample.labels["actor"]
            if sample.name.endswith("_bucket"):
                buckets[actor][float(sample.labels["le"])] = sample.value
            elif sample.name.endswith("_sum"):
                totals[actor] = sample.value
    return {
        actor: Histogram(
            tuple(sorted(counts)), tuple(counts[bound] for bound in sorted(counts)), totals[actor]
        )
        for actor, counts in buckets.items()
    }
