"""Plans for moving a note to another vault: all checks and data that are needed before the move starts.

Planning does not change anything.
"""

from __future__ import annotations

from typing import Final

import attrs
from attrs import field, frozen

from lithos.history.rows.store import HistoryStore
from lithos.kernel.actors.threads import Threads
from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import Duplicate, Forbidden, InvalidInput, StorageFailed
from lithos.kernel.values.principals import Principal
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import LinkedFile, OutsideKnowledge
from lithos.notes.format.document import parse_identified
from lithos.notes.model.paths import resolve_new_path
from lithos.notes.model.scopes import refusal_of
from lithos.notes.model.versions import NewVersion, VersionRow
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.service.moving import RESUMED
from lithos.notes.service.texts import LoadedNote, NoteTexts
from lithos.notes.writing.actor_writer import Writer
from lithos.notes.writing.messages import DeleteNote, TakeOverNote
from lithos.notes.writing.write_rules import (
    check_free,
    check_unique,
    check_version,
    no_such_note,
    path_collision,
)
from lithos.text.yaml.nodes import UnreadableNote

#: Maximum total size, in bytes, of the versions that move with a note. All of them are in memory at once.
MOST_CARRIED: Final = 64 * 1024 * 1024
#: Maximum number of target versions to read for a returning note. No vault stores more.
MOST_KNOWN: Final = 100_000


@frozen(kw_only=True)
class VaultMovePlan:
    """An allowed move of the note at `path`, with the note's versions in the source and in the target.

    `copy` is the copy of the note that an unfinished move left in the target. `was_there` is true if that
    copy equals the current note, and false if the copy is older.
    """

    path: str
    version: int
    request: TakeOverNote
    copy: Entry | None
    was_there: bool
    left: int
    unresolved: int


@frozen
class _Past:
    """The stored versions that the target lacks, and the number of versions that stay in the source.

    `newest` is the newest version of the note in the target from an earlier time, or 0.
    """

    versions: tuple[NewVersion, ...] = ()
    left: int = 0
    newest: int = 0


