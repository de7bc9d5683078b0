"""What the attachments of `bench/attachments_vault.py` tell, and how one asks for it, in English.

A matter is something that a page, a card or a line may be about. Of its texts, slots in braces are filled by
`bench/attachments_facts.py`: `e` a company, project or machine, `s` a site, `p` and `q` people, `c` a town,
`n` and `f` numbers, `m` money, `d` a date, `k` a code of its own.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from bench.dialogue_words import split


@frozen
class Matter:
    """A heading, what is said, and three ways to ask: by words of it, in other words, by name or number.

    `answer` is what a reader wants to know; it stands in what is said.
    """

    heading: str
    says: str
    words: tuple[str, ...]
    other: tuple[str, ...]
    named: tuple[str, ...]
    answer: str


def matters(text: str) -> tuple[Matter, ...]:
    """Six lines to a matter, an empty one between two; ways to ask are parted by bars.

    A line that begins with two blanks goes on with the one before.
    """
    found = []
    for block in text.strip().replace("\n  ", " ").split("\n\n"):
        heading, says, words, other, named, answer = block.split("\n")
        found.append(Matter(heading, says, split(words), split(other), split(named), answer))
    return tuple(found)


COMPANIES: Final = split(
    "Halcyon Labs|Northwind Freight|Brightwater Marine|Quillon Optics|Tessera Glass|Palisade Security"
    "|Orrin & Vale|Bluefin Logistics|Carrowmore Dairy|Stellmark Print|Ivory Coast Timber|Meridian Cranes"
    "|Zephyr Turbines|Lindqvist Foundry|Pomona Seeds|Kestrel Robotics|Amberley Textiles|Vantage Elevators"
)
PROJECTS: Final = split(
    "Marlin|Juniper|Osprey|Basalt|Lantern|Cobalt|Thistle|Pelican|Saffron|Granite|Heron|Tundra|Velvet|Anchor"
    "|Monsoon|Quartz|Falcon|Ember|Mistral|Orchard"
)
SITES: Final = split(
    "Ghent depot|Porto quay|Leipzig works|Tromsø station|Bilbao yard|Cork dairy|Trieste terminal|Uppsala hall"
    "|Graz foundry|Aarhus silo|Lublin mill|Turku shipyard|Nantes archive|Malmö garage|Bergen cannery"
    "|Siena kiln|Delft laboratory|Brno exchange|Vigo cold store|Tartu greenhouse|Dundee press|Lucerne lift"
)
TOWNS: Final = split(
    "Ghent|Porto|Leipzig|Bilbao|Cork|Trieste|Uppsala|Graz|Aarhus|Lublin|Turku|Nantes|Malmö|Bergen|Siena|Delft"
)
FIRST_NAMES: Final = split(
    "Ada|Ben|Chiara|Dmitri|Esther|Farid|Greta|Hiro|Imani|Jonas|Katya|Luca|Mireille|Nadim|Olga|Pedro|Rosa"
    "|Sven|Tamsin|Wanda"
)
LAST_NAMES: Final = split(
    "Okafor|Lindgren|Marchetti|Petrov|Haddad|Nakamura|Bergström|Kowalska|Ferreira|O'Rourke|Weiss|Vandamme"
    "|Iversen|Castellano|Novak|Moreau|Achterberg|Salonen|Quigley|Banerjee"
)

#: Clauses: a contract has each of them once, `e` stands in its header and hardly ever in the text.
CONTRACT: Final = matters("""
Notice and termination
Either party may terminate this agreement with {n} days' written notice to the end of a quarter. Notice
  is sent by registered letter to {p} at the office in {c}, quoting reference {k}.
notice period for terminating the agreement with {e}|written notice to terminate, {e}
how far ahead do we have to cancel with {e}|getting out of the deal with {e}: how many days before
registered letter to {p}, {e}|reference {k}
{n} days' written notice

Late delivery
For each week of late delivery a penalty of {n} per cent of the order value is due, at most {m} in a
  year. Delays are reported to {p}; the list of agreed dates is annex {k}.
penalty for late delivery in the {e} agreement|weekly penalty of {e} for delays
what does {e} owe us when the goods come too late|fine if {e} misses a deadline
annex {k}|delays reported to {p} {e}
{m} in a year

Warranty
The warranty on all parts lasts {n} months from handover and covers labour as well. Claims are raised
  with {p} in {c} under service number {k}; wear of seals is excluded.
