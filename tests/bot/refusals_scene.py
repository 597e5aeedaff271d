"""What bots are told when they are refused."""

GET, POST = "/bot/api.php", "/bot/api_create.php"
EMAIL = "a@b.example"


def told(response):
    return response.status_code, response.json()


def refused(response):
    assert (response.status_code, response.content) == (
        401,
        b'{"code":401,"status":"Unauthorized"}',
    )
    assert response["X-Request-Id"]
