"""The whole server on one event loop in simulated time: everything that chance decides comes from a seed.

`python -m tests.simulation --minutes N` runs seed after seed; `--seed N` runs one again, the same in each
step. `plan` draws the contents of a seed. `world` has its parties: lives of the server (`standins` for
omitted parts), `agents` over a `network`, `people`, crashes. `loop` has time, scheduling, threads and
randomness, `disk` the file system and its failures. `ledger` has the promises, `checking` the final checks.
"""