warranty on parts from {e}|how many months warranty, {e}, wear of seals excluded
how long does {e} repair broken pieces free of charge|guarantee {e} gives after handing over
service number {k}|{p} warranty claims {c}
{n} months from handover

Insurance
The Supplier keeps liability insurance of at least {m} with a deductible of {n} per cent. The policy is
  {k}; {p} receives a copy of it each January.
liability insurance required of {e}|insurance policy and deductible of {e}
is {e} covered if it damages something of ours, up to what sum|sum insured by {e}
policy {k}|who gets a copy of the {e} policy, {p}?
at least {m}

Payment
Invoices are payable within {n} days of receipt, with two per cent discount if paid in ten. They go to
  {p}, accounts office {c}, and bear the order number {k}.
invoices of {e} payable within how many days|payment terms and discount, {e}
by when must we settle the bills from {e}|{e}: time to pay up
order number {k}|invoices to {p} {c}
within {n} days of receipt

Price adjustment
Prices are adjusted each {d} by the index of producer prices, but by no more than {n} per cent. A change
  above that is negotiated between {p} and {q}; the base list is {k}.
price adjustment and index in the contract with {e}|maximum yearly change of prices, {e}
may {e} become more expensive next year, and by how much|ceiling for increases demanded by {e}
base list {k}|{p} and {q} negotiate prices
no more than {n} per cent

Confidentiality
Drawings and samples are kept secret for {n} years after the end of this agreement. Breach costs {m} for
  each case; exceptions are approved by {p} on form {k}.
confidentiality of drawings and samples, {e}|breach of secrecy {e} cost per case
for what time may {e} not talk about our designs|punishment when {e} leaks our plans
form {k}|exceptions approved by {p}, {e}
secret for {n} years

Personal data
Personal data of visitors is deleted after {n} days. The data protection officer is {p}, and transfers
  outside the union need the annex {k} signed by {q}.
data protection officer of {e}|deletion of visitors' personal data, {e}
whom do I ask about privacy at {e}|how soon does {e} erase what it knows about guests
annex {k} transfers|data protection {p}
{p}

Working hours on site
Work on the premises is permitted from {f} to 19 o'clock, not on Sundays. Night work is requested from
  {p} two weeks ahead with permit {k} and costs {m} a night.
working hours of {e} on the premises|night work permit for {e}
when may the people of {e} be here, and what if they stay late|after-hours jobs by {e}
permit {k}|night work requested from {p}
permit {k}

Acceptance test
The acceptance test runs for {n} hours without interruption in {c}, witnessed by {p}. Protocol {k} lists
  the measured values; a second failure entitles us to a reduction of {m}.
acceptance test of {e}, hours without interruption|reduction after a failed acceptance test, {e}
how do we check that what {e} built really works|trial before we sign off on {e}'s machine
protocol {k}|test witnessed by {p} in {c}
runs for {n} hours

Supply of spare parts
Spare parts remain available for {n} years after the last delivery from the store in {c}. Urgent parts
  leave within a day against a surcharge of {m}; the catalogue is {k}, the contact {p}.
availability of spare parts from {e}|surcharge for urgent spare parts, {e}
can we still get replacements from {e} in ten years|rush delivery of components by {e}
catalogue {k}|{p} spare parts store {c}
{n} years after the last delivery

Training of operators
The Supplier trains {n} operators of ours in {c} before commissioning, free of charge. {p} teaches from
  handbook {k}; further courses cost {m} a day.
training of operators by {e} before commissioning|price of further courses, {e}
does {e} teach our staff how to run the equipment|lessons from {e} for our crew
handbook {k}|operators taught by {p}
trains {n} operators

Subcontractors
Subcontractors need our consent in writing; {e} may pass on at most {n} per cent of the work. Approved
  so far is the workshop of {q} in {c}, by decision {k} of {p}.
subcontractors approved for {e}|share of work {e} may pass on to subcontractors
may {e} let somebody else do the job|outsourcing by {e}, permission
decision {k}|workshop of {q} in {c}
workshop of {q}

Events beyond control
Flood, strike and embargo suspend the duties of both sides; after {n} weeks either may withdraw. They
  are announced to {p} by telegram code {k}, and storage meanwhile costs {m} a week.
flood, strike and embargo in the {e} agreement|suspension of duties {e} withdraw after weeks
what happens to the {e} deal in case of a disaster|acts of God, {e}
code {k}|strike announced to {p}
after {n} weeks

Jurisdiction
The courts of {c} have jurisdiction. Before going there the parties call the arbitrator {p}, whose fee
  of {m} they share; the rules are those of chamber order {k}.
