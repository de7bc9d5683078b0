"""Servers and interfaces for clients and people: HTTP, MCP, tools, the console and the command line.

Packages above this one use it. Knowledge of notes, tasks or any single capability belongs to those packages.
"""
