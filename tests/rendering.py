"""What Django's test client records of a page: the context of its own template."""

import threading

from django.template import Context, Template
from django.test.signals import template_rendered

_thread = threading.local()


def record_pages_alone() -> None:
    """Have nothing recorded of the templates within a page.

    A page of the admin renders some three hundred: each widget, badge and include. A tenth of the
    page's time went into copies of their contexts.
    """
    Template._render = _render  # type: ignore[attr-defined]  # as Django's own tests replace it


def _render(template: Template, context: Context) -> str:
    if getattr(_thread, "is_rendering", False):
        return template.nodelist.render(context)
    _thread.is_rendering = True
    try:
        template_rendered.send(sender=template, template=template, context=context)
        return template.nodelist.render(context)
    finally:
        _thread.is_rendering = False
