"""The ordinary stack: nested serializers, the toolkit's own token look-up, the ORM row by row.

It writes the same rows as rme and asks the same questions (contact, suppression, consent), in the
way that a tutorial shows; in a bulk the rows are made by `bulk_create`.
"""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from oauth2_provider.contrib.rest_framework import OAuth2Authentication
from rest_framework import serializers
from rest_framework.parsers import JSONParser
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView, exception_handler

from messaging.models import (
    ConsentEntry,
    Delivery,
    Event,
    Message,
    MessageContent,
    Suppression,
    TemplateVersion,
)
from rme.crm.models import Contact


class RecipientSerializer(serializers.Serializer):
    contactId = serializers.UUIDField()


class TemplateSerializer(serializers.Serializer):
    name = serializers.CharField(max_length=200)
    language = serializers.CharField(max_length=16)


class ContextSerializer(serializers.Serializer):
    variables = serializers.DictField()


class MessageSerializer(serializers.Serializer):
    channel = serializers.ChoiceField(["EMAIL", "SMS", "PUSH"])
    category = serializers.CharField(max_length=64)
    to = RecipientSerializer(many=True)
    template = TemplateSerializer()
    context = ContextSerializer()


class BulkSerializer(serializers.Serializer):
    messages = MessageSerializer(many=True)


def rows(organization: str, item: dict[str, Any]) -> tuple[Any, ...]:
    """Make the rows of one message, asking what has to be asked."""
    contact = Contact.objects.get(organization_id=organization, pk=item["to"][0]["contactId"])
    Suppression.objects.filter(organization_id=organization, address=contact.email).exists()
    ConsentEntry.objects.filter(
        organization_id=organization, contact_id=str(contact.pk), channel="EMAIL"
    ).order_by("-occurred_at").first()
    return build(organization, item, contact)


def build(organization: str, item: dict[str, Any], contact: Contact) -> tuple[Any, ...]:
    now = timezone.now()
    message = Message(
        organization_id=organization,
        category=item["category"],
        channels=[item["channel"]],
        strategy="FIRST_REACHABLE",
        template=item["template"]["name"],
        language=item["template"]["language"],
        created_at=now,
    )
    content = MessageContent(pk=message.pk, organization_id=organization, body=item["context"])
    delivery = Delivery(
        organization_id=organization,
        message_id=message.pk,
        contact_id=str(contact.pk),
        category=item["category"],
        channels=[],
        channel=item["channel"],
        address=contact.email,
        status="BLOCKED",  # so that no worker takes it
        expires_at=now + timedelta(hours=24),
        updated_at=now,
    )
    event = Event(
        organization_id=organization,
        message_id=message.pk,
        delivery_id=delivery.pk,
        type="accepted",
        at=now,
    )
    return message, content, delivery, event


class Ordinary(APIView):
    authentication_classes = [OAuth2Authentication]
    throttle_classes = ()
    permission_classes = [IsAuthenticated]
    parser_classes = [JSONParser]
    renderer_classes = [JSONRenderer]

    def get_exception_handler(self) -> Any:
        return exception_handler

    def template(self, organization: str, name: str) -> TemplateVersion:
        return TemplateVersion.objects.get(
            template__organization_id=organization,
            template__name=name,
            template__channel="EMAIL",
            state="ACTIVE",
        )


class MessageView(Ordinary):
    def post(self, request: Request) -> Response:
        given = MessageSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        organization = request.auth.application.organization_id
        self.template(organization, given.validated_data["template"]["name"])
        with transaction.atomic():
            made = rows(organization, given.validated_data)
            for row in made:
                row.save(force_insert=True)
        return Response({"messageId": str(made[0].pk), "status": "ACCEPTED"}, status=202)


class BulkView(Ordinary):
    def post(self, request: Request) -> Response:
        given = BulkSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        organization = request.auth.application.organization_id
        items = given.validated_data["messages"]
        self.template(organization, items[0]["template"]["name"])
        wanted = [item["to"][0]["contactId"] for item in items]
        contacts = Contact.objects.filter(organization_id=organization).in_bulk(wanted)
        made = [build(organization, item, contacts[item["to"][0]["contactId"]]) for item in items]
        with transaction.atomic():
            for model, column in zip(
                (Message, MessageContent, Delivery, Event), zip(*made, strict=True), strict=True
            ):
                model.objects.bulk_create(column)
        return Response({"accepted": len(made)}, status=202)
