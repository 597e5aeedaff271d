"""The client, and its twin with coroutines."""

import asyncio
import time
from types import TracebackType
from typing import Any, Self

import httpx

from rme_client.async_operations import AsyncOperations
from rme_client.calls import Call
from rme_client.exchange import Exchange, Send, Wait
from rme_client.operations import Operations

TIMEOUT = 30.0
RETRIES = 3


class Client(Operations):
    """Calls the API. Used as a context manager, it closes its connections at the end.

    `base_url` is the address of the service. Without a `token`, one is requested by `client_id` and
    `client_secret`, and renewed. Of a service whose certificates or proxies are special,
    `http_client` is an `httpx.Client` that knows them.
    """

    def __init__(
        self,
        base_url: str,
        *,
        client_id: str = "",
        client_secret: str = "",
        token: str = "",
        max_retries: int = RETRIES,
        timeout: float = TIMEOUT,
        http_client: httpx.Client | None = None,
    ) -> None:
        self._exchange = Exchange(
            base_url,
            client_id=client_id,
            client_secret=client_secret,
            token=token,
            max_retries=max_retries,
        )
        self._http = http_client or httpx.Client(timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _call(self, call: Call) -> Any:
        steps = self._exchange.steps(call)
        result: httpx.Response | httpx.TransportError | None = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration as end:
                return end.value
            if isinstance(step, Wait):
                time.sleep(step.seconds)
                result = None
            else:
                result = self._send(step)

    def _send(self, step: Send) -> httpx.Response | httpx.TransportError:
        try:
            return self._http.request(
                step.method,
                step.url,
                params=step.params,
                headers=step.headers,
                content=step.content,
                data=step.form,
            )
        except httpx.TransportError as error:
            return error


class AsyncClient(AsyncOperations):
    """Calls the API by coroutines. Used as an async context manager, it closes its connections.

    The arguments are those of `Client`; `http_client` is an `httpx.AsyncClient`.
    """

    def __init__(
        self,
        base_url: str,
        *,
        client_id: str = "",
        client_secret: str = "",
        token: str = "",
        max_retries: int = RETRIES,
        timeout: float = TIMEOUT,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        self._exchange = Exchange(
            base_url,
            client_id=client_id,
            client_secret=client_secret,
            token=token,
            max_retries=max_retries,
        )
        self._http = http_client or httpx.AsyncClient(timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _call(self, call: Call) -> Any:
        steps = self._exchange.steps(call)
        result: httpx.Response | httpx.TransportError | None = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration as end:
                return end.value
            if isinstance(step, Wait):
                await asyncio.sleep(step.seconds)
                result = None
            else:
                result = await self._send(step)

    async def _send(self, step: Send) -> httpx.Response | httpx.TransportError:
        try:
            return await self._http.request(
                step.method,
                step.url,
                params=step.params,
                headers=step.headers,
                content=step.content,
                data=step.form,
            )
        except httpx.TransportError as error:
            return error
