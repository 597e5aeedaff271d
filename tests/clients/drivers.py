"""Each client runs a list of steps against a service, and reports the result of each."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

import pytest

from rme_client import ApiError, AsyncClient, Client, RmeError, webhooks

TYPESCRIPT = Path(__file__).resolve().parents[2] / "clients" / "typescript"


class Step(TypedDict, total=False):
    """A call by its name in the description, with positional and named arguments."""

    call: str
    arguments: list[Any]
    options: dict[str, Any]


class Login(TypedDict):
    """What a client is made with."""

    base_url: str
    client_id: str
    client_secret: str
    max_retries: int


def _error(error: RmeError) -> dict[str, Any]:
    if not isinstance(error, ApiError):
        return {"error": type(error).__name__}
    return {
        "error": type(error).__name__,
        "status": error.status,
        "code": error.code,
        "details": error.details,
        "retryAfter": error.retry_after,
    }


def python(login: Login, steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Run steps by the Python client."""
    outcomes: list[dict[str, Any]] = []
    with Client(**login) as client:
        for step in steps:
            call = webhooks.verify if step["call"] == "verify" else getattr(client, step["call"])
            try:
                result = call(*step["arguments"], **step.get("options", {}))
                is_iterator = step["call"].startswith("iterate_")
                outcomes.append({"result": list(result) if is_iterator else result})
            except RmeError as error:
                outcomes.append(_error(error))
    return outcomes


def python_async(login: Login, steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Run steps by the Python client's coroutines."""

    async def run_all() -> list[dict[str, Any]]:
        outcomes: list[dict[str, Any]] = []
        async with AsyncClient(**login) as client:
            for step in steps:
                given, options = step["arguments"], step.get("options", {})
                try:
                    if step["call"] == "verify":
                        result: Any = webhooks.verify(*given)
                    elif step["call"].startswith("iterate_"):
                        items = getattr(client, step["call"])(*given, **options)
                        result = [item async for item in items]
                    else:
                        result = await getattr(client, step["call"])(*given, **options)
                    outcomes.append({"result": result})
                except RmeError as error:
                    outcomes.append(_error(error))
        return outcomes

    return asyncio.run(run_all())


@cache
def compiled() -> None:
    """Type-check and compile the TypeScript client, or skip the test and say why not."""
    if not shutil.which("node"):
        pytest.skip("there is no node on this machine")
    if not (TYPESCRIPT / "node_modules" / "typescript").exists():
        pytest.skip("the TypeScript compiler is not installed: `make clients-node` does that")
    command = ["node", "node_modules/typescript/bin/tsc"]
    done = subprocess.run(command, cwd=TYPESCRIPT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def typescript(login: Login, steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Run steps by the TypeScript client, in node."""
    compiled()
    client = {
        "baseUrl": login["base_url"],
        "clientId": login["client_id"],
        "clientSecret": login["client_secret"],
        "maxRetries": login["max_retries"],
    }
    done = subprocess.run(
        ["node", "dist/cases.js"],
        cwd=TYPESCRIPT,
        input=json.dumps({"client": client, "steps": steps}),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
    outcomes: list[dict[str, Any]] = json.loads(done.stdout)
    return outcomes


DRIVERS = {"python": python, "python_async": python_async, "typescript": typescript}
