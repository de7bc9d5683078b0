"""Validation of write requests against the catalogue: uniqueness, versions and merging, without I/O.

This module contains all checks of docs/spec/tools.md that need other notes, in the order of that document and
without side effects. A refusal is raised as a `LithosError`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs
from attrs import frozen

from lithos.kernel.values.errors import (
    ContentTooLarge,
    DocNotFound,
    Duplicate,
    InvalidInput,
    LithosError,
    NoteNotFound,
    PathCollision,
    SlugCollision,
    VersionConflict,
)
from lithos.kernel.values.ids import is_id
from lithos.kernel.values.limits import check_merged
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.format.owned_keys import check_keys
from lithos.notes.format.pasted_file import warn_of_unused
from lithos.notes.links.links import normalise_sources
from lithos.notes.model.note import Document, Note, current_of
from lithos.notes.model.paths import (
    file_name_of,
    folder_of,
    names_file,
    normalise_url,
    resolve_new_path,
    slug_of,
)
from lithos.notes.model.project_property import ProjectProperty
from lithos.notes.writing.messages import (
    DeleteNote,
    EditNote,
    ImportNote,
    MoveNote,
    PatchNote,
    RelinkNote,
    UpdateRequest,
    WriteNote,
    WriteRequest,
)
from lithos.text.markdown import scan_tags
from lithos.text.words.analysis import name_key
from lithos.text.words.list_filters import tag_key, tag_keys

_PLAIN_FIELDS = ("schema_version", "namespace", "access_scope", "note_type", "status", "summaries")
_PATCHED_FIELDS = (
    "title", "tags", "status", "quarantine_reason", "supersedes", "entities", "entities_extractor",
)  # fmt: skip


@frozen
class Decision:
    """An accepted request: the document to store at `path`, and warnings for the caller.

    The content is stored unchanged, including leading and trailing blank lines.
    """

    document: Document
    path: str
    warnings: tuple[str, ...]
    #: The version that the request was merged with, or None.
    merged_with: int | None = None


def keys_of(request: WriteRequest) -> set[tuple[str, str]]:
    """Return the unique keys of a request: id, slug, URL and path.

    Requests that share a key are never decided in the same round.
    """
    keys = {("id", request.id)} if request.id else set()
    if isinstance(request, DeleteNote | EditNote | RelinkNote):
        return keys
    if isinstance(request, MoveNote):
        return keys | {("path", name_key(request.path.rstrip("/")))}
    if isinstance(request, ImportNote):
        return keys | {("path", name_key(request.path))}
    if request.title is not None:
        keys.add(("slug", slug_of(request.title, "")))
    if isinstance(request, PatchNote):
        return keys
    if request.source_url:
        try:
            keys.add(("url", normalise_url(request.source_url)))
        except LithosError:
            return keys  # The invalid URL is refused later, when the request is decided.
    if request.path:
        keys.add(("path", name_key(request.path.rstrip("/"))))
    return keys


def decide_creation(
    request: WriteNote, catalogue: Catalogue, note_id: str, now: datetime, content_limit: int
) -> Decision:
    """Validate a request that creates a note. Raises a `LithosError` if the request is refused."""
    check_values(request, content_limit)
    changes = _plain_changes(request)
    source_url = _decide_url(request.source_url, None, catalogue)
    title = request.title or ""
    _refuse_copy(request, catalogue)
    slug, style = slug_of(title, note_id), catalogue.style
    name = file_name_of(title, note_id) if style.is_foreign else slug
    path = catalogue.path_to_make(resolve_new_path(request.path, name))
    if not (style.is_foreign and names_file(request.path)):
        check_slug(slug, catalogue, path)
    check_free(path, catalogue)
    _check_sources(request.derived_from_ids or (), catalogue)
    sources = normalise_sources(list(request.derived_from_ids or ()), None)
    note = Note(
        id=note_id,
        title=title,
        author=request.agent,
        created_at=now,
        updated_at=now,
        tags=request.tags or (),
        aliases=request.aliases or (),
        source=request.source_task or None,
        source_url=source_url,
        derived_from_ids=sources,
        expires_at=request.expires_at or None,
        extra=_properties_of_new(request, path, catalogue),
        **changes,
    )
    _check_scope(note)
    warnings = (*_missing(sources, catalogue), *warn_of_unused(request.said or {}, request.unused, None))
    return Decision(Document(note=note, content=request.content or ""), path, warnings)


def decide_update(
    request: UpdateRequest,
    old: Document,
    path: str,
    catalogue: Catalogue,
    *,
    now: datetime,
    content_limit: int,
    is_signed: bool = True,
) -> Decision:
    """Validate a request that updates a whole note or some of its values. `old` is the note's current file.

    If `is_signed` is set, the agent is added to the contributors.
    """
    note, content = old.note, old.content
    inline, url = note.inline_tags, dict[str, Any]()
    if isinstance(request, WriteNote):
        check_values(request, content_limit)
    check_version(request.expected_version, note)
    if isinstance(request, WriteNote):
        url["source_url"] = _decide_url(request.source_url, note, catalogue)
        _check_sources(request.derived_from_ids or (), catalogue)
        has_inline = request.tags is not None and catalogue.style.is_foreign
        inline = scan_tags(content if request.content is None else request.content) if has_inline else ()
        content = content if request.content is None else request.content
    if request.title is not None:
        _check_new_title(request.title, note, path, catalogue)
    changes = intended_changes(request, note, inline) | url
    if isinstance(request, WriteNote):
        about = ProjectProperty(catalogue.projects.rules, path)
        changes["extra"] = about.put(changes["extra"], _named_project(request, about))
    new = _next_version(note, request.agent if is_signed else None, now, **changes)
    warnings: tuple[str, ...] = ()
    if isinstance(request, WriteNote):
        _check_scope(new)
        warnings = _missing(new.derived_from_ids, catalogue) if request.derived_from_ids is not None else ()
        warnings += warn_of_unused(request.said or {}, request.unused, note)
    return Decision(Document(note=new, content=content), path, warnings)


def intended_changes(request: UpdateRequest, note: Note, inline: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a note that a request changes. Checks that need other notes are not included.

    `inline` contains the tags in the note's text. These tags are not repeated in the frontmatter.
    """
    changes: dict[str, Any]
    if isinstance(request, WriteNote):
        changes = _plain_changes(request)
        if request.source_url is not None:
            changes["source_url"] = normalise_url(request.source_url) if request.source_url else None
        if request.derived_from_ids is not None:
            changes["derived_from_ids"] = normalise_sources(list(request.derived_from_ids), note.id)
        if request.source_task is not None:
            changes["source"] = request.source_task or None
        if request.expires_at is not None:
            changes["expires_at"] = request.expires_at or None
        if request.aliases is not None:
            changes["aliases"] = request.aliases
        changes["extra"] = _merge({**note.extra, **(request.properties or {})}, request.metadata)
    else:
        changes = _given(request, _PATCHED_FIELDS)
        changes["extra"] = _merge(note.extra, request.metadata or None)
    changes |= _settle_reason(changes, note)
    if request.title is not None:
        changes["title"] = request.title
    if request.tags is not None:
        changes["tags"] = _tags_to_write(request.tags, note, inline)
    return changes


