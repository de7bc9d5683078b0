"""Lists of the attachments vault: spare parts, service logs, inventories; a row is what one asks for."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from bench.dialogue_words import couples, split


@frozen
class Register:
    """A list that takes a page for each of its `items`, `i` at site `s`.

    A row has one of the `things` (`t`, which `u` calls by another name), then what `cells` say. Ways to ask
    are as in a matter; the answer of all of them is the whole row.
    """

    title: str
    items: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[str, ...]
    things: tuple[tuple[str, str], ...]
    words: tuple[str, ...]
    other: tuple[str, ...]
    named: tuple[str, ...]


REGISTERS: Final = (
    Register(
        "Spare parts of the {i}",
        split(
            "palletiser|bottling line|gantry crane|compressor|lathe|kiln|centrifuge|conveyor|chiller"
            "|shredder|hydraulic press|flour mill|spray dryer|carton packer|labeller|pump station"
            "|welding robot|furnace|glass cutter|goods lift"
        ),
        split("Part|Number|Stock|Shelf|Price"),
        split("{k}|{n}|{h}|{m}"),
        couples(
            "gasket=sealing ring|drive belt=transmission band|bearing=roller ring|gear wheel=cog|fuse=cut-out"
            "|filter=strainer|hose=flexible pipe|bolt set=screws|photo cell=light barrier|spring=coil"
            "|cover plate=lid|brake pad=stopper lining"
        ),
        split("price of the {t} for the {i}, {s}|{t} of the {i} at the {s} in stock"),
        split("what does a {u} of the {i} at the {s} cost|replacement {u}, {i}, {s}"),
        split("{k}|part number {k} {i}"),
    ),
    Register(
        "Service log of the {i}",
        split(
            "red van|tanker 4|snow plough|school bus|hearse|street sweeper|fire engine|milk truck|tow truck"
            "|cargo bike|ferry shuttle|crane truck|sand lorry|night tram|ambulance 7|mail car|horse trailer"
            "|refuse truck|mobile library|airport tug"
        ),
        split("Work|Order|Date|Mechanic|Cost"),
        split("{k}|{d}|{p}|{m}"),
        couples(
            "clutch=coupling|windscreen=front glass|exhaust=silencer|battery=accumulator"
            "|headlamp=front light|tyres=rubber wheels|gearbox=transmission|radiator=cooler"
            "|wipers=rain blades|mirror=looking glass|alternator=dynamo|door lock=latch"
        ),
        split("{t} of the {i} at the {s} replaced when|cost of the {t}, {i}, {s}"),
        split("which repair of the {u} did the {i} need, {s}|who fixed the {u} on the {i} at the {s}"),
        split("order {k}|{p} {i} {t}"),
    ),
    Register(
        "Inventory of the {i}",
        split(
            "reading room|boiler room|canteen|west tower|cold cellar|paint shop|gatehouse|server room|attic"
            "|drawing office|chapel|stables|loading bay|sample store|dark room|first aid post|workshop B"
            "|press box|map room|seed vault"
        ),
        split("Object|Tag|Bought|Keeper|Value"),
        split("{k}|{d}|{p}|{m}"),
        couples(
            "desk=writing table|lamp=light|scales=balance|cupboard=wardrobe|stool=seat|clock=timepiece"
            "|ladder=steps|fridge=refrigerator|screen=monitor|carpet=rug|safe=strongbox|kettle=water boiler"
        ),
        split("value of the {t} in the {i}, {s}|keeper of the {t} in the {i} at the {s}"),
        split("what is the {u} of the {i} at the {s} worth|who looks after the {u}, {i}, {s}"),
        split("tag {k}|{p} {i} {t}"),
    ),
)
#: What tells the two or three things of a name on one page.
TELLING: Final = split("left|right|spare")
