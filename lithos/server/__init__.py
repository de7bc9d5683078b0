"""What clients and people talk to: HTTP, MCP, tools, the console and the command line, as empty shells.

The packages after it in the order of docs/develop.md use it.
Never here: notes, tasks, or anything that one capability knows.
"""
