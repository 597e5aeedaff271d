"""Import and export of templates as files in a zip. An import shows first what it would do."""

import base64
import binascii
from collections.abc import Iterator, Sequence
from io import BytesIO
from tempfile import SpooledTemporaryFile

from django import forms
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminFileFieldWidget

from messaging.console import access
from messaging.console.access import Viewer
from messaging.content.files import archives, pull, push
from messaging.content.files.file_types import FileChange, FileProblem, FilesRefused
from rme.core.http import downloads, edge
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action

IN_MEMORY = 5_000_000
"""The most bytes of an export that are kept in memory."""
PIECE = 64 * 1024

MEGABYTES = archives.BYTES_LIMIT // 10**6
TOO_LARGE = format_lazy(gettext_lazy("The archive is larger than {size} MB."), size=MEGABYTES)


class FileForm(forms.Form):
    """The archive that is to be imported."""

    file = forms.FileField(
        label=gettext_lazy("Archive"),
        # the theme's script expects the theme's own markup
        widget=UnfoldAdminFileFieldWidget(attrs={"accept": ".zip,application/zip"}),
        max_length=200,
        help_text=format_lazy(
            gettext_lazy("A zip of at most {size} MB, as an export writes it."), size=MEGABYTES
        ),
    )

    def clean_file(self) -> bytes:
        """Return the bytes of the file, after a check of its size."""
        file: UploadedFile[bytes] = self.cleaned_data["file"]
        if (file.size or 0) > archives.BYTES_LIMIT:
            raise forms.ValidationError(TOO_LARGE)
        content: bytes = file.read()
        return content


@access.page_for(Permission.CHANGE_TEMPLATES)
def show_import(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the form; a POST of a file what it would do, a POST of that the list of templates."""
    if request.method != "POST":
        return _page(request, viewer, FileForm(auto_id="import_%s", label_suffix=""))
    do = request.POST.get("do", "")
    if do == "publish":
        viewer.require(Permission.PUBLISH_TEMPLATES)
    form = FileForm(request.POST, request.FILES, auto_id="import_%s", label_suffix="")
    try:
        archive = _archive(request) or (form.cleaned_data["file"] if form.is_valid() else b"")
        if not archive:
            return _page(request, viewer, form)
        files = archives.read(BytesIO(archive))
        is_final = do in ("import", "publish")
        changes = push.push(
            viewer.organization_id,
            files,
            viewer.actor,
            publish=do == "publish",
            dry_run=not is_final,
        )
    except FilesRefused as error:
        return _page(request, viewer, form, problems=error.problems)
    if is_final:
        messages.success(request, _sentence(changes))
        return HttpResponseRedirect(reverse("console:templates", args=[viewer.organization_id]))
    return _page(request, viewer, form, archive=archive, changes=changes)


# The second form has the archive as text, which is longer by a third.
UPLOAD = edge.Upload(access.may_change_templates, archives.BYTES_LIMIT * 3 // 2)


@access.page_for(Permission.SEE_TEMPLATES)
@require_POST
def export(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return all templates as a zip."""
    name = f"templates-{viewer.organization_id}"
    response = downloads.file(request, name, downloads.ZIP, _zip, viewer.organization_id)
    access.note(viewer, Action.EXPORTED, text="templates")
    return response


def _zip(organization_id: str) -> Iterator[bytes]:
    with SpooledTemporaryFile(max_size=IN_MEMORY) as file:
        archives.write(pull.pull(organization_id), file)
        file.seek(0)
        yield from iter(lambda: file.read(PIECE), b"")


def _archive(request: HttpRequest) -> bytes:
    """Return the archive of which the page has shown what it would do. Raise FilesRefused."""
    try:
        content = base64.b64decode(request.POST.get("archive", ""), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise FilesRefused(
            [FileProblem(_("The archive"), _("The archive is missing. Choose it again."))]
        ) from error
    if len(content) > archives.BYTES_LIMIT:
        raise FilesRefused([FileProblem(_("The archive"), str(TOO_LARGE))])
    return content


def _page(
    request: HttpRequest,
    viewer: Viewer,
    form: FileForm,
    *,
    problems: Sequence[FileProblem] = (),
    archive: bytes = b"",
    changes: list[FileChange] | None = None,
) -> HttpResponseBase:
    file_changes = changes or []
    return access.show(
        request,
        viewer,
        "studio/import",
        _("Import templates"),
        form=form,
        problems=problems,
        archive=base64.urlsafe_b64encode(archive).decode(),
        changes=file_changes,
        differing=[each for each in file_changes if each.kind != "unchanged"],
        may_publish=viewer.may(Permission.PUBLISH_TEMPLATES),
    )


def _sentence(changes: list[FileChange]) -> str:
    """Return what an import has done."""
    counts = {
        kind: sum(each.kind == kind for each in changes)
        for kind in ("created", "changed", "unchanged")
    }
    active = sum(each.is_published for each in changes)
    done = _("Imported: {created} created, {changed} changed, {unchanged} unchanged.")
    published = _("{count} made active.") if active else _("Nothing is active yet.")
    return f"{done.format(**counts)} {published.format(count=active)}"
