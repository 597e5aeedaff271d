"""AWS's own test vectors (aws-sig-v4-test-suite of the AWS General Reference)."""

from datetime import UTC, datetime

import pytest

from messaging.providers import sigv4

KEY = sigv4.AccessKey(
    "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1", "service"
)
NOW = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("method", "headers", "body", "names", "signature"),
    [
        (
            "GET",
            {},
            b"",
            "host;x-amz-date",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            "POST",
            {},
            b"",
            "host;x-amz-date",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        (
            "POST",
            {"My-Header1": "VALUE1"},
            b"",
            "host;my-header1;x-amz-date",
            "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
        ),
        (
            "POST",
            {"Content-Type": FORM},
            b"Param1=value1",
            "content-type;host;x-amz-date",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
        (
            "POST",
            {"Content-Type": f"{FORM}; charset=utf8"},
            b"Param1=value1",
            "content-type;host;x-amz-date",
            "1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe",
        ),
    ],
    ids=["get-vanilla", "post-vanilla", "post-header-key-case", "post-form", "post-form-charset"],
)
def test_signature_is_the_published_one(
    method: str, headers: dict[str, str], body: bytes, names: str, signature: str
) -> None:
    signed = sigv4.signed(
        KEY, method, "https://example.amazonaws.com/", headers=headers, body=body, now=NOW
    )
    scope = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request"
    assert signed == {
        **headers,
        "X-Amz-Date": "20150830T123600Z",
        "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, "
        f"SignedHeaders={names}, Signature={signature}",
    }
