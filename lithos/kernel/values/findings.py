"""The registry of checks, and what `lithos doctor`, `validate` and `care` find (docs/spec/cli-config.md §2).

`CHECKS` has all checks; commands and pages are views of it. A `CheckResult` holds what one check of the
doctor found, by severity, and a `IssueReport` the issues of all notes by check (docs/spec/copies.md §5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeVar

from attrs import frozen

#: The views: `lithos doctor`, the console's page System, `lithos validate`, and `lithos reconcile`.
DOCTOR, SYSTEM, VALIDATE, RECONCILE = "doctor", "system", "validate", "reconcile"
#: The views of all notes: `lithos care` with the console's page Care, and the console's overview.
CARE, OVERVIEW = "care", "overview"
#: The name of the check of the configuration.
CONFIGURATION: Final = "configuration"
#: An error keeps a note from being served, a warning deserves attention, an info is normal in a folder that
#: another program made.
Severity = Literal["error", "warning", "info"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")

Look = TypeVar("Look", bound=Callable[[Any], Any])


class Installation(Protocol):
    """The subject of the checks of the doctor, as far as every capability may know it."""

    @property
    def config(self) -> Any:
        """Return its configuration, as far as it is usable."""

    @property
    def clock(self) -> Callable[[], datetime]:
        """Return the clock."""

    @property
    def data(self) -> Path:
        """Return the data directory."""

    @property
    def private(self) -> Path:
        """Return the folder of the databases."""

    @property
    def is_live(self) -> bool:
        """Return whether a server has the files open."""

    @property
    def is_outside(self) -> bool:
        """Return whether it is checked from outside of a server."""

    @property
    def survey(self) -> Any:
        """Return the notes that were read."""

    @property
    def owner(self) -> Any:
        """Return the report of its owner about itself, as `record`."""


def has_data(each: Installation) -> bool:
    """Return whether there is more than a configuration; a running server skips the disk, which may hang."""
    return not each.is_outside or each.data.is_dir()


@frozen(kw_only=True)
class Check:
    """One kind of problem, as it is registered.

    `look(subject)` yields its findings and changes nothing. `mend` repairs it, None if only a person can.
    `when` says whether there is anything to check. `place` orders the checks of a view. `severity` applies
    to all its findings, None if each finding has its own. `title` is the heading of the findings, and
    `way_out` the advice for a person; without a title the name is shown.
    """

    name: str
    views: tuple[str, ...]
    place: int
    look: Callable[[Any], Any]
    severity: Severity | None = None
    mend: Callable[..., Any] | None = None
    when: Callable[[Any], bool] = lambda _: True
    title: str = ""
    way_out: str = ""


#: All checks of the modules that were imported.
CHECKS: Final[list[Check]] = []
#: The modules with checks, as the capabilities name them. They are imported when checks are needed.
CHECK_MODULES: Final[list[str]] = []


def check(name: str, *views: str, place: int, **more: Any) -> Callable[[Look], Look]:
    """Register the decorated function as the `look` of a check; `more` are fields of `Check`."""

    def register(look: Look) -> Look:
        CHECKS.append(Check(name=name, views=views, place=place, look=look, **more))
        return look

    return register


def load_checks() -> None:
    """Import the modules with checks. Blocks."""
    for name in CHECK_MODULES:
        import_module(name)


def checks_of(view: str) -> list[Check]:
    """The checks of a view, in the order in which one explains the next."""
    load_checks()
    return sorted((each for each in CHECKS if view in each.views), key=lambda each: each.place)


@frozen
class NamedNote:
    """A note that an issue names; a file that is not served has no `id`."""

    id: str | None
    title: str
    path: str


@frozen
class Issue:
    """One problem of one file, or of `notes`: the first of them has the path.

    `link` is a target that leads to no note, and `likely` the note that it probably means.
    """

    path: str
    detail: str
    notes: tuple[NamedNote, ...] = ()
    link: str | None = None
    likely: NamedNote | None = None


@frozen
class IssueGroup:
    """The first issues of one check, and the number of all."""

    check: Check
    total: int
    issues: Sequence[Issue]


@frozen
class IssueReport:
    """The issues of all notes, by the name of the check and in the order of the checks.

    `notes` is the number of notes, and `troubles` are the reasons why checks failed.
    """

    at: datetime
    notes: int
    groups: Mapping[str, IssueGroup]
    troubles: Sequence[str] = ()


Status = Literal["ok", "warn", "fail"]
_ORDER: Final[tuple[Status, ...]] = ("ok", "warn", "fail")
#: Names listed in a message; the rest is counted.
_NAMED: Final = 3


@frozen
class CheckFinding:
    """One finding with its severity, and for all but `ok` the remedy. Both texts are whole sentences."""

    status: Status
    cause: str
    way_out: str = ""


@frozen
class CheckResult:
    """The result of one check; there is at least one finding."""

    name: str
    findings: tuple[CheckFinding, ...]

    @property
    def status(self) -> Status:
        """The severity of the worst finding."""
        return worst(finding.status for finding in self.findings)

    @property
    def told(self) -> tuple[CheckFinding, ...]:
        """The findings to report, worst first: all that are not `ok`, or else all."""
        bad = [finding for finding in self.findings if finding.status != "ok"]
        return tuple(sorted(bad, key=lambda each: -_ORDER.index(each.status))) or self.findings

    @property
    def message(self) -> str:
        """The reported findings with their remedies on one line; a remedy shared by several only once."""
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


def ok(cause: str) -> CheckFinding:
    """A finding that all is well."""
    return CheckFinding("ok", cause)


def warn(cause: str, way_out: str) -> CheckFinding:
    """Return a warning: worth attention, but Lithos works."""
    return CheckFinding("warn", cause, way_out)


def fail(cause: str, way_out: str) -> CheckFinding:
    """A failure: something does not work."""
    return CheckFinding("fail", cause, way_out)


def worst(statuses: Iterable[Status]) -> Status:
    """Return the worst of some statuses, `ok` if the list is empty."""
    return max(statuses, key=_ORDER.index, default="ok")


def name_some(names: Iterable[str], others: str = "and {} more") -> str:
    """Return the first few names, and how many more there are."""
    listed = list(names)
    more = " " + others.format(len(listed) - _NAMED) if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more
