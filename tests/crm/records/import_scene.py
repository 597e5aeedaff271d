"""Files that people upload, and the buttons that they press on the page of an import."""

from django.core.files.uploadedfile import SimpleUploadedFile

from rme.core.cache import TtlCache
from rme.crm.models import Contact, RecordImport
from rme.crm.records import import_file
from tests.tenants.admin.scene import page

PEOPLE = (
    "Stamm;E-Mail;Notes\nLovelace;ADA@simulator.rme.test;x\nHopper;h@x.example;y\n;z@x.example;\n"
)


def upload(editor, org, text=PEOPLE):
    file = SimpleUploadedFile("people.csv", text.encode())
    answer = editor.post(page(Contact, "new_import"), {"organization": org.pk, "file": file})
    return answer["Location"]


def finish():
    while import_file.import_next_part():
        pass
    run = RecordImport.objects.get()
    return run.state, run.added, run.replaced, run.rejected


ODD = (
    "Nachname;Vorname;E-Mail;Handy;Sprache;Kundennr\n"
    "Müller;Ada;ada@x.example;079 399 29 30;de-CH;1\n"
    ";Bob;bob@x.example;079 399 29 31;Deutsch;2\n"
    "Roth;Eve;eve@x.example;n/a;de;3\n"
    ";Max;nobody;079 399 29 32;Deutsch;4\n"
)


def odd(editor, org):
    """Upload a German spreadsheet's file, and let its check end; return its page's address."""
    org.region = "CH"
    org.save()
    TtlCache.clear_all()
    file = SimpleUploadedFile("kunden.csv", ODD.encode("cp1252"))
    answer = editor.post(page(Contact, "new_import"), {"organization": org.pk, "file": file})
    assert finish() == ("DONE", 1, 0, 3)
    return answer["Location"]


def mend(editor, url, do, **mends):
    """Fill in the form of a check as its page shows it."""
    seen = editor.get(url).context["form"]["seen"].value()
    return editor.post(url, {"seen": seen, "do": do, **mends})
