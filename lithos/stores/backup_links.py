"""Symbolic links among the notes: a backup names those that lead to something it holds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from attrs import field, frozen


@frozen
class FoundLinks:
    """Links below a folder: `inside` maps the path of a link to its target, seen from the link's folder.

    `elsewhere` are those that lead out of the folder, or nowhere: Lithos does not read what is there.
    """

    inside: Mapping[str, str] = field(factory=dict)
    elsewhere: tuple[str, ...] = ()


def find_links(root: Path) -> FoundLinks:
    """The links below `root`, by relative path, sorted. Raises `OSError`."""
    real_root = os.path.realpath(root)
    inside: dict[str, str] = {}
    elsewhere: list[str] = []
    for folder, folders, names in os.walk(real_root, onerror=_raise):
        for name in (*folders, *names):
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                continue
            target = os.path.realpath(path)
            place = os.path.relpath(path, real_root).replace(os.sep, "/")
            if os.path.exists(target) and (target + os.sep).startswith(real_root + os.sep):
                inside[place] = os.path.relpath(target, folder).replace(os.sep, "/")
            else:
                elsewhere.append(place)
    return FoundLinks(dict(sorted(inside.items())), tuple(sorted(elsewhere)))


def _raise(error: OSError) -> None:
    raise error


def leads_out(link: str, target: str) -> bool:
    """Whether a link would lead out of the topmost folder of its path."""
    top, *_ = PurePosixPath(link).parts
    reached = os.path.normpath(os.path.join(os.path.dirname(link), target))
    return target.startswith("/") or PurePosixPath(reached).parts[:1] != (top,)


def make_links(root: Path, links: Mapping[str, str]) -> None:
    """Make the links below `root`."""
    for link, target in links.items():
        path = root / link
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
