"""The notes as they are now, read without changing anything, also beside a running server."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from attrs import frozen

from lithos.actors.catalogue import Catalogue
from lithos.actors.scan import scan_folder
from lithos.core.plan import VanishRule
from lithos.stores.files import NoteFiles
from lithos.stores.lock import is_owned
from lithos.stores.manifest import Manifest
from lithos.stores.snapshots import snapshot
from lithos.stores.sqlite import CorruptDatabase
from lithos.stores.vanished import VanishedFiles


@frozen
class Survey:
    """A data directory (`data`) whose notes are in `catalogue`; `is_live` while a server owns it."""

    data: Path
    files: NoteFiles
    catalogue: Catalogue
    is_live: bool
    #: Numbers of notes that stay known although their files cannot be read now.
    unreadable: frozenset[int] = frozenset()

    @property
    def private(self) -> Path:
        """Where the databases are."""
        return self.data / ".lithos"


def survey_notes(data: Path, folder: str, vanished_fraction: float, now: datetime) -> Survey:
    """Read the notes in `folder` of a data directory, with the numbers they have in the indexes. Blocks.

    Raises `FileNotFoundError` when there is no such folder.
    """
    files = NoteFiles(data / folder)
    if not files.root.is_dir():
        raise FileNotFoundError(2, "The folder of the notes is missing", str(files.root))
    private = data / ".lithos"
    vanished = VanishedFiles(private)
    rule = VanishRule(fraction=vanished_fraction, kept=vanished.kept(), approved=vanished.approved())
    catalogue, is_live = Catalogue(), is_owned(private / "lock")
    try:
        with snapshot(private / "manifest.db", is_live=is_live) as connection:
            scanned = scan_folder(files, Manifest.view(connection), catalogue, (), now, rule)
    except CorruptDatabase:
        # The next start sets it aside and numbers the notes anew, and so does this survey.
        catalogue = Catalogue()
        scanned = scan_folder(files, Manifest.view(None), catalogue, (), now, rule)
    lost = {*scanned.vanished, *(each.note.id for each in catalogue if each.path in catalogue.skipped)}
    unreadable = frozenset(each.serial for each in catalogue if each.note.id in lost)
    return Survey(data, files, catalogue, is_live, unreadable)
