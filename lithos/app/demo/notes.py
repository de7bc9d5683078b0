"""Notes of the scripted day, written by a small team that runs a ferry timetable."""

from __future__ import annotations

from typing import Final

from attrs import frozen


@frozen
class DemoNote:
    """A note of the scripted day.

    `sources` contains titles of source notes. `ttl_hours` is the number of hours until the note expires.
    """

    title: str
    folder: str
    author: str
    tags: tuple[str, ...]
    content: str
    sources: tuple[str, ...] = ()
    note_type: str = "observation"
    ttl_hours: float | None = None


NOTES: Final = (
    DemoNote("Timetable search", "product", "planner", ("search", "product"), """\
People type *where to* and *when*, and get the next crossings with the delay they must expect.

## What it must do

- answer within 200 ms, also in the week before midsummer
- know harbours by their **old names** too (see [[Harbour names]])
- say honestly when the timetable is [[Winter timetable|provisional]]

## What it need not do

Prices and seats stay with the booking system. See [[Decision: one index per season]].
""", note_type="concept"),
    DemoNote("Harbour names", "data", "scout", ("data", "names"), """\
Of 214 harbours 61 have more than one name. The register writes the newest, tickets often the oldest.

| Register | On tickets | Since |
|---|---|---|
| Norvik Ytre | Norvik | 2019 |
| St. Olav | Olavshavn | 2003 |
| Langøy Sør | Langoy | 1988 |

> [!tip] Match without accents
> `Langøy` and `Langoy` are one harbour. Fold the text before it is compared.
""", note_type="agent_finding"),
    DemoNote("Winter timetable", "data", "scout", ("data", "timetable"), """\
Valid from 12 October to 28 March. 1,844 departures on 37 lines, as CSV, one row a call.

Line 12 and line 40 are **provisional**: their operator confirms in December.

```python
import csv
rows = [row for row in csv.DictReader(open("winter.csv")) if row["line"] not in {"12", "40"}]
print(len(rows), "departures are sure")
```
""", note_type="agent_finding"),
    DemoNote("Import measurements", "data", "builder", ("timetable", "measured"), """\
One import of the whole timetable, five runs on the staging machine:

| Step | Seconds |
|---|---|
| parse | 1.9 |
| resolve harbours | 0.6 |
| write | 4.1 |

Most of the time is the commit after every row. In batches of 500 rows the write takes 0.3 s.
""", ("Winter timetable",), "agent_finding"),
    DemoNote("Decision: one index per season", "decisions", "planner", ("decision", "search"), """\
**Decided**: the search index is built per season and swapped as a whole.

Why: an import touches most rows; a swap is one rename, and the old season stays if the new one is wrong.

Considered and left: updating rows in place (half-imported timetables were shown to people in 2023).

- [x] measured, see [[Import measurements]]
- [x] talked through with operations
- [ ] documented in [[Runbook: timetable import]]
""", ("Import measurements",), "summary"),
    DemoNote("Runbook: timetable import", "runbooks", "ops", ("runbook", "timetable"), """\
1. Fetch the file of the season and check its size: it has more than 1,500 rows.
2. `timetable import --season winter --dry-run`, and read the report.
3. `timetable import --season winter`
4. Search for *Norvik to Langøy*: three crossings a day.

If the import fails: `timetable swap --back`. The old index is kept for 14 days.
""", ("Decision: one index per season",), "summary"),
    DemoNote("Delay model", "research", "scout", ("research", "delays"), """\
Delays follow the wind: above 14 m/s the median crossing of line 7 is 11 minutes late, below 3 minutes.

The forecast has to be at most six hours old [^1]. Line 40 is sheltered and keeps its times.

[^1]: Older forecasts were no better than the average of the month.
""", note_type="hypothesis"),
    DemoNote("Delays on the map", "product", "planner", ("product", "delays"), """\
A crossing that will be late is drawn amber, one that is cancelled red, with the minutes next to it.

It depends on the [[Delay model]]; the map itself waits for the tiles ([[Map tiles: licence]]).
""", ("Delay model",), "concept"),
    DemoNote("Map tiles: licence", "research", "scout", ("research", "legal"), """\
The tiles may be shown with a visible credit. Offline copies need a written permission, which takes two weeks.

Asked on Monday; the answer will be recorded in the gate of the task.
"""),
    DemoNote("Wind stations", "data", "scout", ("data", "delays"), """\
Nine stations report every ten minutes. *Ytre Holme* was out of order for most of November; its values of that
time are copies of the last good one.
""", note_type="agent_finding"),
    DemoNote("Delay training set", "data", "builder", ("data", "delays", "measured"), """\
41,200 crossings joined with the wind of the nearest station. Built from [[Wind stations]] on 2 November.
""", ("Wind stations",), "agent_finding"),
    DemoNote("Delay model, second fit", "research", "builder", ("research", "delays"), """\
Mean error 3.1 minutes, of that 0.4 from the wind. Fitted on the [[Delay training set]].
""", ("Delay training set", "Delay model"), "agent_finding"),
    DemoNote("Load test", "runbooks", "reviewer", ("measured", "search"), """\
600 searches a second for ten minutes: p50 31 ms, p95 88 ms, no errors. At 900 a second p95 is 240 ms.

The limit is the processor of the search machine, not the disk.
""", note_type="agent_finding"),
    DemoNote("Opening hours of ticket offices", "data", "scribe", ("data",), """\
Norvik 8 to 16, Langøy 9 to 15, St. Olav closed in winter. From the harbour office, by telephone.
""", ttl_hours=3.0),
    DemoNote("Import, old way", "runbooks", "ops", ("runbook",), """\
Run `import_all.sh` on the database machine, then restart the search.
"""),
    DemoNote("Search with typos", "research", "reviewer", ("research", "search"), """\
One edit in words of five letters and more finds 94 % of the misspelt harbours; two edits find 97 %, and twice
as many wrong ones. Take one.
""", note_type="agent_finding"),
    DemoNote("Glossary", "product", "scribe", ("product",), """\
**Call**
: a ferry stops at a harbour.

**Crossing**
: from one harbour to the next.

**Season**
: one timetable. See [[Winter timetable]] and [[Summer timetable]].
"""),
    DemoNote("Weekly: changes for travellers", "product", "scribe", ("product", "weekly"), """\
- Old harbour names are found ([[Harbour names]]).
- The winter timetable is in, two lines provisional ([[Winter timetable]]).
- Delays come next ([[Delays on the map]]).
""", ("Harbour names", "Winter timetable")),
)  # fmt: skip
