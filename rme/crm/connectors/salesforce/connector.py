"""The connector for Salesforce: its REST API, called by simple-salesforce."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

from django.utils.translation import gettext as _
from pydantic import Field, SecretStr, model_validator

from rme.core import ids
from rme.core.provider.credentials import DESTINATION
from rme.crm import platforms
from rme.crm.connectors.base import (
    PlatformAway,
    PlatformRefused,
    PlatformSlow,
)
from rme.crm.connectors.conditions import Where, phone_digits
from rme.crm.connectors.mapped import SCAN, MappedConnector, RemoteSettings
from rme.crm.connectors.records import New
from rme.crm.connectors.salesforce import sessions
from rme.crm.connectors.salesforce.errors import codes_of, error_of
from rme.crm.connectors.salesforce.sessions import SalesforceClient
from rme.crm.connectors.values import Row
from rme.crm.mapping import Condition, ObjectMapping, Scalar
from rme.transport.performer import Performer

T = TypeVar("T")

_ID = re.compile(r"[A-Za-z0-9]{15}(?:[A-Z0-5]{3})?")
_PREFIXES = {"Account": "001", "Contact": "003", "Case": "500", "Campaign": "701"}
_PREFIXES |= {"CampaignMember": "00v", "Lead": "00Q", "User": "005", "Opportunity": "006"}
"""How ids of an object begin; each organization has its own prefixes for custom objects."""

_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Errors that simple-salesforce raises for a response of another shape, or one without JSON."""


class SalesforcePlatformSettings(RemoteSettings):
    """The address of an organization's Salesforce, and the credentials."""

    address: Annotated[str, DESTINATION] = Field(
        description="The My Domain: https://acme.my.salesforce.com."
    )
    client_id: str = Field(description="The consumer key of the connected app.")
    client_secret: SecretStr | None = Field(
        default=None, description="The consumer secret: for the client credentials flow."
    )
    username: str = Field(default="", description="With a private key: the integration user.")
    private_key: SecretStr | None = Field(
        default=None, description="PEM: for the JWT bearer flow, instead of a secret."
    )
    audience: Annotated[str, DESTINATION] = Field(
        default="https://login.salesforce.com",
        description="With a private key: https://test.salesforce.com for a sandbox.",
    )
    api_version: str = Field(default="62.0", pattern=r"^[1-9][0-9]\.0$")

    @model_validator(mode="after")
    def _has_a_flow(self) -> "SalesforcePlatformSettings":
        if self.private_key is None and self.client_secret is None:
            raise ValueError(_("A client secret or a private key is needed."))
        if self.private_key is not None and not self.username:
            raise ValueError(_("With a private key the user's name is needed."))
        return self


