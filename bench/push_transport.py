"""The transport alone, beside h2load: the same requests, as many under way at once."""

import re
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from bench.push_server import PushServer, program
from rme.transport import AddressPolicy, Reply, Request, Transport

COUNT, UNDER_WAY = 10_000, 50
BODY = b'{"aps":{"alert":{"title":"Hello","body":"Hi"},"sound":"default"}}'
HEADERS = (
    ("apns-topic", "com.example.app"),
    ("apns-push-type", "alert"),
    ("apns-priority", "10"),
)


def transport(server: PushServer, rounds: int) -> None:
    """Send by each in turn; print the medians."""
    url = f"{server.url}/3/device/{'ab' * 32}"
    runners = {"rme's transport": lambda: _ours(server, url)}
    if h2load := program("h2load"):
        runners["h2load"] = lambda: _h2load(h2load, url)
    else:
        print("transport: h2load skipped: not here (Debian: nghttp2-client)", flush=True)
    measured = {who: [run() for _ in range(rounds)] for who, run in runners.items()}
    for who, runs in measured.items():
        wall, cpu = (COUNT / statistics.median(clock) for clock in zip(*runs, strict=True))
        print(
            f"{f'transport: {who}':<34} {cpu:>10,.0f} a CPU second   "
            f"{wall:,.0f} a second of the wall's clock",
            flush=True,
        )


def _ours(server: PushServer, url: str) -> tuple[float, float]:
    """Return the seconds of the wall's clock and of this process."""
    made = Transport(AddressPolicy(["localhost"]))
    request = Request(url, BODY, headers=HEADERS, http2=True, ca_pem=server.ca.read_text())
    made.perform([request])
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(COUNT // UNDER_WAY):
        replies = made.perform([request] * UNDER_WAY)
        assert all(isinstance(reply, Reply) and reply.status == 200 for reply in replies)
    took = time.perf_counter() - wall, time.process_time() - cpu
    made.close()
    return took


def _h2load(h2load: str, url: str) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        body = Path(folder) / "body"
        body.write_bytes(BODY)
        command = [h2load, "-n", str(COUNT), "-c", "1", "-m", str(UNDER_WAY), "-d", str(body)]
        command += [part for name, value in HEADERS for part in ("-H", f"{name}: {value}")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*command, url], capture_output=True, text=True, timeout=120)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = re.search(r"finished in ([0-9.]+)(m?s),", done.stdout)
    assert found and f"{COUNT} succeeded" in done.stdout, done.stdout
    wall = float(found[1]) / (1000 if found[2] == "ms" else 1)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used
