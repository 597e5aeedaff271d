"""Store earlier suppressions and objections by the normal form of their email address.

Earlier releases kept needless quotes (`"john"@example.com`), invisible characters and final dots,
so look-ups of the normal form missed these rows. Where the normal form has a row already, the
stronger reason, the longer time and the later objection stay. You can run it again.
"""

from uuid import UUID

import orjson
from django.db import migrations, transaction

from rme.core import addresses

BATCH = 1000
# Most addresses are in their normal form, and have no other characters.
_NORMAL = "^[a-z0-9!#$%&'*+/=?^_`{|}~.-]+@[a-z0-9.-]*[a-z0-9]$"
_OTHERS = """
SELECT id, address FROM {table}
WHERE id > %(last)s AND address LIKE '%%@%%'
  AND (address !~ %(normal)s OR address LIKE '%%xn--%%')
ORDER BY id LIMIT %(limit)s
"""
_TAKE = "DELETE FROM {table} WHERE id = %(id)s RETURNING to_jsonb({table})"
_EXPIRED = "t.expires_at <= now()"
_STRENGTH = "coalesce(array_position(ARRAY['COMPLAINT', 'STOP', 'HARD_BOUNCE'], {}.reason), 99)"
_STORE_SUPPRESSION = f"""
INSERT INTO messaging_suppression AS t
SELECT * FROM jsonb_populate_record(NULL::messaging_suppression, %(row)s::jsonb)
ON CONFLICT (organization_id, address, channel) WHERE NOT (address = '') DO UPDATE SET
  reason = CASE WHEN {_EXPIRED} OR {_STRENGTH.format("excluded")} < {_STRENGTH.format("t")}
    THEN excluded.reason ELSE t.reason END,
  note = CASE WHEN t.note = '' THEN excluded.note ELSE t.note END,
  expires_at = CASE WHEN t.expires_at IS NULL OR excluded.expires_at IS NULL THEN NULL
    ELSE greatest(t.expires_at, excluded.expires_at) END
"""
_STORE_OBJECTION = """
INSERT INTO messaging_addressoptout AS t
SELECT * FROM jsonb_populate_record(NULL::messaging_addressoptout, %(row)s::jsonb)
ON CONFLICT (organization_id, address, channel, category) DO UPDATE
SET occurred_at = excluded.occurred_at, entry = excluded.entry
WHERE excluded.occurred_at > t.occurred_at
"""
_STORES = {
    "messaging_suppression": _STORE_SUPPRESSION,
    "messaging_addressoptout": _STORE_OBJECTION,
}


def normalize(apps, schema_editor):
    for table, store in _STORES.items():
        last, more = UUID(int=0), True
        while more:
            with transaction.atomic(), schema_editor.connection.cursor() as cursor:
                cursor.execute(
                    _OTHERS.format(table=table),
                    {"last": last, "normal": _NORMAL, "limit": BATCH},
                )
                rows = cursor.fetchall()
                for key, address in rows:
                    normal = addresses.email(address)
                    if normal and normal != address:
                        _move(cursor, table, store, key, normal)
            last = rows[-1][0] if rows else last
            more = len(rows) == BATCH


def _move(cursor, table, store, key, normal):
    cursor.execute(_TAKE.format(table=table), {"id": key})
    for (row,) in cursor.fetchall():  # none if somebody lifted it just now
        values = orjson.loads(row) if isinstance(row, str) else row
        moved = {**values, "address": normal}
        cursor.execute(store, {"row": orjson.dumps(moved).decode()})


class Migration(migrations.Migration):
    atomic = False
    post_deploy = True  # the release before still writes addresses as it did

    dependencies = [("messaging", "0054_address_opt_outs_of_the_upgrade")]

    operations = [migrations.RunPython(normalize, migrations.RunPython.noop, elidable=True)]
