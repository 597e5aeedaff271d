"""Keywords in inbound SMS: what STOP, START and HELP change, and the replies."""

from urllib.parse import parse_qs

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from messaging.consent import ledger
from messaging.consent.keywords import KEYWORDS, REPLIES, WORDS, Keyword, Word, find
from messaging.feedback import callbacks, inbound_sms
from messaging.models import Callback, ConsentEntry, Suppression
from messaging.store.gates import current_consent
from rme.core import ids
from rme.core.cache import TtlCache
from rme.tenants.models import Organization
from tests import factories
from tests.fakes import providers as fakes
from tests.rest import message, work

pytestmark = pytest.mark.django_db
OURS = "+12025550100"


def write(scene, sender, text, **more):
    """Write to the account, as a person does."""
    form = {"From": sender, "To": OURS, "Body": text, "MessageSid": ids.new_text_id(), **more}
    assert scene.call(fakes.twilio(scene.url, "", form)) == 200


def settle(scene):
    """Apply what came in and send the answers; gives their texts, as the gateway saw them."""
    before = len(scene.server.seen)
    inbound_sms.send_replies(callbacks.apply_due()[1], scene.transport)
    forms = [parse_qs(seen.body.decode()) for seen in scene.server.seen[before:]]
    return [(form["From"][0], form["To"][0], form["Body"][0]) for form in forms]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("STOP", Word.STOP),
        (" stop. ", Word.STOP),
        ("Stop!!!", Word.STOP),
        ("stop all", Word.STOP),
        ("opt-out", Word.STOP),
        ("Arrêt", Word.STOP),
        ("Stop. Thank you", Word.STOP),
        ("stop please", Word.STOP),
        ("Please STOP, thanks!", Word.STOP),
        ("Bitte abmelden. Danke", Word.STOP),
        ("Arrêter s'il vous plaît", Word.STOP),
        ("opt out pls", Word.STOP),
        ("Cancel, thank you", Word.STOP),
        ("Stop. I never asked for this", Word.STOP),
        ("STOP\nSent from my iPhone", Word.STOP),
        ("Unsubscribe! You write too often.", Word.STOP),
        ("Thank you", None),
        ("Cancel. I can't make it on Friday", None),
        ("End. Of story.", None),
        ("I can't stop. Thank you", None),
        ("stop by tomorrow. Thanks", None),
        ("Start please", None),
        ("start", Word.START),
        ("Help?", Word.HELP),
        ("Please don't stop", None),
        ("stop it, you", None),
        ("Yes, please", None),
        ("yes!", Word.YES),
        ("Sí", Word.YES),
        ("ARRE\u0302T", Word.STOP),  # the accent apart
        ("ＳＴＯＰ", Word.STOP),  # full width
        ("", None),
        ("\x00", None),
        ("STOP" + " " * 500, Word.STOP),
        ("x" * 10_000, None),
    ],
)
def test_keyword_is_found(text, word):
    found = find(text)
    assert (found.word if found else None) is word


@pytest.mark.promise("consent-1")
@pytest.mark.parametrize(
    ("text", "word"),
    [
        *(
            (text, Word.STOP)
            for text in ("STOP", "STOPALL", "UNSUBSCRIBE", "END", "QUIT", "CANCEL")
        ),
        *((text, Word.STOP) for text in ("REVOKE", "OPTOUT", "ARRET", "REMOVE")),
        *((text, Word.START) for text in ("START", "UNSTOP")),
        ("YES", Word.YES),
        *((text, Word.HELP) for text in ("HELP", "INFO")),
    ],
)
def test_required_keywords_are_recognized(text, word):
    assert WORDS[text].word is word


def test_every_language_has_keywords_and_replies():
    assert set(KEYWORDS) - {""} == set(REPLIES) - {"en"}
    assert WORDS["ABMELDEN"] == Keyword(Word.STOP, "de")


def test_stop_with_polite_words_ends_all_sms(org, api, scene):
    person = factories.contact(org)
    write(scene, person.mobile, "Stop. Thank you")
    text = REPLIES["en"][Word.STOP].format(name="Acme")
    assert settle(scene) == [(OURS, person.mobile, text)]
    refused = api.send(message(person, channel="SMS"))
    assert refused.json()["error"]["code"] == "SUPPRESSED"


