"""Translations by XLIFF: out with what changed, and back as a draft."""

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from messaging.content import templates
from messaging.content.files import xliff
from messaging.models import TemplateVersion
from rme.core.db import clock
from rme.tenants.models import Membership
from tests import factories
from tests.messaging.console.conftest import url
from tests.messaging.console.studio.scene import client_of

pytestmark = pytest.mark.django_db
GERMAN = "?language=de&channel=EMAIL"
FILE = """<?xml version="1.0"?><xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="{original}" source-language="en-US" target-language="{language}" datatype="html">
<body>{units}</body></file></xliff>"""
UNIT = '<trans-unit id="{}"><source>x</source><target>{}</target></trans-unit>'


@pytest.fixture
def ann(org):
    return client_of(Client, org, "ann")


@pytest.fixture
def order(org):
    """Return the English version of a template, after its German one."""
    english = factories.template(org, name="order", subject="Your order", html="<p>A & B</p>")
    german = factories.template(org, name="order", language="de", subject="Bestellung")
    for row, hours in ((english, 2), (german, 1)):
        at = clock.now() - timedelta(hours=hours)
        TemplateVersion.objects.filter(pk=row.pk).update(activated_at=at)
    return english, german


def exported(client):
    return client.get(url("template_xliff", "order") + GERMAN)


def import_file(client, units, original="order.EMAIL", language="de"):
    text = FILE.format(original=original, language=language, units=units)
    file = SimpleUploadedFile("t.xlf", text.encode())
    form = {"language": "de", "channel": "EMAIL", "file": file}
    return client.post(url("template_translation", "order"), form, follow=True)


def test_only_changed_texts_go_out_and_come_back(ann, order):
    english, german = order
    assert exported(ann).status_code == 302  # German is as new as English
    texts = {**factories.TEXTS["EMAIL"], "subject": "Your new order", "html": english.html}
    templates.activate(templates.add_draft(english.template, texts))
    answer = exported(ann)
    assert answer["Content-Type"] == "application/xliff+xml"
    assert 'id="subject"' in answer.content.decode()
    assert 'id="html"' not in answer.content.decode()
    back = answer.content.replace(b">Bestellung<", b">Neue Bestellung<")
    file = SimpleUploadedFile("t.xlf", back)
    form = {"language": "de", "channel": "EMAIL", "file": file}
    shown = ann.post(url("template_translation", "order"), form, follow=True)
    assert "Draft 2 is saved." in shown.content.decode()
    draft = german.template.versions.get(state=TemplateVersion.State.DRAFT)
    assert (draft.subject, draft.html) == ("Neue Bestellung", german.html)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"original": "welcome.EMAIL"}, "another template, language or channel"),
        ({"language": "fr"}, "another template, language or channel"),
        ({"units": UNIT.format("html", "")}, "no translated text"),
        ({"units": UNIT.format("nonsense", "x")}, "nonsense"),
        ({"units": UNIT.format("subject", "&undefined;")}, "XLIFF"),
    ],
)
def test_file_that_does_not_fit_changes_nothing(ann, order, changed, problem):
    fields = {"units": UNIT.format("subject", "Neu"), **changed}
    shown = import_file(ann, **fields)
    assert problem in shown.content.decode()
    assert TemplateVersion.objects.filter(template=order[1].template).count() == 1


def test_file_with_a_document_type_is_refused_unread(ann, order):
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa">]>'
    text = FILE.format(original="order.EMAIL", language="de", units=UNIT.format("subject", "&a;"))
    for content in (bomb + text.partition("?>")[2], (bomb + text).encode("utf-16")):
        data = content.encode() if isinstance(content, str) else content
        file = SimpleUploadedFile("t.xlf", data)
        form = {"language": "de", "channel": "EMAIL", "file": file}
        ann.post(url("template_translation", "order"), form)
        with pytest.raises(xliff.errors.InvalidPayload):
            xliff.read(data)
    assert TemplateVersion.objects.filter(template=order[1].template).count() == 1


def test_viewer_exports_but_imports_nothing(org, order):
    viewer = client_of(Client, org, "vic", Membership.Role.VIEWER)
    assert import_file(viewer, UNIT.format("subject", "Neu")).status_code in (403, 404)
    assert TemplateVersion.objects.filter(template=order[1].template).count() == 1


def test_texts_survive_the_way_out_and_back():
    html = "<p>{{ x }}</p>\n\n  <b>é\u2028</b>"
    texts = {"subject": "A & B <c>", "html": html, "text": "\x0btab\t"}
    back = xliff.read(xliff.write("order.SMS", ("en_GB", "de"), texts, texts))
    assert (back.original, back.language) == ("order.SMS", "de")
    assert back.texts == {**texts, "text": "tab\t"}
