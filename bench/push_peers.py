"""The peers' environments, made once below `var/bench`, and one run of a peer."""

import json
import os
import shutil
import subprocess
import sys
from typing import Any

from bench.scene import ROOT

HERE = ROOT / "var" / "bench"
PYTHON, NODE = HERE / "peers", HERE / "node"
WEB_PUSH = "web-push@3.6.7"
PEERS = {
    "aioapns": "aioapns_alone.py",
    "pywebpush": "pywebpush_alone.py",
    "firebase-admin": "firebase_alone.py",
    "pyfcm": "pyfcm_alone.py",
    "web-push (node)": "web_push_alone.mjs",
}


def command(peer: str) -> list[str]:
    """Return the command of a peer, and install it first. Raises OSError or SubprocessError."""
    script = ROOT / "bench" / "peers" / PEERS[peer]
    if script.suffix == ".mjs":
        _install_node()
        return ["node", str(script), str(NODE)]
    _install_python()
    return [str(PYTHON / "bin" / "python"), str(script)]


def _install_python() -> None:
    wanted = (ROOT / "bench" / "peers.txt").read_text()
    done = PYTHON / "installed.txt"
    if done.exists() and done.read_text() == wanted:
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(PYTHON)], check=True)
    pip = [str(PYTHON / "bin" / "pip"), "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "-r", str(ROOT / "bench" / "peers.txt")], check=True, timeout=600)
    done.write_text(wanted)


def _install_node() -> None:
    if not shutil.which("node") or not shutil.which("npm"):
        raise FileNotFoundError("no node, or no npm, here")
    if (NODE / "node_modules" / "web-push").exists():
        return
    NODE.mkdir(parents=True, exist_ok=True)
    npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(NODE)]
    subprocess.run([*npm, WEB_PUSH], check=True, timeout=300)


def run(peer: list[str], job: dict[str, Any]) -> dict[str, float]:
    """Let a peer send; gives the seconds (`wall`, `cpu`) and the `count` it took them for."""
    # Nothing of this machine's proxies and authorities: they cost requests time, and win over what
    # a session says.
    env = {"PATH": os.environ["PATH"], "REQUESTS_CA_BUNDLE": job["ca"]}
    done = subprocess.run(
        peer, input=json.dumps(job), capture_output=True, text=True, env=env, timeout=300
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    measured: dict[str, float] = json.loads(done.stdout)
    return measured
