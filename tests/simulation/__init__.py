"""The whole server on one event loop in simulated time: everything that chance decides is drawn from a seed.

`python -m tests.simulation --minutes N` runs seed after seed; `--seed N` runs one again, step by step the same.
`loop` has time, scheduling, threads and randomness; `disk` the file system with its faults; `world` the parties
(server, agents, people, crashes) of one seed; `ledger` what was promised, and the checks of it.
"""
