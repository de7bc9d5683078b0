"""A generated vault of project notes, and questions about each note in other words than the note's.

Each project has one note per aspect, such as backups, deployment or an incident. The notes of one aspect
differ only in names and numbers, so a question is answered only by the note of its own project.
"""

from __future__ import annotations

import random
from typing import Final

from bench.dialogue_words import split
from bench.judged import Chunk, Collection

PROJECTS: Final = split(
    "Heron|Marlin|Osprey|Quartz|Saffron|Tundra|Velvet|Walnut|Bramble|Cinder|Drumlin|Ember|Fathom|"
    "Gantry|Harbour|Juniper|Kestrel|Lantern|Meridian|Nimbus|Orchard|Pebble|Ravine|Sextant"
)
PEOPLE: Final = split("Amara|Bogdan|Chiara|Dmitri|Eleni|Farid|Greta|Hiroshi|Ines|Jonas|Kavya|Leopold")
#: Title, text, and questions of each aspect. The questions share few words with the text.
ASPECTS: Final = (
    (
        "{p} backups",
        "{p} dumps its Postgres database every night at {n}:15 UTC to the bucket {q}-archive. Dumps are kept "
        "for {m} days. To restore, run `restore.sh {q}` on the standby host and check the row counts. The "
        "dump of Sunday is also copied to tape.",
        "We lost the {p} db, how do I get the data back from the nightly dump?|When does {p} take its "
        "database dump, and for how long do we keep it?|How can I restore {p} from backup?",
    ),
    (
        "Deploying {p}",
        "Releases of {p} go out on Tuesdays. {h} approves them. The pipeline builds an image, runs the smoke "
        "tests on staging and shifts {m} % of the traffic per step. To roll back, redeploy the previous tag; "
        "migrations are always backwards compatible.",
        "Who has to approve a {p} release before we ship?|The {p} deployment is broken, how do we roll "
        "back?|On which day do we deploy {p}?",
    ),
    (
        "Why {p} uses a queue",
        "We decided that {p} publishes its events through RabbitMQ instead of calling the billing service "
        "directly. Direct calls timed out whenever billing restarted. {h} measured that {m} % of the orders "
        "were lost. Kafka was considered and rejected because nobody wanted to operate it.",
        "Why did we choose RabbitMQ for {p} rather than Kafka?|Does {p} call billing directly or via "
        "events?|What was the reason for the message queue in {p}?",
    ),
    (
        "{p} rate limits",
        "The public API of {p} allows {m} requests per minute and key. Clients over the limit get status 429 "
        "with a Retry-After header. Partners have their own quota, which {h} sets in the admin console.",
        "What is the request quota of the {p} API?|A customer of {p} gets 429 errors, how many requests are "
        "allowed?|Where is the {p} partner quota set?",
    ),
    (
        "{p} login",
        "Users of {p} sign in with OpenID Connect through Keycloak. Sessions expire after {m} minutes "
        "without activity. Service accounts use client certificates signed by the internal authority, which "
        "{h} renews every spring.",
        "How do users log in to {p}, is it OIDC?|After how much idle time does a {p} session expire?|How do "
        "the {p} service accounts authenticate?",
    ),
    (
        "Outage of {p} in March",
        "{p} was down for {m} minutes because the certificate of the load balancer had expired. The alert "
        "went to a mailing list that nobody reads. Since then certificates are renewed automatically and "
        "{h} is paged {n} days before one ends.",
        "What was the cause of the {p} outage?|Why did {p} go down, was it an expired certificate?|What did "
        "we change after the {p} incident in March?",
    ),
    (
        "{p} on call",
        "The rota of {p} changes on Mondays at noon. {h} plans it in the shared calendar. An alert that is "
        "not acknowledged within {n} minutes goes to the second engineer, then to the head of operations.",
        "Who plans the {p} on-call rota?|A page for {p} was not acknowledged, where does the alert go "
        "next?|When does the {p} on call shift change?",
    ),
    (
        "{p} data model",
        "In {p} an order has many lines and one invoice. Amounts are stored in cents as integers with a "
        "currency column. Deleted customers are kept as tombstones for {m} months, because the auditors ask "
        "for them. {h} owns the schema.",
        "How does {p} store amounts of money, cents or decimals?|What happens to deleted customers in "
        "{p}?|Who owns the {p} schema?",
    ),
    (
        "Testing {p}",
        "The integration tests of {p} need a running Redis on port 63{n}. Start it with `make services`. The "
        "suite takes {m} minutes; the flaky test of the importer is quarantined until {h} has replaced the "
        "fake clock.",
        "How do I start what the {p} integration tests need?|The {p} importer test is flaky, is that "
        "known?|How long does the {p} test suite take?",
    ),
    (
        "{p} logs and metrics",
        "{p} writes JSON logs to stdout; Vector ships them to Loki, where they stay for {m} days. Dashboards "
        "are in the Grafana folder {q}. The error budget is {n} hours per quarter.",
        "Where can I find the logs of {p}?|What's the error budget for {p}?|How long are {p} logs kept in "
        "Loki?",
    ),
)  # fmt: skip


def project_notes(seed: int) -> tuple[Collection, list[tuple[str, str]]]:
    """Return the vault without queries, and pairs of a question and the document that answers it."""
    rng = random.Random(f"notes {seed}")
    chunks, asked = [], []
    for project in PROJECTS:
        for number, (title, text, questions) in enumerate(ASPECTS):
            values = {
                "p": project, "q": project.lower(), "h": rng.choice(PEOPLE), "n": rng.randint(2, 9),
                "m": rng.randint(12, 95),
            }  # fmt: skip
            doc = f"{project.lower()}/{number}.md"
            chunks.append(Chunk(doc, doc, text.format(**values), title.format(**values), doc))
            asked += [(question.format(**values), doc) for question in questions.split("|")]
    return Collection("projects", tuple(chunks), ()), asked
