"""No parser takes more than time in proportion to its text, whatever the text (issue 11, growth)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.growth import measuring
from tests.growth.measuring import Growth, find_growth, steady
from tests.growth.parsers import PARSERS, refusing
from tests.growth.patterns import Pattern, pair_patterns, single_patterns
from tests.inventory import parse

CORE = Path(__file__).parents[2] / "lithos" / "core"
#: Characters at 4n: few for the quick tests, still enough that a square shows.
QUICK = 1_400
THOROUGH = 6_000
#: Of each kind that was slow with some parser: runs, openings without an end, marks to sort, deep nests.
WORST = (
    "blank", "newline", "mark", "open bracket", "backtick", "links without end", "marks of two classes",
    "YAML bomb", "deep block", "different links", "growing fences", "blanks in a heading", "keys in keys",
)  # fmt: skip

#: Why public functions of `core` that take text are not in `PARSERS`: nothing grows, or who measures them.
_REASONS: Mapping[str, tuple[str, ...]] = {
    "compares ids and names": ("model.check_claimable", "model.check_owned", "model.check_completable"),
    "compares numbers and aspects": ("model.check_fence",),
    "entities.digest_entities": ("entities.is_machine_made",),
    "one partition": ("events.origin_source",),
    "names one character": ("signs.name_of",),
    "compares keys of a frontmatter": (
        "pasted.Pasted.properties", "pasted.check_said", "pasted.warn_of_unused",
    ),
    "limits.holds_more_values": ("limits.ValueCount.exceeds",),
    "matching.has_tags": ("matching.has_tag",),
    "compares versions and names": ("undo.takes_back", "undo.is_undone", "undo.since_by_others"),
    "looks a key up": ("chats.is_chatgpt", "chats.is_claude"),
    "chats.read_chatgpt": ("chats.walk_up",),
    "adds numbers by id": ("match.word_features", "ranking.merge"),
    "keeps what it is given": (
        "findings.ok", "findings.warn", "findings.fail", "findings.check", "findings.checks_of",
        "edges.announce_edge",
    ),
    "joins a few names": ("findings.name_some",),
    "ignored.Ignored.covers": ("ignored.Ignored.covers_folder",),
    "counts pairs of words": ("likeness.Templates.of",),
    "compares ids": ("edges.other_end", "questions.learn"),
    "entity_text.*": (
        "entity_text.word_set", "entity_text.is_filler", "entity_text.is_stop_word", "entity_text.is_opener",
        "entity_text.is_calendar", "entity_text.is_numbering", "entity_text.is_file_name",
        "entity_text.is_entity", "entity_text.is_code_name", "entity_text.is_link_name",
    ),
    "joins three short texts": ("events.note_origin",),
    "cuts at two colons": ("events.origin_version",),
    "document.parse_document as frontmatter": (
        "healing.heal_own", "healing.heal_older", "healing.older_source", "healing.is_older_source",
        "healing.is_id", "owned_keys.read_owned", "owned_keys.OwnedKeys.names", "owned_keys.check_keys",
        "owned_keys.means_something", "layout.FrontmatterHandler.load", "limits.cut_name",
        "limits.cut_items", "limits.cut_extra", "limits.json_bytes",
    ),
    "layout.read_layout": ("layout.FrontmatterHandler.find", "layout.FrontmatterHandler.split"),
    "links.LinkTable.add": ("links.LinkTable.add_keys", "links.LinkTable.remove"),
    "links.LinkTable.resolve": (
        "links.LinkTable.candidates", "links.LinkTable.resolve_if_moved",
    ),
    "document.parse_document": ("document.open_document", "document.told_by"),
    "one search from the end": ("paths.folder_of", "outline.stop_before"),
    "looks at the end": ("paths.names_file",),
    "looks two paths up": ("link_edit.Relinking.path_after", "link_edit.Relinking.was_at"),
    "forms.wiki_links": ("forms.shown_by", "forms.written_target", "forms.is_placed"),
    "forms.note_target": ("forms.read_path", "forms.names_note", "forms.join_path"),
    "searches three times": ("forms.may_have_links",),
    "link_edit.relink": ("link_edit.relink_text",),
    "looks up a claim of a bounded token": ("claims.end_of", "claims.principal_of"),
    "compares whole texts": (
        "grants.Grant.check_resource", "grants.Grant.may_repeat", "grants.Grant.redeem", "requests.take",
    ),
    "redirects.check_redirect": ("redirects.is_known", "redirects.place_of", "redirects.with_answer"),
    "clients.read_registration": ("clients.read_document",),
    "requests.read_parameters": ("requests.read_authorization", "requests.read_resource"),
    "encodes bounded JSON twice": ("limits.check_merged",),
    "healing.normalise_note": ("healing.written_values",),
    "compares states by path": ("plan.plan_files",),
    "compares paths and digests": ("plan.plan_event",),
    "counts paths": ("plan.plan_vanished",),
    "offers.render_prompt": ("offers.Prompt.render",),
    "collects reasons by id": ("ranking.explain",),
    "compares two digests": ("model.effective_version",),
    "compares digests": ("model.newest",),
    "pairs the cited notes, at most a few dozen": ("salience.pairs_within",),
    "follows edges by id": ("graph.TaskGraph.blockers", "graph.TaskGraph.holders", "graph.find_path"),
    "compares words": ("graph.is_satisfied",),
    "looks two keys up": ("graph.check_keys",),
    "findings.find_issues": ("findings.plan_amendments",),
    "document.rewrite_document": (
        "document.Reading.rewritten", "document.Reading.updated", "document.Reading.edited",
        "document.Reading.heading_for",
        "yaml_edit.apply_changes", "yaml_edit.apply_edits",
    ),
    "asks for a type": ("yaml_nodes.is_scalar",),
    "yaml_nodes.read_mapping": ("yaml_nodes.line_nesting_deeper",),
    "scopes.covers": (
        "scopes.Scope.place_of", "scopes.WriteScopes.place_of", "scopes.WriteScopes.limits",
        "scopes.WriteScopes.scope_of",
    ),
    "joins the globs of a scope": (
        "scopes.refusal_of", "scopes.make_scope", "scopes.check_globs", "scopes.check_typed",
        "scopes.scopes_of_agents", "scopes.typed_under", "scopes.chosen_scope",
    ),
    "compares names": ("scopes.is_person",),
    "compares numbers": ("proposals.check_room", "likeness.match_of", "likeness.likeness"),
    "counts rows": ("worth.Tally.add", "worth.ordered"),
    "reads with the functions of each kind": ("reading.read_parts",),
    "takes what a list has": ("foreign_json.objects_of",),
    "joins ids": ("likeness.clusters",),
    "merges rankings of numbers": ("joining.even_out", "joining.interleave"),
    "likely.LikelyNotes.find": ("likely.LikelyNotes.add",),
    "looks a proposal up": (
        "proposals.PendingProposals.get", "proposals.PendingProposals.own",
        "proposals.PendingProposals.new_at",
    ),
    "keeps five reasons": ("proposals.PendingProposals.begin_reasons",),
    "parts.activity_text": ("parts.decisions_text",),
    "copy_merge.merge_copy": ("copy_merge.common_lines", "copy_merge.CopyMerge.marked"),
    "copy_merge.say_the_same": ("versions.head_of",),
    "file_merge.merge_files": ("head_merge.merge_heads", "marking.mark_texts", "merging.Lines.of"),
    "merging.merge_items": ("merging.is_same", "merging.token_of"),
    "compares three line breaks": ("merging.merge_break",),
    "copies.copy_names": ("copies.strong_originals", "copies.is_copy_of", "copies.may_be_strong"),
    "copies.all_copy_names": ("copies.is_named_after", "copies.is_weakly_named"),
    "compares one value": ("copies.says_own_note",),
    "counts lines that were counted": ("copies.are_kin",),
    "yaml_nodes.write_entry": ("yaml_nodes.write_inline", "yaml_nodes.write_block"),
}  # fmt: skip
EXCUSED = {name: why for why, names in _REASONS.items() for name in names}


def nonlinear(parser: str, patterns: Mapping[str, Pattern], length: int) -> dict[str, Growth]:
    """The patterns with which a parser takes too long, and how long."""
    assert patterns
    measured = refusing(PARSERS[parser])
    with steady():
        found = {name: find_growth(measured, pattern, length) for name, pattern in patterns.items()}
    return {name: growth for name, growth in found.items() if growth is not None}


@pytest.mark.slow
def test_no_parser_is_slow_with_the_texts_that_are_worst() -> None:
    """tools §1.2: no call takes long for what is in it; the nightly run tries all texts"""
    patterns = single_patterns()
    worst = {name: patterns[name] for name in WORST}
    assert {parser: bad for parser in PARSERS if (bad := nonlinear(parser, worst, QUICK))} == {}


@pytest.mark.nightly
@pytest.mark.parametrize("parser", PARSERS)
def test_a_parser_is_linear_in_known_bad_patterns_and_pairs_of_characters(parser: str) -> None:
    """tools §1.2: no call takes long for what is in it"""
    assert nonlinear(parser, single_patterns(), QUICK) == {}
    assert nonlinear(parser, pair_patterns(), THOROUGH) == {}


def public_functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Public functions and methods of `core` by module and name."""
    for path in sorted(CORE.rglob("*.py")):
        for node in parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                inner = (item for item in node.body if isinstance(item, ast.FunctionDef))
                yield from ((f"{path.stem}.{node.name}.{item.name}", item) for item in inner)
            elif isinstance(node, ast.FunctionDef):
                yield f"{path.stem}.{node.name}", node


