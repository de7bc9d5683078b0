"""Ends of sentences in all scripts (behaviour 421)."""

from __future__ import annotations

import pytest

from lithos.search.ranking.prompt_match import parts_of
from lithos.server.tools.short_snippets import shorten
from lithos.text.chunk import chunk_text
from lithos.text.excerpt_bounds import expects_more
from lithos.text.sentences import PLAIN_END
from lithos.text.snippet import Terms, find_passage, truncate

SENTENCES = {
    "Chinese": ("汽车的保险每年三百欧元。", "它赔偿别人的损失！", "他说：“谁付款？”", "一月份付款。"),
    "Japanese": ("雨が降った。", "「バスは遅れた。」", "何時ですか？", "半角です｡"),
    "Arabic": ("التأمين ثلاثمئة يورو. ", "متى تدفع؟ ", "تدفع في يناير؛ ثم تنتهي. "),
    "Urdu": ("یہ بیمہ ہے۔", "کب دینا ہے؟ ", "جنوری میں۔"),
    "Hindi": ("बीमा 312 यूरो का है। ", "कब देना है? ", "जनवरी में॥"),
    "Thai": ("ประกันราคา 312 ยูโรต่อปี ", "จ่ายในเดือนมกราคม ", "รถต่าง ๆ ของผู้อื่น "),
    "Lao": ("ປະກັນໄພລາຄາ 312 ເອີໂຣ ", "ຈ່າຍໃນເດືອນມັງກອນ "),
    "Burmese": ("အာမခံသည် ၃၁၂ ယူရို၊ ဖြစ်သည်။ ", "ဇန်နဝါရီတွင် ပေးရသည်။"),
    "Khmer": ("ធានារ៉ាប់រងតម្លៃ ៣១២ អឺរ៉ូ។ ", "បង់ក្នុងខែមករា៕"),
    "Amharic": ("መድን 312 ዩሮ ነው። ", "መቼ ይከፈላል፧ ", "በጥር።"),
    "Armenian": ("Ապահովագրությունը 312 եվրո է։ ", "Վճարվում է հունվարին։"),
    "Greek": ("Πότε πληρώνεται; ", "Τον Ιανουάριο. ", "Και μετά\u037e "),
    "Tibetan": ("བོད་ཡིག། ", "སྐད་ཡིག༎"),
    "English": ("It is 3.5 euros; see x.y. ", "Who pays? ", "We do! "),
}


@pytest.mark.parametrize("script", SENTENCES)
def test_sentences_end_as_the_script_ends_them(script: str) -> None:
    """behaviour 421"""
    text = "".join(SENTENCES[script]) + SENTENCES[script][0]
    found = [match.end() for match in PLAIN_END.finditer(text)]
    parts = [text[start:end] for start, end in zip([0, *found], [*found, len(text)], strict=True)]
    expected = [each.strip() for each in (*SENTENCES[script], SENTENCES[script][0])]
    assert [part.strip() for part in parts if part.strip()] == expected


@pytest.mark.parametrize("script", SENTENCES)
def test_long_paragraph_is_divided_into_chunks_after_sentences(script: str) -> None:
    """behaviour 421"""
    sentences = SENTENCES[script]
    text = "".join(sentences) * 60
    chunks = chunk_text("", text)
    assert len(chunks) > 1
    ends = tuple(each.strip() for each in sentences)
    assert [chunk.text for chunk in chunks if not chunk.text.endswith(ends)] == []
    assert [chunk.text for chunk in chunks if not chunk.text.startswith(ends)] == []
    assert all(400 < len(chunk.text) <= 500 for chunk in chunks[:-1])


@pytest.mark.parametrize("script", SENTENCES)
def test_content_is_truncated_after_a_sentence(script: str) -> None:
    """behaviour 421"""
    sentences = SENTENCES[script]
    shown, is_cut = truncate("".join(sentences) * 20, 200)
    assert is_cut
    assert shown.rstrip().endswith(tuple(each.strip() for each in sentences))


@pytest.mark.parametrize(
    "text", ["متى؟", "Πότε;", "Πότε\u037e", "何時？", "何時？」", "መቼ፧", "见下：", "who?", "this:", 'so:"']
)
def test_question_of_any_script_expects_its_reply(text: str) -> None:
    assert expects_more(text)


@pytest.mark.parametrize("text", ["x;", "for (;;);", "قبل؛", "完。", "है।", "ends."])
def test_other_ends_expect_nothing(text: str) -> None:
    assert not expects_more(text)


@pytest.mark.parametrize("text", ["x; y", "a.b", "3.5", "ก็1 ก", "ราคา 312 ยูโร", "ต่าง ๆ ที่", "x ก"])
def test_marks_within_words_numbers_and_code_end_nothing(text: str) -> None:
    assert PLAIN_END.search(text) is None


@pytest.mark.parametrize("script", SENTENCES)
def test_snippet_consists_of_whole_sentences(script: str) -> None:
    """behaviour 421: and so does the short snippet of a compact answer."""
    sentences = tuple(each.strip() for each in SENTENCES[script])
    filler = "".join(SENTENCES[script]) * 10
    found = find_passage(f"{filler}NEEDLE {filler}", Terms.of("needle", {})).text
    for most in (400, 120):
        shown = shorten(found, Terms.of("needle", {}), most).removeprefix("...")
        assert "NEEDLE" in shown
        assert shown.startswith((*sentences, "NEEDLE"))
        assert shown.endswith(sentences)


def test_prompt_is_divided_into_sentences_of_its_script() -> None:
    assert parts_of("यह क्या है। कब देना है? ठीक।")[1:] == ["यह क्या है।", "कब देना है?", "ठीक।"]
    assert parts_of("「いつ？」「明日。」")[1:] == ["「いつ？」", "「明日。」"]