class SalesforceConnector(MappedConnector):
    """One organization's records in its Salesforce."""

    Settings = SalesforcePlatformSettings
    label = "Salesforce"
    id_path = "Id"
    created_path = "CreatedDate"
    batch: ClassVar[int] = 200

    def __init__(
        self,
        organization_id: str,
        *,
        transport: Performer,
        platform: platforms.PlatformRecord | None = None,
    ) -> None:
        super().__init__(organization_id, transport=transport, platform=platform)
        self.adapter = sessions.TransportAdapter(self.caller)

    def _describe_object(self, name: str) -> dict[str, str]:
        return self._run(lambda client: _fields_of(_object(client, name).describe()))

    # --- reading --------------------------------------------------------------------------------
    def _select(
        self,
        kind: str,
        conditions: Sequence[Where],
        *,
        newest: str = "created_at",
        limit: int = SCAN,
    ) -> list[Row]:
        mapped = self._mapped(kind)
        terms = [_condition(each) for each in conditions] + [_filter(c) for c in mapped.filter]
        by = [f"{path} DESC NULLS LAST" for path in mapped.paths([newest])[:1]]
        order = ", ".join([*by, "Id DESC"]) if newest else f"{mapped.fields['name'][0]}, Id"
        query = (
            f"SELECT {_fields(mapped)} FROM {mapped.object} WHERE {' AND '.join(terms)} "
            f"ORDER BY {order} LIMIT {limit}"
        )
        return _rows(self._run(lambda client: client.query_all(query)), "records")

    def _select_by_phone(self, phone: str) -> list[Row]:
        """Return rows found by SOSL, which matches phone numbers in any format."""
        mapped = self._mapped("Contact")
        spellings = (each for spelling in phone_digits(phone) for each in spelling)
        digits = " OR ".join(dict.fromkeys(each for each in spellings if each.isdigit()))
        terms = " AND ".join(_filter(condition) for condition in mapped.filter)
        filters = f" WHERE {terms}" if terms else ""
        search = (
            f"FIND {{{digits}}} IN PHONE FIELDS RETURNING {mapped.object}({_fields(mapped)}"
            f"{filters} ORDER BY {self.created_path} DESC LIMIT {SCAN})"
        )
        result = self._run(lambda client: client.search(search))
        return [] if result is None else _rows(result, "searchRecords")

    # --- ids ------------------------------------------------------------------------------------
    def _key(self, record_id: str) -> str:
        """Return an id in its form of 18 characters: the form of 15 lacks the checksum."""
        if not _ID.fullmatch(record_id):
            return ""
        bare = record_id[:15]
        key = ids.salesforce_id(bare)
        return key if record_id in (bare, key) else ""

    def _may_be(self, kind: str, record_id: str) -> bool:
        key = self._key(record_id)
        if not key or not self._has(kind):
            return False
        prefix = _PREFIXES.get(self._mapped(kind).object)
        return key.startswith(prefix) if prefix else key[:3] not in _PREFIXES.values()

    # --- creates --------------------------------------------------------------------------------
    def _insert(self, kind: str, row: dict[str, Scalar], new: New) -> str:
        mapped = self._mapped(kind)
        result = self._run(lambda client: _object(client, mapped.object).create(row), mapped)
        identifier = result.get("id") if isinstance(result, dict) else None
        if not isinstance(identifier, str):
            raise PlatformSlow
        return identifier

    # --- calls ----------------------------------------------------------------------------------
    def _run(self, act: Callable[[SalesforceClient], T], creates: ObjectMapping | None = None) -> T:
        """Return what `act` returns, after one new login if the session has ended.

        `creates`: the mapping of the record to create. Raise PlatformError.
        """
        # Imported here: the library takes 0.4 s, and only these organizations need it.
        from simple_salesforce.exceptions import SalesforceError, SalesforceExpiredSession

        for last in (False, True):
            self.adapter.creates = False  # the login creates nothing
            client = sessions.client(self.platform, self.adapter)
            self.adapter.creates = creates is not None
            try:
                return act(client)
            except SalesforceExpiredSession as error:
                sessions.forget(self.platform, client.session_id)
                if last or "INVALID_SESSION_ID" not in codes_of(error.content):
                    raise PlatformRefused from error
            except SalesforceError as error:
                raise error_of(error.status, error.content, creates) from error
            except _UNREADABLE as error:
                raise (PlatformSlow if creates else PlatformAway) from error
        raise PlatformRefused


def _object(client: SalesforceClient, name: str) -> Any:
    """Return the library's untyped interface to one object."""
    # Imported here, as in `_run`.
    from simple_salesforce.api import SFType

    return SFType(
        name, client.session_id, client.sf_instance, client.sf_version, session=client.session
    )


def quote(value: Scalar) -> str:
    """Return a value as SOQL text. All values are escaped here."""
    # Imported here, as in `SalesforceConnector._run`.
    from simple_salesforce.format import quote_soql_value

    return quote_soql_value(value)


def _fields(mapped: ObjectMapping) -> str:
    names = (name for name in mapped.fields if not name.startswith("find_"))
    return ", ".join(mapped.paths(names))


def _filter(condition: Condition) -> str:
    return f"{condition.path} {condition.operator} {quote(condition.value)}"


def _condition(condition: Where) -> str:
    """Return a condition in SOQL. Salesforce itself compares texts without case."""
    terms: list[str] = []
    for path in condition.paths:
        if condition.equals:
            terms.append(f"{path} IN ({', '.join(quote(each) for each in condition.equals)})")
        if condition.like:
            terms.append(f"{path} LIKE {quote(condition.like)}")
        if condition.since:
            terms.append(f"{path} >= {condition.since.strftime('%Y-%m-%dT%H:%M:%SZ')}")
    return f"({' OR '.join(terms)})"


def _rows(result: object, name: str) -> list[Row]:
    rows = result.get(name) if isinstance(result, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise PlatformAway
    return rows


def _fields_of(description: Any) -> dict[str, str]:
    """Return the fields of an object's description, and its relationships with their object."""
    fields = description["fields"]
    objects = {str(field["name"]): "" for field in fields}
    for field in fields:
        if field.get("relationshipName") and field.get("referenceTo"):
            objects[str(field["relationshipName"])] = str(field["referenceTo"][0])
    return objects
