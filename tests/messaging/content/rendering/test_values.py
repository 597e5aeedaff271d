"""Rendering values: how they are written, what is refused, and what Liquid means."""

from datetime import UTC, date, datetime
from decimal import Decimal
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from messaging.content.rendering import (
    Limits,
    RenderFailed,
    RenderLimit,
    TemplateSyntax,
    compile_source,
    render_email,
)


def text(source: str, data: dict[str, object] | None = None, **options: object) -> str:
    return render_email(compile_source({"text": source}), data or {}, **options).text


def failure(source: str, data: dict[str, object] | None = None) -> str:
    with pytest.raises(RenderFailed) as raised:
        text(source, data)
    return str(raised.value)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("x", "x"),
        (Markup("<b>"), "<b>"),
        (None, ""),
        (True, "true"),
        (3, "3"),
        (1.5, "1.5"),
        (Decimal("19.90"), "19.90"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02 03:04:00+00:00"),
        ([1, None, "a", ["b", True]], "1abtrue"),
        (("a", "b"), "ab"),
        (MappingProxyType({}), "{}"),
        ("\ud800x", "\ufffdx"),
    ],
)
def test_value_is_written_as_liquid_has_it(value, written):
    assert text("{{ v }}|", {"v": value}) == written + "|"


@pytest.mark.parametrize("value", [object(), b"x", lambda: 1, Limits(), UnicodeError, 1j])
def test_non_plain_value_is_rejected(value):
    assert "cannot be used in a template" in failure("x", {"a": {"b": [value]}})


@pytest.mark.parametrize(
    "data",
    [
        {"a": "x" * 1_000_001},
        {"a": [0] * 200_000},
        {str(n): None for n in range(200_000)},
        {"a": 10**31},
        {"a": [[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]},
    ],
)
def test_too_large_data_is_rejected(data):
    with pytest.raises(RenderLimit):
        text("x", data)


@pytest.mark.promise("templates-4")
@pytest.mark.parametrize(
    "path",
    [
        "contact.__class__",
        "contact['__class__']",
        "contact.items",
        "contact.first_name.upper",
        "contact.first_name.__class__.__mro__",
        "when.year",
        "when.tzinfo",
        "list.append",
        "list.__class__",
        "contact[list]",
        "now.__class__",
        "missing.__class__",
    ],
)
def test_path_never_reaches_an_attribute(path):
    data = {"contact": {"first_name": "A"}, "when": datetime.now(UTC), "list": [1]}
    rendered = render_email(compile_source({"text": "x{{ " + path + " }}"}), data)
    assert rendered.text == "x"
    assert len(rendered.missing) == 1


@pytest.mark.promise("templates-4")
@pytest.mark.parametrize(
    "source",
    [
        "{% for i in l %}{{ forloop.__class__ }}{{ forloop.it }}{{ forloop.__init__ }}{% endfor %}",
        "{% tablerow i in l %}{{ tablerowloop.it }}{{ tablerowloop.__dict__ }}{% endtablerow %}",
        "{{ l | map: '__class__' }}{{ l | where: '__class__' | size }}",
        "{{ d | map: 'keys' }}{{ d | sum: '__len__' }}{{ d | has: '__class__' }}",
        "{{ d | sort: '__class__' | size }}{{ l | first.__class__ }}",
    ],
)
def test_filter_and_loop_never_reach_an_attribute(source):
    try:
        rendered = text("x" + source, {"l": [{"a": 1}], "d": {"a": 1}})
    except (RenderFailed, TemplateSyntax):
        return
    assert "__" not in rendered
    assert "method" not in rendered
    assert "object" not in rendered


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a\n{{ 1 | divided_by: 0 }}", "line 2: divided_by: can't divide by 0"),
        ("{{ 1.5 | divided_by: 0.0 }}", "line 1: divided_by: can't divide by 0.0"),
        ("{{ 1.5 | modulo: 0 }}", "line 1: modulo: can't divide by 0"),
        ("{% if 'a' < 1 %}{% endif %}", "line 1: '<' and '>' are not supported"),
        ("{{ a | upcase: 1, 2 }}", "line 1: "),
        ("{{ a | compact: 'b' }}", "the data does not fit (KeyError)"),
        ("{{ 'nan' | round }}", "the data does not fit (ValueError)"),
        ("{{ '/w==' | base64_decode }}", "the data does not fit (UnicodeDecodeError)"),
    ],
)
def test_unsuitable_data_fails(source, message):
    assert failure(source, {"a": [{"c": 1}]}).startswith(message)


