"""Template versions by id, for many organizations at once."""

from collections.abc import Mapping

from messaging.models import Template, TemplateVersion
from rme.core.db import sql

TEXTS = ("subject", "text", "html", "mjml", "title", "body", "data", "badge", "image", "link")
_TEMPLATE_COLUMNS = ("organization_id", "name", "language", "channel", "category")
_VERSION_COLUMNS = ("id", "version", "variables", "compiled_html", *TEXTS)
# Plan: the primary keys of both, once for each.
# Run by: read, for content.templates
READ = f"""
SELECT t.{", t.".join(_TEMPLATE_COLUMNS)}, v.{", v.".join(_VERSION_COLUMNS)}
FROM unnest(%(versions)s::bigint[], %(organizations)s::text[]) wanted(id, organization_id)
JOIN {TemplateVersion._meta.db_table} v ON {sql.by_key("v.id", "wanted.id")}
JOIN {Template._meta.db_table} t ON {sql.by_key("t.id", "v.template_id")}
  AND t.organization_id || '' = wanted.organization_id
"""


def read(owners: Mapping[int, str]) -> list[TemplateVersion]:
    """Return versions with their templates, by one query. For accepting and for sending.

    `owners` maps a version's id to its organization; one of another organization is left out.
    """
    values = {
        "versions": sql.array([str(version_id) for version_id in owners]),
        "organizations": sql.array(list(owners.values())),
    }
    (rows,) = sql.read([sql.bind(READ, values)])
    versions = []
    for row in rows:
        template = Template(**dict(zip(_TEMPLATE_COLUMNS, row, strict=False)))
        columns = zip(_VERSION_COLUMNS, row[len(_TEMPLATE_COLUMNS) :], strict=True)
        versions.append(TemplateVersion(template=template, **dict(columns)))
    return versions
