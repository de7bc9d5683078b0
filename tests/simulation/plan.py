"""Contents of a seed: number of parties, duration, and kinds of failures."""

from __future__ import annotations

from random import Random

from attrs import frozen

from tests.simulation.agents import OPERATIONS
from tests.simulation.disk import Faults
from tests.simulation.hearing import Hearing
from tests.simulation.loop import Pace
from tests.simulation.network import Weather
from tests.simulation.people import KINDS


@frozen
class Crash:
    """End of a process. It comes at a time, or at one of the next calls after this time."""

    at: float
    is_power: bool
    calls: int | None


@frozen
class Plan:
    """Contents of a seed. Each seed has only some kinds of failures, so that each kind has more time."""

    seconds: float
    agents: int
    people: int
    think: float
    pace: Pace
    weather: Weather
    faults: Faults
    fault_spans: tuple[tuple[float, float], ...]
    crashes: tuple[Crash, ...]
    hearing: Hearing
    watch_mode: str
    reach: float
    #: Start and duration of each sleep phase of the machine.
    lapses: tuple[tuple[float, float], ...]
    weights: dict[str, float]
    habits: dict[str, float]


def make_plan(random: Random, hearing: Random) -> Plan:
    """Draw the plan of a seed."""
    seconds = random.choice((20.0, 40.0, 60.0, 120.0, 300.0))
    crashes = tuple(
        Crash(
            at=random.random() * seconds,
            is_power=random.random() < 0.5,
            calls=random.choice((None, random.randrange(1, 60))),
        )
        for _ in range(random.choice((0, 0, 1, 1, 2)))
    )
    faulty = random.random() < 0.3
    begin = random.random() * seconds
    weights = {name: weight * random.choice((0.0, 1.0, 1.0, 3.0)) for name, weight in OPERATIONS.items()}
    weights["create"] = weights["write"] = 4.0
    weights["task"] = 1.0
    return Plan(
        seconds=seconds,
        agents=random.randrange(1, 6),
        people=random.choice((0, 1, 1, 2)),
        think=max(0.05, seconds / random.choice((10.0, 15.0, 25.0))),
        pace=Pace(
            usual=random.choice((0.0002, 0.002)),
            slow_share=random.choice((0.0, 0.05, 0.3)),
            slow=random.choice((0.02, 0.5)),
            stall_share=random.choice((0.0, 0.0, 0.005)),
        ),
        weather=Weather(
            delay=random.choice((0.001, 0.05)),
            lost_requests=random.choice((0.0, 0.0, 0.05)),
            lost_answers=random.choice((0.0, 0.0, 0.05)),
            direct=random.choice((0.0, 0.5, 1.0)),
            stream_life=random.choice((5.0, 60.0, 10_000.0)),
        ),
        faults=Faults(share=random.choice((0.002, 0.02, 0.2)), short=random.choice((0.0, 0.1))),
        fault_spans=((begin, begin + random.random() * seconds / 3),) if faulty else (),
        crashes=tuple(sorted(crashes, key=lambda crash: crash.at)),
        hearing=Hearing(
            delay=random.choice((0.0, 0.1, 0.4)), loss=random.choice((0.0, 0.0, 0.2, 0.9)), random=hearing
        ),
        watch_mode=random.choice(("auto", "native", "native", "poll")),
        reach=random.choice((0.0, 0.01, 0.1)),
        lapses=((random.random() * seconds, random.choice((60.0, 600.0, 7_200.0))),)
        if random.random() < 0.2
        else (),
        weights=weights,
        habits={kind: random.choice((0.0, 1.0, 3.0)) for kind in KINDS}
        | {"in place": 1.0, "atomic": 1.0, "new": 0.5},
    )
