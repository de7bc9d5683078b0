"""Checks of the embedding models, and of the indexes, link graph and edges derived from the notes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Final

from lithos.kernel.values.findings import DOCTOR, SYSTEM, CheckFinding, check, fail, has_data, ok, warn
from lithos.search.embedding.embedder import EmbedderUnavailable, is_at_hand
from lithos.search.embedding.transformer import find_trouble, is_installed
from lithos.search.embedding.transformer_models import ENGLISH, MULTILINGUAL
from lithos.search.indexing.accurate_choice import ModelChoice, choose_model
from lithos.search.indexing.accurate_models import find_stored_model
from lithos.search.indexing.vault_languages import choose_notes, read_languages, share_of
from lithos.search.settings import SearchConfig
from lithos.upkeep.checks.checks import Installed
from lithos.upkeep.checks.reconcile import reconcile
from lithos.upkeep.checks.reconcile_indices import GRAPH, INDICES, PROVENANCE, Action, find_index_faults
from lithos.upkeep.checks.validation import CheckedVault

#: Message for each defect of an index. Only a damaged index stops searches.
_FAULTS: Final = {
    "schema_mismatch": "has another format ({detail})",
    "embedder_mismatch": "belongs to another embedding model: {detail}",
    "check_failed": "is damaged ({detail})",
    "doc_set_mismatch": "does not match the notes ({missing} missing or changed, {surplus} too many)",
}
_MEND: Final = "The notes are not affected. Run `lithos reconcile`, or start the server, which repairs them."
_RUN: Final = "The notes are not affected. Run `lithos reconcile`."
_RESTART: Final = (
    "The notes are not affected. Restart the server, which rebuilds the link graph from the notes."
)
#: Advice for changed notes: enrichment updates their edges within minutes.
_ENRICHES: Final = (
    "Enrichment updates the edges automatically. If the differences stay, run `lithos reconcile`."
)
_FOLDERS: Final = {"fulltext": ".tantivy", "vectors": ".usearch"}


@check("embedder", DOCTOR, place=180)
def check_embedder(patient: Installed) -> Iterator[CheckFinding]:
    """Report whether the embedding models load. Downloads nothing."""
    yield _try_embedder(patient, patient.config.of(SearchConfig).embedding_model)
    yield _try_accurate(patient)


def _try_embedder(patient: Installed, model: str) -> CheckFinding:
    if not is_at_hand(model):
        return warn(
            f"The embedding model {model!r} is not on this machine yet.",
            "The next start downloads the model. Until then searches use full text only. To "
            "avoid the download, set search.embedding_model to 'builtin'.",
        )
    try:
        patient.embedder = patient.load(model)
    except EmbedderUnavailable as failure:
        return fail(
            f"The embedding model {model!r} cannot be loaded: {failure.reason}.",
            "Searches use full text only. Set search.embedding_model to 'builtin', to the "
            "directory of a model2vec model, or to the Hugging Face name of a reachable model.",
        )
    return ok(f"{model} loads, {patient.embedder.identity.dims} dimensions.")


def _try_accurate(patient: Installed) -> CheckFinding:
    """Report whether the accurate tier works, which of its models the vault gets, and why.

    With the setting `auto`, a tier or a model that is not installed is not a warning.
    """
    tier = patient.config.of(SearchConfig).tier
    if tier == "static":
        return ok("The accurate tier is switched off (search.tier).")
    choice = _choose_model(patient)
    if tier == "auto" and not is_installed():
        best = ENGLISH if choice.lacks is None else choice.lacks
        return ok(f"Semantic search would find more with the accurate tier: {best.install}")
    trouble = find_trouble(choice.model)
    if trouble is None:
        return ok(f"The accurate tier can be used. Its model is {choice.model.title}: {choice.because}.")
    return warn(
        f"The accurate tier cannot be used, so the static tier answers: {trouble}.",
        f"Run {choice.model.install} and restart the server, or set search.tier to static.",
    )


def _choose_model(patient: Installed) -> ModelChoice:
    """Return the model of the accurate tier that a server would choose for the notes."""
    wanted = patient.config.of(SearchConfig).accurate_model
    share = 0.0
    if wanted == "auto" and patient.has_notes:
        survey = patient.survey
        chosen = choose_notes(survey.catalogue)
        share = share_of(read_languages(survey.files, chosen, survey.catalogue.style))
    was = find_stored_model(patient.data / _FOLDERS["vectors"])
    return choose_model(wanted, share, was_multilingual=was is MULTILINGUAL)


@check("indexes", DOCTOR, place=190, when=has_data)
def check_indexes(patient: Installed) -> Iterator[CheckFinding]:
    """Report whether the indexes are usable and match the notes exactly.

    While a server runs, its latest changes are not on disk yet, so only the formats are checked. The server
    itself compares its indexes with the notes.
    """
    survey = patient.survey
    faults = [fault for fault in find_index_faults(patient, patient.loaded) if _matters(survey, fault)]
    for fault in faults:
        name = "full-text index" if fault.details["index"] == "fulltext" else "vector index"
        cause = f"The {name} {_FAULTS[fault.reason].format(**fault.details)}."
        yield fail(cause, _MEND) if fault.reason == "check_failed" else warn(cause, _MEND)
    missing = [folder for folder in _FOLDERS.values() if not (survey.data / folder).exists()]
    if missing:
        yield ok(f"There is no {' and no '.join(missing)} yet. The next start creates it.")
    else:
        yield ok("The index formats are known." if survey.is_live else "The indexes match the notes exactly.")


def _matters(survey: CheckedVault, fault: Action) -> bool:
    if survey.is_live:
        return fault.reason in ("schema_mismatch", "check_failed")
    return (survey.data / _FOLDERS[fault.details["index"]]).exists()


#: Checks that only a running server makes: name, scope, success message and advice.
_COMPARED: Final = (
    ("indexes", INDICES, "The indexes match the notes exactly.", _RUN),
    ("link graph", GRAPH, "The link graph matches the notes.", _RESTART),
    ("lineage", PROVENANCE, "The lineage edges match the notes.", _ENRICHES),
)


async def _compare(scope: str, well: str, way_out: str, patient: Installed) -> AsyncIterator[CheckFinding]:
    (result,) = await reconcile(patient, [scope], dry_run=True)
    for failure in result.failures:
        yield warn(f"This could not be compared ({failure.code}): {failure.detail}", _RUN)
    repairs = [action for action in result.actions if action.is_repair]
    if repairs:
        number = sum(action.count for action in repairs)
        reasons = ", ".join(sorted({action.reason for action in repairs}))
        yield warn(f"{number:,} differences from the notes ({reasons}).", way_out)
    yield ok(well)


for _name, _scope, _well, _way_out in _COMPARED:
    check(_name, SYSTEM, place=190)(partial(_compare, _scope, _well, _way_out))
