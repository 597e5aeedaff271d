"""SMS encodings and segments, beside a packer that fills segments one character at a time."""

import random
import time
from bisect import bisect_right
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from messaging.content.rendering import SmsSize, segments

# 3GPP TS 23.038 §6.2.1 row by row, and its extension table, written down apart from the code.
BASIC = (
    "@£$¥èéùìòÇ\nØø\rÅå" "Δ_ΦΓΛΩΠΨΣΘΞÆæßÉ" " !\"#¤%&'()*+,-./" "0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNO" "PQRSTUVWXYZÄÖÑÜ§" "¿abcdefghijklmno" "pqrstuvwxyzäöñüà"
)  # fmt: skip
EXTENSION = "\f^{}\\[~]|€"


def packed(text: str) -> tuple[str, int, int]:
    """Fill segments character by character."""
    gsm = all(character in BASIC + EXTENSION for character in text)
    if gsm:
        widths = [2 if character in EXTENSION else 1 for character in text]
    else:
        widths = [len(character.encode("utf-16-le", "surrogatepass")) // 2 for character in text]
    alone, each = (160, 153) if gsm else (70, 67)
    count, used = 1, 0
    if sum(widths) > alone:
        for width in widths:
            if used + width > each:
                count, used = count + 1, 0
            used += width
    return ("GSM-7" if gsm else "UCS-2", sum(widths), count)


@pytest.mark.promise("templates-11")
@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", SmsSize("GSM-7", 0, 0, 1)),
        ("a" * 160, SmsSize("GSM-7", 160, 160, 1)),
        ("a" * 161, SmsSize("GSM-7", 161, 161, 2)),
        ("a" * 306, SmsSize("GSM-7", 306, 306, 2)),
        ("a" * 307, SmsSize("GSM-7", 307, 307, 3)),
        ("€" * 80, SmsSize("GSM-7", 80, 160, 1)),
        ("a" * 152 + "{" + "a" * 152, SmsSize("GSM-7", 305, 306, 3)),
        ("a" * 151 + "{" + "a" * 153, SmsSize("GSM-7", 305, 306, 2)),
        ("ж" * 70, SmsSize("UCS-2", 70, 70, 1)),
        ("ж" * 71, SmsSize("UCS-2", 71, 71, 2)),
        ("ж" * 134, SmsSize("UCS-2", 134, 134, 2)),
        ("😀" * 35, SmsSize("UCS-2", 35, 70, 1)),
        ("ж" * 66 + "😀" + "ж" * 66, SmsSize("UCS-2", 133, 134, 3)),
        ("ж" * 65 + "😀" + "ж" * 67, SmsSize("UCS-2", 133, 134, 2)),
        ("\x1b", SmsSize("UCS-2", 1, 1, 1)),
        ("ç", SmsSize("UCS-2", 1, 1, 1)),
        ("Ç", SmsSize("GSM-7", 1, 1, 1)),
        ("`", SmsSize("UCS-2", 1, 1, 1)),
    ],
)
def test_segments_at_the_borders(text, size):
    assert segments(text) == size


def test_segments_of_each_character_of_the_tables():
    assert [segments(c) for c in BASIC] == [SmsSize("GSM-7", 1, 1, 1)] * 127
    assert [segments(c) for c in EXTENSION] == [SmsSize("GSM-7", 1, 2, 1)] * 10


@settings(deadline=None)
@given(
    st.one_of(
        st.text("a{", max_size=700),
        st.text("a€é", min_size=140, max_size=330),
        st.text("ж😀", max_size=300),
        st.text("a😀", min_size=60, max_size=140),
        st.text(max_size=200),
    )
)
def test_segments_of_any_text_equal_those_of_a_packer(text):
    size = segments(text)
    assert (size.encoding, size.units, size.segments) == packed(text)
    assert size.characters == len(text)


def test_segments_of_a_long_text_are_counted_fast():
    text = "Hello Ann, your order A-1 is on its way. " * 4
    started = time.thread_time()
    for _ in range(1000):
        segments(text[:160])
    assert time.thread_time() - started < 0.1  # 2 µs each; a hundred would be a loop in Python


WIDTHS = dict.fromkeys(BASIC, 1) | dict.fromkeys(EXTENSION, 2)


def split(text: str) -> list[str]:
    """Cut a text into what each segment carries, by looking for the longest part that fits."""
    if set(text) <= WIDTHS.keys():
        widths, alone, each = [WIDTHS[character] for character in text], 160, 153
    else:
        widths, alone, each = [1 + (character > "\uffff") for character in text], 70, 67
    room = alone if sum(widths) <= alone else each
    before = [0, *accumulate(widths)]  # how wide the text is up to each place
    parts, start = [], 0
    while start < len(text):
        end = bisect_right(before, before[start] + room) - 1
        parts.append(text[start:end])
        start = end
    return parts or [""]


ALPHABETS = ["aB1é", "a{", "a€[]é", "ж", "жa", "ж😀", "a😀", "aж😀{"]


def test_segments_of_ten_thousand_texts_as_a_splitter_cuts_them():
    chance = random.Random(160)
    started = time.thread_time()
    for number in range(10_000):
        alphabet = ALPHABETS[number % len(ALPHABETS)]
        gsm = set(alphabet) <= WIDTHS.keys()
        border = chance.choice([160, 306, 459] if gsm else [70, 134, 201])
        text = "".join(chance.choices(alphabet, k=max(border - chance.randrange(80), 0)))
        parts = split(text)
        assert "".join(parts) == text
        assert segments(text).segments == len(parts), text
    assert time.thread_time() - started < 2
