"""The studio's form as a browser sends it, and people of an organization."""

from urllib.parse import urlencode

from messaging.models import TemplateVersion
from rme.tenants.models import Membership, User
from tests.messaging.console.conftest import url


def client_of(client_class, org, name, role=Membership.Role.OWNER):
    """Log somebody in who has an address."""
    user = User.objects.create_user(name, f"{name}@example.com", "pw", is_staff=True)
    Membership.objects.create(organization=org, user=user, role=role)
    client = client_class()
    client.force_login(user)
    client.user = user
    return client


def form(row=None, **fields):
    """Return the form of a version that is shown; without one there is none yet."""
    template = row and row.template
    shown = {
        "language": template.language if template else "en_US",
        "channel": template.channel if template else "EMAIL",
        "version": row.version if row else 0,
        "revision": row.revision if row else 0,
        "subject": row.subject if row else "",
        "html": row.html if row else "",
        "mjml": "",
        "text": row.text if row else "",
    }
    return {**shown, **fields}


def save(client, row, **fields):
    """Save a draft as the page's script does; return the answer."""
    return client.post(url("template_draft", row.template.name), form(row, **fields))


def draft_of(row):
    """Return the newest version of a version's template."""
    return TemplateVersion.objects.filter(template=row.template).order_by("-version")[0]


def at(row, **more):
    """Return the address of a version's variant."""
    template = row.template
    query = urlencode({"language": template.language, "channel": template.channel, **more})
    return f"{url('template', template.name)}?{query}"


def do(client, action, row, *, name=None, publish=True, **fields):
    """Press a button of the page, as the person sees a version; return the page that follows."""
    page = "template_publish" if publish else "template"
    name = name or row.template.name
    shown = {**form(row), "drafts": drafts_of(row), "do": action, **fields}
    return client.post(url(page, name), shown, follow=True)


def drafts_of(row):
    """Return what a page's forms say of the drafts that it was shown with."""
    rows = TemplateVersion.objects.filter(
        template__organization=row.template.organization_id, template__name=row.template.name
    )
    return ",".join(f"{each.template_id}.{each.version}.{each.revision}" for each in rows)


def save_partial(client, partial, text, **fields):
    """Save a partial's text over what the page shows; return the page that follows."""
    return press(client, partial, "save", publish=False, text=text, **fields)


def press(client, partial, do, *, publish=None, **fields):
    """Press a button of a partial's page about its newest version; return the page that follows."""
    newest = partial.versions.order_by("-version").first()
    seen = {name: getattr(newest, name, 0) for name in ("version", "revision")}
    if publish is None:
        publish = do not in ("request_review", "discard")
    args = ["partial_publish" if publish else "partial", partial.name]
    address = url(*args, org=partial.organization_id)
    return client.post(address, {**seen, "do": do, **fields}, follow=True)


def words(answer):
    """Return what a page says: the messages, or the problems."""
    told = [str(each) for each in answer.context["messages"]]
    return [*told, *(answer.context.get("problems") or [])]
