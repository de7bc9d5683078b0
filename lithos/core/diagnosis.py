"""What `lithos doctor` finds: findings, gathered per check (cli-config spec, section 2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from attrs import frozen

Status = Literal["ok", "warn", "fail"]
_ORDER: Final[tuple[Status, ...]] = ("ok", "warn", "fail")
#: Things that are named; the rest is counted.
_NAMED: Final = 3


@frozen
class Finding:
    """One thing that was seen, and for all but `ok` what to do about it. Both are whole sentences."""

    status: Status
    cause: str
    way_out: str = ""


@frozen
class CheckResult:
    """What one check found; there is at least one finding."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """That of the worst finding."""
        return worst(finding.status for finding in self.findings)

    @property
    def told(self) -> tuple[Finding, ...]:
        """The findings that matter, worst first: where something is wrong, what is fine does not."""
        bad = [finding for finding in self.findings if finding.status != "ok"]
        return tuple(sorted(bad, key=lambda each: -_ORDER.index(each.status))) or self.findings

    @property
    def message(self) -> str:
        """What was found and what to do, on one line; the same advice for several findings once."""
        told = self.told
        later = [{each.way_out for each in told[number + 1 :]} for number in range(len(told))]
        return " ".join(
            each.cause if each.way_out in after else f"{each.cause} {each.way_out}".strip()
            for each, after in zip(told, later, strict=True)
        )

    def as_json(self) -> dict[str, Any]:
        """The result as printed."""
        findings = [
            {"status": each.status, "cause": each.cause, "way_out": each.way_out or None}
            for each in self.findings
        ]
        return {"name": self.name, "status": self.status, "message": self.message, "findings": findings}


def ok(cause: str) -> Finding:
    """All is well."""
    return Finding("ok", cause)


def warn(cause: str, way_out: str) -> Finding:
    """Worth a look; Lithos works."""
    return Finding("warn", cause, way_out)


def fail(cause: str, way_out: str) -> Finding:
    """Something does not work."""
    return Finding("fail", cause, way_out)


def worst(statuses: Iterable[Status]) -> Status:
    """The worst of some statuses, `ok` when there is none."""
    return max(statuses, key=_ORDER.index, default="ok")


def name_some(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more
