"""Checks of the notes and of what is derived from them. They change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from lithos.actors.guard import WAY_OUT
from lithos.core.diagnosis import Finding, fail, name_some, ok, warn
from lithos.core.reconcile import Action
from lithos.services.reconcile_graph import reconcile_graph
from lithos.services.reconcile_indices import IndexSettings, find_index_faults
from lithos.services.survey import Survey
from lithos.stores.embedder import Embedder, EmbedderUnavailable
from lithos.stores.model_files import is_at_hand

#: What is told of each fault of an index; only a damaged one stops searches.
_FAULTS: Final = {
    "schema_mismatch": "has another format ({detail})",
    "embedder_mismatch": "is of another embedding model: {detail}",
    "check_failed": "is damaged ({detail})",
    "doc_set_mismatch": "is not in line with the notes ({missing} missing or changed, {surplus} too many)",
}
_MEND: Final = "The notes are not affected. Run `lithos reconcile`, or start the server, which mends it."
_FOLDERS: Final = {"fulltext": ".tantivy", "vectors": ".usearch"}


def check_notes(survey: Survey) -> Iterator[Finding]:
    """Whether all files can be read as notes."""
    unreadable = {path: each for path, each in survey.catalogue.skipped.items() if each.note_id is None}
    if unreadable:
        path, first = next(iter(sorted(unreadable.items())))
        yield warn(
            f"{len(unreadable)} files are no notes that can be read: {path}: {first.reason}.",
            "Correct them; `lithos validate` lists them all.",
        )
    yield ok(f"{len(survey.catalogue)} notes can be read.")


def missing_notes(data: Path, folder: str) -> Finding:
    """That the folder of the notes is not there."""
    if not (data / ".lithos" / "manifest.db").exists():
        return warn(
            f"There is no folder {folder} in {data.absolute()} yet.", "The first `lithos serve` makes it."
        )
    return fail(
        f"The folder {data.absolute() / folder} has vanished with all notes; nothing was removed.",
        f"Look whether its disk is mounted, then {WAY_OUT}.",
    )


def check_duplicates(survey: Survey) -> Iterator[Finding]:
    """Whether every file has an id of its own."""
    seconds = {path: each for path, each in survey.catalogue.skipped.items() if each.note_id is not None}
    if seconds:
        path, first = next(iter(sorted(seconds.items())))
        yield warn(
            f"{len(seconds)} files have the id of another file and are not indexed: {path} ({first.reason}).",
            "Run `lithos validate --fix` to give them new ids, or move the copies out of the folder.",
        )
    yield ok("Every note has an id of its own.")


def check_vanished(survey: Survey) -> Iterator[Finding]:
    """Whether the guard holds notes whose files have vanished."""
    catalogue = survey.catalogue
    paths = sorted(
        entry.path
        for entry in catalogue
        if entry.serial in survey.unreadable and entry.path not in catalogue.skipped
    )
    if paths:
        yield fail(
            f"The files of {len(paths)} notes have vanished ({name_some(paths)}); nothing was removed.",
            f"{WAY_OUT[0].upper()}{WAY_OUT[1:]}.",
        )
    yield ok("No files are missing.")


def check_embedder(
    model: str, load: Callable[[str], Embedder], keep: Callable[[Embedder], None]
) -> Iterator[Finding]:
    """Whether the model loads; `keep` gets it. Nothing is downloaded."""
    if not is_at_hand(model):
        yield warn(
            f"The embedding model {model!r} is not on this machine yet.",
            "The next start downloads it; until then searches go by words alone. "
            "Or set search.embedding_model to 'builtin'.",
        )
        return
    try:
        embedder = load(model)
    except EmbedderUnavailable as failure:
        yield fail(
            f"The embedding model {model!r} cannot be loaded: {failure.reason}.",
            "Searches go by words alone. Set search.embedding_model to 'builtin', to the directory of a "
            "model2vec model, or to the Hugging Face name of one that can be reached.",
        )
        return
    keep(embedder)
    yield ok(f"{model} loads, {embedder.identity.dims} dimensions.")


def check_indexes(survey: Survey, settings: IndexSettings) -> Iterator[Finding]:
    """Whether the indexes can be used and hold exactly the notes.

    A running server answers for their content: what it holds in memory is not on disk yet.
    """
    faults = [fault for fault in find_index_faults(survey, settings) if _matters(survey, fault)]
    for fault in faults:
        name = "full-text index" if fault.details["index"] == "fulltext" else "vector index"
        cause = f"The {name} {_FAULTS[fault.reason].format(**fault.details)}."
        yield fail(cause, _MEND) if fault.reason == "check_failed" else warn(cause, _MEND)
    if not survey.is_live:
        yield from _check_graph(survey)
    missing = [folder for folder in _FOLDERS.values() if not (survey.data / folder).exists()]
    if missing:
        yield ok(f"There is no {' and no '.join(missing)} yet; the next start makes it.")
    else:
        yield ok("Formats are known." if survey.is_live else "They hold exactly the notes.")


def _matters(survey: Survey, fault: Action) -> bool:
    if survey.is_live:
        return fault.reason in ("schema_mismatch", "check_failed")
    return (survey.data / _FOLDERS[fault.details["index"]]).exists()


def _check_graph(survey: Survey) -> Iterator[Finding]:
    for action in reconcile_graph(survey, dry_run=True).actions:
        if action.reason == "cache_unreadable":
            yield warn("The link graph cache cannot be read.", _MEND)
        elif action.is_repair and action.reason != "cache_missing":
            yield warn("The link graph cache is not in line with the notes.", _MEND)
            return
