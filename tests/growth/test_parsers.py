"""No parser takes more than time in proportion to its text, whatever the text (issue 11, growth)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

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

#: Public functions of `core` that take text and are not in `PARSERS`, and why.
EXCUSED: Mapping[str, str] = {
    "principals.Keyring.find": "is a protocol",
    "model.check_claimable": "compares ids and names",
    "model.check_owned": "compares ids and names",
    "model.check_fence": "compares numbers and aspects",
    "model.check_completable": "compares ids and names",
    "entities.is_machine_made": "entities.digest_entities",
    "events.origin_source": "one partition",
    "limits.ValueCount.exceeds": "limits.holds_more_values",
    "matching.has_tag": "matching.has_tags",
    "undo.takes_back": "compares versions and names",
    "undo.is_undone": "compares versions and names",
    "undo.since_by_others": "compares versions and names",
    **dict.fromkeys(
        (
            f"versions.VersionReader.{name}"
            for name in ("content", "current_at", "oldest", "recent", "row", "rows")
        ),
        "the interface of a store",
    ),
    "chatgpt.is_chatgpt": "looks a key up",
    "chatgpt.walk_up": "chatgpt.read_chatgpt",
    "claude_chats.is_claude": "looks a key up",
    "match.word_features": "adds numbers by id",
    "findings.ok": "keeps what it is given",
    "findings.warn": "keeps what it is given",
    "findings.fail": "keeps what it is given",
    "findings.name_some": "joins a few names",
    "findings.ScopeResult.of_json": "keeps what it is given",
    "ignored.Ignored.covers_folder": "ignored.Ignored.covers",
    "json_edit.Insertion.apply": "joins three pieces",
    "json_text.InvalidText.at": "one search from the end, one count",
    "json_text.Node.named": "compares keys; json_edit.find_entry",
    "json_text.decode_escape": "one escape of json_text.decode_string",
    "embedded_edit.find_embedded": "embedded_edit.insert_embedded",
    "embedded_edit.is_same_embedded_but": "embedded_edit.insert_embedded",
    "embedded_edit.remove_embedded": "embedded_edit.insert_embedded",
    "edges.check_resolution": "looks a word up",
    "edges.other_end": "compares ids",
    "questions.learn": "compares ids",
    "salience.pairs_together": "compares ids",
    "edges.announce_edge": "keeps what it is given",
    "entity_text.is_filler": "entity_text.*",
    "entity_text.is_stop_word": "entity_text.*",
    "entity_text.is_opener": "entity_text.*",
    "entity_text.is_calendar": "entity_text.*",
    "entity_text.is_numbering": "entity_text.*",
    "entity_text.is_file_name": "entity_text.*",
    "entity_text.is_entity": "entity_text.*",
    "entity_text.is_code_name": "entity_text.*",
    "entity_text.is_link_name": "entity_text.*",
    "events.note_origin": "joins three short texts",
    "events.origin_version": "cuts at two colons",
    "healing.heal": "document.parse_document as frontmatter",
    "healing.older_source": "document.parse_document as frontmatter",
    "inference.count_most_tokens": "inference.build_messages",
    "inference.make_edges": "keeps what it is given",
    "layout.FrontmatterHandler.find": "layout.read_layout",
    "layout.FrontmatterHandler.split": "layout.read_layout",
    "layout.FrontmatterHandler.load": "document.parse_document as frontmatter",
    "links.LinkTable.add_keys": "links.LinkTable.add",
    "links.LinkTable.remove": "links.LinkTable.add",
    "links.LinkTable.is_ambiguous": "links.LinkTable.resolve",
    "links.LinkTable.candidates": "links.LinkTable.resolve",
    "links.LinkTable.resolve_if_moved": "links.LinkTable.resolve",
    "document.parse_signed": "document.parse_document",
    "paths.folder_of": "one search from the end",
    "paths.names_file": "looks at the end",
    "limits.check_merged": "encodes bounded JSON twice",
    "limits.cut_name": "document.parse_document as frontmatter",
    "limits.cut_items": "document.parse_document as frontmatter",
    "limits.cut_extra": "document.parse_document as frontmatter",
    "limits.json_bytes": "document.parse_document as frontmatter",
    "values.written_values": "values.normalise_note",
    "plan.plan_files": "compares states by path",
    "plan.plan_event": "compares paths and digests",
    "plan.plan_vanished": "counts paths",
    "offers.Prompt.render": "offers.render_prompt",
    "ranking.merge": "adds numbers by id",
    "ranking.best_of": "sorts ids",
    "ranking.ground_scores": "adds numbers by id",
    "ranking.promising": "sorts numbers by id",
    "ranking.explain": "collects reasons by id",
    "ranking.diversify": "compares the names of thirty notes; rerank.name_words makes them",
    "ranking.jaccard": "compares two sets",
    "model.effective_version": "compares two digests",
    "model.newest": "compares digests",
    "salience.dominant_namespace": "counts namespaces",
    "salience.pairs_within": "pairs the cited notes, at most a few dozen",
    "graph.TaskGraph.blockers": "follows edges by id",
    "graph.TaskGraph.holders": "follows edges by id",
    "graph.is_satisfied": "compares words",
    "graph.find_path": "follows edges by id",
    "graph.check_keys": "looks two keys up",
    "findings.plan_amendments": "findings.find_issues",
    "yaml_edit.apply_changes": "document.rewrite_document",
    "yaml_edit.line_end": "one search in the text; frontmatter.rewrite_document",
    "yaml_edit.line_start": "one search in the text; frontmatter.rewrite_document",
    "yaml_edit.end_of": "document.rewrite_document",
    "yaml_edit.apply_edits": "document.rewrite_document",
    "yaml_edit.SpanEditor.add": "document.rewrite_document",
    "yaml_edit.SpanEditor.replace": "document.rewrite_document",
    "yaml_nodes.is_scalar": "asks for a type",
    "yaml_nodes.write_inline": "yaml_nodes.write_entry",
    "yaml_nodes.write_block": "yaml_nodes.write_entry",
}


def nonlinear(parser: str, patterns: Mapping[str, Pattern], length: int) -> dict[str, Growth]:
    """The patterns with which a parser takes too long, and how long."""
    assert patterns
    measured = refusing(PARSERS[parser])
    with steady():
        found = {name: find_growth(measured, pattern, length) for name, pattern in patterns.items()}
    return {name: growth for name, growth in found.items() if growth is not None}


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


def test_a_square_is_found() -> None:
    """The measure itself: it must not pass what it is there for."""

    def square(text: str) -> object:
        return sum(letter == other for letter in text[::16] for other in text)

    with steady():
        assert find_growth(square, single_patterns()["letter"], QUICK) is not None
        assert find_growth(str.upper, single_patterns()["letter"], QUICK) is None
