"""A commit whose wait for the synchronous standby was ended."""

import threading

import psycopg
import pytest

from rme.core.db.availability import BoundedConnection
from tests.drills.machine import machine_folder
from tests.drills.postgres import Server, wait_until

pytestmark = pytest.mark.system


@pytest.fixture
def server():
    """Run a primary whose standby is not there."""
    with machine_folder() as folder:
        server = Server(folder)
        server.start()
        try:
            server.sql("CREATE TABLE kept (number int)")
            server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            server.sql("SELECT pg_reload_conf()")
            wait_until(lambda: server.sql("SHOW synchronous_standby_names") == [("nobody",)], "")
            yield server
        finally:
            server.stop()


def test_unconfirmed_commit_is_an_error(server):
    connection = BoundedConnection.connect(server.conninfo(), autocommit=True)
    waiting = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    cancel = threading.Thread(target=wait_until, args=(lambda: server.sql(waiting), "it waits not"))
    cancel.start()
    with pytest.raises(psycopg.OperationalError, match="without the synchronous standby"):
        connection.execute("INSERT INTO kept VALUES (1)")
    cancel.join()
    assert (connection.closed, server.sql("SELECT number FROM kept")) == (True, [(1,)])
