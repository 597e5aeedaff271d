"""Front matter is read strictly, and what is written is read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from messaging.content.files.front_matter import FrontMatterError, parse, write

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
PLAIN = TEXT | st.booleans() | st.none() | st.integers(-(10**15), 10**15) | st.floats(-1e9, 1e9)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
)


@given(values=st.dictionaries(TEXT, VALUES, max_size=4), body=TEXT)
def test_written_front_matter_is_read_back(values, body):
    found = parse(write(values, body))
    assert (found.values, found.body) == (values, body)


def test_scalars_follow_json_and_multiline_texts_are_blocks():
    text = "---\nday: 2026-01-01\nno: no\nyes: true\nn: 1_000\nhour: 1:30\nf: 1.5\n---\n<p>\n"
    found = parse(text)
    assert found.values == {
        "day": "2026-01-01", "no": "no", "yes": True, "n": "1_000", "hour": "1:30", "f": 1.5,
    }  # fmt: skip
    assert (found.body, found.body_line) == ("<p>", 9)
    assert write({"subject": "Hi", "text": "a\n  b\n"}, "x") == (
        "---\nsubject: Hi\ntext: |\n  a\n    b\n---\nx\n"
    )


@pytest.mark.parametrize(
    ("text", "line", "name", "message"),
    [
        ("<p>", 1, "", "does not begin with front matter"),
        ("---\na: 1\n", 1, "", "does not begin with front matter"),
        ("---\na: 1\na: 2\n---\n", 3, "a", "appears twice"),
        ("---\na: &x 1\nb: *x\n---\n", 2, "a", "anchors and references"),
        ("---\na: [*x]\n---\n", 2, "a.0", "anchors and references"),
        ("---\na: !!python/object/apply:os.system ['x']\n---\n", 2, "a", "tags are not supported"),
        ("---\n- a\n---\n", 2, "", "must be names with values"),
        ("---\n? [a]\n: b\n---\n", 2, "", "a name is not a plain text"),
        ("---\na:\n  b: [\n---\n", 4, "", ""),
        ("---\na: " + "[" * 9000 + "\n---\n", 2, "a" + ".0" * 30, "nested deeper than 30"),
        ("---\na: \x07\n---\n", 1, "", "is not YAML"),
        ("---\na: " + "x" * 600_001 + "\n---\n", 1, "", "longer than 600,000"),
    ],
)
def test_malformed_front_matter_is_rejected_with_its_line(text, line, name, message):
    with pytest.raises(FrontMatterError) as found:
        parse(text)
    assert (found.value.line, found.value.name) == (line, name)
    assert message in found.value.message