def decide_edit(agent: str, old: Note, *, now: datetime, is_signed: bool) -> Note:
    """Return the next version of a note of which only the body changes.

    If `is_signed` is set, the agent is added to the contributors.
    """
    return _next_version(old, agent if is_signed else None, now)


def refuse_broken(old: Document, path: str) -> None:
    """Raise `InvalidInput` if the frontmatter is unreadable, because such a note cannot be changed."""
    problem = old.note.frontmatter_problem
    if problem is not None:
        raise InvalidInput(
            f"The frontmatter of {path} cannot be read, so the note cannot be changed: {problem}. "
            "Nothing was changed. Repair the file, then retry."
        )


def check_values(request: WriteNote, content_limit: int) -> None:
    """Raise an error for invalid values. Checks that need other notes are not included."""
    if request.content is not None:
        check_content(request.content, content_limit)
    if request.confidence is not None:
        read_confidence(request.confidence)


def check_content(content: str, limit: int) -> None:
    """Raise `ContentTooLarge` if the content has more than `limit` bytes."""
    size = len(content.encode())
    if size > limit:
        raise ContentTooLarge(
            f"The content has {size} bytes, more than the {limit} bytes that "
            "storage.max_content_size_bytes allows. Split it into several linked notes, or raise "
            "that setting."
        )


