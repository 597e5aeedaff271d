"""Redis with Sentinel, whose primary is killed; and a cluster, which is refused."""

import signal
import time

import kombu
import pytest
from django.core.exceptions import ImproperlyConfigured
from redis import Redis, RedisError

from rme.core.environment import redis_url
from rme.core.redis import connection
from rme.core.redis.connection import command, redis_client
from rme.run.engines import valkey_server
from rme.run.process import spawn, stop
from tests.fakes.sentinel import SERVICE, Watched
from tests.service import free_port

pytestmark = pytest.mark.system
FAILOVER_SECONDS = 120


@pytest.fixture
def use_redis(settings):
    """Return a function that sets this process's Redis."""

    def use(url):
        settings.REDIS_URL = url
        redis_client.cache_clear()

    yield use
    redis_client.cache_clear()


def until_it_works(call):
    until = time.monotonic() + FAILOVER_SECONDS
    while True:
        try:
            return call()
        except (RedisError, kombu.exceptions.OperationalError):
            assert time.monotonic() < until
            time.sleep(0.05)


def test_service_continues_with_the_replica_of_a_killed_primary(use_redis, tmp_path):
    watched = Watched(tmp_path)
    watched.start()
    try:
        use_redis(watched.url)
        first = watched.primary()
        assert command("SET", "key", "before") == b"OK"
        redis_client().incrby("count", 2)
        broker = redis_url.broker_settings(watched.url, "CELERY_BROKER_URL")
        with kombu.Connection(broker["url"], transport_options=broker["transport_options"]) as bus:
            queue = bus.SimpleQueue("hints")
            queue.put("before")
            assert watched.client(first).wait(1, 30_000) == 1
            watched.kill(first)
            assert until_it_works(lambda: command("SET", "key", "after")) == b"OK"
            assert watched.primary() != first
            assert redis_client().get("key") == b"after"
            assert redis_client().get("count") == b"2"
        with kombu.Connection(broker["url"], transport_options=broker["transport_options"]) as bus:
            queue = bus.SimpleQueue("hints")
            until_it_works(lambda: queue.put("after"))
            received = queue.get(timeout=30)
            received.ack()
            assert received.payload in ("before", "after")
            queue.close()
    finally:
        watched.stop()


def test_cluster_is_refused(use_redis, tmp_path, settings):
    port = free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    options += ["--cluster-enabled", "yes", "--cluster-port", str(free_port())]
    server = spawn(
        [str(valkey_server()), *options, "--dir", str(tmp_path)],
        env={"PATH": "/usr/bin"},
        log=tmp_path / "log",
        death=signal.SIGTERM,
    )
    try:
        until_it_works(lambda: Redis(port=port).ping())
        own, cluster = settings.REDIS_URL, f"redis://127.0.0.1:{port}/0"
        settings.BROKER_ADDRESS = cluster
        with pytest.raises(ImproperlyConfigured, match="CELERY_BROKER_URL is a Redis Cluster"):
            connection.refuse_cluster()
        use_redis(cluster)
        for address in (cluster, own, "amqp://127.0.0.1//"):
            settings.BROKER_ADDRESS = address
            with pytest.raises(ImproperlyConfigured, match="REDIS_URL is a Redis Cluster"):
                connection.refuse_cluster()
        use_redis(own)
        connection.refuse_cluster()
        use_redis(cluster)
    finally:
        stop(server, signal.SIGTERM)
    redis_client.cache_clear()
    connection.refuse_cluster()  # nobody answers: that is no reason not to start


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis+cluster://a:1,b:2/0", "REDIS_URL is a Redis Cluster"),
        ("rediss://a:1,b:2/0", "REDIS_URL is a Redis Cluster"),
        ("http://a/0", "REDIS_URL must begin with redis, rediss, unix, redis"),
        ("redis+sentinel://a:1,b:2", "REDIS_URL must be redis"),
        ("redis+sentinel://:secret@a:1/rme/one", "REDIS_URL must be redis"),
        ("redis+sentinel://:secret@a:1/rme/0?db=1", "REDIS_URL must be redis"),
    ],
)
def test_other_addresses_are_refused(url, told):
    with pytest.raises(ImproperlyConfigured, match=told) as caught:
        redis_url.check("REDIS_URL", url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["redis://a:1/0", "rediss://a/0", "unix:///run/valkey.sock?db=0", "redis://u:p,@a/0"]
)
def test_servers_are_accepted(url):
    assert redis_url.check("REDIS_URL", url) == url
    assert redis_url.sentinels(url) is None


def test_sentinel_address_is_parsed_for_server_and_sentinels():
    url = "rediss+sentinel://me:p%40%2F@a,[::1]:26380/rme/3?sentinel_password=s%26"
    found = redis_url.sentinels(url)
    assert found is not None
    assert found.hosts == (("a", 26379), ("::1", 26380))
    assert found.server_options() == {
        "db": 3,
        "username": "me",
        "password": "p@/",
        "ssl": True,
    }
    assert found.sentinel_options() == {"password": "s&", "ssl": True}
    broker = redis_url.broker_settings(url, "CELERY_BROKER_URL")
    login = "me:p%40%2F@"
    assert broker["url"] == f"sentinel://{login}a:26379/3;sentinel://{login}[::1]:26380/3"
    assert broker["transport_options"]["master_name"] == SERVICE
    assert broker["transport_options"]["sentinel_kwargs"].items() >= {"password": "s&"}.items()
    assert set(broker) == {"url", "transport_options", "use_ssl"}


@pytest.mark.parametrize(
    "url", ["redis://a:1,b:2/0", "rediss+cluster://a:1/0", "redis+cluster://a"]
)
def test_redis_cluster_as_broker_is_rejected(url):
    with pytest.raises(ImproperlyConfigured, match="CELERY_BROKER_URL is a Redis Cluster"):
        redis_url.broker_settings(url, "CELERY_BROKER_URL")


def test_other_brokers_stay_as_they_are():
    rabbit = "amqps://user:password@host//"
    assert redis_url.broker_settings(rabbit, "CELERY_BROKER_URL") == {"url": rabbit}
    socket = redis_url.broker_settings("unix:///run/valkey.sock?db=2", "REDIS_URL")
    assert socket == {"url": "redis+socket:///run/valkey.sock?virtual_host=2"}
