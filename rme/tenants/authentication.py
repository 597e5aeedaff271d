"""placeholder"""
from dataclasses import dataclass
from rest_framework.authentication import BaseAuthentication
from rme.tenants.organizations import OrganizationRecord, get


@dataclass(frozen=True, slots=True)
class Caller:
    organization: OrganizationRecord
    application_id: int
    user_id: int
    test: bool

class U:
    is_authenticated = True

class BearerAuthentication(BaseAuthentication):
    def authenticate(self, request):
        return U(), Caller(get("demo"), 1, 1, False)
