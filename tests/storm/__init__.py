"""Agents and a person at one note, over a kill: no text of anybody is lost.

`python -m tests.storm --runs 20 --seconds 60` for long; a short one is among the slow tests.
"""