def read_confidence(value: object) -> float:
    """Return a confidence between 0 and 1 from a number or a numeric text. Raises `InvalidInput`."""
    if not isinstance(value, bool) and isinstance(value, int | float | str):
        try:
            confidence = float(value)
        except (ValueError, OverflowError):
            confidence = math.nan
        if 0 <= confidence <= 1:
            return confidence
    raise InvalidInput("confidence must be a number between 0 and 1, such as 0.8.")


def check_version(expected: int | None, note: Note) -> None:
    """Raise `VersionConflict` if the caller has read a different version (compare-and-swap)."""
    if expected is not None and expected != note.version:
        raise VersionConflict(
            f"The note is at version {note.version}, not {expected}. Read the note again, merge "
            "your change and retry with the current version.",
            **current_of(note),
        )


def no_such_note(request: WriteRequest) -> LithosError:
    """Return the error for an unknown note id."""
    found = (
        f"No note has the id {(request.id or '')[:100]!r}. Find the note with lithos_search or lithos_list"
    )
    if isinstance(request, PatchNote):
        return NoteNotFound(f"{found}.")
    hint = "; to create a note, leave id out" if isinstance(request, WriteNote) else ""
    return DocNotFound(f"{found}{hint}.")


def check_free(path: str, catalogue: Catalogue, own_id: str | None = None) -> None:
    """Raise `PathCollision` if another note has the path, even in a different spelling."""
    if catalogue.holder(path, own_id) is not None:
        raise path_collision(path, catalogue, own_id)


def path_collision(path: str, catalogue: Catalogue, own_id: str | None = None) -> PathCollision:
    """Return the error for a path that already has a file, even in a different spelling."""
    holder = catalogue.holder(path, own_id)
    found = path if holder is None or holder.path == path else f"{holder.path}, another spelling of {path},"
    return PathCollision(
        f"The file {found} exists already. Update that note by its id, or choose another path.",
        existing_id=holder.note.id if holder else None,
    )


def _given(request: UpdateRequest, fields: Sequence[str]) -> dict[str, Any]:
    return {name: value for name in fields if (value := getattr(request, name)) is not None}


def _settle_reason(changes: Mapping[str, Any], note: Note) -> dict[str, Any]:
    """Return the change of the quarantine reason, or an empty mapping.

    Only quarantined notes have a reason.
    """
    if "status" not in changes and "quarantine_reason" not in changes:
        return {}
    if changes.get("status", note.status) != "quarantined":
        return {"quarantine_reason": None}
    return {"quarantine_reason": changes.get("quarantine_reason", note.quarantine_reason) or None}


def _plain_changes(request: WriteNote) -> dict[str, Any]:
    """Return the given fields that are stored without checks against other notes."""
    changes = _given(request, _PLAIN_FIELDS)
    if request.confidence is not None:
        changes["confidence"] = read_confidence(request.confidence)
    return changes


def _properties_of_new(request: WriteNote, path: str, catalogue: Catalogue) -> dict[str, Any]:
    pasted, given = request.properties or {}, request.metadata
    about = ProjectProperty(catalogue.projects.rules, path)
    project = _named_project(request, about)
    if project is None:
        project = about.default({*pasted, *(given or ())}, request.working_in)
    return about.put(_merge(pasted, given), project)


def _named_project(request: WriteNote, about: ProjectProperty) -> str | None:
    """Return the argument `project`, unless the metadata names the property."""
    return None if about.rules.property_name in (request.metadata or ()) else request.project


def _refuse_copy(request: WriteNote, catalogue: Catalogue) -> None:
    """Raise `InvalidInput` if the content of a new note is the file of an existing note."""
    holder = catalogue.get((request.said or {}).get("id", ""))
    if holder is not None:
        raise InvalidInput(
            f"content begins with the frontmatter of the note {holder.note.title[:200]!r}. To "
            f"change that note, give its id, {holder.note.id}. To create a copy, leave the id "
            "line out."
        )


def check_unique(
    note: Note, current: Note | None, path: str, catalogue: Catalogue, *, is_restored: bool = False
) -> None:
    """Raise `SlugCollision` or `Duplicate` if another note already has the title or URL of the given note.

    `current` is the current note, or None for a deleted note. If the current note already shares its slug,
    the given note may have this slug too. `is_restored` means that the file is restored at its own path. In
    that case, other files in the vault may have the same title.
    """
    if is_restored and catalogue.style.is_foreign:
        pass
    elif current is None:
        check_slug(slug_of(note.title, note.id), catalogue, path, note.id)
    else:
        _check_new_title(note.title, current, path, catalogue)
    if note.source_url:
        _decide_url(note.source_url, note, catalogue)


