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
        take("file FILE", "YAML or JSON lines file of questions and expected notes"),
        take("--mode", "search mode for all questions (default: the mode of each question, else hybrid)",
            choices=TEST_MODES),
        take("--k N", "k of hit@k and recall@k: number of results that count, 1 to 50 (default: 5)", rank),
        take("--save PATH", "save the ranks of this run as a baseline, replacing an older one"),
        take("--against PATH", "compare with this baseline; exit 1 if a test is worse"),
        flag("--from-receipts",
            "write FILE, which must not exist, from questions and citations of agents, and run no test"),
        ),
        "Ask the questions of a file and check that the right notes are found. A running server is asked "
        "over HTTP; without one, a copy of the files is used and the files are not changed. Exit 1 if a test "
        "fails or is worse than the baseline. A server is asked as the agent `evaluate`, and mode retrieve "
        "leaves receipts and statistics there, as every retrieval does.",
        group="upkeep", place=220, reads_databases=True,
    ),
)  # fmt: skip
