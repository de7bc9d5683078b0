"""Findings of checks and repairs: `lithos doctor`, `validate` and `reconcile` (docs/spec/cli-config.md §2).

`find_issues` and `plan_amendments` validate note files and plan their fixes (section 2.1). A `CheckResult`
holds what one check of the doctor found, by severity. A `ScopeResult` is the report of reconciling one kind
of derived state (section 2.2).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

from attrs import field, frozen

from lithos.core.errors import InvalidInput
from lithos.core.notes.links import LinkTable, file_alias
from lithos.core.notes.model import Note
from lithos.core.notes.paths import folder_of, normalise_url, slug_of
from lithos.core.notes.style import PLAIN, VaultStyle

PARSE_ERROR: Final = "PARSE_ERROR"
MISSING_ID: Final = "MISSING_ID"
MISSING_TITLE: Final = "MISSING_TITLE"
MISSING_AUTHOR: Final = "MISSING_AUTHOR"
DUPLICATE_ID: Final = "DUPLICATE_ID"
CONFLICT_COPY: Final = "CONFLICT_COPY"
CONFLICT_MARKERS: Final = "CONFLICT_MARKERS"
BROKEN_LINK: Final = "BROKEN_LINK"
AMBIGUOUS: Final = "AMBIGUOUS"
SLUG_COLLISION: Final = "SLUG_COLLISION"
DUPLICATE_URL: Final = "DUPLICATE_URL"
ESCAPE: Final = "ESCAPE"
Severity = Literal["error", "warning", "info"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")
#: In the order of the report, with their severity: an error keeps a note from being served, a warning is
#: worth a look, an info is normal in a folder that another program made.
GROUPS: Final[Mapping[str, Severity]] = {
    PARSE_ERROR: "error",
    DUPLICATE_ID: "error",
    ESCAPE: "error",
    CONFLICT_COPY: "warning",
    CONFLICT_MARKERS: "warning",
    BROKEN_LINK: "warning",
    AMBIGUOUS: "warning",
    SLUG_COLLISION: "warning",
    DUPLICATE_URL: "warning",
    MISSING_ID: "info",
    MISSING_TITLE: "info",
    MISSING_AUTHOR: "info",
}

_MISSING: Final = {"id": MISSING_ID, "title": MISSING_TITLE, "author": MISSING_AUTHOR}


@frozen(kw_only=True)
class CheckedFile:
    """One parsed note file: its note, or the `reason` why it has none.

    `given` are the keys of which the file itself has a usable value, `links` the targets it links to.
    """

    path: str
    note: Note | None = None
    reason: str = ""
    given: frozenset[str] = frozenset()
    links: tuple[str, ...] = ()


@frozen
class Issue:
    """One validation error of one file."""

    group: str
    path: str
    detail: str


@frozen
class Amendment:
    """A planned fix of a file: frontmatter `values` by key, which resolve `issues` issues."""

    path: str
    values: Mapping[str, str]
    issues: int


def find_issues(
    files: Sequence[CheckedFile],
    style: VaultStyle = PLAIN,
    escapes: Sequence[str] = (),
    attachments: Container[str] = (),
    doubled: Mapping[str, str] | None = None,
    copies: Mapping[str, str] | None = None,
) -> dict[str, tuple[Issue, ...]]:
    """The issues by group, without the empty groups; `files` are in path order.

    `escapes` are symbolic links out of the folder. Links to `attachments` are not broken. `doubled` says of
    ids that several files have which path counts; of others it is the first. `copies` are conflict copies,
    each with the path of its note; they are not among the files.
    """
    doubled = doubled or {}
    notes = [(file, file.note) for file in files if file.note is not None]
    issues = [
        *(Issue(PARSE_ERROR, file.path, reason) for file in files if (reason := _unread(file)) is not None),
        *_missing(notes),
        *_duplicates(DUPLICATE_ID, "id", notes, lambda _, note: note.id, doubled),
        *(Issue(ESCAPE, path, "the symbolic link leads out of the folder of the notes") for path in escapes),
        *(
            Issue(CONFLICT_COPY, path, f"it is what another machine wrote of {original}")
            for path, original in sorted((copies or {}).items())
        ),
        *(
            Issue(CONFLICT_MARKERS, file.path, "git left a conflict in the text, <<<<<<< to >>>>>>>")
            for file, note in notes
            if note.has_conflict_markers
        ),
        *_links(notes, attachments, style.is_foreign, doubled),
        *_duplicates(SLUG_COLLISION, "slug", notes, partial(_slug, style)),
        *_duplicates(DUPLICATE_URL, "source_url", notes, _address),
    ]
    groups = {group: tuple(issue for issue in issues if issue.group == group) for group in GROUPS}
    return {group: found for group, found in groups.items() if found}


def plan_amendments(
    files: Sequence[CheckedFile],
    new_id: Callable[[], str],
    *,
    ids: bool = True,
    doubled: Mapping[str, str] | None = None,
) -> Iterator[Amendment]:
    """Plan the fixes that give every file its title and author and, with `ids`, an id that no other has.

    `files` are in path order: the first one keeps an id that several have, unless `doubled` names another.
    """
    wanted = [key for key in _MISSING if ids or key != "id"]
    taken = {file.note.id for file in files if file.note is not None}
    holders = dict(doubled or {})
    for file in files:
        if file.note is None or file.note.frontmatter_error is not None:
            continue
        missing = [key for key in wanted if key not in file.given and not _is_taken(key, file.note)]
        values = {key: str(getattr(file.note, key)) for key in missing}
        issues = len(missing)
        if ids and holders.setdefault(file.note.id, file.path) != file.path:
            values = {"id": _unused(new_id, taken)} | {key: values[key] for key in missing if key != "id"}
            issues += 1
        if values:
            yield Amendment(file.path, values, issues)


def _is_taken(key: str, note: Note) -> bool:
    """Whether a person uses a key for something else, so that nothing is missing but an id."""
    return key != "id" and key in note.extra


def _unused(new_id: Callable[[], str], taken: set[str]) -> str:
    while (note_id := new_id()) in taken:
        pass
    taken.add(note_id)
    return note_id


def _unread(file: CheckedFile) -> str | None:
    """Why nothing, or nothing but the text, of a file can be read."""
    if file.note is None:
        return file.reason
    problem = file.note.frontmatter_problem
    return None if problem is None else f"{problem}; it is served without its frontmatter"


_Notes = Sequence[tuple[CheckedFile, Note]]


def _missing(notes: _Notes) -> Iterator[Issue]:
    for file, note in notes:
        for key, group in _MISSING.items():
            if key not in file.given and note.frontmatter_error is None and not _is_taken(key, note):
                own = f"its {key} {note.own_id!r} is a property of its own" if key in note.extra else ""
                cause = own or f"the file names no {key}"
                yield Issue(group, file.path, f"{cause}; {getattr(note, key)!r} is used")


def _duplicates(
    group: str,
    name: str,
    notes: _Notes,
    key_of: Callable[[CheckedFile, Note], str | None],
    doubled: Mapping[str, str] | None = None,
) -> Iterator[Issue]:
    holders = dict(doubled or {})
    for file, note in notes:
        key = key_of(file, note)
        holder = file.path if key is None else holders.setdefault(key, file.path)
        if holder != file.path:
            yield Issue(group, file.path, f"{holder} has the same {name} {key}")


def _slug(style: VaultStyle, file: CheckedFile, note: Note) -> str:
    slug = slug_of(note.title, note.id)
    return f"{folder_of(file.path)}/{slug}" if style.is_foreign else slug


def _address(_: CheckedFile, note: Note) -> str | None:
    try:
        return normalise_url(note.source_url) if note.source_url else None
    except InvalidInput:
        return note.source_url


def _links(
    notes: _Notes, attachments: Container[str], by_file_name: bool, doubled: Mapping[str, str]
) -> Iterator[Issue]:
    table = _table(notes, by_file_name, doubled)
    for file, _ in notes:
        for target in dict.fromkeys(file.links):
            if table.resolve(target) is not None:
                continue
            candidates = table.candidates(target)
            if candidates:
                meant = name_some(candidates, "or {} others")
                yield Issue(AMBIGUOUS, file.path, f"[[{target}]] may mean {meant}")
            elif target not in attachments:
                yield Issue(BROKEN_LINK, file.path, f"[[{target}]] leads to no note")


def _table(notes: _Notes, by_file_name: bool, doubled: Mapping[str, str]) -> LinkTable:
    """The link table of the notes, of each duplicate id the one that counts only."""
    table, holders = LinkTable(), dict(doubled)
    for file, note in notes:
        if holders.setdefault(note.id, file.path) == file.path:
            names = [file_alias(file.path)] if by_file_name else []
            names += [note.link_id] if note.link_id is not None else []
            table.add(note.id, file.path, note.title, (*note.aliases, *names))
    return table


Status = Literal["ok", "warn", "fail"]
_ORDER: Final[tuple[Status, ...]] = ("ok", "warn", "fail")
#: Names listed in a message; the rest is counted.
_NAMED: Final = 3


@frozen
class Finding:
    """One finding with its severity, and for all but `ok` the remedy. Both texts are whole sentences."""

    status: Status
    cause: str
    way_out: str = ""


@frozen
class CheckResult:
    """The result of one check; there is at least one finding."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """The severity of the worst finding."""
        return worst(finding.status for finding in self.findings)

    @property
    def told(self) -> tuple[Finding, ...]:
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


def ok(cause: str) -> Finding:
    """A finding that all is well."""
    return Finding("ok", cause)


def warn(cause: str, way_out: str) -> Finding:
    """A warning: worth a look, but Lithos works."""
    return Finding("warn", cause, way_out)


def fail(cause: str, way_out: str) -> Finding:
    """A failure: something does not work."""
    return Finding("fail", cause, way_out)


def worst(statuses: Iterable[Status]) -> Status:
    """The worst of some statuses, `ok` when there is none."""
    return max(statuses, key=_ORDER.index, default="ok")


def name_some(names: Iterable[str], others: str = "and {} more") -> str:
    """The first few names, and how many more there are."""
    listed = list(names)
    more = " " + others.format(len(listed) - _NAMED) if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more


INDICES: Final = "indices"
GRAPH: Final = "graph"
PROVENANCE: Final = "provenance_projection"
SCOPES: Final = (INDICES, GRAPH, PROVENANCE)
#: Failure code of each scope.
FAILURE_CODES: Final[Mapping[str, str]] = {
    INDICES: "index_rebuild_failed",
    GRAPH: "graph_rebuild_failed",
    PROVENANCE: "projection_apply_failed",
}
INTERNAL_ERROR: Final = "internal_error"
#: Reasons that are only reported: nothing is repaired for them.
REPORTED: Final = frozenset({"target_slug_not_found", "not_enabled"})


@frozen
class Action:
    """One repair that was made, or would be (dry run); with `is_repair` false it is only reported."""

    reason: str
    details: Mapping[str, Any] = field(factory=dict)
    is_repair: bool = True
    #: How many things it stands for.
    count: int = 1


@frozen
class Failure:
    """One repair that failed, and why."""

    code: str
    detail: str


@frozen(kw_only=True)
class ScopeResult:
    """The report of one scope; `scanned` counts notes."""

    scope: str
    dry_run: bool
    supported: bool = True
    scanned: int = 0
    skipped: int = 0
    actions: tuple[Action, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def repaired(self) -> int:
        """How many things were repaired; none in a dry run."""
        return 0 if self.dry_run else sum(action.count for action in self.actions if action.is_repair)

    @property
    def status(self) -> Literal["ok", "noop", "partial_failure", "failed"]:
        """`ok` when something was repaired, or in a dry run would be."""
        if self.failures:
            return "partial_failure" if self.repaired else "failed"
        return "ok" if any(action.is_repair for action in self.actions) else "noop"

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> ScopeResult:
        """The report that `as_json` made; raises `KeyError` and `TypeError` for what is none."""
        actions: list[Action] = []
        for each in told["actions"]:
            details = {key: value for key, value in each.items() if key not in ("reason", "count")}
            is_repair = each["reason"] not in REPORTED
            actions.append(Action(each["reason"], details, is_repair=is_repair, count=each["count"]))
        return cls(
            scope=told["scope"],
            dry_run=told["dry_run"],
            supported=told["supported"],
            scanned=told["summary"]["scanned"],
            skipped=told["summary"]["skipped"],
            actions=tuple(actions),
            failures=tuple(Failure(**each) for each in told["failures"]),
        )

    def as_json(self) -> dict[str, Any]:
        """The report as printed."""
        return {
            "scope": self.scope,
            "dry_run": self.dry_run,
            "supported": self.supported,
            "status": self.status,
            "summary": {
                "scanned": self.scanned,
                "repaired": self.repaired,
                "failed": len(self.failures),
                "skipped": self.skipped,
            },
            "actions": [
                {"reason": action.reason, "count": action.count, **action.details} for action in self.actions
            ],
            "failures": [{"code": failure.code, "detail": failure.detail} for failure in self.failures],
        }
