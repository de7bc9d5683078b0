"""Records of changes in `.lithos`: unfinished changes, and bytes that would otherwise be lost.

All functions block.

`displaced/` contains bytes that another program saved, each with a `.json` file that names the note.
`moves/`, the journal of moves, contains one file per note that is being moved. That file is written before
the note's file is renamed, and removed once all links to the note are rewritten. So if the process is killed,
the next start finishes the move. `merging-copy.json` does the same for the merge of a conflict copy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
from attrs import frozen

from lithos.kernel.databases.private_files import replace_file, sync_folder
from lithos.kernel.log import get_logger
from lithos.kernel.values.events import TOOL
from lithos.kernel.values.times import format_time
from lithos.notes.files.values import digest_of
from lithos.notes.links.edit import Relinking

Intent = TypeVar("Intent", bound="MoveIntent | CopyIntent")

log = get_logger("lithos.moves")

#: Name of the folder in `.lithos` that contains the journal of moves.
MOVES: Final = "moves"
_FORMAT: Final = 1
_NOT_FINISHED: Final = "move not finished"


@frozen(kw_only=True)
class MoveIntent:
    """An unfinished move of a note, with its author and the data for the remaining steps.

    `digest` is the hash of the note's bytes at the time of the move. `identified` means that the file
    contains its id. `sources` are the ids of the notes whose links must be rewritten, and `canvases` the
    paths of the canvases whose links must be rewritten. `source` is the source of the events. `approved_by`
    is the person who approved the move.
    """

    id: str
    agent: str
    digest: str
    identified: bool
    relinking: Relinking
    update_links: bool = True
    sources: tuple[str, ...] = ()
    source: str = TOOL
    canvases: tuple[str, ...] = ()
    approved_by: str | None = None


@frozen(kw_only=True)
class CopyIntent:
    """An unfinished merge of a conflict copy, with the note, the path and hash of the copy, and the author.

    `before` is the hash of the note's file before the merge, and `version` the version of the note before the
    merge. `body` is the hash of the merged body.
    """

    id: str
    copy: str
    digest: str
    agent: str
    before: str
    version: int
    body: str


def _store(path: Path, intent: Any) -> None:
    replace_file(path, json.dumps({"format": _FORMAT, **attrs.asdict(intent)}).encode())
    sync_folder(path.parent)


def _load(path: Path, kind: type[Intent], trouble: str) -> Intent | None:
    """Read the intent in a file. If the file is unreadable, set the file aside and log `trouble`."""
    try:
        known: Mapping[str, Any] = json.loads(path.read_bytes())
        if known["format"] != _FORMAT:
            raise ValueError(f"format {known['format']}")
        # older records of moves do not contain these fields
        known = {"source": TOOL, "canvases": (), "approved_by": None, **known}
        fields = {each.name: known[each.name] for each in attrs.fields(kind)}
        if kind is MoveIntent:
            relinking = Relinking(**fields["relinking"])
            fields |= {key: tuple(fields[key]) for key in ("sources", "canvases")} | {"relinking": relinking}
        return kind(**fields)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as failure:
        log.error(f"{trouble}: record unreadable", file=path.name, reason=str(failure))
        with suppress(OSError):
            path.rename(path.with_suffix(".unreadable"))
        return None


class Moves:
    """The journal of moves within the vault. It is a folder with one intent file per note."""

    def __init__(self, private: Path) -> None:
        self._folder = private / MOVES

    def find(self, note_id: str) -> MoveIntent | None:
        """Return the intent of a note, or None."""
        return _load(self._path(note_id), MoveIntent, _NOT_FINISHED)

    def pending(self) -> list[MoveIntent]:
        """Return all intents, oldest first. Unreadable files are set aside and logged."""
        paths = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        return [intent for path in paths if (intent := _load(path, MoveIntent, _NOT_FINISHED)) is not None]

    def write(self, intent: MoveIntent) -> None:
        """Store an intent durably.

        The intent replaces an earlier intent of the same note. Raise `OSError` on failure.
        """
        if not self._folder.is_dir():
            self._folder.mkdir(parents=True, exist_ok=True)
            sync_folder(self._folder.parent)
        _store(self._path(intent.id), intent)

    def remove(self, note_id: str) -> None:
        """Remove the intent of a note if it exists. Raise `OSError` on failure."""
        with suppress(FileNotFoundError):
            self._path(note_id).unlink()
            sync_folder(self._folder)

    def _path(self, note_id: str) -> Path:
        return self._folder / f"{digest_of(note_id.encode('utf-8', 'surrogatepass'))}.json"


class CopyMerges:
    """The record of the running merge of a conflict copy. Only one merge runs at a time."""

    def __init__(self, private: Path) -> None:
        self._path = private / "merging-copy.json"

    def write(self, intent: CopyIntent) -> None:
        """Store an intent durably. Raise `OSError` on failure."""
        _store(self._path, intent)

    def remove(self) -> None:
        """Remove the intent of a finished or abandoned merge. Raise `OSError` on failure."""
        self._path.unlink(missing_ok=True)
        sync_folder(self._path.parent)

    def pending(self) -> CopyIntent | None:
        """Return the unfinished merge of an earlier process. An unreadable record is set aside and logged."""
        return _load(self._path, CopyIntent, "merge not finished")


#: Name of the folder in `.lithos` for displaced files.
DISPLACED: Final = "displaced"
KEPT_FOR: Final = timedelta(days=7)
KEPT_BYTES: Final = 100 * 1024 * 1024
_STAMP: Final = "%Y%m%dT%H%M%S.%fZ"
#: Maximum length of a note's name in the name of its displaced file, in characters (at most 240 bytes).
_NAME_LENGTH: Final = 60


@frozen
class DisplacedFile:
    """A file in the folder for displaced files.

    `note` is the path of its note in `knowledge/`, and `time` the time when the file was stored.
    """

    path: Path
    note: str
    time: datetime
    size: int

    @property
    def digest(self) -> str:
        """The first 16 characters of the content hash of the file."""
        return self.path.name.split("-")[1]


class Displaced:
    """The displaced files.

    Files are deleted after 7 days. If the total exceeds 100 MB, the oldest files are deleted earlier.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, note: str, data: bytes, now: datetime) -> Path:
        """Store bytes durably.

        Equal bytes of the same note are stored only once. Raise `OSError` on failure.
        """
        digest = digest_of(data)
        self.folder.mkdir(parents=True, exist_ok=True)
        stem = note.rpartition("/")[2][:_NAME_LENGTH]
        for known in self.folder.glob(f"*-{digest[:16]}-*.json"):
            with suppress(OSError, ValueError):
                if json.loads(known.read_bytes())["note"] == note:
                    return known.with_name(known.name.removesuffix(".json"))
        path = self.folder / f"{now.astimezone(UTC).strftime(_STAMP)}-{digest[:16]}-{stem}"
        about = {"note": note, "time": format_time(now), "size": len(data), "digest": digest}
        beside = json.dumps(about, ensure_ascii=False).encode()
        for target, content in ((path, data), (path.with_name(f"{path.name}.json"), beside)):
            replace_file(target, content, target.with_name(f".{target.name}.tmp"[:250]))
        sync_folder(self.folder)
        return path

    def list(self) -> list[DisplacedFile]:
        """Return the displaced files, oldest first."""
        with suppress(OSError):  # the check of the data directory reports unreadable folders
            return sorted(self._find(), key=lambda file: file.time)
        return []

    def _find(self) -> Iterator[DisplacedFile]:
        for path in self.folder.glob("*"):
            if path.name.startswith(".") or path.name.endswith(".json"):
                continue
            with suppress(OSError, ValueError):
                time = datetime.strptime(path.name.split("-")[0], _STAMP).replace(tzinfo=UTC)
                yield DisplacedFile(path, _note_of(path), time, path.stat().st_size)

    def prune(self, now: datetime) -> int:
        """Delete files beyond the retention limits, oldest first. Return the number of deleted files.

        The size limit does not apply to the newest file.
        """
        files = self.list()
        left = sum(file.size for file in files)
        dropped = 0
        for file in files:
            if now - file.time <= KEPT_FOR and (left <= KEPT_BYTES or file is files[-1]):
                break
            with suppress(OSError):
                file.path.unlink()
                file.path.with_name(f"{file.path.name}.json").unlink(missing_ok=True)
                dropped += 1
            left -= file.size
        return dropped


def _note_of(path: Path) -> str:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads(path.with_name(f"{path.name}.json").read_bytes())["note"])
    return path.name.split("-", 2)[-1]
