"""Registry of checks, and the results of `lithos doctor`, `validate` and `care` (docs/spec/cli-config.md §2).

`CHECKS` contains all checks. Commands and pages run subsets of them. A `CheckResult` contains the findings of
one doctor check by severity. An `IssueReport` contains the issues of all notes by check (docs/spec/copies.md
§5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeVar

from attrs import frozen

#: Views of checks: `lithos doctor`, the console page System, `lithos validate` and `lithos reconcile`.
DOCTOR, SYSTEM, VALIDATE, RECONCILE = "doctor", "system", "validate", "reconcile"
#: Views with checks of all notes: `lithos care` with the console page Care, and the console overview.
CARE, OVERVIEW = "care", "overview"
#: Name of the configuration check.
CONFIGURATION: Final = "configuration"
#: Severity of an issue. With an error, the note is not served. A warning needs attention. An info is normal
#: in a folder that another program created.
Severity = Literal["error", "warning", "info"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")

Look = TypeVar("Look", bound=Callable[[Any], Any])


class Installation(Protocol):
    """The installation that the doctor checks, with the data that every capability may use."""

    @property
    def config(self) -> Any:
        """Return the valid part of the configuration."""

    @property
    def clock(self) -> Callable[[], datetime]:
        """Return the clock, a function that returns the current time."""

    @property
    def data(self) -> Path:
        """Return the data directory."""

    @property
    def private(self) -> Path:
        """Return the folder of the databases."""

    @property
    def is_live(self) -> bool:
        """Return whether a server has opened the files."""

    @property
    def is_outside(self) -> bool:
        """Return whether the check runs outside of a server."""

    @property
    def survey(self) -> Any:
        """Return the survey of the notes."""

    @property
    def owner(self) -> Any:
        """Return the report of the owner about itself, as `record`."""


def has_data(each: Installation) -> bool:
    """Return whether there is more than a configuration.

    In a running server the disk is not read, because it may hang.
    """
    return not each.is_outside or each.data.is_dir()


@frozen(kw_only=True)
class Check:
    """A registered kind of problem, and the function that finds it.

    `look(subject)` yields findings and changes nothing. `mend` fixes the problem, and is None if only a
    person can fix it. `when` returns whether there is anything to check. `place` orders the checks of a view.
    `severity` applies to all findings, and is None if each finding has its own severity. `title` is the
    heading of the findings (default: the name), and `way_out` is the advice for a person.
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


#: Checks of all imported modules.
CHECKS: Final[list[Check]] = []
#: Modules with checks, as declared by the capabilities. They are imported when checks are needed.
CHECK_MODULES: Final[list[str]] = []


def check(name: str, *views: str, place: int, **more: Any) -> Callable[[Look], Look]:
    """Register the decorated function as the `look` function of a check.

    `more` contains further fields of `Check`.
    """

    def register(look: Look) -> Look:
        CHECKS.append(Check(name=name, views=views, place=place, look=look, **more))
        return look

    return register


def load_checks() -> None:
    """Import all modules with checks. Blocks."""
    for name in CHECK_MODULES:
        import_module(name)


def checks_of(view: str) -> list[Check]:
    """Return the checks of a view. Earlier checks explain the results of later checks."""
    load_checks()
    return sorted((each for each in CHECKS if view in each.views), key=lambda each: each.place)


@frozen
class NamedNote:
    """A note named in an issue. A file that is not served has no `id`."""

    id: str | None
    title: str
    path: str


@frozen
class Issue:
    """A problem of one file or of the files in `notes`. The path is the path of the first file.

    `link` is the target of a link without a note, and `likely` is the note that the link probably means.
    """

    path: str
    detail: str
    notes: tuple[NamedNote, ...] = ()
    link: str | None = None
    likely: NamedNote | None = None


@frozen
class IssueGroup:
    """The first issues of one check, and the total number of issues of that check."""

    check: Check
    total: int
    issues: Sequence[Issue]


@frozen
class IssueReport:
    """The issues of all notes, grouped by check name in the order of the checks.

    `notes` is the number of notes. `troubles` contains the reasons for failed checks.
    """

    at: datetime
    notes: int
    groups: Mapping[str, IssueGroup]
    troubles: Sequence[str] = ()


Status = Literal["ok", "warn", "fail"]
_ORDER: Final[tuple[Status, ...]] = ("ok", "warn", "fail")
#: Number of names listed in a message. Further names are only counted.
_NAMED: Final = 3


@frozen
class CheckFinding:
    """A finding with a severity and a remedy (none for `ok`). Both texts consist of complete sentences."""

    status: Status
    cause: str
    way_out: str = ""


@frozen
class CheckResult:
    """The result of one check, with at least one finding."""

    name: str
    findings: tuple[CheckFinding, ...]

    @property
    def status(self) -> Status:
        """Return the severity of the worst finding."""
        return worst(finding.status for finding in self.findings)

    @property
    def told(self) -> tuple[CheckFinding, ...]:
        """Return the findings to report.

        If there are problems, return all of them, worst first. Otherwise return all findings.
        """
        bad = [finding for finding in self.findings if finding.status != "ok"]
        return tuple(sorted(bad, key=lambda each: -_ORDER.index(each.status))) or self.findings

    @property
    def message(self) -> str:
        """Return the reported findings and remedies on one line.

        A remedy that several findings share appears only once.
        """
        told = self.told
        later = [{each.way_out for each in told[number + 1 :]} for number in range(len(told))]
        return " ".join(
            each.cause if each.way_out in after else f"{each.cause} {each.way_out}".strip()
            for each, after in zip(told, later, strict=True)
        )

    def as_json(self) -> dict[str, Any]:
        """Return the result in its printed JSON form."""
        findings = [
            {"status": each.status, "cause": each.cause, "way_out": each.way_out or None}
            for each in self.findings
        ]
        return {"name": self.name, "status": self.status, "message": self.message, "findings": findings}


def ok(cause: str) -> CheckFinding:
    """Return a finding that reports no problem."""
    return CheckFinding("ok", cause)


def warn(cause: str, way_out: str) -> CheckFinding:
    """Return a warning: the finding needs attention, but Lithos works."""
    return CheckFinding("warn", cause, way_out)


def fail(cause: str, way_out: str) -> CheckFinding:
    """Return a failure: a function of Lithos does not work."""
    return CheckFinding("fail", cause, way_out)


def worst(statuses: Iterable[Status]) -> Status:
    """Return the worst status in a list, or `ok` if the list is empty."""
    return max(statuses, key=_ORDER.index, default="ok")


def name_some(names: Iterable[str], others: str = "and {} more") -> str:
    """Return the first few names, and how many further names there are."""
    listed = list(names)
    more = " " + others.format(len(listed) - _NAMED) if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more
