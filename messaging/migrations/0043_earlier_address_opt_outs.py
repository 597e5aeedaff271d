"""Store earlier objections of recipients by the address that the message went to.

It works in batches, each in its own transaction, in the order of the ledger. You can run it again.
"""

from uuid import UUID

import orjson
from django.db import migrations, transaction

from rme.core import addresses, ids

BATCH = 1000
_OBJECTIONS = """
SELECT id, organization_id, contact_id, channel, category, occurred_at
FROM messaging_consententry
WHERE id > %s AND status = 'OPTED_OUT' AND source IN ('ONE_CLICK', 'PREFERENCE_PAGE')
  AND contact_id <> ''
ORDER BY id LIMIT %s
"""
# The newest earlier message on each channel, by the index of the contact's hash.
_SENT_TO = """
SELECT wanted.entry, sent.channel, sent.address
FROM json_to_recordset(%s) wanted(
  entry uuid, organization_id text, contact_id text, channel text, before uuid),
LATERAL (
  SELECT DISTINCT ON (d.channel) d.channel, d.address FROM messaging_delivery d
  WHERE d.organization_id = wanted.organization_id
    AND hashtextextended(d.contact_id, 0) = hashtextextended(wanted.contact_id, 0)
    AND d.contact_id = wanted.contact_id AND d.message_id < wanted.before
    AND d.address IS NOT NULL AND d.channel IN ('EMAIL', 'SMS')
    AND wanted.channel IN (d.channel, 'ALL')
  ORDER BY d.channel, d.message_id DESC) sent
"""
_CONTACTS = """
SELECT id::text, organization_id, email, mobile FROM crm_contact WHERE id = ANY(%s::uuid[])
"""
_STORE = """
INSERT INTO messaging_addressoptout AS t
  (id, organization_id, address, channel, category, occurred_at, entry)
SELECT id, organization_id, address, channel, category, occurred_at, entry
FROM json_populate_recordset(NULL::messaging_addressoptout, %s)
ON CONFLICT (organization_id, address, channel, category) DO UPDATE
SET occurred_at = excluded.occurred_at, entry = excluded.entry
WHERE excluded.occurred_at > t.occurred_at
"""


def cover_addresses(apps, schema_editor):
    last, more = UUID(int=0), True
    while more:
        with transaction.atomic(), schema_editor.connection.cursor() as cursor:
            cursor.execute(_OBJECTIONS, [last, BATCH])
            entries = cursor.fetchall()
            if entries:
                _store(cursor, entries)
                last = entries[-1][0]
        more = len(entries) == BATCH


def _store(cursor, entries):
    places = _sent_to(cursor, entries)
    addresses_now = _own_addresses(cursor, [entry for entry in entries if entry[0] not in places])
    rows = {}
    for entry in entries:
        key, organization_id, contact_id, channel, category, occurred_at = entry
        known = places.get(key) or addresses_now.get((organization_id, contact_id), ())
        for known_channel, address in known:
            if channel not in (known_channel, "ALL"):
                continue
            level = (organization_id, address, known_channel, category)
            if level not in rows or rows[level]["occurred_at"] < occurred_at:
                rows[level] = {
                    "id": ids.new_text_id(),
                    "organization_id": organization_id,
                    "address": address,
                    "channel": known_channel,
                    "category": category,
                    "occurred_at": occurred_at,
                    "entry": key,
                }
    cursor.execute(_STORE, [orjson.dumps([rows[level] for level in sorted(rows)]).decode()])


def _sent_to(cursor, entries):
    """Return the messages' channels and addresses, by entry."""
    levels = [
        {
            "entry": key,
            "organization_id": organization_id,
            "contact_id": contact_id,
            "channel": channel,
            "before": ids.at_least(occurred_at),
        }
        for key, organization_id, contact_id, channel, _, occurred_at in entries
    ]
    cursor.execute(_SENT_TO, [orjson.dumps(levels).decode()])
    places = {}
    for key, channel, address in cursor.fetchall():
        places.setdefault(key, []).append((channel, address))
    return places


def _own_addresses(cursor, entries):
    """Return the current addresses of embedded contacts, by organization and contact."""
    keys = [entry[2] for entry in entries if ids.is_canonical(entry[2])]
    cursor.execute(_CONTACTS, [keys])
    by_contact = {}
    for contact_id, organization_id, email, mobile in cursor.fetchall():
        known = [("EMAIL", addresses.email(email)), ("SMS", addresses.phone(mobile, None))]
        by_contact[organization_id, contact_id] = [pair for pair in known if pair[1]]
    return by_contact


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("messaging", "0042_address_opt_outs"),
        ("crm", "0007_contact_names"),
    ]

    operations = [migrations.RunPython(cover_addresses, migrations.RunPython.noop)]
