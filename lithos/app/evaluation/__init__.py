"""Evaluation of a vault by its knowledge tests: asking, reading the files without a server, what was cited.

`lithos evaluate` and the doctor enter; servers are asked through their tools.
Never here: formulas and file formats, which are in `core/evaluation`.
"""
