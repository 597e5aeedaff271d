"""The table of email services that django-anymail supports: what each needs and reports.

django-anymail knows a service's settings, signatures and payloads
(https://anymail.dev/en/stable/esps/). The table has what it does not tell apart: how the attempt's
id is sent, whether a bounce means a dead address, and whether a machine opened.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ServiceName = Literal[
    "brevo",
    "mailersend",
    "mailgun",
    "mailjet",
    "mailtrap",
    "mandrill",
    "postal",
    "postmark",
    "resend",
    "scaleway",
    "sendgrid",
    "sparkpost",
    "unisender_go",
]
BASIC = "user:password"
"""The service sends the user and password of its callback URL (RFC 7617); it signs nothing."""
SVIX = "svix"
"""Signed by Svix's scheme (https://docs.svix.com/receiving/verifying-payloads/how-manual)."""
NEVER = ""
"""It reports nothing that django-anymail can read."""


@dataclass(frozen=True, slots=True)
class Service:
    """One email service. Setting names are ours; argument names are django-anymail's."""

    arguments: Mapping[str, str]
    """By setting: the argument of its backend. Those in `needs` are required."""
    needs: tuple[str, ...] = ("api_key",)
    view: str = ""
    """The class in anymail.webhooks that reads its callbacks."""
    check: str = NEVER
    """How a callback is checked: BASIC, SVIX, or the view's argument for the signing key."""
    tag: bool = False
    """The attempt's id is sent as a tag, since the service takes no metadata."""
    bounce: tuple[str, ...] = ()
    """The kind of a bounce in a callback: paths, whose values are joined by spaces."""
    hard: str = ""
    """A pattern of the kinds that mean a dead address."""
    soft: str = ""
    """A pattern of the kinds that mean unreachable for now: mailbox full, server down."""
    said: tuple[str, ...] = ()
    """The paths of more codes and words of the recipient's server in a callback."""
    unsubscribed: tuple[str, str] = ("", "")
    """A path, and a pattern of its values that mean: not sent, the recipient had unsubscribed."""
    complained: tuple[str, str] = ("", "")
    """A path, and a pattern of its values that mean: not sent, the recipient had complained."""
    not_sent: tuple[str, str] = ("", "")
    """A path, and a pattern of its values that mean: not sent, if django-anymail doesn't tell."""
    no_complaint: tuple[str, str] = ("", "")
    """A path, and a pattern of its values that mean: not a real complaint."""
    machine: tuple[str, str] = ("", "")
    """A path, and a pattern of the values there that mean an open or click by a machine."""
    once: str = ""
    """The header of its idempotency key."""
    spf: str = ""
    """What it asks for in the SPF record of a sender domain, if that is the same for all."""
    ping: str = ""
    """A path of its API that is read to check a key; none, where keys to send may read nothing."""


