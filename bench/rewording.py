"""A text in other words, by a table of words of much the same sense in prose about technical things."""

from __future__ import annotations

import re
from typing import Final

#: Each word with what replaces it; the same form (plural, third person, participle) stands beside it.
_TABLE: Final = """
use employ, uses employs, used employed, using employing, show demonstrate, shows demonstrates,
shown demonstrated, showed demonstrated, make produce, makes produces, made produced, making producing,
get obtain, gets obtains, need require, needs requires, needed required, help assist, helps assists,
start begin, starts begins, started begun, starting beginning, stop halt, stops halts, end finish,
change alter, changes alterations, changed altered, changing altering, give provide, gives provides,
given provided, allow permit, allows permits, allowed permitted, allowing permitting, keep retain,
keeps retains, kept retained, find discover, found discovered, finds discovers, create build,
creates builds, created built, creating building, add append, adds appends, added appended,
remove delete, removes deletes, removed deleted, check verify, checks verifies, checked verified,
checking verifying, ensure guarantee, ensures guarantees, choose select, chosen selected, run execute,
runs executes, running executing, send transmit, sends transmits, sent transmitted, receive accept,
received accepted, set configure, sets configures, setting option, settings options, store save,
stored saved, stores saves, method technique, methods techniques, way manner, ways manners,
problem issue, problems issues, error fault, errors faults, result outcome, results outcomes,
example instance, examples instances, part portion, parts portions, list enumeration, value quantity,
values quantities, number count, numbers counts, size dimension, kind sort, kinds sorts, type category,
types categories, case situation, cases situations, effect influence, effects influences,
rule guideline, rules guidelines, user person, users people, attack assault, attacks assaults,
risk danger, risks dangers, important significant, large big, larger bigger, small little,
smaller lesser, new fresh, old former, good sound, better superior, bad poor, possible feasible,
necessary required, different distinct, similar comparable, several various, many numerous, few scarce,
main principal, whole entire, full complete, simple plain, easy effortless, hard difficult, fast quick,
slow sluggish, often frequently, always invariably, usually normally, sometimes occasionally,
quickly rapidly, however nevertheless, therefore hence, because since, although though, while whereas,
also additionally, only solely, about concerning, before prior, after following, between amid,
within inside, without lacking, through via, must shall, should ought, can may, will shall,
obtain acquire, obtained acquired, determine ascertain, determined ascertained, investigate examine,
investigated examined, investigation study, present current, presented given, presents gives,
describe outline, described outlined, describes outlines, discuss treat, discussed treated,
consider regard, considered regarded, compare contrast, compared contrasted, agree concur,
agreement accord, increase growth, increases grows, increased raised, decrease drop, decreases drops,
reduce lower, reduced lowered, reduces lowers, develop devise, developed devised, apply use,
applied used, require need, requires needs, required needed, include contain, includes contains,
including containing, provide supply, provides supplies, provided supplied, support back,
supports backs, follow obey, follows obeys, contain hold, contains holds, access entry, request query,
requests queries, response reply, responses replies, data information, information data, code program,
file document, files documents, page sheet, pages sheets, line row, lines rows, name label, names labels,
guide manual, service facility, services facilities, system arrangement, systems arrangements,
process procedure, processes procedures, test trial, tests trials, theory doctrine, body object,
bodies objects, shape form, shapes forms, speed velocity, high elevated, low reduced, near close,
approximate rough, approximately roughly, exact precise, basis foundation, range span, ranges spans
"""
_WORDS: Final = dict(pair.split(maxsplit=1) for pair in " ".join(_TABLE.split()).split(", "))
_WORD: Final = re.compile(r"[A-Za-z]+")


def reword(text: str) -> str:
    """The text with every word of the table replaced once; capitals stay."""
    return _WORD.sub(lambda found: _other(found[0]), text)


def _other(word: str) -> str:
    other = _WORDS.get(word.lower())
    if other is None:
        return word
    return other.capitalize() if word[0].isupper() else other
