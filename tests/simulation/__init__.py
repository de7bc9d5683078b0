"""Simulation of the whole server on one event loop with virtual time. A seed decides everything random.

`python -m tests.simulation --minutes N` runs seed after seed, and `--seed N` repeats one seed step by step.
`plan` draws the contents of a seed. `world` has its parties: lives of the server (`standins` for omitted
parts), `agents` over a `network`, `people`, crashes. `loop` has time, scheduling, threads and randomness,
`disk` the file system and its failures. `ledger` has the promises, `checking` the final checks.
"""
