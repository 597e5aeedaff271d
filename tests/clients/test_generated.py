"""What is generated for the clients is of the present description."""

import pytest
from django.test import Client

from clients import generator


@pytest.mark.django_db
def test_the_generated_files_are_current():
    document = Client().get("/rme/v1/openapi.json").json()
    stale = [
        path.name for path, text in generator.files(document).items() if path.read_text() != text
    ]
    assert stale == [], "run `make clients`"
