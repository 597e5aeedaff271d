"""Addresses of templates and partials in the admin, which lead to their pages in the console."""

from typing import ClassVar

from django.contrib import admin

from messaging.admin.console_lists import InConsole
from messaging.console.studio import partial_pages, variants
from messaging.models import Partial, Template, TemplateVersion
from rme.tenants.access.roles import Permission


class _StudioPage(InConsole):
    read_permission: Permission = Permission.SEE_TEMPLATES
    write_permission: Permission = Permission.CHANGE_TEMPLATES
    console_list = console_new = "templates"


@admin.register(Template)
class TemplateAdmin(_StudioPage):
    def console_url(self, row: Template) -> str:
        return variants.url_of(row)


@admin.register(TemplateVersion)
class TemplateVersionAdmin(_StudioPage):
    organization_path: ClassVar[str] = "template__organization_id"
    list_select_related = ("template",)

    def console_url(self, row: TemplateVersion) -> str:
        return variants.url_of(row.template, version=row.version)


@admin.register(Partial)
class PartialAdmin(_StudioPage):
    console_list = console_new = "partials"

    def console_url(self, row: Partial) -> str:
        return partial_pages.url_of(row)
