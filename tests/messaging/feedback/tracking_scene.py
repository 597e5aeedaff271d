"""Tracked emails, and the requests of people and machines that open them."""

from django.db import connection
from django.test import Client

from messaging.content import tracked_links
from messaging.models import Delivery

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
GMAIL = "Mozilla/5.0 (Windows NT 5.1) Firefox/11.0 (via ggpht.com GoogleImageProxy)"
HTML = '<body><a href="https://x.example/?a=1&amp;b=2">x</a>{}</body>'
TARGET = "https://x.example/?a=1&b=2"


CONTENT = {"subject": "s", "text": "see https://x.example", "html": HTML.format("")}
OWN = {"template": None, "context": None, "content": CONTENT}


def sent(seconds=60):
    """Let so much time pass since emails left."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE messaging_attempt SET started_at = now() - make_interval(secs => %s)", [seconds]
        )


def get(url, agent=BROWSER, method="GET", **headers):
    path = url.removeprefix("http://testserver")
    given = {"User-Agent": agent, **headers}
    client = Client(enforce_csrf_checks=True, raise_request_exception=True)
    return client.generic(method, path, headers=given)


def image():
    return tracked_links.open_url(Delivery.objects.get().pk)


def link(url=TARGET):
    return tracked_links.click_url(Delivery.objects.get().pk, url)
