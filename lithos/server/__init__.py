"""Servers and interfaces for clients and people: HTTP, MCP, tools, the console and the command line.

Packages above this one may import it.
Never here: knowledge of notes, tasks or any single capability.
"""
