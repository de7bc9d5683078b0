"""The words of the corpus: topics, common words, and the parts of rare words."""

from typing import Final

TOPICS: Final = {
    "networking": (
        "latency packet socket router proxy gateway handshake certificate firewall bandwidth retry "
        "timeout loopback multicast endpoint throughput congestion header tunnel resolver"
    ),
    "databases": (
        "index transaction schema query replica checkpoint migration vacuum cursor constraint journal "
        "isolation deadlock snapshot partition column join rollback durability page"
    ),
    "gardening": (
        "compost seedling mulch pruning trellis perennial germination soil harvest watering blossom hedge "
        "greenhouse nitrogen cutting orchard weed bulb graft drainage"
    ),
    "medicine": (
        "dosage symptom diagnosis vaccine antibody trial placebo infection therapy enzyme receptor "
        "inflammation patient clinic screening relapse immunity tissue syndrome prognosis"
    ),
    "astronomy": (
        "telescope nebula orbit spectrum galaxy eclipse parallax supernova asteroid luminosity comet "
        "redshift exoplanet gravity horizon pulsar transit aperture mirror magnitude"
    ),
    "cooking": (
        "simmer dough broth ferment marinade whisk oven crust seasoning braise batter yeast caramel glaze "
        "skillet garlic stock roast garnish proofing"
    ),
    "history": (
        "treaty dynasty archive manuscript siege parliament empire chronicle reform guild revolt monarchy "
        "trade colony decree province republic census alliance succession"
    ),
    "machine-learning": (
        "gradient embedding tokenizer dataset overfitting regularisation classifier inference benchmark "
        "attention baseline annotation recall precision sampling checkpoint encoder loss epoch retrieval"
    ),
    "finance": (
        "ledger invoice dividend portfolio hedge audit liquidity budget forecast depreciation interest "
        "bond equity payroll margin tariff currency settlement credit escrow"
    ),
    "operations": (
        "deployment rollback incident runbook pager capacity container alert dashboard quota backup "
        "failover scheduler outage canary patch inventory restart drift escalation"
    ),
    "law": (
        "contract clause liability statute appeal plaintiff verdict licence consent tort jurisdiction "
        "arbitration warranty testimony precedent filing hearing counsel damages patent"
    ),
    "music": (
        "chord tempo melody rhythm harmony octave cadence interval overture sonata timbre reverb mixing "
        "quartet improvisation refrain scale tuning ensemble bassline"
    ),
}

#: Common words. The first 40 are function words.
COMMON: Final = (
    "the of to and a in is that it for on with as be this are by was at from an or not we which can "
    "but have has when if they more one will there each other all may so its into than then only use "
    "used using after before between over under while where because should must could would also most "
    "some any such same first second new old small large long short high low good bad case cases time "
    "times work works change changes result results reason note notes step steps part parts value "
    "values system systems process question answer example method problem problems group number level "
    "state point way day week month year team people record report review test tests plan goal cost "
    "effect source sources order form line list set run runs check checks found find finds show shows "
    "take takes make makes keep keeps need needs begin begins end ends grow grows move moves hold "
    "holds turn turns leave known given likely early late slow fast clear simple common open closed "
    "stable later never often always already however therefore instead without within against during "
    "through almost about again since until"
)

ROOTS: Final = (
    "act form port struct scribe spect tract vert duct mit pose cede claim grade mote serve solve "
    "sume tain tend vene voke flect fuse gress ject late plic press rupt sect sign sist spire trude "
    "vise volve cline cord cur dict"
)
PREFIXES: Final = "re con de in pro trans sub inter pre ex per ob ad dis super counter over under"
SUFFIXES: Final = ("", "ion", "ive", "or", "able", "ment", "ing", "ed", "ure", "al", "ance", "ory")
