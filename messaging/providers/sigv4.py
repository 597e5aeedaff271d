"""AWS Signature Version 4 of one request, by an access key.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
The URL must be given as it is signed: escaped, with its query sorted.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True, repr=False)
class AccessKey:
    """An access key, with the region and service where it is used."""

    access_key_id: str
    secret_access_key: str
    region: str
    service: str


def signed(
    key: AccessKey, method: str, url: str, *, headers: Mapping[str, str], body: bytes, now: datetime
) -> dict[str, str]:
    """Return a request's headers with `X-Amz-Date` and `Authorization`; it signs every header.

    `now` is in UTC.
    """
    time = now.strftime("%Y%m%dT%H%M%SZ")
    parts = urlsplit(url)
    dated_headers = {**headers, "X-Amz-Date": time}
    pairs = sorted(
        (name.lower(), " ".join(value.split()))
        for name, value in {**dated_headers, "Host": parts.netloc}.items()
    )
    names = ";".join(name for name, _ in pairs)
    header_lines = [f"{name}:{value}" for name, value in pairs]
    digest = hashlib.sha256(body).hexdigest()
    canonical = "\n".join(
        [method, parts.path or "/", parts.query, *header_lines, "", names, digest]
    )
    scope = f"{time[:8]}/{key.region}/{key.service}/aws4_request"
    to_sign = "\n".join([_ALGORITHM, time, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    signing = f"AWS4{key.secret_access_key}".encode()
    for part in scope.split("/"):
        signing = hmac.digest(signing, part.encode(), "sha256")
    signature = hmac.digest(signing, to_sign.encode(), "sha256").hex()
    credential = f"Credential={key.access_key_id}/{scope}"
    authorization = f"{_ALGORITHM} {credential}, SignedHeaders={names}, Signature={signature}"
    return {**dated_headers, "Authorization": authorization}
