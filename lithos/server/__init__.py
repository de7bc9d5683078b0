"""Shells for clients and people: HTTP, MCP, tools, the console and the command line.

Later packages use it.
Never here: knowledge of notes, tasks or any one capability.
"""
