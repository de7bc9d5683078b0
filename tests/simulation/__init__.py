"""The whole server on one event loop in simulated time: everything that chance decides comes from a seed.

`python -m tests.simulation --minutes N` runs seed after seed; `--seed N` runs one again, the same in each
step. `plan` draws what a seed is about. `world` has its parties: the server's lives (`standins` for what is
left out), `agents` over a `network`, `people`, crashes. `loop` has time, scheduling, threads and randomness,
`disk` the file system with its faults. `ledger` has what was promised, `checking` what is looked at last.
"""
