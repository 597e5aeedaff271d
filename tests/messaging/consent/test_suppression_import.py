"""Importing files of suppressions part by part: the result of each row, and of the import."""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.consent import suppression_import, tasks
from messaging.models import Suppression, SuppressionImport, SuppressionImportPart
from tests import factories
from tests.messaging.consent.suppression_import_scene import (
    HEADER,
    counts,
    finish,
    mails,
    start,
    stored,
)

pytestmark = pytest.mark.django_db


def bad(run):
    return list(suppression_import.rejected_rows(run))[1:]


# --- what is imported ---------------------------------------------------------------------------
def test_rows_become_entries_in_their_normal_form(org):
    ada = str(factories.contact(org).pk)
    run = start(
        org,
        HEADER + "email, Ada@Example.com ,,stop,,\n"
        'SMS,(212) 736-5000,,HARD_BOUNCE,"a ""bad"", number",2099-01-01T00:00:00Z\n'
        "\n"
        f"PUSH,,{ada},,,\n"
        "ALL,'+12127365001\n",
    )
    assert finish() == 1
    assert counts(run) == ("DONE", 4, 4, 4, 0, 0, 0)
    until = datetime(2099, 1, 1, tzinfo=UTC)
    assert stored(org) == {
        ("EMAIL", "ada@example.com", "", "STOP", "", None, "IMPORT"),
        ("SMS", "+12127365000", "", "HARD_BOUNCE", 'a "bad", number', until, "IMPORT"),
        ("PUSH", "", ada, "MANUAL", "", None, "IMPORT"),
        ("ALL", "+12127365001", "", "MANUAL", "", None, "IMPORT"),
    }
    assert bad(run) == []


def test_unmatched_quotes_do_not_swallow_the_rows_between_them(org):
    between = "".join(f"EMAIL,ada{number}@example.com,,,,\n" for number in range(600))
    run = start(
        org,
        HEADER + f'EMAIL,first@example.com,,,"open,\n{between}EMAIL,last@example.com,,,an inch"\n',
    )
    finish()
    assert Suppression.objects.filter(address__startswith="ada").count() == 600
    assert counts(run)[:2] == ("DONE", 602)


@pytest.mark.parametrize("rows", [1, 9])
def test_import_ends_with_its_last_part_for_any_row_count(org, rows):
    """A former release counted lines, and took a row of several lines for several."""
    run = start(org, mails(range(4)), part_lines=2)
    SuppressionImport.objects.update(rows=rows)
    for _ in range(10):
        suppression_import.work()
    assert (counts(run)[0], len(stored(org))) == ("DONE", 4)


@pytest.mark.promise("suppressions-2")
def test_a_row_of_an_unknown_contact_is_bad(org):
    theirs = factories.contact(factories.organization("other"))
    ours = factories.contact(org)
    run = start(org, HEADER + f"PUSH,,{theirs.pk},,,\nPUSH,,{ours.pk},,,\nPUSH,,c1,,,\nbad\n")
    finish()
    assert [(contact) for _, _, contact, *_ in stored(org)] == [str(ours.pk)]
    why = ("contactId", "does not exist")
    assert [each for each in bad(run) if each[1] == "contactId"] == [("2", *why), ("4", *why)]
    assert counts(run)[:2] == ("DONE", 4)


@pytest.mark.parametrize("count", [1, 20])
def test_contacts_of_a_part_are_looked_up_at_once(org, count):
    people = factories.contacts(org, count)
    start(org, HEADER + "".join(f"PUSH,,{each.pk},,,\n" for each in people))
    with CaptureQueriesContext(connection) as asked:
        finish()
    looked = [each["sql"] for each in asked if "crm_contact" in each["sql"]]
    assert (len(looked), Suppression.objects.count()) == (1, count)


@pytest.mark.parametrize(
    "content",
    [
        "channel,address\nEMAIL,a@b.example\n",
        "channel,address\r\nEMAIL,a@b.example\r\n",
        "channel;address\nEMAIL;a@b.example",
        "Channel,ADDRESS,,\nEMAIL,a@b.example,,\n,,,\n",
        b"\xef\xbb\xbfchannel;address\r\nEMAIL;a@b.example\r\n",
        "createdAt,source,address,channel\n2020,API,a@b.example,EMAIL\n",
        '"channel","address"\n"EMAIL","a@b.example"\n',
    ],
)
def test_files_as_programs_write_them(org, content):
    run = start(org, content)
    finish()
    assert counts(run) == ("DONE", 1, 1, 1, 0, 0, 0)
    assert stored(org) == {("EMAIL", "a@b.example", "", "MANUAL", "", None, "IMPORT")}


