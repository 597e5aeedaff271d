"""JSON that people type: what cannot be read or stored is an error at its field."""

from pathlib import Path

import pytest
from django import forms
from django.contrib import admin
from django.contrib.staticfiles import finders

from messaging.console.routing import account_form
from messaging.providers import REGISTRY
from rme.core.http.json_field import JsonField
from rme.core.http.parsing import DEPTH_LIMIT, VALUES_LIMIT
from rme.crm.admin import platform_form
from rme.crm.admin.platform_form import PlatformForm
from rme.crm.models import Speaker
from rme.tenants.models import ApiKey
from tests.tenants.admin.scene import MODELS, fill, page

pytestmark = pytest.mark.django_db

WITH_CHOICES = {"Case", "EventRegistration", "Exhibitor", "Speaker"}
"""The models whose forms in the admin have fields that search for a row."""
BAD = [
    "[" * 100_000,
    '{"a":' * 100_000,
    "1" * 5000,
    "1e999",
    '"\\ud800"',
    "NaN",
    '{"a": "\\u0000"}',
]
BAD += ["[" * (DEPTH_LIMIT + 2) + "]" * (DEPTH_LIMIT + 2), f"[{'1,' * VALUES_LIMIT}1]"]


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:12])
def test_bad_json_is_refused_at_its_field(root, org, text):
    fill(org)
    answer = root.post(page(ApiKey, "add"), {"organization": org.pk, "name": "k", "actions": text})
    assert answer.status_code == 200
    assert "actions" in answer.context["adminform"].form.errors


@pytest.mark.parametrize("text", ["{}", '{"a": [1, 2.5, null, "\\u00e9"]}', "[]", ""])
def test_good_json_is_read_as_before(text):
    assert JsonField(required=False).clean(text) == forms.JSONField(required=False).clean(text)


@pytest.mark.parametrize("text", ["EMAIL", "1e999", "9" * 30, "a\0b", "[]"])
def test_choice_that_cannot_be_an_id_is_refused_at_its_field(root, org, text):
    fill(org)
    fields = {model: admin.site._registry[model].get_autocomplete_fields(None) for model in MODELS}
    answers = {
        model: root.post(page(model, "add"), dict.fromkeys(names, text))
        for model, names in fields.items()
        if names
    }
    shown = {model: answer for model, answer in answers.items() if answer.status_code == 200}
    assert {model.__name__ for model in shown} == WITH_CHOICES
    assert {answer.status_code for answer in answers.values()} <= {200, 302, 403}
    assert [
        model
        for model, answer in shown.items()
        if not answer.context["adminform"].form.errors.keys() & {*fields[model]}
    ] == []
    answer = root.post(page(Speaker, "add"), {"contact": text})
    assert "contact" in answer.context["adminform"].form.errors


def test_script_that_keeps_input_keeps_no_secret():
    script = Path(str(finders.find("console/forms.js"))).read_text()
    fields = {
        name: field
        for form in (PlatformForm, *map(account_form.form_for, REGISTRY))
        for name, field in form.base_fields.items()
        if name in platform_form.SECRET_FIELDS | account_form.SECRET_FIELDS
    }
    inputs = {name: field.widget.render(name, "") for name, field in fields.items()}
    marks = {"[type=password]": 'type="password"', "[data-secret]": "data-secret"}
    kept = [
        name
        for name, shown in inputs.items()
        if not any(mark in shown for selector, mark in marks.items() if selector in script)
    ]
    assert (kept, len(inputs) > 10) == ([], True)