def takes_text(function: ast.FunctionDef) -> bool:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    hints = [ast.unparse(argument.annotation) for argument in arguments if argument.annotation is not None]
    return any("str" in hint or "bytes" in hint or "Any" in hint or "Document" in hint for hint in hints)


def test_every_function_of_core_that_takes_text_is_measured_or_excused() -> None:
    """A parser nobody measures may be the next one that stops the server."""
    functions = {
        name: function for name, function in public_functions() if not name.rpartition(".")[2].startswith("_")
    }
    wanted = {name for name, function in functions.items() if takes_text(function)}
    measured = {name.split(" ")[0] for name in PARSERS}
    assert len(wanted) > 60
    assert wanted - measured - set(EXCUSED) == set()
    assert set(EXCUSED) <= set(functions), set(EXCUSED) - set(functions)
    named = {name for name in measured if not name.startswith("stores.") and not name.endswith("*")}
    assert named <= set(functions), named - set(functions)


def test_a_square_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measure itself must not pass what it is there for; its clock is the length here, or its square."""
    letters = single_patterns()["letter"]
    clocks: Mapping[Callable[[int], int], bool] = {
        lambda length: length: False,
        lambda length: length**2: True,
        lambda length: min(length**2, 20_000 * length): False,  # a budget
    }
    for clock, is_found in clocks.items():
        monkeypatch.setattr(measuring, "seconds_of", lambda _, text, clock=clock: 1e-9 * clock(len(text)))
        assert (find_growth(str.upper, letters, QUICK) is not None) == is_found