@pytest.mark.promise("templates-2")
@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("{{ 'a,b' | split: ',' | join: '-' }}", "a-b"),
        ("{{ 'a  b' | split: ' ' | join }}", "a b"),
        ("{{ 'ab' | split: '' | join }}", "a b"),
        ("{{ '' | split: ',' | size }}", "0"),
        ("{{ nested | join: '+' }}", "1+2+3"),
        ("{{ 'b,a,b' | split: ',' | uniq | join }}", "b a"),
        ("{{ people | uniq: 'age' | map: 'name' | join }}", "Ann Cy"),
        ("{{ people | where: 'age', 3 | map: 'name' | first }}", "Ann"),
        ("{{ people | uniq | size }}", "3"),
        ("{{ '<b>a</b><script>x</script>c<!-- d -->' | strip_html }}", "ac"),
        ("{{ '1 < 2' | strip_html }}", "1 < 2"),
        ("{{ day | date: '%d.%m.%Y' }}", "02.01.2026"),
        ("{{ '2026-03-04T05:06:07Z' | date: '%H:%M' }}", "05:06"),
        *(
            (f"{{{{ '{given}' | date: '%d %B %Y' }}}}", shown)
            for given, shown in {
                "05/01/2026": "05 January 2026",
                "13/01/2026": "13 January 2026",
                "5.1.2026": "05 January 2026",
                "05-01-2026": "05 January 2026",
                "05.01.26": "05 January 2026",
                "05/01/69": "05 January 1969",
                "Monday 05/01/2026 at 10:30": "05 January 2026",
                "2026-01-05": "05 January 2026",
                "2026/01/05": "05 January 2026",
                "5 January 2026": "05 January 2026",
                "Jan 5, 2026": "05 January 2026",
                "2026-01-05T23:30:00+02:00": "05 January 2026",
                "01/13/2026": "01/13/2026",
                "31/02/2026": "31/02/2026",
                "05/01/2026 or so": "05/01/2026 or so",
            }.items()
        ),
        ("{{ '05/01/2026 10:30' | date: '%Y-%m-%d %H:%M' }}", "2026-01-05 10:30"),
        ("{{ '05/01/2026' | date: '%Y-%m-%d' }}", "2026-01-05"),
        ("{{ 2.5 | round }} {{ 3.5 | round }} {{ -2.5 | round }}", "3 4 -3"),
        ("{{ 0.5 | round }} {{ 2.4999 | round }}", "1 2"),
        ("{{ 2.675 | round: 2 }} {{ 1.005 | round: 2 }}", "2.68 1.01"),
        ("{{ '2.675' | round: '2' }} {{ -2.675 | round: 2 }}", "2.68 -2.68"),
        ("{{ 5 | round: 2 }} {{ 1250 | round: -2 }} {{ 1.5 | round: nothing }}", "5 1300 2"),
        ("{{ 0.1 | plus: 0.2 }} {{ 0.3 | minus: 0.1 }} {{ 4.35 | times: 100 }}", "0.3 0.2 435.0"),
        ("{{ 0.3 | divided_by: 0.1 }} {{ 20 | divided_by: 7.0 }}", "3.0 2.857142857142857"),
        ("{{ 1.1 | divided_by: 1.1 }} {{ 0.7 | divided_by: '0.1' }}", "1.0 7.0"),
        ("{{ 7 | divided_by: 2 }} {{ -7 | divided_by: 2 }}", "3 -4"),
        ("{{ 0.3 | modulo: 0.1 }} {{ -1.5 | modulo: 1 }} {{ 7 | modulo: 4 }}", "0.0 0.5 3"),
        ("{{ '0.1,0.2' | split: ',' | sum }}", "0.3"),
        ("{{ 19.99 | times: 3 | round: 2 }} {{ 8.15 | times: 1.1 | round: 3 }}", "59.97 8.965"),
        ("{{ nothing | date: '%Y' }}", ""),
        ("{{ 'soon' | date: '%Y' }}", "soon"),
        ("{{ '10' | plus: 5 | times: 2 | divided_by: 4 }}", "7"),
        ("{{ 'x' | append: 1 | prepend: true | append: nil }}", "truex1"),
        ("{{ true | upcase }}{{ nil | upcase }}{{ nested | upcase }}", "TRUE123"),
        ("{% cycle 'a', 'b' %}{% cycle 'a', 'b' %}{% cycle 'a', 'b' %}", "aba"),
        ("{% cycle g: 'a', 'b' %}{% cycle g: 'c', 'd' %}", "ad"),
        ("{% for i in (1..3) %}{{ forloop.index }}{{ i }}{% endfor %}", "112233"),
        ("{% for i in (1..5) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}", "12"),
        ("{% assign n = 2 %}{% for i in (n..n) %}{{ i }}{% endfor %}", "2"),
        ("{% for p in pair %}{{ p[0] }}={{ p[1] }};{% endfor %}", "k=v;"),
        ("{% capture c %}{{ 1 }}{% endcapture %}{{ c }}{{ c }}", "11"),
        ("{% case 2 %}{% when 1, 2 %}a{% else %}b{% endcase %}", "a"),
        ("{% liquid\nassign a = 1\necho a\n%}", "1"),
        ("{% raw %}{{ a }}{% endraw %}{% comment %}{{ a }}{% endcomment %}", "{{ a }}"),
        ("{{ (1..3) }}{{ (3..1) | size }}", "1..30"),
        ("{{ false | default: 'x', allow_false: true }}", "false"),
    ],
)
def test_liquid_follows_its_reference(source, written):
    data = {
        "nested": [1, [2, [3]]],
        "day": date(2026, 1, 2),
        "pair": {"k": "v"},
        "people": [{"name": "Ann", "age": 3}, {"name": "Bo", "age": 3}, {"name": "Cy", "age": 4}],
    }
    assert text(source + "|", data) == written + "|"


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=8,
    )
)
def test_any_data_renders_or_fails_by_name(value):
    compiled = compile_source(
        {
            "subject": "{{ v }}",
            "text": "x{{ v | upcase | date: '%Y' }}{% for i in v %}{{ i | escape }}{% endfor %}",
            "html": "<p title='{{ v | join }}'>{{ v | sort | uniq | first }}{{ v.size }}</p>",
        }
    )
    try:
        rendered = render_email(compiled, {"v": value})
    except (RenderFailed, RenderLimit):
        return
    assert "\n" not in rendered.subject


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**29), 10**29)  # greater ones are refused: `limits.NUMBER_LIMIT`
    | st.floats(-1e29, 1e29)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "size"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "b"]), PLAIN))
