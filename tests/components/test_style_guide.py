"""The style guide shows every part, and exists in DEBUG alone."""

from pathlib import Path

import pytest
from django.conf import settings

from rme.components import list_tags, style_guide, tags

FOLDER = Path(settings.BASE_DIR) / "templates" / "components" / "examples"


def test_every_part_has_an_example():
    sources = {path.stem: path.read_text() for path in FOLDER.glob("*.html")}
    assert sources.keys() == style_guide.EXAMPLES.keys()
    together = "".join(sources.values())
    names = {*tags.register.tags, *list_tags.register.tags}
    # The frame draws Django's messages, and a table its cells.
    assert {name for name in names if f"{{% {name} " not in together} == {"notices", "cell"}


@pytest.mark.django_db
def test_style_guide_without_debug_is_not_found(admin_client):
    assert admin_client.get("/admin/style-guide/").status_code == 404