courts and jurisdiction for disputes with {e}|arbitrator named in the {e} contract
where would we have to sue {e}|quarrel with {e}: who mediates first
chamber order {k}|arbitrator {p}
The courts of {c}

Right of audit
We may inspect the books of the Supplier {n} times a year, announced a week ahead. The auditor is {p}
  from {c}; findings above {m} are repaid at once, see checklist {k}.
right to audit the books of {e}|auditor of {e} and repaid findings
may we look into the accounts that {e} keeps|checking the bookkeeping at {e}
checklist {k}|auditor {p} {c}
{n} times a year

Hazardous substances
Solvents and acids are stored in the cabinet at gate {f}, at most {n} litres. The safety sheet is {k},
  the person in charge {p}; leaks cost {e} at least {m}.
storage of solvents and acids by {e}|litres of hazardous substances at the gate, {e}
how much dangerous chemical stuff may {e} keep with us|toxic liquids brought by {e}
safety sheet {k}|{p} solvents cabinet gate {f}
at most {n} litres

Access and keys
{p} hands out {n} keys and badges of type {k} against signature. A lost one costs {m}; the lock at the
  {c} entrance is changed within two days.
keys and badges for {e}, lost ones|who hands out keys to {e}
how do the technicians of {e} get into the building|{e} mislaid a door card, what now
badges {k}|keys from {p} {c} entrance
{n} keys and badges

Packaging and transport
Goods travel in returnable crates of type {k}, at most {n} kilograms each, by rail to {c}. Damaged
  crates are charged with {m}; {p} decides at the ramp.
returnable crates in transport from {e}|charge for damaged crates, {e}
in what boxes does {e} ship, and how heavy may they be|freight containers of {e}
crates {k}|{p} decides at the ramp
{n} kilograms each

Inventions and drawings
Inventions made under this agreement belong to us; {e} gets a licence for {n} years for {m}. The
  register of inventions is {k}, kept by {p} and {q}.
inventions made under the {e} agreement belong to whom|licence of {e} for inventions
who owns what {e} thinks up while working for us|patents arising from the work of {e}
register {k}|inventions kept by {p} and {q}
belong to us
""")

#: What happened at a site of a project; `e` is the project.
REPORT: Final = matters("""
Boiler inspection, {s}
The boiler at the {s} was inspected by {p} on {d}. The safety valve opened at {n} bar, and the feed pump
  {k} leaked at the flange; its repair cost {m}.
boiler inspection at the {s}|safety valve and feed pump at the {s}
what did they find when they examined the heating vessel at the {s}|steam plant check-up {s}, faults
feed pump {k}|boiler {p} {d}
{n} bar

Noise complaint, {s}
Neighbours of the {s} complained about the night shift; {p} measured {n} decibels at the fence on {d}. A
  wall of {m} is planned, and until then fan {k} stops at ten.
noise complaint of neighbours at the {s}|decibels measured at the fence, {s}
people living next to the {s} cannot sleep: what was done|too loud after dark near the {s}
fan {k}|{p} decibels {d}
{n} decibels

Accident, {s}
On {d} the forklift {k} tipped over at the {s}; {p} broke an ankle and was away for {n} days. The ramp
  has been levelled since, which cost {m}.
forklift accident at the {s}|broken ankle at the {s}, days away
who got hurt at the {s} and how|injury of a worker, vehicle fell on its side, {s}
forklift {k}|ankle {p}
{n} days

Energy use, {s}
The {s} used {n} megawatt hours of electricity last year, a tenth less than before. {p} put it down to
  the compressor {k}, replaced on {d} for {m}.
electricity used by the {s}|energy use and compressor at the {s}
how much power did the {s} consume|savings on the current bill, {s}
compressor {k}|{p} energy {d}
{n} megawatt hours

Water damage, {s}
Rain came through the roof of the {s} on {d} and soaked {n} boxes of files. The insurer paid {m} on
  claim {k}; {p} dried what could be saved.
water damage by rain through the roof, {s}|boxes of files soaked at the {s}
papers got wet at the {s}: how many, who paid|leak from above, {s}
claim {k}|{p} dried files
{n} boxes

Staffing, {s}
The {s} has {n} employees since {d}, four of them apprentices. {p} leads the early shift and {q} the
  late one; the vacancy {k} is paid {m} a year.
employees and apprentices at the {s}|early shift and late shift leads at the {s}
how many people work at the {s}|job opening at the {s}: salary
vacancy {k}|early shift {p}
{n} employees

