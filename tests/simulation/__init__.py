"""Simulation of the whole server on one event loop with virtual time. A seed decides all random events.

`python -m tests.simulation --minutes N` runs one seed after another, and `--seed N` repeats one seed step by
step. `plan` draws the contents of a seed. `world` contains its parties: server processes (with `standins` for
omitted parts), `agents` over a `network`, `people`, and crashes. `loop` simulates time, scheduling, threads
and random numbers. `disk` simulates the file system and its failures. `ledger` contains the promises, and
`checking` the final checks.
"""
