"""A statement that locks or changes rows does not choose partitions while it runs.

`tests/conftest.py` checks what any test executes; here it is shown that the check finds a fault.
"""

import subprocess
import sys

import pytest
from django.db import connection, transaction

from messaging.delivery import claims
from messaging.models import PARTITIONED, Attempt, Delivery, Message
from messaging.store.claims import LOCK_READY
from messaging.store.locks import lock
from rme.core import ids
from rme.core.db import sql
from tests import databases, pruning
from tests.service import ROOT, data_folder, own_engines

pytestmark = pytest.mark.django_db(transaction=True)

_D, _A, _M = (model._meta.db_table for model in (Delivery, Attempt, Message))
FAULTS = {
    "join that locks": f"SELECT d.id FROM {_A} a "
    f"JOIN {_D} d ON {sql.by_key('d.id', 'a.delivery_id')} WHERE a.id = %s FOR UPDATE OF d",
    "subquery beside a lock": f"SELECT d.id, (SELECT m.strategy FROM {_M} m "
    f"WHERE m.id = d.message_id) FROM {_D} d WHERE d.id = %s FOR UPDATE",
    "update that joins": f"UPDATE {_D} t SET fence = t.fence + 1 "
    f"FROM unnest(%s::uuid[]) r(id) WHERE {sql.by_key('t.id', 'r.id')}",
    "delete by a subquery": f"DELETE FROM {_A} WHERE id = (SELECT id FROM {_D} WHERE id = %s)",
    "read beside an update": f"WITH changed AS (UPDATE {_D} SET fence = fence WHERE id = %s "
    f"RETURNING message_id) SELECT m.id FROM changed c, LATERAL (SELECT * FROM {_M} m "
    "WHERE m.id = c.message_id OFFSET 0) m",
}


def refused(*statements: pruning.Executed) -> list[pruning.Executed]:
    url = databases.url_of(connection.settings_dict["NAME"])
    return pruning.refused(statements, url)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_refused(fault):
    value = str(ids.new_id())
    parameter = "{" + value + "}" if "unnest" in FAULTS[fault] else value
    statement = pruning.Executed(FAULTS[fault], [parameter], prepared=True)
    assert refused(statement) == [statement]


def test_every_partitioned_table_is_checked():
    names = [model._meta.db_table for model in PARTITIONED]
    assert names == [f"messaging_{table}" for table in pruning.TABLES]


def test_lock_by_given_ids_and_joining_read_are_allowed():
    recorder = pruning.Recorder()
    with recorder.recording(), transaction.atomic():
        lock([ids.new_id()])
        list(Attempt.objects.filter(message_id__in=Message.objects.values("id")))
    (locking,) = recorder.take()
    read = pruning.Executed(FAULTS["join that locks"].partition(" FOR ")[0], [""], prepared=True)
    assert refused(locking) == []
    assert refused(read._replace(parameters=[str(ids.new_id())])) == []


def test_both_statements_of_a_claim_are_recorded():
    recorder = pruning.Recorder()
    with recorder.recording():
        claims.claim("acme", "EMAIL", 0)
    assert [each.text for each in recorder.take()] == [sql.positional(LOCK_READY)[0]]


@pytest.mark.system
@pytest.mark.parametrize(
    "execute",
    [
        "c.execute(text, [str(uuid.uuid4())])",
        "c.execute(text.replace('%s', repr(str(uuid.uuid4()))))",
    ],
)
def test_fault_of_another_process_is_refused(execute):
    """Tests that start a service look for it in the log of the service's PostgreSQL."""
    text = FAULTS["join that locks"]
    code = "import os, psycopg, uuid; c = psycopg.connect(os.environ['DATABASE_URL']); "
    code += f"text = {text!r}; {execute}"
    service = [sys.executable, "-m", "rme.run", "--var"]
    pruning._read.clear()
    with pytest.raises(AssertionError, match="FOR UPDATE OF d"), data_folder() as folder:
        command = [*service, str(folder), "exec", "--", sys.executable, "-c", code]
        subprocess.run(command, cwd=ROOT, env=own_engines(), check=True)


def test_temporary_tables_of_a_logged_statement_are_made(tmp_path):
    log = tmp_path / "postgres.log"
    log.write_text(
        "2026-11-26 21:48:23.470 UTC [7] LOG:  statement: CREATE TEMP TABLE keys ON COMMIT DROP\n"
        f"\tAS SELECT id FROM {_D} WITH NO DATA\n"
        "2026-11-26 21:48:23.471 UTC [8] LOG:  statement: BEGIN\n"
        f"2026-11-26 21:48:23.472 UTC [7] LOG:  execute s_1: DELETE FROM {_D} t\n"
        "\tWHERE organization_id = $1 AND id = (SELECT id FROM keys)\n"
        f"2026-11-26 21:48:24.472 UTC [7] LOG:  execute s_1: DELETE FROM {_D} t\n"
        "\tWHERE organization_id = $2 AND id = (SELECT id FROM keys)\n"
    )
    pruning._read.clear()
    (statement,) = pruning.read_log(log)
    assert statement == pruning.Executed(
        f"DELETE FROM {_D} t\nWHERE organization_id = %s AND id = (SELECT id FROM keys)\n",
        [None],
        prepared=True,
        setup=(f"CREATE TEMP TABLE keys ON COMMIT DROP\nAS SELECT id FROM {_D} WITH NO DATA\n",),
    )
    assert refused(statement) == [statement]
