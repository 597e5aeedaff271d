"""Dispatch through failover against dispatch without. `python -m bench failover`."""

import os

from bench.scene import Scene, free_port, processes, wait_for_port

NEVER = str(10**9)
"""So many sends before a circuit may open: each window finds out anew."""


def failover(scene: Scene) -> None:
    """Send by an account alone, and by the same behind one that refuses every connection."""
    from bench.report import say
    from bench.smtp import drain
    from rme.core.cache import TtlCache
    from rme.core.redis.connection import redis_client

    port = free_port()
    with processes([["bench.sinks", "--port", str(port)]]):
        wait_for_port(port)
        scene.mail_by(port)
        TtlCache.clear_all()
        alone = drain(scene, port, senders=1)
        dead = _dead_account(free_port())
        TtlCache.clear_all()
        opened = drain(scene, port, senders=1)
        redis_client().delete(f"rme:circuit:{dead}")
        os.environ["CIRCUIT_SENDS"] = NEVER
        every = drain(scene, port, senders=1)
        del os.environ["CIRCUIT_SENDS"]
    say("dispatch: without failover", alone, "mails/s")
    say("dispatch: first account down, circuit opens", opened, "mails/s", f"{opened / alone:.0%}")
    say("dispatch: every mail fails over", every, "mails/s", f"{every / alone:.0%}")


def _dead_account(port: int) -> int:
    """Put an account before the others on which nobody listens; gives its id."""
    from messaging.models import ProviderAccount

    row, _ = ProviderAccount.objects.update_or_create(
        organization_id="bench",
        name="dead",
        defaults={
            "kind": "smtp",
            "channel": "EMAIL",
            "priority": 1,
            "credentials": f'{{"host": "127.0.0.1", "port": {port}, "security": "NONE"}}',
        },
    )
    return row.pk
