"""Inputs of settings: a list of all languages is what Django's own would be."""

import pytest
from django import forms
from django.test.html import parse_html

from rme.tenants.admin.offered import LongSelect

CHOICES = [("", "Choose"), ("de", "German"), ('a"<', "A & <b>"), (7, "Seven")]


def drawn(widget, data, initial, **fields):
    """Return the element of a form's only field."""
    field = forms.ChoiceField(choices=CHOICES, widget=widget, initial=initial, **fields)
    form = type("Form", (forms.Form,), {"chosen": field})(data, auto_id="new_%s")
    return parse_html(str(form["chosen"]))


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("initial", [None, "de", 7])
@pytest.mark.parametrize("data", [None, {}, {"chosen": 'a"<'}, {"chosen": "7"}, {"chosen": "zz"}])
def test_long_select_renders_the_same_element_as_django(data, initial, required):
    ours = drawn(LongSelect, data, initial, required=required)
    assert ours == drawn(forms.Select, data, initial, required=required)
    assert len([each for each in ours.children if getattr(each, "name", "") == "option"]) == 4
