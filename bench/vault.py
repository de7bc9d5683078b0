"""A seeded vault as Obsidian users have them, with all that makes one hard to serve.

`python -m bench.vault DIR --notes 6500 --seed 7` writes folders of projects, areas, sources, people and daily
notes, with frontmatter of every kind and none, inline and nested tags, callouts, dataview blocks, embeds,
aliases, badges, comments, attachments, templates and `.obsidian/`; beside them 15 notes whose frontmatter has
a line that is no YAML, one note of 400,000 characters and one with 6,000 links. A JSON line tells what was
made. `--frames` puts around the notes what those of a shared vault have in common (`bench/vault_frames.py`).
The same arguments give the same bytes on every Python (`bench/corpus.py` says why).
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

from attrs import asdict, frozen

from bench.corpus import topic_words
from bench.vault_frames import framed
from bench.vault_text import BROKEN_LINES, LINKS, LONG_CHARACTERS, Place, Writer
from bench.words import TOPICS

FIRST_DAY = date(2023, 1, 1)
#: Titles that people use in every folder: the same name many times ("TODO" is such a note, nothing of ours).
REPEATED = ("Overview", "Log", "Ideas", "Meeting", "TODO")
#: A share of the notes stands in each of these; daily notes have a share of their own.
AREAS = (("Projects", 40), ("Areas", 65), ("Sources", 85), ("Zettel", 100))
SIGNS = ("", "", "", "", "", "", "", "", "", "", "", "", "🌱 ", "(draft) ", "Über ", "メモ ", "R&D ", "100% ")
LEAST_NOTES = 60


@frozen
class Made:
    """What a vault holds; paths are relative to it, with `/`."""

    notes: int
    templates: int
    ignored: int
    attachments: int
    broken: list[str]
    repeated_titles: int
    daily: int
    long_note: str
    linking_note: str


def places(notes: int, seed: int) -> list[Place]:
    """Where every note stands: an eighth are daily notes, a twentieth share their title."""
    rng = random.Random(f"vault {seed}")
    days = notes // 8
    made = [_daily(index) for index in range(days)]
    taken = {place.path.lower() for place in made}
    while len(made) < notes:
        place = _place(rng, len(made))
        if place.path.lower() not in taken:  # a file system may ignore case
            taken.add(place.path.lower())
            made.append(place)
    return made


def _daily(index: int) -> Place:
    day = FIRST_DAY + timedelta(days=index)
    return Place(index, "operations", f"Daily/{day:%Y}/{day:%m}", day.isoformat(), "daily")


def _place(rng: random.Random, index: int) -> Place:
    (topic,) = rng.choices(tuple(TOPICS))
    (area,) = rng.choices([name for name, _ in AREAS], cum_weights=[share for _, share in AREAS])
    first, second, third = topic_words(rng, topic, 3)
    parts = [area]
    if area == "Zettel":
        return Place(index, topic, area, f"{_day(rng)}{index:05d} {first} {second}", "zettel")
    parts.append(topic.replace("-", " ").capitalize())
    parts += [third.capitalize(), f"Part {rng.choices(range(1, 5))[0]}"][: rng.choices((0, 1, 1, 2))[0]]
    folder = "/".join(parts)
    if rng.random() < 0.06:
        return Place(index, topic, folder, rng.choices(REPEATED)[0], "repeated")
    (sign,) = rng.choices(SIGNS)
    (join,) = rng.choices((" and ", " of the ", " - ", ", ", " vs. ", " in "))
    return Place(index, topic, folder, f"{sign}{first.capitalize()}{join}{second} {index}", "note")


def _day(rng: random.Random) -> str:
    return f"{FIRST_DAY + timedelta(days=rng.choices(range(900))[0]):%Y%m%d}"


def generate(directory: Path, notes: int = 6500, *, seed: int = 7, frames: bool = False) -> Made:
    """Write a vault of `notes` notes under `directory`, templates and ignored notes not counted.

    With `frames` most have those of their area, and some are maps of contents.

    Existing files of the same names are overwritten, others are left alone. ValueError below 60 notes.
    """
    if notes < LEAST_NOTES:
        raise ValueError(f"A vault of this kind needs {LEAST_NOTES} notes or more, not {notes}.")
    all_places = places(notes, seed)
    plain = [place for place in all_places if place.kind == "note"]
    broken = {place.path: line for place, line in zip(_spread(plain, 15), BROKEN_LINES, strict=True)}
    whole = [place for place in plain if place.path not in broken]
    long_place, linking_place = whole[len(whole) // 3], whole[2 * len(whole) // 3]
    pictures = [f"Attachments/{name}" for name in _attachment_names(all_places, seed)]
    for place in all_places:
        writer = Writer(place, all_places, pictures, seed)
        if place is long_place:
            text = writer.long(LONG_CHARACTERS)
        elif place is linking_place:
            text = writer.linking(LINKS)
        else:
            text = writer.note(broken.get(place.path))
            text = framed(place, text, all_places, seed) if frames and place.path not in broken else text
        _write(directory / place.path, text.encode())
    for number, path in enumerate(pictures):
        _write(directory / path, _pdf(number) if path.endswith(".pdf") else _png(number))
    extra = {**_templates(), **_settings(), **_ignored(seed), **_others()}
    for path, text in extra.items():
        _write(directory / path, text.encode())
    return Made(
        notes=notes,
        templates=len(_templates()),
        ignored=len(_ignored(seed)),
        attachments=len(pictures),
        broken=sorted(broken),
        repeated_titles=sum(place.kind == "repeated" for place in all_places),
        daily=sum(place.kind == "daily" for place in all_places),
        long_note=long_place.path,
        linking_note=linking_place.path,
    )


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _spread(among: Sequence[Place], count: int) -> list[Place]:
    return [among[(2 * number + 1) * len(among) // (2 * count)] for number in range(count)]


def _attachment_names(places: Sequence[Place], seed: int) -> list[str]:
    """One attachment to twenty notes, some in subfolders, some with blanks in their name."""
    rng = random.Random(f"attachments {seed}")
    names = []
    for number in range(max(10, len(places) // 20)):
        (word,) = topic_words(rng, rng.choices(tuple(TOPICS))[0], 1)
        names.append(
            rng.choices(
                (
                    f"{word}-{number}.png",
                    f"Pasted image {20230101 + number}.png",
                    f"papers/{word} {number}.pdf",
                    f"{word}/diagram-{number}.png",
                )
            )[0]
        )
    return names


def _png(number: int) -> bytes:
    """A picture of one pixel, with a text chunk that makes each file another."""
    pixel = bytes.fromhex(
        "89504e470d0a1a0a0000000d494844520000000100000001080600000"
        + "01f15c4890000000d49444154789c6360000002"
        "00000500017a5eab3f"
    )
    # A chunk's checksum is not looked at by whoever does not show it; what follows IEND is ignored.
    return pixel + bytes.fromhex("0000000049454e44ae426082") + f"picture {number}".encode()


def _pdf(number: int) -> bytes:
    return (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n"
        b"trailer<</Root 1 0 R>>\n%% paper " + str(number).encode() + b"\n%%EOF\n"
    )


def _settings() -> dict[str, str]:
    """What Obsidian keeps of itself, as far as it says something of the notes."""
    files: dict[str, object] = {
        "app.json": {
            "alwaysUpdateLinks": True,
            "attachmentFolderPath": "Attachments",
            "newLinkFormat": "shortest",
            "userIgnoreFilters": ["Archive/", "Private draft.md"],
        },
        "templates.json": {"folder": "Templates", "dateFormat": "YYYY-MM-DD"},
        "daily-notes.json": {"folder": "Daily", "format": "YYYY/MM/YYYY-MM-DD"},
        "core-plugins.json": {"templates": True, "daily-notes": True, "graph": True},
        "community-plugins.json": ["dataview"],
        "workspace.json": {"active": "1", "lastOpenFiles": []},
    }
    return {f".obsidian/{name}": json.dumps(value, indent=2) + "\n" for name, value in files.items()}


def _templates() -> dict[str, str]:
    """Templates are no notes: their placeholders are neither titles nor YAML."""
    return {
        "Templates/Daily.md": "---\ndate: {{date}}\ntags: daily\n---\n# {{title}}\n\n## Log\n\n- [ ] \n",
        "Templates/Meeting.md": "---\ntitle: {{title}}\nwith: [[{{person}}]]\n---\n\n## Agenda\n",
        "Templates/Sub/Source.md": "# <% tp.file.title %>\n\n#source/{{kind}}\n",
    }


def _ignored(seed: int) -> dict[str, str]:
    """Notes that app.json ignores, and those of a dot-folder; none of them is served."""
    rng = random.Random(f"ignored {seed}")
    words = [" ".join(topic_words(rng, topic, 6)) for topic in list(TOPICS)[:4]]
    return {
        "Archive/Old plans.md": f"# Old plans\n\narchivedword {words[0]}\n",
        "Archive/2019/Retired.md": f"archivedword {words[1]}\n",
        "Private draft.md": f"archivedword {words[2]}\n",
        ".trash/Deleted note.md": f"archivedword {words[3]}\n",
    }


def _others() -> dict[str, str]:
    """Files that are no notes and stand among them."""
    return {
        "Boards/Roadmap.canvas": '{"nodes":[],"edges":[]}\n',
        "Sources/library.bib": "@book{key, title={A title}}\n",
        "Daily/numbers.csv": "day,hours\n2023-01-01,7\n",
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.vault", description="Write a vault of Markdown notes."
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--notes", type=int, default=6500, help=f"at least {LEAST_NOTES}")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--frames", action="store_true", help="with footers and headers that notes share")
    options = parser.parse_args(arguments)
    if options.notes < LEAST_NOTES:
        parser.error(f"--notes must be at least {LEAST_NOTES}")
    made = generate(options.directory, options.notes, seed=options.seed, frames=options.frames)
    print(json.dumps(asdict(made)))


if __name__ == "__main__":
    main()