SERVICES: dict[ServiceName, Service] = {
    # https://developers.brevo.com/docs/transactional-webhooks
    "brevo": Service(
        {"api_key": "api_key"},
        ping="account",
        view="brevo.BrevoTrackingWebhookView",
        check=BASIC,
        bounce=("event",),
        hard=r"hard_bounce|invalid_email",
        unsubscribed=("reason", r"(?i).*unsubscribed.*"),
        soft=r"soft_bounce",
        machine=("event", r"(unique_)?proxy_open"),
    ),
    # https://developers.mailersend.com/api/v1/webhooks.html
    "mailersend": Service(
        {"api_key": "api_token"},
        ping="api-quota",
        view="mailersend.MailerSendTrackingWebhookView",
        check="signing_secret",
        tag=True,
        bounce=("data.type",),
        hard=r"hard_bounced",
        soft=r"soft_bounced",
        said=("data.morph.reason",),
        unsubscribed=("data.morph.object", r"recipient_unsubscribe"),
        complained=("data.morph.object", r"spam_complaint"),
    ),
    # https://documentation.mailgun.com/docs/mailgun/user-manual/tracking-messages/
    "mailgun": Service(
        {"api_key": "api_key", "sender_domain": "sender_domain"},
        spf="include:mailgun.org",
        view="mailgun.MailgunTrackingWebhookView",
        check="webhook_signing_key",
        bounce=("event-data.reason", "event-data.delivery-status.bounce-type"),
        hard=r"(bounce|suppress-bounce)( hard)?",
        soft=r"(generic|old).*|bounce soft",
        said=(
            "event-data.delivery-status.code",
            "event-data.delivery-status.enhanced-code",
        ),
        unsubscribed=("event-data.reason", r"suppress-unsubscribe"),
        complained=("event-data.reason", r"suppress-complaint"),
        machine=("event-data.client-info.bot", r".+"),
    ),
    # https://dev.mailjet.com/email/guides/webhooks/
    "mailjet": Service(
        {"api_key": "api_key", "secret_key": "secret_key"},
        spf="include:spf.mailjet.com",
        needs=("api_key", "secret_key"),
        view="mailjet.MailjetTrackingWebhookView",
        check=BASIC,
        bounce=("hard_bounce",),
        hard=r"True|1",
        soft=r"False|0|",
        said=("error", "comment"),
        complained=("error", r"spam reporter"),
    ),
    # https://docs.mailtrap.io/email-api-smtp/advanced/webhooks
    "mailtrap": Service(
        {"api_key": "api_token"},
        view="mailtrap.MailtrapTrackingWebhookView",
        check="tracking_secret",
        bounce=("event",),
        hard=r"bounce",
        said=("response_code",),
        unsubscribed=("reason", r"(?i).*unsubscri.*"),
        complained=("reason", r"(?i).*complain.*"),
    ),
    # https://mailchimp.com/developer/transactional/docs/webhooks/
    "mandrill": Service(
        {"api_key": "api_key"},
        view="mandrill.MandrillCombinedWebhookView",
        check="webhook_key",
        bounce=("event",),
        hard=r"hard_bounce",
        soft=r"soft_bounce",
        unsubscribed=("reject.reason", r"unsub"),
        complained=("reject.reason", r"spam"),
    ),
    # https://docs.postalserver.io/developer/webhooks: it does not say what kind a bounce is
    "postal": Service(
        {"api_key": "api_key"},
        needs=("api_key", "base_url"),
        view="postal.PostalTrackingWebhookView",
        check="webhook_key",
        tag=True,
        soft=r".*",
    ),
    # https://postmarkapp.com/developer/api/bounce-api#bounce-types
    "postmark": Service(
        {"api_key": "server_token", "message_stream": "message_stream"},
        ping="server",
        view="postmark.PostmarkTrackingWebhookView",
        check=BASIC,
        bounce=("Type",),
        hard=r"HardBounce|BadEmailAddress",
        soft=r"SoftBounce",
    ),
    # https://resend.com/docs/webhooks/emails/bounced
    "resend": Service(
        {"api_key": "api_key"},
        view="resend.ResendTrackingWebhookView",
        check=SVIX,
        bounce=("data.bounce.type",),
        hard=r"Permanent",
        soft=r"Transient|Undetermined",
        said=("data.bounce.diagnosticCode.0",),
        unsubscribed=("data.bounce.subType", r"UnsubscribedRecipient"),
        not_sent=("type", r"email\.(suppressed|failed)"),
        once="Idempotency-Key",
    ),
    # https://www.scaleway.com/en/developers/api/transactional-email/
    "scaleway": Service(
        {"api_key": "secret_key", "project_id": "project_id", "region": "region"},
        spf="include:_spf.tem.scaleway.com",
        needs=("api_key", "project_id"),
    ),
    # https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event
    "sendgrid": Service(
        {"api_key": "api_key"},
        ping="scopes",
        view="sendgrid.SendGridTrackingWebhookView",
        check="tracking_webhook_verification_key",
        bounce=("type",),
        hard=r"bounce",
        soft=r"blocked",
        said=("status",),
        unsubscribed=("reason", r"Unsubscribed Address"),
        complained=("reason", r"Spam Reporting Address"),
        machine=("sg_machine_open", r"True"),
    ),
    # https://developers.sparkpost.com/api/events/, bounce classes: https://support.sparkpost.com
    "sparkpost": Service(
        {"api_key": "api_key", "subaccount": "subaccount"},
        view="sparkpost.SparkPostTrackingWebhookView",
        check=BASIC,
        bounce=("msys.message_event.bounce_class",),
        hard=r"10|30",
        soft=r"2[0-2]|24|40|70",
        no_complaint=("msys.message_event.fbtype", r"not-spam|auth-failure"),
        machine=("msys.track_event.is_prefetched", r"True"),
    ),
    # https://godocs.unisender.ru/web-api-ref#callback-format
    "unisender_go": Service(
        {"api_key": "api_key"},
        needs=("api_key", "base_url"),
        view="unisender_go.UnisenderGoTrackingWebhookView",
        check="api_key",
        bounce=("delivery_info.delivery_status",),
        hard=r"err_user_unknown|err_user_inactive|err_domain_inactive",
        soft=r"err_mailbox_full|err_unreachable|err_mailbox_discarded",
        unsubscribed=("delivery_info.delivery_status", r"err_unsubscribed"),
    ),
}
