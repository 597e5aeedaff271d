"""A contact with rows in every table, and reading what is stored about it."""

import io

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command

from messaging.consent import ledger
from messaging.models import Attempt, Delivery, Event, Suppression
from rme.core.db import clock
from rme.crm.models import Case, CaseComment, EventRegistration
from rme.crm.models import Event as Gathering
from rme.tenants import audit
from rme.tenants.audit import Action, Actor
from tests import factories
from tests.rest import message, work

SECRET = "Zyxwvut"
"""Stands in everything that is personal of the one who is erased."""


def personal(note=SECRET):
    return {"context": {"variables": {"note": note}}}


def fill(api, org, ada, bob):
    """Store something of every kind on Ada, and something on Bob."""
    alone = api.send(message(ada, **personal(), metadata={"order": SECRET})).json()["messageId"]
    body = message(ada, bob, **personal("for both"))
    body["to"] = [
        {"contactId": str(person.pk), "variables": {"nick": nick}}
        for person, nick in ((ada, SECRET), (bob, "Bobby"))
    ]
    both = api.send(body).json()["messageId"]
    work()
    Event.objects.filter(message_id=alone, type="delivered").update(detail={"ip": SECRET})
    Attempt.objects.filter(delivery_id=alone).update(reason=SECRET)
    Delivery.objects.filter(message_id=alone).update(
        detail=SECRET, trace=[["EMAIL", "CHOSEN", SECRET]]
    )
    factories.device(org, ada, token=f"simulator-{SECRET}")
    factories.device(org, bob)
    for person, text in ((ada, SECRET), (bob, "by phone")):
        decision = ledger.ConsentDecision(
            str(person.pk), "EMAIL", "MARKETING", "OPTED_IN", "API", clock.now(), {"text": text}
        )
        ledger.record(org.pk, [decision])
    Suppression.objects.create(
        organization=org, channel="PUSH", contact_id=str(ada.pk), reason="MANUAL", note=SECRET
    )
    Suppression.objects.create(
        organization=org, channel="SMS", address="+12125550100", reason="STOP"
    )
    Case.objects.create(organization=org, number="1", subject=SECRET, issue=SECRET, contact=ada)
    gathering = Gathering.objects.create(organization=org, name="Fair", starts_at=clock.now())
    EventRegistration.objects.create(
        organization=org, event=gathering, contact=ada, name=SECRET, email=f"{SECRET}@x.example"
    )
    case = Case.objects.get(contact=ada)
    CaseComment.objects.create(organization=org, case=case, text=SECRET, author="agent")
    for row in (ada, case):
        LogEntry.objects.create(
            user=api.user,
            content_type=ContentType.objects.get_for_model(row),
            object_id=str(row.pk),
            object_repr=SECRET,
            action_flag=2,
            change_message=f'[{{"values": {{"email": ["", "{SECRET}"]}}}}]',
        )
    changes = {"email": ["", SECRET]}
    for row in (ada, case):
        entry = audit.about(row, Action.CHANGED, label=SECRET, changes=changes, reason=SECRET)
        audit.record(Actor(name="olga"), [entry])
    audit.record(Actor(name="olga"), [audit.about(bob, Action.CHANGED)])
    return alone, both


def run(name, *arguments, **options):
    out = io.StringIO()
    call_command(name, *arguments, stdout=out, **options)
    return out.getvalue()