def _decide_url(given: str | None, old: Note | None, catalogue: Catalogue) -> str | None:
    if given is None:
        return old.source_url if old else None
    if given == "":
        return None
    url = normalise_url(given)
    owner = catalogue.urls.owner(url)
    if owner is not None and (old is None or owner != old.id):
        holder = catalogue.get(owner)
        assert holder is not None
        raise Duplicate(
            f"The note {holder.note.title!r} already has this source_url. Read and update that note instead.",
            duplicate_of={"id": owner, "title": holder.note.title, "source_url": url},
        )
    return url


def _check_new_title(title: str, note: Note, path: str, catalogue: Catalogue) -> None:
    """Check a new title. A note may keep a slug that it already shares, because files may share slugs."""
    slug = slug_of(title, note.id)
    if slug != slug_of(note.title, note.id):
        check_slug(slug, catalogue, path, note.id)


def check_slug(slug: str, catalogue: Catalogue, path: str, own_id: str | None = None) -> None:
    """Raise `SlugCollision` if another note has the slug.

    In some vaults, only notes in the folder of `path` count.
    """
    owner = catalogue.slug_owner(slug, path)
    if owner is not None and owner != own_id:
        holder = catalogue.get(owner)
        title = holder.note.title if holder else ""
        place, way_out = "", "choose another title"
        if catalogue.style.is_foreign:
            place, way_out = f" in {_folder_name(path)}", "choose another title or folder"
        raise SlugCollision(
            f"The note {title!r}{place} already has the slug {slug!r}. Update that note, or {way_out}.",
            existing_id=owner,
            slug_collision_existing_id=owner,
        )


def _tags_to_write(given: tuple[str, ...], note: Note, inline: tuple[str, ...]) -> tuple[str, ...]:
    """Return the given tags, except tags that the note has only in its text."""
    written, only_told = tag_keys(note.tags), tag_keys(inline)
    return tuple(tag for tag in given if (key := tag_key(tag)) in written or key not in only_told)


def _folder_name(path: str) -> str:
    folder = folder_of(path)
    return f"the folder {folder!r}" if folder else "the root folder"


def _check_scope(note: Note) -> None:
    if note.access_scope == "task" and not note.source:
        raise InvalidInput("access_scope 'task' needs source_task: name the task that the note belongs to.")


def _merge(old: Mapping[str, Any], patch: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return metadata merged with a patch.

    If the patch is `None`, all keys are kept. If the patch is `{}`, all keys are cleared. A null value
    deletes its key.
    """
    if patch is None:
        return dict(old)
    if not patch:
        return {}
    check_keys(patch, old)
    merged = {key: value for key, value in {**old, **patch}.items() if value is not None or key not in patch}
    check_merged(old, merged)
    return merged


def _next_version(note: Note, agent: str | None, now: datetime, **changes: Any) -> Note:
    contributors = note.contributors if agent is None else _contributors(note, agent)
    at, version = note.next_update(now), note.version + 1
    return attrs.evolve(note, updated_at=at, version=version, contributors=contributors, **changes)


def _contributors(note: Note, agent: str) -> tuple[str, ...]:
    if agent == note.author or agent in note.contributors:
        return note.contributors
    return (*note.contributors, agent)


def _check_sources(given: Sequence[str], catalogue: Catalogue) -> None:
    """Raise `InvalidInput` for a source that is given by path or by its own `id`.

    The message names the correct id.
    """
    for each in given:
        entry = None if is_id(each.strip()) else catalogue.get(catalogue.identify(each))
        entry = entry or catalogue.at_path(each)
        if entry is not None and is_id(entry.note.id):
            raise InvalidInput(
                f"derived_from_ids takes note ids (UUIDs), not {each[:100]!r}. The note at "
                f"{entry.path} has the id {entry.note.id}."
            )


def _missing(sources: tuple[str, ...], catalogue: Catalogue) -> tuple[str, ...]:
    return tuple(
        f"derived_from_ids contains missing document: {source}"
        for source in sources
        if source not in catalogue
    )