def test_existing_entry_keeps_or_takes_the_stronger_reason(org):
    fields = {"organization": org, "channel": "EMAIL", "source": "ADMIN"}
    Suppression.objects.create(address="a@b.example", reason="COMPLAINT", **fields)
    Suppression.objects.create(address="c@d.example", reason="MANUAL", **fields)
    run = start(
        org,
        "channel,address,reason\nEMAIL,a@b.example,STOP\nEMAIL,c@d.example,STOP\n"
        "EMAIL,e@f.example,STOP\nEMAIL,E@f.example,MANUAL\n",
    )
    finish()
    assert counts(run) == ("DONE", 4, 4, 1, 1, 2, 0)
    assert stored(org) == {
        ("EMAIL", "a@b.example", "", "COMPLAINT", "", None, "ADMIN"),
        ("EMAIL", "c@d.example", "", "STOP", "", None, "IMPORT"),
        ("EMAIL", "e@f.example", "", "STOP", "", None, "IMPORT"),
    }


def test_bad_rows_are_reported_and_fail_no_other(org):
    run = start(
        org,
        HEADER + "EMAIL,nobody,,,,\n"
        "FAX,a@b.example,,WHIM,,\n"
        "\n"
        "EMAIL,a@b.example,c1,,,\n"
        'EMAIL,"a@b.example,,,,\n'
        "EMAIL,a@b.example,,,,,more\n"
        "EMAIL,a@b.example,,,,2020-01-01T00:00:00Z\n"
        "EMAIL,a\x00@b.example,,,,\n"
        "EMAIL,a@b.example,,,no\x00te,\n"
        "EMAIL,good@b.example,,,,\n",
    )
    finish()
    assert counts(run) == ("DONE", 9, 9, 1, 0, 0, 8)
    reasons = "Hard bounce, Complaint, STOP, Unsubscribe, Invalid address or Manual"
    assert bad(run) == [
        ("2", "address", "is not an email address"),
        ("3", "channel", "is not Email, SMS, Push or All"),
        ("3", "reason", f"is not {reasons}"),
        ("5", "address", "give exactly one of address and contactId"),
        ("6", "row", "quotes that do not match"),
        ("7", "row", "more cells than the first line names"),
        ("8", "expiresAt", "must be ahead, by less than 100 years"),
        ("9", "address", "is not an email address"),
        ("10", "note", "must not contain control characters"),
    ]
    assert {address for _, address, *_ in stored(org)} == {"good@b.example"}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "The first line must name channel, and one of address and contactId."),
        ("channel,reason\nEMAIL,STOP\n", "The first line must name channel, and one of address "
         "and contactId."),
        ("channel,address,address\n", "The first line names a column twice."),
        ("EMAIL,a@b.example\n", "The first line may name channel, address, contactId, reason, "
         "note, expiresAt; it names 'EMAIL'."),
        ('channel,"address\nEMAIL,a@b.example\n', "The first line has quotes that do not match."),
        (HEADER, "The file has no rows below its header line."),
        (HEADER + "\n,,,,\n", "The file has no rows below its header line."),
        (HEADER.encode() + "EMAIL,ö@b.example\n".encode() + b"EMAIL,a@b.example,,,caf\xe9,\n",
         "Line 3 is not UTF-8: save the file as UTF-8."),
        (HEADER.encode() + b"EMAIL,a@b.example,,,\x81,\n", "Line 2 is not UTF-8: save the file "
         "as UTF-8."),
        (HEADER.encode("utf-16") + b"a\xd8,", "The file is not valid UTF-16: save it as UTF-8."),
        (HEADER.encode("utf-16")[:-1], "The file is not valid UTF-16: save it as UTF-8."),
        (HEADER + "x" * 20_000, "Line 2 is longer than 16,384 bytes."),
    ],
)  # fmt: skip
def test_unreadable_file_is_rejected(org, content, why):
    with pytest.raises(suppression_import.Unreadable) as refused:
        start(org, content)
    assert str(refused.value) == why
    assert not SuppressionImport.objects.exists()


# --- part by part -------------------------------------------------------------------------------
def test_a_file_is_imported_part_by_part(org):
    run = start(org, mails(range(25)), part_lines=10)
    seen = []
    while suppression_import.work():
        seen.append(counts(run)[:4])
    assert seen == [("RUNNING", 25, 10, 10), ("RUNNING", 25, 20, 20), ("DONE", 25, 25, 25)]
    assert not SuppressionImportPart.objects.filter(content__isnull=False).exists()


