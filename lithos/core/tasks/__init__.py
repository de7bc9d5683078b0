"""Tasks, claims, gates and the task graph as values, rules and commands.

The coordinator carries the commands out; tools and services show the values.
Never here: SQL, events on their way, or clocks.
"""
