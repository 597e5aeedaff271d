"""What the pictures of the template studio show."""

import os
from pathlib import Path

from docs.picture_scene import ORG
from messaging.content import drafts, partials, publishing
from messaging.content.files import archives, pull
from messaging.content.files.file_types import SourceFile
from messaging.models import Template
from rme.tenants.audit import Actor

BOOKING = """<h1>Your booking</h1>
<p>Dear {{ contact.first_name }},</p>
<p>we have booked <b>{{ session }}</b> for {{ seats }} on {{ day }}.</p>
<ul>
{% for item in items %}<li>{{ item }}</li>
{% endfor %}</ul>
<p><a href="{{ link }}">See your booking</a></p>
"""


def write_templates(author: Actor) -> None:
    """Make a template with two versions, a draft in another language, an SMS, and a partial."""
    texts: dict[str, object] = {"subject": "Your booking of {{ session }}", "html": BOOKING}
    kinds = {"session": "string", "seats": "integer", "day": "string", "link": "string"}
    examples: dict[str, object] = {
        "session": "Opening keynote", "seats": 2, "day": "12 May", "link": "https://demo.example/b",
    }  # fmt: skip
    properties: dict[str, object] = {
        name: {"type": kind, "examples": [examples[name]]} for name, kind in kinds.items()
    }
    properties["items"] = {
        "type": "array", "items": {"type": "string"}, "examples": [["Badge", "Lunch"]],
    }  # fmt: skip
    texts["variables"] = {"type": "object", "properties": properties, "required": ["session"]}
    own = {"organization_id": ORG, "name": "booking", "category": "TRANSACTIONAL"}
    first = Template(**own, language="en_US", channel="EMAIL")
    old = BOOKING.replace("{{ session }}", "{{ title }}").replace("See your", "Open the")
    publishing.publish(drafts.add_template(first, author, {**texts, "html": old}), author)
    row = drafts.save(first, texts, author, drafts.Seen(1))
    publishing.publish(row, author)
    german = BOOKING.replace("Your booking", "Ihre Buchung").replace("Dear", "Guten Tag")
    drafts.add_template(
        Template(**own, language="de", channel="EMAIL"), author, {**texts, "html": german}
    )
    sms = {"text": "{{ org.name }}: {{ session }}, {{ day }}. {{ link }}"}
    drafts.add_template(Template(**own, language="en_US", channel="SMS"), author, sms)
    (footer,) = partials.add_all(ORG, ["footer"])
    old = "<p>{{ name }}, Hall 1, Geneva</p>\n<p>You get this because you have a booking.</p>\n"
    partials.publish(partials.save(footer, old, author, drafts.Seen()), author)
    partials.save(footer, old.replace("Hall 1", "Palexpo, Hall 2"), author, drafts.Seen(1))


def write_archive() -> None:
    """Write the templates as files, one of them changed and one more."""
    files = dict(pull.pull(ORG))
    path = "booking/de.email.liquid"
    files["booking/en_GB.email.liquid"] = files[path].replace(b"Ihre Buchung", b"Your booking")
    files[path] = files[path].replace(b"Guten Tag", b"Liebe")
    with archive_path().open("wb") as archive:
        archives.write((SourceFile(*each) for each in sorted(files.items())), archive)


def archive_path() -> Path:
    """Return the path of the archive that is imported."""
    return Path(os.environ["RME_VAR"]) / "templates.zip"
