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
#: Those of all notes: `lithos care` with the console's page Care, and the console's overview.
CARE, OVERVIEW = "care", "overview"
#: What the check of the configuration says besides.
CONFIGURATION: Final = "configuration"
#: An error keeps a note from being served, a warning is worth a look, an info is normal in a folder that
#: another program made.
Severity = Literal["error", "warning", "info"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")

Look = TypeVar("Look", bound=Callable[[Any], Any])


class Installation(Protocol):
    """What the checks of the doctor look at, as far as every capability may know it."""

    @property
    def config(self) -> Any:
        """Its configuration, as far as it can be used."""

    @property
    def clock(self) -> Callable[[], datetime]:
        """The clock."""

    @property
    def data(self) -> Path:
        """The data directory."""

    @property
    def private(self) -> Path:
        """Where the databases are."""

    @property
    def is_live(self) -> bool:
        """Whether a server has the files open."""

    @property
    def is_outside(self) -> bool:
        """Whether it is looked at from outside of a server."""

    @property
    def survey(self) -> Any:
        """The notes that were read."""

    @property
    def owner(self) -> Any:
        """What its owner says of itself, as `record`."""


def has_data(each: Installation) -> bool:
    """Whether there is more than a configuration; a running server asks no disk, which may hang."""
    return not each.is_outside or each.data.is_dir()


@frozen(kw_only=True)
class Check:
    """One thing that can be wrong, as it is registered.

    `look(subject)` yields what it finds and changes nothing. `mend` repairs it, None where only a person can.
    `when` says whether there is anything to look at. `place` orders the checks of a view. `severity` is that
    of everything it finds, None where each finding has its own. `title` is the heading of what it finds, and
    `way_out` what a person can do about it; without a title the name is shown.
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
#: The modules with checks, as the capabilities name them. They are imported when somebody asks for checks.
CHECK_MODULES: Final[list[str]] = []


def check(name: str, *views: str, place: int, **more: Any) -> Callable[[Look], Look]:
    """Register the decorated function as the look of a check; `more` are fields of `Check`."""

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
    """A note that an issue names; `id` is None for a file that is not served."""

    id: str | None
    title: str
    path: str


@frozen
class Issue:
    """One thing that is wrong with one file, or with `notes`: the first of them has the path.

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

    `notes` is the number of notes, and `troubles` say what could not be checked.
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
    """A warning: worth a look, but Lithos works."""
    return CheckFinding("warn", cause, way_out)


def fail(cause: str, way_out: str) -> CheckFinding:
    """A failure: something does not work."""
    return CheckFinding("fail", cause, way_out)


def worst(statuses: Iterable[Status]) -> Status:
    """The worst of some statuses, `ok` when there is none."""
    return max(statuses, key=_ORDER.index, default="ok")


def name_some(names: Iterable[str], others: str = "and {} more") -> str:
    """The first few names, and how many more there are."""
    listed = list(names)
    more = " " + others.format(len(listed) - _NAMED) if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more
