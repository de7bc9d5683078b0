"""Server package: HTTP, MCP, tools, the console and the command line.

Packages above this package may import it. Never here: knowledge of notes, tasks or any single capability.
"""
