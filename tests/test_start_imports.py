"""Start of a process. It must not load slow modules before it needs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

BRIDGE = (
    "lithos.server.command.session, lithos.server.command.failures, lithos.app.serving.serve, "
    "lithos.server.mcp.bridge, lithos.server.mcp.link"
)
#: All modules that `lithos brief --hook` and `lithos checkpoint --hook` load. They must be few, because a
#: client waits (behaviour 244).
HOOK = (
    "lithos.app.main, lithos.clients.hooks.briefing, lithos.clients.hooks.checkpoint, "
    "lithos.clients.hooks.session_start, lithos.clients.hooks.prompting, "
    "lithos.kernel.databases.lock, lithos.clients.files_session_cursors, lithos.server.mcp.working_project"
)
#: Code that loads the built-in model, as nearly every server does.
EMBEDDER = "lithos.search.embedding.embedder as e; e.load_embedder(e.BUILTIN)"
HEAVY = (
    "mcp", "mcp_types", "pydantic", "quart", "flask", "werkzeug", "model2vec", "huggingface_hub", "joblib",
)  # fmt: skip
STARTS = {
    BRIDGE: ("numpy", "tantivy", "usearch", "rustworkx", "hypercorn", "prometheus_client"),
    "lithos.app.serving.hosting": (
        "asyncio",
        "httpx2",
        "markdown_it",
        "lithos.vaults.hosting",
        "lithos.attachments.files.worker",
    ),
    "lithos.vaults.hosting": ("asyncio", "httpx2", "markdown_it", "jinja2"),
    EMBEDDER: ("huggingface_hub", "httpx2", "click"),
    "lithos.server.mcp.working_project": ("numpy", "trio", "asyncio", "apsw", "yaml"),
    HOOK: ("numpy", "trio", "asyncio", "apsw", "yaml", "cattrs", "anyascii", "lithos.kernel.values.findings"),
}


@pytest.mark.slow
@pytest.mark.parametrize("modules", STARTS, ids=["bridge", "server", "vaults", "embedder", "project", "hook"])
def test_process_start_loads_only_needed_modules(modules: str) -> None:
    """Of a model's modules, only the needed modules are loaded, and only at the time when they are needed."""
    unwanted = {*STARTS[modules]} if modules == EMBEDDER else {*HEAVY, *STARTS[modules]}
    program = f"import sys, {modules}; print(*sorted({unwanted!r} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.split() == []