def test_variable_renders_the_same_with_and_without_python_liquid(data):
    """Variables at the top of a text are written without it, until something else has run."""
    source = "{{ a }}|{{ a.b }}|{{ b.size }}|{{ a.b.a }}|{{ now.x }}|{{ b }}"
    address = "<p title='{{ a }}'><a href='{{ b }}'>{{ a.b }}</a>"
    fast = compile_source({"text": source, "html": address})
    slow = compile_source(
        {"text": "{% assign z = 1 %}" + source, "html": "{% if z %}{% endif %}" + address}
    )
    assert render_email(fast, data) == render_email(slow, data)


def test_assigned_variable_overrides_the_data():
    assert text("{{ a }}{% assign a = 'own' %}{{ a }}{{ b }}", {"a": "1", "b": "2"}) == "1own2"


def test_literal_text_counts_as_output():
    compiled = compile_source({"text": "x" * 10 + "{{ a }}"})
    assert render_email(compiled, {"a": "y"}, limits=Limits(output=11)).text == "x" * 10 + "y"
    with pytest.raises(RenderLimit, match="output"):
        render_email(compiled, {"a": "y"}, limits=Limits(output=10))


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("{{ v | replace: nl, '<br>' }}", "a &amp; b<br>&lt;i&gt;"),
        ("{{ v | replace: '&', '<b>and</b>' }}", "a <b>and</b> b\n&lt;i&gt;"),
        ("{{ v | replace: 'amp', '<b>' }}", "a &amp; b\n&lt;i&gt;"),
        ("{{ v | replace: '<i>', '<b>' }}", "a &amp; b\n<b>"),
        ("{{ v | replace_first: ' ', '<b>' }}", "a<b>&amp; b\n&lt;i&gt;"),
        ("{{ v | replace_last: ' ', '<b>' }}", "a &amp;<b>b\n&lt;i&gt;"),
        ("{{ v | replace: 'a', w }}", "&lt;w&gt; &amp; b\n&lt;i&gt;"),
        ("{{ v | replace: 'a', 'c' | size }}", "9"),
        ("{{ v | replace: nl, '<br>' | append: '<hr>' }}", "a &amp; b<br>&lt;i&gt;<hr>"),
        ("{{ w | replace: '', '-<br>' }}", "-<br>&lt;-<br>w-<br>&gt;-<br>"),
        ("{{ v | replace: nl, '<br>' | replace: '<br>', '<p>' }}", "a &amp; b<p>&lt;i&gt;"),
        ("{{ v | append: '<b>' }}", "a &amp; b\n&lt;i&gt;<b>"),
        ("{{ v | truncate: 7, '<b>' }}", "a &amp; <b>"),
        ("{{ v | truncate: 7 }}{{ v | truncate }}", "a &amp; ...a &amp; b\n&lt;i&gt;"),
        ("{{ v | truncatewords: 1, '<b>' }}", "a<b>"),
        ("{{ v | truncatewords: 9, '<b>' }}", "a &amp; b &lt;i&gt;"),
        ("{{ v | remove: '<' }}", "a &amp; b\ni&gt;"),
    ],
)
def test_the_markup_of_a_template_replaces_and_variables_stay_escaped(source, written):
    data = {"v": "a & b\n<i>", "nl": "\n", "w": "<w>"}
    rendered = render_email(compile_source({"html": source + "|"}), data)
    assert rendered.html == written + "|"


def test_markup_replaces_nothing_in_a_text():
    assert text("{{ v | replace: 'a', '<br>' }}|", {"v": "a&"}) == "<br>&|"
