"""Send a message, follow it, and verify a webhook.

python example.py https://msg.example.com CLIENT_ID CLIENT_SECRET CONTACT_ID
"""

import sys
from collections.abc import Mapping

from rme_client import ApiError, Client, webhooks


def main(base_url: str, client_id: str, client_secret: str, contact_id: str) -> None:
    """Send a message to a contact, and list the messages that the contact received."""
    with Client(base_url, client_id=client_id, client_secret=client_secret) as rme:
        try:
            sent = rme.send_message(
                {
                    "channel": "EMAIL",
                    "category": "TRANSACTIONAL",
                    "to": [{"contactId": contact_id}],
                    "content": {"subject": "Your order", "text": "It is on its way."},
                }
            )
        except ApiError as error:
            print(error.code, error.details, error.request_id)
        else:
            print("accepted:", sent)
        for message in rme.iterate_messages(contact_id=contact_id, limit=200):
            print(message["messageId"], message["status"])


def receive(secret: str, headers: Mapping[str, str], body: bytes) -> int:
    """Return the status of the answer to a webhook; the secret was shown once."""
    try:
        event = webhooks.verify(secret, headers, body)
    except webhooks.InvalidSignature:
        return 401
    print(event["type"], event["data"])
    return 204


if __name__ == "__main__":
    main(*sys.argv[1:])
