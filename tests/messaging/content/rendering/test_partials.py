"""Partials: what they see, what they may do, and what keeps them from being used."""

import time

import pytest

from messaging.content.rendering import (
    Limits,
    RenderFailed,
    RenderLimit,
    TemplateProblem,
    TemplateSyntax,
    check,
    check_partial,
    compile_source,
    render_email,
    render_sms,
    used_partials,
)

FOOTER = "© {{ year }} {{ name }}"


def text(source, partials, data=None, **options):
    return render_email(compile_source({"text": source}, partials), data or {}, **options).text


def problems(source, partials, field="text"):
    return [(p.message, p.line, p.column) for p in check({field: source}, partials)]


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("{% render 'footer', year: 2026, name: org.name %}", "© 2026 Acme"),
        ('{% render "footer" year: year %}', "© 1999 "),
        ("{%- render 'footer' , name: 'A' -%}", "©  A"),
        ("{% liquid\nrender 'footer', name: 'A'\n%}", "©  A"),
        ("{% for i in (1..3) %}{% render 'item', i: i %}{% endfor %}", "[1][2][3]"),
        ("{% capture c %}{% render 'item', i: 1 %}{% endcapture %}{{ c }}{{ c }}", "[1][1]"),
        ("{% render 'plain' %}", "no Liquid"),
        ("{% render 'outer', name: 'A' %}", "<© 2000 A>"),
    ],
)
def test_partial_sees_only_its_arguments(source, written):
    partials = {
        "footer": FOOTER,
        "item": "[{{ i }}]",
        "plain": "no Liquid",
        "outer": "<{% render 'footer', year: 2000, name: name %}>",
        "unused": "{% if",
    }
    data = {"year": "1999", "org": {"name": "Acme"}}
    assert text(source + "|", partials, data) == written + "|"


def test_assignments_of_a_partial_do_not_leak():
    partials = {"own": "{% assign a = 'in' %}{% increment n %}{{ a }}"}
    source = "{% assign a = 'out' %}{% render 'own' %}{% render 'own' %}{{ a }}{{ n }}"
    assert text(source, partials) == "0in0inout"


def test_missing_variables_of_a_partial_are_reported():
    compiled = compile_source({"text": "{% render 'footer', year: when %}"}, {"footer": FOOTER})
    rendered = render_email(compiled, {"name": "not given to it"})
    assert (rendered.text, rendered.missing) == ("©  ", ("when", "name"))


def test_partial_is_escaped_in_html_and_not_in_text():
    texts = {"text": "{% render 'p', v: v %}", "html": "<p>{% render 'p', v: v %}</p>"}
    rendered = render_email(compile_source(texts, {"p": "<b>{{ v }}</b>"}), {"v": "<i>"})
    assert rendered.text == "<b><i></b>"
    assert rendered.html == "<p><b>&lt;i&gt;</b></p>"


def test_markup_given_to_a_partial_stays_markup():
    source = "{% capture c %}<b>{{ v }}</b>{% endcapture %}{% render 'box', content: c %}"
    compiled = compile_source({"html": source}, {"box": "<td>{{ content }}</td>"})
    assert render_email(compiled, {"v": "<i>"}).html == "<td><b>&lt;i&gt;</b></td>"


def test_documents_are_wrapped_by_partials():
    partials = {"top": "<table><tr><td>", "bottom": "</td></tr></table>"}
    source = "{% render 'top' %}{{ v }}{% render 'bottom' %}"
    compiled = compile_source({"html": source}, partials)
    assert render_email(compiled, {"v": "a&b"}).html == "<table><tr><td>a&amp;b</td></tr></table>"


@pytest.mark.parametrize(
    "source",
    [
        "<p title=\"{% render 'p' %}\">",
        "<p {% render 'p' %}>",
        "<!-- {% render 'p' %} -->",
        "<style>{% render 'p' %}</style>",
        "<script>{% render 'p' %}</script>",
    ],
)
def test_partial_within_a_tag_is_rejected(source):
    found = check({"html": source}, {"p": "{{ v }}"})
    assert [p.message for p in found] == ["a partial stands between tags, not within one"]


@pytest.mark.parametrize(
    ("partial", "message"),
    [
        ("<p {{ v }}>", "line 1, column 4: a variable stands in a tag"),
        ("<script>{{ v }}</script>", "line 1, column 9: a variable stands in a script"),
        ("\n<a href='", "line 2, column 10: a partial ends within a tag or a comment"),
        ("<!--", "line 1, column 5: a partial ends within a tag or a comment"),
        ("{% break %}", "line 1, column 4: 'break' outside of a loop"),
        ("{{ v | nope }}", "line 1, column 8: unknown filter 'nope'"),
    ],
)
def test_broken_partial_is_a_problem_of_its_users(partial, message):
    (found,) = check({"html": "a\n {% render 'p' %}"}, {"p": partial})
    assert found.message.startswith(f"partial 'p', {message}")
    assert (found.field, found.line, found.column) == ("html", 2, 5)


def test_missing_partial_is_a_problem_of_its_users():
    assert check({"text": "a\n{% render 'p' %}", "data": {"k": "{% render 'q' %}"}}) == [
        TemplateProblem("text", "there is no partial 'p'", 2, 4),
        TemplateProblem("data.k", "there is no partial 'q'", 1, 4),
    ]
    assert problems("{% render 'p' %}", {"p": "{% render 'q' %}"}) == [
        ("there is no partial 'q'", 1, 4)
    ]


