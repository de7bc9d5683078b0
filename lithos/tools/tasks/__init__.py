"""Tools of agents, tasks, claims, findings and the server itself.

Registered by the composition.
Never here: task rules.
"""
