"""The plugin for opencode, run by Node with a fake program `lithos` (behaviour 313)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lithos.clients.hook_files.opencode import PluginFile, make_plugin

pytestmark = pytest.mark.slow

#: Program that stores its arguments and input, and answers with the name of the event.
FAKE = """#!/bin/sh
told=$(cat)
echo "$* $told" >> "$LOG"
case "$*" in
  *" prompt"*) echo '{"additionalContext": "passages"}' ;;
  *" compaction"*) echo '{"additionalContext": "reminder"}' ;;
  *) echo '{"additionalContext": "briefing"}' ;;
esac
"""
#: Both versions of opencode call the plugin as in their documentation. The script prints all outputs.
SCRIPT = """
const { default: plugin } = await import(process.argv[2])
const hooks = await plugin.server({ directory: "/home/ann/shop" })
const event = (type, properties) => hooks.event({ event: { type, properties } })
const system = async (input) => {
  const output = { system: [] }
  await hooks["experimental.chat.system.transform"](input, output)
  return output.system
}
const printed = {}
await event("session.created", { info: { id: "one" } })
await event("session.created", { info: { id: "sub", parentID: "one" } })
printed.first = [await system({ sessionID: "one" }), await system({ sessionID: "one" })]
printed.sub = await system({ sessionID: "sub" })
printed.none = await system({})
const parts = [{ type: "text", text: "Fix the test" }, { type: "text", synthetic: true, text: "note" }]
const messages = [
  { info: { id: "m1", role: "user", sessionID: "one" }, parts },
  { info: { id: "m2", role: "assistant", sessionID: "one" }, parts: [{ type: "text", text: "Done" }] },
]
await hooks["experimental.chat.messages.transform"]({}, { messages })
printed.parts = parts
const compacting = { context: [] }
await hooks["experimental.session.compacting"]({ sessionID: "one" }, compacting)
printed.compacting = compacting.context
await event("session.compacted", { sessionID: "one" })
printed.after = await system({ sessionID: "one" })
printed.resumed = await system({ sessionID: "old" })
let call
const session = { hook: async (name, run) => { call = [name, run] } }
await plugin.setup({ session, location: { directory: "/w" } })
const context = async (kind) => {
  const given = { sessionID: "two", kind, system: [] }
  await call[1](given)
  return given.system
}
printed.second = [call[0], await context("primary"), await context("title"), await context(undefined)]
for (const odd of [undefined, {}, { type: "session.created" }, { type: "session.compacted", properties: {} }])
  await hooks.event({ event: odd })
await hooks["experimental.chat.messages.transform"]({}, { messages: [] })
console.log(JSON.stringify(printed))
"""


def run(folder: Path, program: str) -> tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]:
    """Run the plugin. Return what it gave to opencode, and the calls of the program."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    (plugin,) = make_plugin((program, "--data-dir", "/n"), ("--agent", "ann"))["plugin"]
    (folder / "lithos.mjs").write_text(str(plugin["text"]))
    (folder / "script.mjs").write_text(SCRIPT)
    log = folder / "log"
    done = subprocess.run(
        [node, str(folder / "script.mjs"), str(folder / "lithos.mjs")],
        capture_output=True, text=True, check=True, timeout=60, env={**os.environ, "LOG": str(log)},
    )  # fmt: skip
    lines = log.read_text().splitlines() if log.exists() else []
    calls = [line.partition("{") for line in lines]
    return json.loads(done.stdout), [(words.strip(), json.loads(f"{{{told}")) for words, _, told in calls]


def test_plugin_gives_hook_texts_to_both_versions_of_opencode(tmp_path: Path) -> None:
    """Behaviour 313: a request repeats the text of its session, and a subagent gets none."""
    program = tmp_path / "lithos"
    program.write_text(FAKE)
    program.chmod(0o755)
    given, calls = run(tmp_path, str(program))
    assert given["first"] == [["briefing"], ["briefing"]]
    assert given["sub"] == given["none"] == []
    assert given["parts"][0] == {"type": "text", "synthetic": True, "text": "passages"}
    assert (given["compacting"], given["after"], given["resumed"]) == (
        ["reminder"],
        ["briefing"],
        ["briefing"],
    )
    text = [{"type": "text", "text": "briefing"}]
    assert given["second"] == ["context", text, [], text]
    brief = "--data-dir /n brief --hook --client opencode --event {} --agent ann"
    shop = {"session_id": "one", "cwd": "/home/ann/shop"}
    assert calls == [
        (brief.format("start"), {**shop, "source": "startup"}),
        (brief.format("prompt"), {**shop, "prompt": "Fix the test"}),
        (brief.format("compaction").replace("brief", "checkpoint"), shop),
        (brief.format("start"), {**shop, "source": "compact"}),
        (brief.format("start"), {**shop, "session_id": "old", "source": "clear"}),
        (brief.format("start"), {"session_id": "two", "cwd": "/w", "source": "clear"}),
    ]


def test_plugin_is_silent_when_lithos_fails_or_was_removed(tmp_path: Path) -> None:
    """Behaviour 313: an error in a plugin would end the turn of opencode."""
    failing = tmp_path / "failing"
    failing.write_text('#!/bin/sh\necho \'{"additionalContext": "no"}\'\nexit 2\n')
    failing.chmod(0o755)
    odd = tmp_path / "odd"
    odd.write_text("#!/bin/sh\necho null\n")
    odd.chmod(0o755)
    for program in (failing, odd, tmp_path / "gone"):
        given, _ = run(tmp_path, str(program))
        assert given["first"] == [[], []]
        assert given["compacting"] == given["resumed"] == []
        assert len(given["parts"]) == 2


def test_plugin_text_is_recognised_until_a_person_changes_it() -> None:
    hooks = make_plugin(("/opt/my $HOME/lithos",), ())
    text = PluginFile().added("", hooks)
    assert '"/opt/my $HOME/lithos"' in text
    assert PluginFile().found(text, lambda hook: True) == hooks
    assert PluginFile().found("export default {}", lambda hook: True) == {}