@pytest.mark.parametrize("lines", [1, 50, 500])
def test_import_part_needs_the_same_queries_for_any_size(org, lines):
    start(org, mails(range(lines)))
    run = start(org, mails(range(lines)))
    suppression_import.work()
    with CaptureQueriesContext(connection) as captured:
        suppression_import.step(run.pk)
    assert (len(captured), counts(run)[0]) == (
        10,
        "DONE",
    )  # seven, the gate lock, and the savepoint


def test_files_take_turns(org):
    other = factories.organization("other")
    first = start(org, mails(range(40)), part_lines=10)
    second = start(other, mails(range(20)), part_lines=10)
    progress = []
    for _ in range(4):
        suppression_import.work()
        progress.append((counts(first)[2], counts(second)[2]))
    assert progress == [(10, 0), (10, 10), (20, 10), (20, 20)]


def test_a_part_imported_twice_gives_the_same(org):
    text = mails(range(15)) + "EMAIL,nobody,,,,\n"
    start(org, text)
    finish()
    before = list(Suppression.objects.order_by("pk").values())
    run = start(org, text)
    finish()
    assert counts(run) == ("DONE", 16, 16, 0, 0, 15, 1)
    assert list(Suppression.objects.order_by("pk").values()) == before


def test_cancelled_import_stops_at_its_position(org):
    run = start(org, "channel,address\nEMAIL,nobody\n" + "EMAIL,a@b.example\n" * 19, part_lines=10)
    suppression_import.work()
    assert not suppression_import.cancel("other", run.pk)
    assert suppression_import.cancel(org.pk, run.pk)
    assert not suppression_import.cancel(org.pk, run.pk)
    assert finish() == 0
    assert counts(run) == ("CANCELLED", 20, 10, 1, 0, 8, 1)
    assert bad(run) == [("2", "address", "is not an email address")]


def test_task_runs_waiting_imports(org, redis):
    run = start(org, mails(range(25)), part_lines=10)
    tasks.import_suppressions()
    assert counts(run)[0] == "DONE"


KILLED = """
import sys
import time
import django
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
django.setup()
from messaging.consent import suppression_import
for _ in range(150):
    suppression_import.work()
time.sleep(120)  # it is killed half way even where that comes late
"""


def serves(application):
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
    with connection.cursor() as cursor:
        cursor.execute(query, [application])
        return cursor.fetchone()[0]


@pytest.mark.django_db(transaction=True)
def test_an_import_killed_half_way_is_resumed():
    org = factories.organization()
    text = mails(range(20_000)) + "EMAIL,nobody,,,,\n"
    run = start(org, text, part_lines=100)
    command = [sys.executable, "-c", KILLED, connection.settings_dict["NAME"]]
    worker = subprocess.Popen(command, env={**os.environ, "PGAPPNAME": "killed"})
    until = time.monotonic() + 60
    while counts(run)[2] == 0 and worker.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    worker.kill()
    worker.wait()
    # The server may still be executing the last statement: it commits or lets go after that.
    while time.monotonic() < until and serves("killed"):
        time.sleep(0.01)
    state, _, done, *_ = counts(run)
    assert state == "RUNNING"
    assert 0 < done < 20_000
    assert Suppression.objects.count() == done
    finish()
    assert counts(run) == ("DONE", 20_001, 20_001, 20_000, 0, 0, 1)
    assert Suppression.objects.count() == 20_000
    assert bad(run) == [("20002", "address", "is not an email address")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("separator_line", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_file_as_spreadsheets_save_it_is_read(org, encoding, delimiter, separator_line, end):
    rows = [
        ["channel", "address", "note"],
        ["EMAIL", "a@b.example", '"Grüße, ""x""; so'],
        ["EMAIL", "c@b.example", '"one'],
        ['two, ;"'],
        ["SMS", "+12127365000", "é"],
    ]
    rows[1][2] += '"'
    lines = [*(["sep=" + delimiter] if separator_line else []), *map(delimiter.join, rows)]
    run = start(org, end.join(lines).encode(encoding), part_lines=2)
    finish()
    assert (counts(run), bad(run)) == (("DONE", 3, 3, 3, 0, 0, 0), [])
    run.refresh_from_db()
    separator = {",": "commas", ";": "semicolons", "\t": "tabs"}[delimiter]
    name = {"cp1252": "Windows-1252"}.get(encoding, encoding.upper()[:6].rstrip("-"))
    assert run.read_as == f"{name}, separated by {separator}"
    assert {(address, note) for _, address, _, _, note, *_ in stored(org)} == {
        ("a@b.example", 'Grüße, "x"; so'),
        ("c@b.example", "one two, ;"),
        ("+12127365000", "é"),
    }