def test_deleted_partial_fails_only_the_field_using_it():
    compiled = compile_source({"text": "fine", "html": "{% render 'p' %}"})
    assert render_sms(compiled, {}).text == "fine"
    with pytest.raises(RenderFailed) as raised:
        render_email(compiled, {})
    assert str(raised.value) == "html, line 1, column 4: there is no partial 'p'"


def test_unparsable_text_is_rejected_before_its_partials():
    with pytest.raises(TemplateSyntax, match="never closed"):
        compile_source({"text": "{% render 'p' %}{{"})


@pytest.mark.parametrize(
    "partials",
    [
        {"p": "{% render 'p' %}"},
        {"p": "{% render 'q' %}", "q": "a{% if b %}{% render 'p' %}{% endif %}"},
    ],
)
def test_recursive_partial_is_rejected(partials):
    ((message, _, _),) = problems("{% render 'p' %}", partials)
    assert message == "the partial 'p' renders itself"


def chain(count):
    partials = {f"p{n}": f"{n}{{% render 'p{n + 1}' %}}" for n in range(1, count)}
    return partials | {f"p{count}": f"{count}"}


def test_partials_in_partials_have_a_depth():
    assert text("{% render 'p1' %}", chain(5)) == "12345"
    for source in ("{% render 'p1' %}", "{% render 'p4' %}{% render 'p1' %}"):
        ((message, _, _),) = problems(source, chain(6))
        assert message == "partials in partials more than 5 deep"


def test_number_of_partials_in_a_text_is_limited():
    partials = {f"p{n}": "x" for n in range(51)}
    calls = [f"{{% render 'p{n}' %}}" for n in range(51)]
    assert problems("".join(calls[:50]), partials) == []
    assert [message for message, _, _ in problems("".join(calls), partials)] == [
        "more than 50 partials"
    ]


def test_error_in_a_partial_names_it_and_its_line():
    with pytest.raises(RenderFailed) as raised:
        text("a\n\n{% render 'p', n: 0 %}", {"p": "b\n{{ 1 | divided_by: n }}"})
    assert str(raised.value) == "partial p, line 2: divided_by: can't divide by 0"


TIMES = "{% for i in (1..100) %}"
HOSTILE = {
    "time": {"p": TIMES + "{% render 'q', b: b %}{% endfor %}", "q": "{{ b | upcase }}" * 100},
    "calls": {"p": "{% render 'q' %}" * 300, "q": "{% render 'r' %}" * 300, "r": ""},
    "output": {"p": "x" * 20_000},
    "loops": {"p": "{% for i in (1..200) %}{% endfor %}"},
    "memory": {"p": "{% assign a = big %}{% assign c = big %}{% assign d = big %}"},
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("field", ["text", "html"])
def test_limits_hold_across_partials(name, field):
    source = TIMES + "{% render 'p', b: b, big: big %}{% endfor %}x"
    compiled = compile_source({field: source}, HOSTILE[name])
    data = {"b": "y", "big": "y" * 700_000}
    started = time.thread_time()
    with pytest.raises(RenderLimit):
        render_email(compiled, data, limits=Limits(seconds=0.1))
    assert time.thread_time() - started < 1


def test_memory_of_partial_variables_is_freed_after_each_render():
    source = "{% for i in (1..50) %}{% render 'p', b: b %}{% endfor %}x"
    assert text(source, {"p": "{% assign a = b %}"}, {"b": "y" * 100_000}) == "x"


def test_partial_is_compiled_with_its_user():
    texts = {"text": "{% render 'p' %}"}
    first = compile_source(texts, {"p": "1", "other": "x"})
    assert first.partials == {"p"}
    assert compile_source(texts, {"p": "1", "other": "y"}) is first
    assert render_sms(compile_source(texts, {"p": "2"}), {}).text == "2"
    assert render_sms(first, {}).text == "1"


def test_used_partials_are_found_through_partials():
    texts = {"mjml": "{% render 'a' %}", "data": {"k": '{%- render "b" -%}'}, "text": "render c"}
    assert used_partials(texts, {"a": "{% render 'd' %}"}) == {"a", "b", "d"}


def test_partial_must_parse_as_text_and_html():
    assert check_partial("<p>{{ v }}</p>{% render 'q' %}", {"q": "x"}) == []
    assert check_partial("a\n{{ v", {}) == [TemplateProblem("text", "'{{' is never closed", 2, 1)]
    assert check_partial("<p title={{ v }}>", {}) == [
        TemplateProblem(
            "text",
            "a variable stands in a tag, outside of quotes: put its place into quotes",
            1,
            10,
        )
    ]
    assert check_partial("{% render 'this-one' %}", {}) == [
        TemplateProblem("text", "there is no partial 'this-one'", 1, 4)
    ]


def test_mjml_takes_partials_of_html():
    mjml = (
        "<mjml><mj-body><mj-section><mj-column><mj-text>Hi</mj-text>"
        "<mj-raw>{% render 'foot', v: v %}</mj-raw></mj-column></mj-section></mj-body></mjml>"
    )
    assert check({"mjml": mjml}, {"foot": "<tr><td>{{ v }}</td></tr>"}) == []
    (found,) = check({"mjml": mjml})
    assert (found.field, found.message) == ("mjml", "there is no partial 'foot'")
