"""Why a note ranks as it does: what was learned of it, as sentences that name the cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from attrs import frozen

from lithos.core.learning.salience import PATIENCE, STRIKES
from lithos.core.times import parse_time

#: Keys that enrichment keeps up to date; they move nothing.
_ENRICHED: Final = frozenset({"entities", "entities_extractor"})
#: Keys whose words are searched.
_SEARCHED: Final = frozenset({"title", "body"})
#: Changes are named among the reasons for so long.
RECENT: Final = timedelta(days=2)


@frozen
class Reason:
    """One cause; `kind` is `up`, `down` or `same`; it may lead somewhere, and have a time."""

    text: str
    kind: str = "down"
    href: str = ""
    at: str = ""


def reasons(
    note_id: str,
    stats: Mapping[str, Any] | None,
    warnings: Sequence[Mapping[str, Any]],
    versions: Sequence[Mapping[str, Any]],
    now: datetime,
) -> list[Reason]:
    """What raises or lowers a note in searches and retrievals, the gravest first."""
    found = [_of_warning(warning) for warning in warnings]
    if stats is not None:
        found += _of_feedback(stats)
    found += _of_changes(note_id, versions, now)
    return found


def _of_warning(warning: Mapping[str, Any]) -> Reason:
    told = {
        "quarantined": "It is quarantined: retrieval leaves it out.",
        "suspect": "It rests on a note that is not to be trusted: retrieval takes its score times 0.7.",
        "superseded": "A newer note supersedes it.",
        "expired": "It has expired: agents are told that it is stale.",
        "contradicted": "Another note contradicts it, and nobody has settled that yet.",
        "duplicated": "Another file has its id: that one is not served.",
    }
    kind = str(warning["kind"])
    is_other = kind in ("suspect", "superseded", "contradicted")
    return Reason(told.get(kind, kind), href=f"/console/notes/{warning['id']}" if is_other else "")


def _of_feedback(stats: Mapping[str, Any]) -> list[Reason]:
    found: list[Reason] = []
    misleading, ignored, cited = stats["misleading_count"], stats["ignored_count"], stats["cited_count"]
    if misleading:
        found.append(
            Reason(
                f"Agents said {_times(misleading)} that it misled them; each took some of its salience, and "
                f"{STRIKES} quarantine it."
            )
        )
    if ignored > PATIENCE and ignored > cited:
        found.append(Reason(f"It was returned and not used {_times(ignored)}, more often than it was cited."))
    if stats["last_decay_applied_at"]:
        found.append(
            Reason("It was not used for some time, so its salience faded.", at=stats["last_decay_applied_at"])
        )
    if cited:
        found.append(Reason(f"Tasks cited it {_times(cited)}.", "up", at=stats["last_used_at"] or ""))
    return found


def _of_changes(note_id: str, versions: Sequence[Mapping[str, Any]], now: datetime) -> list[Reason]:
    found: list[Reason] = []
    for row in versions[:5]:
        if now - parse_time(row["at"]) > RECENT or not set(row["changed"]) - _ENRICHED:
            continue
        changed = ", ".join(str(key) for key in row["changed"][:6])
        text = f"{row['agent']} changed {changed} (version {row['version']})" + (
            "; searches match the new text." if _SEARCHED & set(row["changed"]) else "."
        )
        found.append(Reason(text, "same", f"/console/notes/{note_id}/diff?to={row['version']}", row["at"]))
    return found


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