@pytest.mark.promise("consent-1")
def test_stop_is_recorded_and_confirmed_and_ends_all_sms(org, api, scene):
    person = factories.contact(org)
    write(scene, person.mobile, "Stop")
    text = REPLIES["en"][Word.STOP].format(name="Acme")
    assert settle(scene) == [(OURS, person.mobile, text)]
    entry = ConsentEntry.objects.get()
    callback = entry.evidence.pop("callback")
    assert Callback.objects.filter(pk=callback).exists()
    assert (entry.contact_id, entry.channel, entry.category, entry.status, entry.source) == (
        str(person.pk),
        "SMS",
        "ALL",
        "OPTED_OUT",
        "SMS_KEYWORD",
    )
    assert entry.evidence == {"text": "Stop", "from": person.mobile}
    row = Suppression.objects.get()
    assert (row.channel, row.address, row.reason, row.source) == (
        "SMS",
        person.mobile,
        "STOP",
        "SMS_KEYWORD",
    )
    answer = api.send(message(person, channel="SMS"))
    assert answer.json()["error"]["code"] == "SUPPRESSED"
    assert ledger.verify(org.pk).broken is None


@pytest.mark.promise("consent-1")
def test_start_lifts_a_stop(org, api, scene):
    person = factories.contact(org)
    for text in ("STOP", "START"):
        write(scene, person.mobile, text)
        settle(scene)
    assert not Suppression.objects.exists()
    statuses = ConsentEntry.objects.order_by("id").values_list("status", flat=True)
    assert list(statuses) == ["OPTED_OUT", "OPTED_IN"]
    answer = api.send(message(person, channel="SMS"))
    work(scene.transport)
    assert api.get(answer.json()["messageId"])["status"] == "SENT"


def test_yes_is_start_only_after_stop(org, scene):
    person, other = factories.contacts(org, 2)
    write(scene, person.mobile, "YES")
    assert (settle(scene), ConsentEntry.objects.count()) == ([], 0)
    for text in ("STOP", "YES", "YES"):
        write(scene, person.mobile, text)
    write(scene, other.mobile, "yes")
    texts = [REPLIES["en"][word].format(name="Acme") for word in (Word.STOP, Word.START)]
    assert sorted(text for _, _, text in settle(scene)) == sorted(texts)
    assert not Suppression.objects.exists()
    write(scene, person.mobile, "STOP")
    settle(scene)
    write(scene, person.mobile, "Yes.")
    assert [text for _, _, text in settle(scene)] == texts[1:]
    statuses = ConsentEntry.objects.order_by("id").values_list("status", flat=True)
    assert list(statuses) == ["OPTED_OUT", "OPTED_IN"] * 2


@pytest.mark.parametrize(
    ("text", "spoken", "language"),
    [
        ("Abmelden", "fr_FR", "de"),
        ("STOP", "fr_FR", "fr"),
        ("STOP", "pt_BR", "it"),
        ("STOP", "", "it"),
    ],
)
def test_replies_are_in_the_contacts_language(org, scene, text, spoken, language):
    Organization.objects.update(language="it_IT")
    TtlCache.clear_all()
    person = factories.contact(org, language=spoken)
    write(scene, person.mobile, text)
    assert settle(scene)[0][2] == REPLIES[language][Word.STOP].format(name="Acme")


def test_start_lifts_only_a_stop(org, scene):
    person = factories.contact(org)
    Suppression.objects.create(
        organization=org, channel="SMS", address=person.mobile, reason="HARD_BOUNCE"
    )
    write(scene, person.mobile, "START")
    settle(scene)
    assert Suppression.objects.get().reason == "HARD_BOUNCE"


@pytest.mark.promise("consent-1")
def test_help_changes_nothing(org, scene):
    person = factories.contact(org, language="de_CH")
    write(scene, person.mobile, "Hilfe")
    assert settle(scene) == [(OURS, person.mobile, REPLIES["de"][Word.HELP].format(name="Acme"))]
    assert (ConsentEntry.objects.count(), Suppression.objects.count()) == (0, 0)


def test_a_number_without_a_contact_is_suppressed_too(org, scene):
    write(scene, "+12025559999", "STOP")
    settle(scene)
    assert (ConsentEntry.objects.count(), Suppression.objects.get().address) == (0, "+12025559999")


def test_a_number_of_several_contacts_counts_for_all(org, scene):
    people = [factories.contact(org), factories.contact(org)]
    write(scene, people[0].mobile, "STOP")
    settle(scene)
    found = set(ConsentEntry.objects.values_list("contact_id", flat=True))
    assert found == {str(person.pk) for person in people}


def test_the_last_keyword_of_a_batch_counts(org, scene):
    person = factories.contact(org)
    for text in ("STOP", "START", "STOP", "START"):
        write(scene, person.mobile, text)
    assert len(settle(scene)) == 4
    assert not Suppression.objects.exists()
    answer = current_consent.read(org.pk, [str(person.pk)], ["SMS"], ["MARKETING"])
    assert answer.allows(str(person.pk), "SMS", "MARKETING", opt_in=True)


