"""The command that asks the questions of a file."""

from __future__ import annotations

from typing import Final

from lithos.server.command.declaring import CliCommand, flag, number, take

#: `model_questions.MODES`: importing it takes long. `tests/upkeep/evaluation/test_questions.py` compares.
TEST_MODES = ("hybrid", "fulltext", "semantic", "graph", "retrieve")
rank = number("_rank", int, lambda rank: 1 <= rank <= 50)

COMMANDS: Final = (
    CliCommand("evaluate", "ask the questions of a file and check that the right notes are found",
        "lithos.upkeep.evaluation.commands_evaluate:run_evaluate", (
        take("file FILE", "YAML, or JSON lines, of questions and expected notes"),
        take("--mode", "search mode for all questions (default: the mode of each question, else hybrid)",
            choices=TEST_MODES),
        take("--k N", "cut of hit@k and recall@k, 1 to 50 (default: 5)", rank),
        take("--save PATH", "write a baseline: the ranks of this run; replaces an older one"),
        take("--against PATH", "compare with this baseline; exit 1 when one is worse"),
        flag("--from-receipts",
            "write FILE, which must not exist, from questions and citations of agents; no test is run"),
        ),
        "Ask the questions of a file and check that the right notes are found: a running server over HTTP, "
        "else a copy of the files, which stay as they are. Exit 1 when a test fails or is worse than the "
        "baseline. A server is asked as the agent `evaluate`: mode retrieve leaves receipts and statistics "
        "there, as every retrieval does.",
        group="upkeep", place=220, reads_databases=True,
    ),
)  # fmt: skip
