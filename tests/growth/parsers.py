"""Parsers and normalisers of models, and some of `stores`, as calls that take one text.

`making` finds and calls each model function that takes text. This module contains calls whose text must be at
a particular position to be read. The first word of a name is the function.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from attrs import evolve
from yaml import YAMLError

from lithos.access.model import claims, clients, redirects
from lithos.access.model.requests import OAuthRefused
from lithos.attachments.model import drawing, foreign_json, lz_string, reading
from lithos.attachments.model.parts import NotExtractable
from lithos.history.model import copy_merge, file_merge
from lithos.imports.model import chats, conversation, json_items, memory_files, observations
from lithos.kernel.databases import sqlite
from lithos.kernel.values import findings
from lithos.kernel.values.errors import LithosError
from lithos.memory.briefing import blocks, briefing, compact, parts, passages
from lithos.notes.catalogue import index_links as linkgraph
from lithos.notes.format import document, merging, pasted_file, tolerant_reading
from lithos.notes.links import canvas, forms, links, literal, properties
from lithos.notes.links import edit as link_edit
from lithos.notes.model import entities, ignored, scopes, versions
from lithos.notes.model import paths as urls
from lithos.notes.model.note import Document, Note
from lithos.search.index import fulltext_query, fulltext_schema, stemming
from lithos.search.index.fulltext_schema import Filters
from lithos.search.ranking import compounds, lead_coverage, reordering, replies
from lithos.server.tools import resource_uris, short_snippets
from lithos.tasks.model import task as task_model
from lithos.tasks.model.task_commands import NextTask
from lithos.text import chunk, excerpt_bounds, hidden_text, markdown, own_text, query, snippet
from lithos.text import snippet as truncation
from lithos.text.outline import differences, outline, section_edit
from lithos.text.outline import word_differences as changes
from lithos.text.secrets.provider_keys import Rule
from lithos.text.words import analysis, languages, list_filters, names, similarity, tokens
from lithos.text.yaml import layout
from lithos.text.yaml import nodes as yaml_text
from lithos.text.yaml.vault_style import VaultStyle
from lithos.upkeep.evaluation import model_baseline as baseline
from lithos.upkeep.evaluation import model_questions as knowledge_tests
from lithos.upkeep.model import likely_targets, note_issues
from tests.growth.making import Parse, made_calls, pieces

_NOW: Final = datetime(2026, 1, 2, tzinfo=UTC)
_ID: Final = "0b6f4f3e-6d3b-4c39-8a8e-5a3f4f1f5d10"
_NOTE: Final = Note(id=_ID, title="A title", author="ann", created_at=_NOW, updated_at=_NOW)
_MOVED: Final = link_edit.Relinking(old="a/b.md", new="c.md", pages={"b": "c"}, paths={"a/b.md": "c.md"})
_HEAD: Final = f"---\nid: {_ID}\ntitle: A title\n---\n"
_STEMMER: Final = stemming.QueryStemmer(stemming.make_analyzer(), stemming.VaultLanguages, lambda _: 1)
_MIXED: Final = stemming.QueryStemmer(
    stemming.make_analyzer(),
    lambda: stemming.VaultLanguages(("german", "russian", "arabic"), ("german",)),
    lambda token: len(token) % 2,
)
_TRANSLATOR: Final = fulltext_query.QueryTranslator(fulltext_schema.make_schema(), _STEMMER)
_REFUSALS: Final = (
    knowledge_tests.UnusableTests, baseline.UnusableBaseline,
    chats.NoConversation, observations.NoGraphLine,
    LithosError, document.UnreadableNote, query.QuerySyntaxError, ValueError,
    OAuthRefused, claims.NoPrincipal, NotExtractable, canvas.NoCanvas,
    YAMLError, KeyError, AttributeError,  # these names are generated
)  # fmt: skip


def refusing(parse: Parse) -> Parse:
    """Return the call with its expected exceptions suppressed. A refusal is a valid result."""

    def run(given: str) -> object:
        with suppress(*_REFUSALS):
            return parse(given)
        return None

    return run


def _brief(given: str) -> object:
    split = passages.split_note("A title", given, 500, 1_000)
    source = passages.SourceNote(id=_ID, title="A title", path="a.md", version=1, score=1.0, split=split)
    terms = snippet.Terms.of(given[:200], {})
    return briefing.compose(briefing.Material(sources=[source], terms=terms), 300, tokens.count_safely)


def _brief_whole(given: str) -> object:
    split = passages.split_note("A title", given, 500, 1_000)
    source = passages.SourceNote(id=_ID, title="A title", path="a.md", version=1, score=1.0, split=split)
    material = briefing.Material(sources=[source], terms=snippet.Terms.of(given[:200], {}))
    return compact.compose_whole(material, 300, tokens.count_safely, {}, wants_all=False, explains=True)


def _part(given: str) -> parts.TaskPart:
    task = task_model.Task(id="t", title=given, description=given, created_by="ann", created_at=_NOW)
    return parts.TaskPart(task=task)


def _cards(given: str) -> list[dict[str, str]]:
    return [{"id": "c", "type": "text", "text": each} for each in [given, *pieces(given)]]


def _all_parts(found: Iterator[object]) -> object:
    """Return all parts of a file. If no part can be read, return the error."""
    with suppress(NotExtractable):
        return list(found)
    return None


def _decompress(given: str) -> object:
    with suppress(lz_string.BadCompression, lz_string.TooLarge):
        return lz_string.decompress(given, 100_000)
    return None


def _likely(given: str) -> object:
    """Resolve a link that consists of two long and similar names."""
    names = likely_targets.LikelyNotes()
    names.add(findings.NamedNote("id", given, "a.md"), (given, given[::-1]))
    return names.find(given[1:])


def _bytes(given: str) -> bytes:
    return given.encode(errors="replace")


def _read(given: str) -> object:
    return document.parse_document(_bytes(given), "a.md", _NOW)


def _render(note: Note, content: str) -> object:
    return document.render_document(Document(note=note, content=content))


def _rewrite(old: str, note: Note, content: str, *, replace_body: bool) -> object:
    new = Document(note=note, content=content)
    return document.rewrite_document(_bytes(old), "a.md", _NOW, new, replace_body=replace_body)


def _resolve(given: str) -> object:
    table = links.LinkTable()
    table.add(_ID, "a.md", "A title", ("alias",))
    return table.resolve(given), table.candidates(given)


def _add(given: str) -> object:
    table = links.LinkTable()
    table.add(_ID, f"{given}.md", given, (given,))
    table.remove(_ID)
    return len(table)


def _hold(given: str) -> object:
    known = compounds.Compounds()
    known.add([given, *pieces(given)])
    return known.holding(given[:20])


def _resolve_all(given: str) -> object:
    return [_resolve(link.target) for link in links.scan_links(given)]


def _link_all(given: str) -> object:
    graph = linkgraph.LinkGraph()
    for link in links.scan_links(given):
        graph.link(_ID, linkgraph.Placeholder(link.target))
    for link in links.scan_links(given):
        graph.unlink(_ID, linkgraph.Placeholder(link.target))
        graph.discard_lonely(linkgraph.Placeholder(link.target))
    return graph.edge_count


def _search(given: str) -> object:
    tree = query.parse_query(given)
    return _TRANSLATOR.translate(tree, Filters()) if tree is not None else None


def _search_plain(given: str) -> object:
    tree = query.plain_words(given)
    return _TRANSLATOR.translate(tree, Filters(tags=(given,), author=given)) if tree is not None else None


def _fold_back(given: str) -> object:
    return [analysis.unfold_offset(given, share * len(given) // 4) for share in range(5)]


def _snippets(given: str) -> object:
    few = snippet.Terms.of("zzz a 語 running", {})
    return snippet.find_passage(given, few), snippet.find_passage(given, snippet.Terms.of(given, {}))


def _check_files(given: str) -> object:
    note = evolve(_NOTE, title=given, source_url=given, aliases=(given,))
    found = tuple(link.target for link in links.scan_links(given))
    files = [note_issues.CheckedFile(path=f"{n}.md", note=note, links=(*found, given)) for n in range(2)]
    folder = note_issues.NoteFolder(files)
    return note_issues.find_issues(folder), list(note_issues.plan_amendments(folder, lambda: given + "0"))


def _index(given: str) -> object:
    return fulltext_schema.make_document(
        fulltext_schema.FulltextEntry(
            serial=1, stamp=1, id=_ID, title=given, headings=given, body=given, entities=(given,),
            tags=(given,), author=given, path=given, namespace=given, updated_at=_NOW,
        )
    )  # fmt: skip


def _merge(base: str, mine: str, theirs: str) -> object:
    found = merging.merge_texts(base, mine, theirs)
    return [each.to_row() for each in found.conflicts]


def _diff(one: str, other: str) -> object:
    old, new = (text.encode("utf-8", "replace") for text in (one, other))
    return differences.unified_diff(old, new, "old", "new").text


def _broken(given: str) -> str:
    """Return the text with a line break after every third character."""
    return "\n".join(given[at : at + 3] for at in range(0, len(given), 3))


def _outline_of(given: str) -> outline.Outline:
    return outline.read_outline(given, (0, min(2, len(given))))


def _find_sections(given: str) -> object:
    found = _outline_of(given)
    for path in [given[:1_000], *(each.path for each in found.sections[:3])]:
        with suppress(LithosError):
            found.find(path)
    return [found.hash_of(each) for each in found.sections[:3]]


def _edit_section(given: str, op: str) -> object:
    found = outline.read_outline(f"## a\n\n{given}")
    edit = section_edit.SectionEdit(op=op, section="a", text=given, find=given[len(given) // 2 :])
    with suppress(LithosError):
        section_edit.check_edit(edit)
    return section_edit.apply_edit(edit, found.body, None, "\r\n", found)


def _edit_body(given: str, op: str) -> object:
    edit = section_edit.SectionEdit(op=op, text=given, find=given[:100])
    return section_edit.apply_edit(edit, given, None, "\r\n", None)


def _chatgpt_of(given: str) -> object:
    """Convert a ChatGPT tree. Its nodes, edges, texts and citations come from the text."""
    parts = pieces(given)
    nodes = {
        str(at): {
            "parent": str(at - 1 if at % 3 else at - 2),
            "message": {
                "author": {"role": "user"},
                "content": {
                    "content_type": "code" if at % 7 == 0 else "text",
                    "parts": [part, {"text": part}],
                },
                "metadata": {"content_references": [{"matched_text": part}], "attachments": [{"name": part}]},
            },
        }
        for at, part in enumerate(parts)
    }
    value = {"mapping": nodes, "title": given, "id": given, "create_time": given}
    whole = {
        "mapping": {"a": {"message": {"author": {"role": "user"}, "content": {"parts": ["\ue200", given]}}}}
    }
    return list(conversation.blocks_of(chats.read_chatgpt(value))), chats.read_chatgpt(whole)


def _claude_of(given: str) -> object:
    messages = [
        {
            "uuid": str(at),
            "parent_message_uuid": str(at - 1 if at % 3 else at - 2),
            "sender": part,
            "content": [{"type": "text", "text": part}, {"type": "tool_use", "input": {"content": part}}],
            "attachments": [{"file_name": part, "extracted_content": part}],
        }
        for at, part in enumerate(pieces(given))
    ]
    return chats.read_claude({"chat_messages": messages, "name": given, "summary": given})


def _graph_of(given: str) -> object:
    found = observations.read_line(
        {"type": "entity", "name": given, "entityType": given, "observations": [given, {"content": given}]}
    )
    return observations.entity_blocks([given], [(given, given)]), found


def _message_of(given: str) -> conversation.Conversation:
    return conversation.Conversation(id="a", title=given, messages=(conversation.Message(given, given),))


def _items_of(given: str) -> object:
    return list(json_items.read_items(io.BytesIO(b'[{"title": 1}, ' + _bytes(given))))


def _canvas_of(given: str) -> object:
    try:
        return canvas.read_canvas(_bytes(given))
    except canvas.NoCanvas as failure:
        return failure


_OF_A = links.note_keys("i", "a.md", "A", ())
PARSERS: Final[Mapping[str, Parse]] = {
    **made_calls(),
    "chats.read_chatgpt": _chatgpt_of,
    "chats.read_claude": _claude_of,
    "conversation.blocks_of": lambda t: list(conversation.blocks_of(_message_of(t))),
    "conversation.split_blocks": lambda t: list(
        conversation.split_blocks([f"## a\n\n{t}", *pieces(t)], 4_400)
    ),
    "json_items.read_items": _items_of,
    "json_items.read_items of a string": lambda t: _items_of('"' + t),
    "json_items.read_items behind damage": lambda t: _items_of("[}" + t),
    "json_items.read_json": lambda t: json_items.read_json(_bytes("[" + t)),
    "json_items.read_json of a string": lambda t: json_items.read_json(_bytes('"' + t)),
    "observations.read_line": _graph_of,
    "memory_files.scope_of": lambda t: memory_files.scope_of(f"{t}/CLAUDE.md", t, is_home=False),
    "observations.read_statements of items": lambda t: observations.read_statements(
        f"- [a] {t}\n- a [[b]] ({t}"
    ),
    "observations.read_relation": lambda t: observations.read_relation(f"a [[b]] {t}"),
    "briefing.compose": _brief,
    "parts.render_spans": lambda t: parts.render_spans(
        t, [(0, len(t))], list(markdown.code_fences(t))
    ),
    "parts.task_text": lambda t: parts.task_text(_part(t), 200, tokens.count_safely),
    "snippet.first_places": lambda t: snippet.first_places(t, snippet.Terms.of("zebra in the night", {})),
    "snippet.places_among": lambda t: snippet.places_among(
        t, list(enumerate(snippet.Terms.of("zebra in the night", {}).terms))
    ),
    "merging.merge_texts": lambda t: _merge(t, f"x\n{t}", f"{t}\ny"),
    "merging.merge_texts of lines": lambda t: _merge(
        _broken(t), _broken(t[::-1]), _broken(t[len(t) // 2 :] + t[: len(t) // 2])
    ),
    "differences.count_lines": lambda t: differences.count_lines(t.encode(), f"{t[::-1]}\n{t}".encode()),
    "versions.have_same_body": lambda t: versions.have_same_body(
        f"---\n{t}\n---\n\n{t}".encode("utf-8", "replace"), t.encode("utf-8", "replace")
    ),
    "differences.unified_diff": lambda t: _diff(t, f"{t[::-1]}\n{t}"),
    "differences.unified_diff of lines": lambda t: _diff(_broken(t), _broken(t[::-1])),
    "merging.merge_documents": lambda t: merging.merge_documents(
        Document(note=_NOTE, content=t),
        Document(note=evolve(_NOTE, title=t, tags=tuple(pieces(t)), extra={"x": t}), content=t[::-1]),
        Document(note=evolve(_NOTE, title=t[1:], extra={"x": pieces(t)}), content=t[1:]),
    ),
    "copy_merge.merge_copy": lambda t: copy_merge.merge_copy(
        _bytes(t), _bytes(t[::2]), copy_merge.MergeBase(None)
    ).marked("a", "b"),
    "copy_merge.find_ancestor": lambda t: copy_merge.find_ancestor(
        [copy_merge.PastVersion("updated", _bytes(each)) for each in (t, t[1:], t[:-1])],
        _bytes(t[::2]),
        is_whole=True,
    ),
    "copy_merge.say_the_same": lambda t: copy_merge.say_the_same(_bytes(t), _bytes(t + "x")),
    "file_merge.merge_files": lambda t: file_merge.merge_files(
        t.encode(), f"x\n{t}".encode(), f"{t}\ny".encode()
    ),
    "file_merge.merge_files with frontmatter": lambda t: file_merge.merge_files(
        f"---\n{t}\n---\n".encode(), f"---\na: 1\n{t}\n---\n".encode(), f"---\n{t}\nb: 2\n---\n".encode()
    ),
    "merging.merge_items": lambda t: merging.merge_items(pieces(t), pieces(t[::-1]), pieces(t[1:])),
    "word_differences.changed_words of lines": lambda t: changes.changed_words(pieces(t), pieces(t[::-1])),
    "differences.match_lines": lambda t: differences.match_lines(
        [ord(each) % 5 for each in t], [ord(each) % 5 for each in t[::-1]]
    ),
    "outline.read_outline of an item": lambda t: outline.read_outline(f"- a\n  {t}"),
    "outline.read_outline of a quote": lambda t: outline.read_outline("> " * 30 + t),
    "outline.read_changed": lambda t: outline.read_changed(
        outline.read_outline(t), t[: len(t) // 2] + "x" + t[len(t) // 2 :], None, len(t) // 2, len(t) // 2
    ),
    "outline.Outline.find": _find_sections,
    "outline.scan_tasks of an item": lambda t: list(outline.scan_tasks(f"- [ ] {t}")),
    "section_edit.apply_edit": lambda t: _edit_section(t, "append"),
    "section_edit.apply_edit to replace": lambda t: _edit_section(t, "replace"),
    "section_edit.apply_edit to find": lambda t: _edit_section(t, "find_replace"),
    "section_edit.apply_edit to check": lambda t: _edit_body(t, "check"),
    "section_edit.apply_edit of a body": lambda t: _edit_body(t, "prepend"),
    "document.edit_document": lambda t: document.edit_document(
        _bytes(t), "a.md", _NOW, lambda old, _: evolve(old.note, version=7), t
    ),
    "chunk.chunk_text as title": lambda t: chunk.chunk_text(t, t),
    "lead_coverage.LeadText.unpack": lambda t: refusing(
        lambda _: lead_coverage.LeadText.unpack(_bytes(t))
    )(""),
    "lead_coverage.hash_stem": lead_coverage.hash_stem,
    "lead_coverage.lead_coverage": lambda t: lead_coverage.lead_coverage(
        [lead_coverage.LeadText.of([t.split()])], {"a": 2.0}
    ),
    "own_text.has_own_text of queries": lambda t: own_text.has_own_text(f"```query\n{t}"),
    "query.begin_last": lambda t: query.begin_last(query.plain_words(t)),
    "reordering.keep_places": lambda t: reordering.keep_places(
        [(place, -place) for place in range(len(t))], (range(len(t) - 1, -1, -1), range(len(t) - 1, -1, -1))
    ),
    "model_questions.read_questions of items": lambda t: knowledge_tests.read_questions(
        _bytes(f"- question: {t}\n  expect: [{t}]\n"), is_json_lines=False
    ),
    "model_questions.read_questions of JSON lines": lambda t: knowledge_tests.read_questions(_bytes("{" + t)),
    "model_questions.write_questions": lambda t: knowledge_tests.write_questions(
        [(knowledge_tests.Question(question=t, expect=(t,)), t)], as_json_lines=False
    ),
    "model_baseline.read_baseline": lambda t: baseline.read_baseline(_bytes('{"lithos_baseline": 1, ' + t)),
    "entities.decide_extraction": lambda t: entities.decide_extraction(_NOTE, f"# a\n{t}"),
    "document.parse_document": _read,
    "document.parse_document as body": lambda t: _read(_HEAD + t),
    "document.parse_document as frontmatter": lambda t: _read(f"---\n{t}\n---\nText"),
    "document.parse_document as title": lambda t: _read(f"---\ntitle: {t}\n---\n# {t}\nText"),
    "document.parse_document as list": lambda t: _read(f"---\ntags: [{t}]\naliases: {t}\n---\n"),
    "document.parse_document as a text": lambda t: _read(f"---\nx: |\n  {t}\n---\n"),
    "document.parse_document quoted": lambda t: _read(f'---\nx: "{t}"\n---\n'),
    "document.given_keys of a text": lambda t: document.given_keys(_bytes(t)),
    "document.given_keys": lambda t: document.given_keys(_bytes(f"---\n{t}\n---\n")),
    "document.render_document": lambda t: _render(_NOTE, t),
    "document.render_document as values": lambda t: _render(
        evolve(_NOTE, title=t, tags=(t,), source=t, namespace=t, summaries={"short": t}, extra={t: t}), "Text"
    ),
    "document.render_document as lists": lambda t: _render(
        evolve(_NOTE, tags=tuple(pieces(t)), extra={"x": pieces(t)}), "Text"
    ),
    "document.rewrite_document": lambda t: _rewrite(_HEAD + "Text", _NOTE, t, replace_body=True),
    "document.rewrite_document of": lambda t: _rewrite(t, _NOTE, "Text", replace_body=False),
    "document.rewrite_document of a body": lambda t: _rewrite(
        _HEAD + t, evolve(_NOTE, title="Other"), "", replace_body=False
    ),
    "document.rewrite_document of a frontmatter": lambda t: _rewrite(
        f"---\nid: {_ID}\n{t}\n---\nText", evolve(_NOTE, tags=("x",)), "Text", replace_body=True
    ),
    "document.rewrite_document of a list": lambda t: _rewrite(
        f"---\nid: {_ID}\n{yaml_text.write_entry('tags', pieces(t), '', chr(10))}---\nText",
        evolve(_NOTE, tags=tuple(reversed(pieces(t)))),
        "Text",
        replace_body=True,
    ),
    "document.parse_document of a vault": lambda t: document.parse_document(
        _bytes(f"---\ntags: [\n---\n{t}"), "a.md", _NOW, None, VaultStyle.of_foreign()
    ),
    "document.rewrite_document of a foreign note": lambda t: document.rewrite_document(
        _bytes(t),
        "a.md",
        _NOW,
        Document(note=_NOTE, content=t[::-1]),
        replace_body=True,
        style=VaultStyle.of_foreign(),
    ),
    "document.adopt_document": lambda t: document.adopt_document(
        _bytes(_HEAD + t), "a.md", _NOW, lambda o, _: (evolve(o.note, author="me"), frozenset(("author",)))
    ),
    "document.amend_document": lambda t: document.amend_document(
        _bytes(_HEAD + t), "a.md", _NOW, {"author": t}
    ),
    "scopes.Scope.place_of": lambda t: scopes.Scope(("a/**",), ("**/*b",)).place_of(t[:5_000]),
    "scopes.covers": lambda t: scopes.covers(["a/**/b*c/*", "**/*a*b*"], t[:5_000]),
    "scopes.covers by a glob": lambda t: scopes.covers([t[:500]], "ab/" * 300),
    "ignored.check_filter of an expression": lambda t: ignored.check_filter(f"/{t}/"),
    "ignored.read_filters": lambda t: ignored.read_filters({
        "userIgnoreFilters": [*pieces(t), *(f"/{each}/" for each in pieces(t)), t]
    }),
    "links.linking_sentence of one": lambda t: links.linking_sentence(f"{t} [[a]] {t}", "b.md", _OF_A),
    "reading.read_canvas": lambda t: list(reading.read_canvas(json.dumps({"nodes": _cards(t)}).encode())),
    "drawing.read_drawing": lambda t: _all_parts(drawing.read_drawing("a.excalidraw.md", _bytes(t))),
    "foreign_json.read_object": lambda t: foreign_json.read_object(json.dumps({"a": t}), "a file"),
    "lz_string.decompress": _decompress,
    "similarity.word_pairs": lambda t: similarity.likeness(
        similarity.word_pairs(t), similarity.word_pairs(t[::-1])
    ),
    "likely_targets.LikelyNotes.find": _likely,
    "links.scan_targets of Markdown": lambda t: links.scan_targets(f"[x]({t}.md) {t}](a.md)", "a/b.md"),
    "markdown.has_conflict_markers of lines that begin one": lambda t: markdown.has_conflict_markers(
        t.replace("a", "\n<<<<<<<\n") + ">>>>>>>"
    ),
    "markdown.scan_tags behind a space": lambda t: markdown.scan_tags(t.replace("a", " #a")),
    "markdown.plain_title of a short one": lambda t: markdown.plain_title(t[:1_000]),
    "list_filters.has_tags": lambda t: list_filters.has_tags(pieces(t), [t, t + "/"]),
    "links.LinkTable.add": _add,
    "links.LinkTable.resolve": _resolve,
    "links.LinkTable.named_in": lambda t: links.LinkTable().named_in(*names.name_spans(t), 8),
    "links.LinkTable.resolve all": _resolve_all,
    "forms.wiki_links": lambda t: [
        (forms.shown_by(each, t), forms.written_target(each, t)) for each in forms.wiki_links(t)
    ],
    "forms.destinations by reference": lambda t: forms.destinations(f"[a]: b\n{t}", f"[a]: b\n{t}"),
    "literal.mask_literal of a list": lambda t: literal.mask_literal(f"- a\n\n      [{t}"),
    "properties.properties_in": lambda t: properties.properties_in(_bytes(f"---\na: {t}[[b]]\n{t}\n---\n")),
    "properties.decode": lambda t: (properties.decode(t, '"'), properties.decode(t, "'")),
    "links.links_in": lambda t: links.links_in(_bytes(f"---\na: '[[{t}]]'\nb: [[{t}]]\n---\n"), t, "a/b.md"),
    "links.targets_in": lambda t: links.targets_in(_bytes(f"---\na: >\n  [[b]] {t}\n---\n"), t, "a/b.md"),
    "canvas.read_canvas": lambda t: _canvas_of(json.dumps({"nodes": _cards(t)})),
    "canvas.read_canvas of a damaged one": _canvas_of,
    "canvas.relink_canvas": lambda t: canvas.relink_canvas(
        json.dumps({"nodes": _cards(t)}).encode(),
        lambda _: "c.md",
        lambda text: link_edit.relink_text(text, "a/b.canvas", _MOVED, lambda _: False),
    ),
    "edit.relink": lambda t: link_edit.relink(_bytes(t), "b/a.md", _MOVED, lambda _: False),
    "edit.relink to a path": lambda t: link_edit.relink(
        _bytes(f"[[{t}]] [x]({t}) [y](<{t}>)"), "b/a.md", _MOVED, lambda _: False
    ),
    "edit.relink of properties": lambda t: link_edit.relink(
        _bytes(f"---\na: [[b]]\nb: '[[b]] {t}'\n---\n"), "b/a.md", _MOVED, lambda _: False
    ),
    "edit.relink_own": lambda t: link_edit.relink_own(
        _bytes(t), _MOVED, lambda _: True, only_broken=False
    ),
    "layout.read_layout closed": lambda t: layout.read_layout(
        _bytes(f"---\n{t}\n---\n{t}")
    ).content,
    "tolerant_reading.normalise_note": lambda t: tolerant_reading.written_values(
        tolerant_reading.normalise_note(
            evolve(_NOTE, title=t, tags=tuple(pieces(t)), entities=(t,), extra={t: t})
        )
    ),
    "resource_uris.render_prompt": lambda t: [
        resource_uris.render_prompt(prompt.name, {argument.name: t for argument in prompt.arguments})
        for prompt in resource_uris.PROMPTS
    ],
    "query.parse_query translated": _search,
    "query.plain_words": _search_plain,
    "task_commands.NextTask.passes": lambda t: NextTask(
        agent="a", tags=tuple(t.split()), project=t, metadata_match={"k": [t]}
    ).passes(t.split(), {"project": t, "k": t}),
    "resource_uris.read_address": lambda t: resource_uris.read_address(f"lithos://note/{t}"),
    "snippet.find_passage": _snippets,
    "snippet.mark_matches": lambda t: snippet.mark_matches(t, snippet.Terms.of("zzz a 語 running", {})),
    "snippet.cut": lambda t: [snippet.cut(t, len(t) * share // 5) for share in (1, 3, 4)] if t else None,
    "clients.is_document": lambda t: clients.is_document(f"https://a{t}"),
    "clients.read_registration": lambda t: clients.read_registration(
        {"client_name": t, "redirect_uris": [f"https://a.example/{t}"]}, "c", _NOW
    ),
    "redirects.check_redirect": lambda t: redirects.check_redirect(f"https://a.example/{t}"),
    "hidden_text.hide": lambda t: hidden_text.hide(t, hidden_text.Frame(frozenset({1}))),
    "hidden_text.shared_blocks": lambda t: hidden_text.shared_blocks([("", t)] * hidden_text.LEAST_NOTES),
    "hidden_text.without_hidden": lambda t: hidden_text.without_hidden(f"\x00{t}"),
    "excerpt_bounds.tidy_edge": lambda t: [
        excerpt_bounds.tidy_edge(t, at, 0) for at in range(500, len(t), 500)
    ],
    "query.words_of": lambda t: query.words_of(query.plain_words(t)),
    "replies.is_greeting": lambda t: (replies.is_greeting(t), replies.is_greeting(t.replace("a", "hi "))),
    "blocks.cut_blocks": lambda t: blocks.cut_blocks(passages.split_note("A title", t, 500, 1_000)),
    "compact.compose_whole": _brief_whole,
    "short_snippets.shorten": lambda t: short_snippets.shorten(t, snippet.Terms.of(t[:200], {}), 100),
    "layout.frontmatter_at": lambda t: layout.frontmatter_at(f"\n\n---\n{t}"),
    "layout.trim_content": lambda t: (layout.trim_content(t), layout.trim_content(f"\n{t}\n")),
    "pasted_file.read_pasted": lambda t: pasted_file.read_pasted(f"---\n{t}\n---\n{t}", VaultStyle()),
    "pasted_file.begins_with_note_keys": lambda t: pasted_file.begins_with_note_keys(f"---\n{t}\n---\n"),
    "compounds.Compounds.holding": _hold,
    "provider_keys.Rule.end_of": lambda t: [
        Rule("k", r"[a-z\[\]( ]{4,90}", 0.0, "").end_of(t, at) for at in range(0, len(t), 50)
    ],
    "analysis.unfold_offset": _fold_back,
    "analysis.unfold_offsets": lambda t: analysis.unfold_offsets(t, range(0, len(analysis.fold(t)), 50)),
    "snippet.truncate": lambda t: [truncation.truncate(t, len(t) * share // 5) for share in (1, 3, 4)],
    "paths.normalise_url as host": lambda t: urls.normalise_url(f"https://{t}/"),
    "paths.normalise_url as path": lambda t: urls.normalise_url(f"https://example.org/{t}"),
    "paths.normalise_url as query": lambda t: urls.normalise_url(f"https://example.org/?{t}"),
    "note_issues.find_issues": _check_files,
    "nodes.write_block": lambda t: yaml_text.write_block(pieces(t), "", "\n"),
    "nodes.write_text": lambda t: [yaml_text.write_text(t, style) for style in (None, "'", '"')],
    "fulltext_schema.make_document": _index,
    "stemming.QueryStemmer.tokens": _STEMMER.tokens,
    "stemming.prepare_in": lambda t: [stemming.prepare_in(each, t) for each in ("german", "arabic", "tamil")],
    "stemming.QueryStemmer.forms": lambda t: (_MIXED.forms(t[:5_000]), _MIXED.stems(t)),
    "languages.language_of": lambda t: (languages.language_of(t), languages.language_of_query(t)),
    "index_links.LinkGraph": _link_all,
    "sqlite.load_json": lambda t: (
        sqlite.load_json(t), sqlite.load_object(t), sqlite.load_texts(t)
    ),
}  # fmt: skip
