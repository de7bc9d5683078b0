"""Statistics about merges of generated conflict copies: lost lines, and changes by a second merge.

Each pair is a note with its kept versions, and a file that another machine made from one of the versions. The
merge does not know which version this was.
"""

from __future__ import annotations

import re
from collections import Counter
from random import Random

from lithos.history.model.copy_merge import MergeBase, PastVersion, find_ancestor, merge_copy, say_the_same
from tests.history.model.divergences import Divergence, diverge, lost_lines


def history_of(found: Divergence, seed: int) -> tuple[list[PastVersion], bool]:
    """Return the kept versions, newest first.

    The list has the current version, a version half-way, the ancestor, and an older version.

    The second result is True if the list is complete. If both machines added the file, the list contains no
    ancestor.
    """
    random = Random(f"history {seed}")
    base, ours = found.base.splitlines(keepends=True), found.ours.splitlines(keepends=True)
    half = b"".join(line for line in ours if line in base or random.random() < 0.5)
    text = [number for number, line in enumerate(base) if line.startswith(b"line")]
    # Up to five lines that are in the ancestor but not in the older version.
    came = random.choice(text) if text else 0
    older = b"".join(base[:came] + base[came + random.randint(1, 5) :])
    older = re.sub(rb"(?m)^version: \d+", b"version: 2", older).replace(b"2026-01-02T", b"2025-01-02T", 1)
    chain = [(found.ours, "outside"), (half, "outside"), (found.base, "updated"), (older, "updated")]
    kept: list[PastVersion] = []
    for data, op in chain if found.base else chain[:2]:
        if not kept or data != kept[-1].data:
            kept.append(PastVersion(op, data))
    return kept, bool(found.base)


def is_conflict(found: Divergence) -> bool:
    """Return whether both machines changed the note differently. Otherwise no sync program creates a copy."""
    return len({found.base, found.ours, found.theirs}) == 3


def measure(seed: int) -> tuple[Counter[str], bytes | None]:
    """Return the outcome for one pair, and the merged bytes if no decision is needed."""
    found, counts = diverge(seed), Counter[str]()
    versions, is_whole = history_of(found, seed)
    is_known = any(each.data == found.theirs for each in versions)
    ancestor = find_ancestor(versions, found.theirs, is_whole=is_whole)
    counts["pairs"] += 1
    counts["ancestor found"] += (ancestor.data or b"") == found.base or ancestor.is_merged
    merge = merge_copy(found.ours, found.theirs, ancestor)
    if merge.pieces is None or merge.places:
        counts["left to a person"] += 1
        both = merge.resolved(("both",) * len(merge.places))
        assert both is not None
        counts["lines lost by keeping both"] += 0 if is_known else len(lost_lines(found, both))
        return counts, None
    merged = merge.resolved(())
    assert merged is not None
    counts["merged"] += 1
    counts["lines lost"] += 0 if is_known else len(lost_lines(found, merged))
    after = [
        PastVersion("outside", merged),
        PastVersion("copy", found.theirs),
        PastVersion("updated", merged),
    ]
    again = merge_copy(
        merged, found.theirs, find_ancestor([*after, *versions], found.theirs, is_whole=is_whole)
    )
    counts["changed by a second run"] += again.resolved(()) != merged
    unrecorded = merge_copy(merged, found.theirs, MergeBase(ancestor.data))
    counts["changed by a second run that knows of none"] += not ancestor.is_merged and (
        bool(unrecorded.places) or not say_the_same(unrecorded.resolved(()) or b"", merged)
    )
    return counts, merged