@frozen
class VaultMovePlanning:
    """Planner of moves from one vault to another vault."""

    _source: Parts
    _target: Parts
    _target_name: str
    _working: Threads = field(factory=Threads)

    async def plan(
        self,
        note_id: str,
        agent: str,
        path: str | None,
        expected_version: int | None,
        by: Principal | None,
        by_there: Principal | None,
    ) -> VaultMovePlan:
        """Check all reasons that could prevent the move. Raises the same errors as `VaultMoving.move`."""
        source, target = self._source, self._target
        entry = source.get(Catalogue).get(note_id)
        if entry is None:
            raise no_such_note(DeleteNote(id=note_id, agent=agent))
        new = entry.path
        if path is not None and path.strip():
            resolved = resolve_new_path(path, entry.path.rpartition("/")[2].removesuffix(".md"))
            new = target.get(Catalogue).path_to_make(resolved)
        former = await self._working.run(lambda: _decided_paths(source, entry.path, is_removed=True))
        _check_caller(source, by, agent, *former)
        later = await self._working.run(lambda: _decided_paths(target, new))
        _check_caller(target, by_there, agent, *later)
        loaded = await source.get(NoteTexts).load(entry)
        if loaded is None:
            raise StorageFailed(
                f"The file {entry.path} cannot be read now. Nothing was changed. Read the note, then retry."
            )
        if loaded.document.note.id != note_id:
            raise no_such_note(DeleteNote(id=note_id, agent=agent))
        check_version(expected_version, loaded.document.note)
        copy = await self._working.run(lambda: self._check_place(note_id, new, loaded))
        was_there = copy is not None and (copy.digest, copy.path) == (loaded.source.digest, new)
        past = await self._working.run(lambda: self._past(note_id))
        request = await self._working.run(lambda: self._request(entry, loaded, agent, new, past))
        if not was_there:
            check_unique(
                request.document.note, None if copy is None else copy.note, new, target.get(Catalogue)
            )
            is_own = copy is not None and copy.path == new
            if not is_own and await self._working.run(lambda: target.get(NoteFiles).is_file(new)):
                raise path_collision(new, target.get(Catalogue))
        linked = await source.get(Knowledge).linked_from(note_id, 1)
        return VaultMovePlan(
            path=entry.path,
            version=loaded.document.note.version,
            request=request,
            copy=copy,
            was_there=was_there,
            left=past.left + (len(past.versions) if was_there else 0),
            unresolved=linked.total,
        )

    def _check_place(self, note_id: str, new: str, loaded: LoadedNote) -> Entry | None:
        """Return the copy of the note in the target vault, or None.

        Blocks. Raises `PathCollision`, or `Duplicate` if another note has the id.
        """
        catalogue, history = self._target.get(Catalogue), self._source.find(HistoryStore)
        there = catalogue.get(note_id)
        check_free(new, catalogue, note_id)
        if there is None or there.digest == loaded.source.digest:
            return there
        if history is not None and history.knows(note_id, there.digest):
            return there
        raise Duplicate(
            f"The vault {self._target_name} already has a note with this id, {there.note.title!r} "
            f"at {there.path}. Read both, then delete one, or copy the differences into the other.",
            duplicate_of={"id": note_id, "title": there.note.title, "source_url": there.note.source_url},
        )

    def _past(self, note_id: str) -> _Past:
        """Return the versions that move together with the note. Blocks."""
        here, there = self._source.find(HistoryStore), self._target.find(HistoryStore)
        rows = () if there is None else there.rows(note_id, MOST_KNOWN)[0]
        newest = rows[0].version if rows else 0
        if here is None:
            return _Past(newest=newest)
        if there is None:
            return _Past(left=here.rows(note_id, 1)[1])
        carried, left = here.carried(note_id, MOST_CARRIED)
        known = {_mark(row) for row in rows}
        return _Past(tuple(each for each in carried if _mark(each) not in known), left, newest)

    def _request(self, entry: Entry, loaded: LoadedNote, agent: str, new: str, past: _Past) -> TakeOverNote:
        """Return the request for the writer of the target.

        Blocks. Raises `InvalidInput` if the file would not be a valid note in the target.

        A note that returns gets a version above all its earlier versions in the target, including the
        deletion.
        """
        note, data = loaded.document.note, loaded.source.data
        now, style = self._target.clock(), self._target.get(Catalogue).style
        version = note.version if note.version > past.newest else past.newest + 1
        try:
            document, identified = parse_identified(data, new, now, note.id, style)
        except UnreadableNote as problem:
            raise InvalidInput(
                f"The vault {self._target_name} cannot read {entry.path} as a note: "
                f"{problem.reason}. Correct "
                "the file, then move it."
            ) from problem
        own = document.note
        return TakeOverNote(
            id=note.id,
            agent=agent,
            path=new,
            data=data,
            document=attrs.evolve(
                document, note=attrs.evolve(own, version=version, created_at=note.created_at)
            ),
            identified=identified,
            past=past.versions,
            says_version=own.version == version,
            created_at=note.created_at if own.created_at == now else None,
            # The caller's rights in both vaults were already checked. A half-finished move can be neither
            # refused nor stored as a proposal.
            by=RESUMED,
        )


def _mark(version: VersionRow | NewVersion) -> tuple[object, ...]:
    """Return a key for a recorded state of a note. The key is the same in every vault."""
    return version.version, version.at, version.op, version.agent, version.path


def _decided_paths(vault: Parts, path: str, *, is_removed: bool = False) -> tuple[str, ...]:
    """Return the given path and the path to which its symlinks lead. Both need permission. Blocks.

    Raises `InvalidInput` if a symlink leads out of the vault, or if the move would delete a symlink.
    """
    files = vault.get(NoteFiles)
    try:
        if is_removed:
            files.refuse_link(path)
        reals = files.real_paths([path])
    except (OutsideKnowledge, LinkedFile) as failure:
        raise InvalidInput(
            f"{path[:300]} cannot be moved or used as a target: {failure}. A move does not follow "
            "this link. Nothing was changed. Move the note that the link leads to, or choose "
            "another path."
        ) from failure
    return (path, *reals.values())


def _check_caller(vault: Parts, by: Principal | None, agent: str, *paths: str) -> None:
    """Raise `Forbidden` if the caller may not change these paths, or only with a person's approval."""
    if by is not None and not by.may("write"):
        raise Forbidden(
            f"The token '{by.name}' has the right {by.rights}, but moving a note to another vault "
            "needs write in both. Use a token with that right, or ask for one (lithos token "
            "create --rights write)."
        )
    scopes = vault.get(Writer).scopes
    for path in paths:
        place = scopes.place_of(by, agent, path)
        if place == "propose":
            raise Forbidden(
                f"{path[:300]} changes only after a person's approval, and a move to another "
                "vault cannot wait. Nothing was changed. Ask a person to move the note.",
                path=path,
                scope=str(scopes.scope_of(by, agent)),
            )
        if place != "write":
            raise refusal_of(place, path, agent, scopes.scope_of(by, agent))
