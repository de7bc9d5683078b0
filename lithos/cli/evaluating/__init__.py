"""`lithos evaluate`: knowledge tests, their report and their baselines.

`lithos.cli` dispatches to it.
Never here: how a question is asked or judged; that is in `app/evaluation` and `core/evaluation`.
"""
