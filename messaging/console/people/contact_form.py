"""The form of a contact of the embedded platform."""

from functools import cache
from zoneinfo import available_timezones

from django import forms
from django.db.models import Q
from django.http import QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from rme.core import ids
from rme.crm.folding import account_name
from rme.crm.models import Account, Contact
from rme.tenants import organizations
from rme.tenants.admin.offered import LongSelect
from rme.tenants.organizations import languages

_ALIASES = ("Etc/", "US/", "SystemV/", "posix/", "right/")


class ContactForm(forms.ModelForm):  # type: ignore[type-arg]
    """A contact. The account is typed: an organization may have a million."""

    account = forms.CharField(
        required=False,
        max_length=255,
        label=_("Account"),
        help_text=_("The name or id of one of your accounts."),
    )

    class Meta:
        model = Contact
        fields = (
            *("first_name", "last_name", "email", "mobile", "phone"),
            *("language", "zone", "account"),
        )
        labels = {"zone": _("Time zone")}
        help_texts = {"mobile": _("For SMS."), "phone": "", "language": ""}
        widgets = {"language": LongSelect(), "zone": LongSelect()}

    def __init__(self, data: QueryDict | None, row: Contact) -> None:
        super().__init__(data, instance=row, auto_id="contact_%s", label_suffix="")
        self.initial["account"] = str(row.account or "")
        zones = [(each, each) for each in sorted(_zones())]
        offered = languages.offered(organizations.get(row.organization_id), row.language)
        for name, choices in (("language", offered), ("zone", zones)):
            stored = getattr(row, name)
            rare = [] if stored in dict(choices) else [(stored, stored)]
            widget = self.fields[name].widget
            assert isinstance(widget, LongSelect)
            widget.choices = [("", gettext("The organization's")), *filter(all, rare), *choices]

    def clean_account(self) -> Account | None:
        """Return the account that was typed, if any."""
        text = self.cleaned_data["account"].strip()
        if text == self.initial["account"]:
            current: Account | None = self.instance.account
            return current
        key = ids.parse(text)
        condition = Q(pk=key) if key else Q(name_folded=account_name(text))
        rows = Account.objects.filter(condition, organization_id=self.instance.organization_id)
        accounts = list(rows[:2])
        if not accounts:
            raise forms.ValidationError(gettext("No account has this name. Add the account first."))
        if len(accounts) > 1:
            raise forms.ValidationError(
                gettext("Several accounts have this name. Type the id of one.")
            )
        return accounts[0]


@cache
def _zones() -> set[str]:
    """Return the zones that are named after a place, and UTC."""
    places = (each for each in available_timezones() if "/" in each)
    return {"UTC", *(each for each in places if not each.startswith(_ALIASES))}
