"""Templates and code of the console mark what people read."""

import pytest

from tests.service import ROOT
from tests.words import code, templates

LEFT_OUT = {"public", "email", "examples", "style_guide.html"}
"""Recipients' pages and emails have languages of their own; the style guide is for developers."""
TEMPLATES = sorted(
    path
    for path in (ROOT / "templates").rglob("*.html")
    if LEFT_OUT.isdisjoint(path.relative_to(ROOT / "templates").parts)
)

PAGES = (
    "messaging/admin", "messaging/console", "rme/cells/people", "rme/components", "rme/crm/admin",
    "rme/crm/records", "rme/sidebar", "rme/tenants/access", "rme/tenants/admin",
    "rme/tenants/imports",
)  # fmt: skip
"""Packages whose texts people read on pages."""
WITHOUT_WORDS = {"guessing.py", "snippets.py", "style_guide.py"}
"""Titles of columns in files, samples of code, and a page for developers."""
CODE = sorted(
    path
    for package in PAGES
    for path in (ROOT / package).rglob("*.py")
    if path.name not in WITHOUT_WORDS
) + [ROOT / name for name in ("bot/admin.py", "rme/cells/admin.py", "rme/refused_pages.py")]
NOT_SHOWN = {
    "acting as", "before and after", "object id",  # the header of a CSV file
    'attachment; filename="{}.zip"',
    'attachment; filename="{}"',
    "platform save",
    "dry run of ",
    "authenticator app", "passkey or security key", "password reset", "recovery codes",
    "second factor", "single sign-on", "logged out",
    "the address was proven by a mailed invitation", "the address was proven by a new password",
    "the address was proven by single sign-on", "too many attempts from one address",
    "too many attempts from one address at several accounts",
    "too many attempts from several addresses", "new secret",
    "new secret; the former one ends in {} hours",  # the audit stores these
    "News about your account", "Welcome to {{ org.name }}", "Your appointment",  # starters
    "passkey challenge\n{}", "second factor {}\n{}",
}  # fmt: skip
"""Texts of emails, of the audit, of files and of programs."""


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("<p>Hello {{ name }}</p>", ["Hello \ufffc"]),
        ('{% load i18n %}<p title="{% translate "Name" %}">{% translate "Hello" %}</p>', []),
        ("{% blocktranslate trimmed %}Hello {{ name }}{% endblocktranslate %}", []),
        ('<input type="submit" value="Save"><input value="data">', ["Save"]),
        ('{% include "x.html" with title="Sent to" kind="c-pill" name=_("Name") %}', ["Sent to"]),
        ("{{ n }} row{{ n|pluralize }}", ["\ufffc row\ufffc", "n|pluralize"]),
        ('<code>Post it</code>{{ a|default:"Not set" }}', ["Not set"]),
    ],
)
def test_unmarked_words_of_a_template_are_found(source, texts):
    assert templates.unmarked(source) == texts


def test_unmarked_sentences_of_code_are_found(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        '"""A docstring of it."""\n'
        'A = "One sentence"\nB = gettext_lazy("Another one")\nC = "console:page"\n'
        'log.warning("It failed here")\n'
        'messages.info(request, f"Sent to {name}")\n'
    )
    assert code.unmarked(module) == ["One sentence", "Sent to {}"]


def unmarked(paths, find):
    """Return the unmarked texts of files that should have none, by file."""
    found = {path.relative_to(ROOT).as_posix(): find(path) for path in paths}
    return {name: texts for name, texts in found.items() if texts}


def test_templates_mark_all_words():
    # The name of a button's tag is a variable.
    paths = [each for each in TEMPLATES if each.name != "button.html"]
    assert unmarked(paths, lambda path: templates.unmarked(path.read_text())) == {}
    assert len(paths) > 120


def test_pages_mark_all_sentences():
    assert {text for path in CODE for text in code.unmarked(path)} == NOT_SHOWN
    assert len(CODE) > 100


def test_scripts_of_the_console_have_no_words():
    built = {"studio.js", "compare.js"}
    pages = (ROOT / "messaging" / "static" / "console").glob("*.js")
    sources = (ROOT / "assets").glob("*/*.js")
    scripts = [*(each for each in pages if each.name not in built), *sources]
    assert unmarked(scripts, lambda path: code.in_script(path.read_text())) == {}
    assert len(scripts) > 12