def test_start_applied_after_a_later_stop_lifts_nothing(org, scene):
    person = factories.contact(org)
    write(scene, person.mobile, "START")
    held = Callback.objects.get().pk
    Callback.objects.filter(pk=held).update(due_at=None)  # another worker has claimed it
    write(scene, person.mobile, "STOP")
    settle(scene)
    Callback.objects.filter(pk=held).update(due_at=Now())
    settle(scene)
    assert Suppression.objects.get().reason == "STOP"
    answer = current_consent.read(org.pk, [str(person.pk)], ["SMS"], ["MARKETING"])
    assert not answer.allows(str(person.pk), "SMS", "MARKETING", opt_in=False)
    write(scene, person.mobile, "START")
    settle(scene)
    assert not Suppression.objects.exists()


def test_a_keyword_changes_nothing_in_other_organizations(org, scene):
    other = factories.organization("other")
    person = factories.contact(other)
    write(scene, person.mobile, "STOP")
    settle(scene)
    assert set(Suppression.objects.values_list("organization_id", flat=True)) == {org.pk}
    assert not ConsentEntry.objects.exists()


@pytest.mark.parametrize("text", ["NO MAS", "", "Please take me off your list"])
def test_text_classified_as_stop_by_the_provider_stops(org, scene, text):
    person = factories.contact(org)
    write(scene, person.mobile, text, OptOutType="STOP")
    assert settle(scene) == []  # the provider has answered
    assert Suppression.objects.values_list("address", "reason").get() == (person.mobile, "STOP")
    (entry,) = ConsentEntry.objects.all()
    assert (entry.status, entry.source) == ("OPTED_OUT", "SMS_KEYWORD")


def test_text_classified_as_start_by_the_provider_lifts_the_stop(org, scene):
    person = factories.contact(org)
    write(scene, person.mobile, "NO MAS", OptOutType="STOP")
    write(scene, person.mobile, "OTRA VEZ", OptOutType="start")
    settle(scene)
    assert not Suppression.objects.exists()


@pytest.mark.parametrize("taken_as", ["START", "HELP", "WHAT"])
def test_stop_counts_regardless_of_the_providers_classification(org, scene, taken_as):
    write(scene, factories.contact(org).mobile, "STOP", OptOutType=taken_as)
    settle(scene)
    assert Suppression.objects.get().reason == "STOP"


def test_keyword_answered_by_the_provider_gets_no_reply(org, scene):
    person = factories.contact(org)
    write(scene, person.mobile, "STOP", OptOutType="STOP")
    assert settle(scene) == []
    assert Suppression.objects.count() == 1


def test_a_number_gets_four_replies_an_hour(org, scene):
    person = factories.contact(org)
    for _ in range(6):
        write(scene, person.mobile, "HELP")
    assert len(settle(scene)) == 4


def test_replies_are_limited_once_the_gate_lock_is_released(org, scene):
    """The limit asks Redis: while it is slow, sends of the organization must not wait for it."""
    person = factories.contact(org)
    for _ in range(6):
        write(scene, person.mobile, "HELP")
    replies = callbacks.apply_due()[1]
    assert len(replies) == 6
    inbound_sms.send_replies(replies, scene.transport)
    assert len(scene.server.seen) == 4


def test_a_repeated_callback_counts_once(org, scene):
    person = factories.contact(org)
    form = {"From": person.mobile, "To": OURS, "Body": "STOP", "MessageSid": "SM0"}
    for _ in range(2):
        scene.call(fakes.twilio(scene.url, "", form))
        settle(scene)
    assert ConsentEntry.objects.count() == 1


@pytest.mark.parametrize("sender", ["", "Ann", "\x00", "12", "+999999999999999999999"])
def test_a_sender_without_a_number_is_ignored(org, scene, sender):
    write(scene, sender, "STOP\x00")
    assert (settle(scene), Suppression.objects.count()) == ([], 0)


@pytest.mark.parametrize("language", sorted(REPLIES))
def test_replies_are_no_keywords(language):
    assert set(REPLIES[language]) == set(Word) - {Word.YES}
    assert all(find(text.format(name="")) is None for text in REPLIES[language].values())


def test_statements_do_not_grow_with_the_sms(org, scene):
    write(scene, "+12025559999", "HELP")
    settle(scene)  # so that caches are warm
    counts = []
    for count in (1, 20):
        people = factories.contacts(org, count)
        for word in ("STOP", "START"):
            for person in people:
                write(scene, person.mobile, word)
            with CaptureQueriesContext(connection) as captured:
                callbacks.apply_due()
            counts.append(len([q for q in captured if "SAVEPOINT" not in q["sql"]]))
        ConsentEntry.objects.all().delete()
    assert counts == [10, 12, 10, 12]
