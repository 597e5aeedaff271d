"""The answers that bots get when they are refused."""

from typing import Any

GET, POST = "/bot/api.php", "/bot/api_create.php"
EMAIL = "a@b.example"


def status_and_body(response: Any) -> tuple[int, Any]:
    return response.status_code, response.json()


def refused(response):
    assert (response.status_code, response.content) == (
        401,
        b'{"code":401,"status":"Unauthorized"}',
    )
    assert response["X-Request-Id"]
