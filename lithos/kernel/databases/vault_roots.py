"""A check that vaults are separate on disk.

No folder of one vault may equal or contain a folder of another vault.

Specified in docs/spec/cli-config.md §3.1. A folder is identified by its real path, and by device and inode.
Device and inode also detect mounts, and paths with different case on file systems that ignore case. Targets
of links out of a vault are not read (`notes/files/tree.py`), so only the root folders are compared. A missing
folder is compared by its path.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final, Literal

from attrs import frozen

from lithos.kernel.databases.lock import Identity, identity_of

Kind = Literal["notes", "data"]
_WORDS: Final = {"notes": "the folder {} of vault {}", "data": "the data directory {} of vault {}"}
#: Advice on how to separate two folders, by the content of the folders.
_WAYS_OUT: Final = {
    frozenset({"notes"}): "Serve them as one vault, or give each vault its own folder.",
    frozenset({"data"}): "Give each vault a separate data directory "
    "(vaults.NAME.data_dir), or leave that out.",
    frozenset(
        {"notes", "data"}
    ): "Choose a data directory elsewhere (vaults.NAME.data_dir), because only notes are written to a vault.",
}


@frozen
class VaultFolder:
    """A folder of a vault and its real location."""

    vault: str
    kind: Kind
    path: Path
    #: Real path of the folder. If a component is missing, links are resolved only before that component.
    real: str
    #: Identity of the folder (None if it is missing), followed by the identities of all its parent folders.
    identity: Identity | None = None
    above: tuple[Identity, ...] = ()


class VaultsOverlap(Exception):
    """Error because two vaults share a folder.

    The message names both vaults and says how to separate them.
    """


def check_vault_roots(vaults: Sequence[tuple[str, Path, Path]]) -> None:
    """Raise `VaultsOverlap` if vaults overlap. Each vault has a name, notes and a data directory. Blocks."""
    trouble = next(find_overlaps([place for vault in vaults for place in _look_at(*vault)]), None)
    if trouble is not None:
        raise VaultsOverlap(trouble)


def _look_at(name: str, notes: Path, data: Path) -> Iterator[VaultFolder]:
    kinds: tuple[tuple[Kind, Path], ...] = (("notes", notes), ("data", data))
    for kind, path in kinds:
        real = os.path.realpath(path)
        above = tuple(filter(None, map(_identity_of, Path(real).parents)))
        yield VaultFolder(name, kind, path, real, _identity_of(Path(real)), above)


def _identity_of(path: Path) -> Identity | None:
    """Return the identity of a folder. Return None if the folder is missing or inaccessible.

    When that vault is opened, the reason is reported.
    """
    try:
        return identity_of(path)
    except OSError:
        return None


def find_overlaps(places: Sequence[VaultFolder]) -> Iterator[str]:
    """Yield a message for each overlap of these folders. It contains the names of both vaults and a solution.

    The notes folder of each vault comes before its data directory, which may contain the notes, as in
    `knowledge`.
    """
    for one, other in combinations(places, 2):
        relation = _relation_of(one, other)
        is_own = one.vault == other.vault and relation == "is inside of"  # notes in their data directory
        if relation is not None and not is_own:
            inner, outer = (other, one) if relation == "holds" else (one, other)
            yield _tell(inner, "is also" if relation == "is also" else "is inside of", outer)


def _relation_of(one: VaultFolder, other: VaultFolder) -> Literal["is also", "holds", "is inside of"] | None:
    if one.real == other.real or (one.identity is not None and one.identity == other.identity):
        return "is also"
    if _is_within(other, one):
        return "holds"
    return "is inside of" if _is_within(one, other) else None


def _is_within(inner: VaultFolder, outer: VaultFolder) -> bool:
    by_path = inner.real.startswith(outer.real.rstrip(os.sep) + os.sep)
    return by_path or (outer.identity is not None and outer.identity in inner.above)


def _tell(one: VaultFolder, relation: str, other: VaultFolder) -> str:
    first, second = (_WORDS[place.kind].format(_shown(place), place.vault) for place in (one, other))
    way_out = _WAYS_OUT[frozenset({one.kind, other.kind})]
    return f"{first[0].upper()}{first[1:]} {relation} {second}. {way_out}"


def _shown(place: VaultFolder) -> str:
    """Return the given path. If its real location differs, append the real location."""
    return str(place.path) if str(place.path) == place.real else f"{place.path} ({place.real})"