Trial of a machine, {s}
A sorting machine, serial {k}, was tried at the {s} from {d} on and handled {n} parcels an hour. {p}
  advised against buying it at {m}, since it jams in the cold.
trial of the sorting machine at the {s}|parcels an hour in the trial, {s}
should the {s} buy the equipment they tested|prototype evaluation at the {s}, verdict
serial {k}|sorting machine {p}
{n} parcels an hour

Visit of the authority, {s}
The labour inspectorate visited the {s} on {d} and named {n} faults, the worst a missing rail at stair
  {k}. {p} must report by the end of the year or pay {m}.
labour inspectorate at the {s}|faults named by the authority, missing rail, {s}
official check of the {s}: what must be put right|government officers came to the {s}
stair {k}|inspectorate {p} {d}
{n} faults
""")

#: Short things of cards and drawings; `e` is the project.
BOARD: Final = matters("""
Decision
Decision {d}: move the tank farm of {e} to {c}, budget {m}, {p} signs. Ticket {k}
decision about moving the tank farm of {e}|tank farm {e} budget
relocation of the storage vessels, {e}: who agreed|where do the containers of {e} go
ticket {k}|tank farm {p} {c}
move the tank farm

Risk
Risk: only {p} knows the firmware of {e}. Backup {q} until {d}, spare board {k} in {c}
risk around the firmware of {e}|who knows the firmware of {e}
single point of failure in software people, {e}|what if the one expert on {e} leaves
spare board {k}|firmware {p} {q}
Backup {q}

Interview
Interview {p}, {c}: wants a cheaper display for {e}, would pay {m}, {n} units. Note {k}
interview with a customer about the display of {e}|cheaper display for {e}, units
what did the client say of the screen of {e}|demand for a low-cost monitor, {e}
note {k}|interview {p} {c}
wants a cheaper display

Milestone
Milestone {d}: pilot line of {e} in {c} runs {n} hours, {p} reports. Gate {k}
milestone of the pilot line of {e}|pilot line {e} runs how many hours
when should the first production of {e} be up|next big step for {e}
gate {k}|pilot line {p} {c}
pilot line of {e}

Supplier
Supplier for the cables of {e}: workshop {q} in {c}, {m} per reel, {n} reels. Offer {k}
supplier of cables for {e}|cables for {e} per reel
who sells us the wiring of {e}, and at what price|vendor, electric leads, {e}
offer {k}|cables workshop {q}
workshop {q}

Measurement
Valve {k} of {e}: opens at {n} bar, closes at {f}. Checked by {p}, {d}
valve of {e} opens at how many bar|who checked the valve of {e}
pressure at which the tap of {e} lets go|threshold of the relief fitting, {e}
valve {k}|valve {p} {d}
opens at {n} bar

Network
Gateway {k} of {e} in {c}: port {n}, owner {p}, restart allowed until {d}
gateway of {e}, port and owner|restart of the gateway of {e}
who is responsible for the router of {e}|network entry point of {e}
gateway {k}|gateway {p} {c}
port {n}

Workshop
Open question for {e}: do we paint in {c} or let {q} do it for {m}? {p} asks by {d}. Item {k}
open question about painting of {e}|paint of {e}, in house or by {q}
coating of {e}: make or buy|who finds out whether {e} is lacquered by ourselves
item {k}|paint {q} {c}
let {q} do it

""")

#: What stands around what a page is about: people, towns and numbers of no matter.
FILLERS: Final = split(
    "The parties met in {c} on {d} and found no reason to change this section."
    "|Details are settled between {p} and the purchasing office."
    "|Where a date falls on a holiday the next working day counts."
    "|{p} keeps the signed originals in a fireproof cabinet in {c}."
    "|This was discussed twice, last on {d}, without a different result."
    "|Copies in other languages are for convenience only."
    "|Figures are rounded, and those of the first quarter are provisional."
    "|A comparison with {n} similar cases is attached to the minutes."
    "|For questions of detail {p} and {q} are available on weekdays."
    "|An earlier draft named {c}, which is no longer correct."
    "|The table of the year before showed {n} entries, most of them small."
    "|Responsibility lies with the department that ordered the work."
    "|Nobody objected, and the point was closed after a few minutes."
    "|The photographs were taken by {p} and may be used inside the house."
    "|Costs below {m} are borne by the site without further approval."
    "|The next review is due on {d}; until then the present rules apply."
)
