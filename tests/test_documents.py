"""What the documents name exists: pages, sections, commands, targets, settings and log events."""

import ast
import re
from importlib.util import find_spec

import pytest
from django.core.management import get_commands

from tests.deploy import variables
from tests.service import ROOT

FOLDERS = ("docs", "rme", "messaging", "push", "bot", "tests", "bench", "deploy", "clients")
PAGES = {
    path: path.read_text()
    for path in [
        *ROOT.glob("*.md"),
        *(page for each in FOLDERS for page in (ROOT / each).rglob("*.md")),
    ]
    if "node_modules" not in path.parts
}
CODE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]*)\)")
SOURCE = re.compile(r"`((?:rme|messaging|push|bot|tests|bench|deploy|clients)/[\w/.-]+\.\w+)")


def sections(text: str) -> set[str]:
    """Return the anchors of a page, as GitHub makes them of its headings."""
    headings = re.findall(r"^#+ +(.+?)\s*$", CODE.sub("", text), re.MULTILINE)
    words = [re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings]
    return {*words, *re.findall(r'<a (?:id|name)="([^"]+)"', text)}


def test_each_link_target_exists():
    broken = []
    for page, text in PAGES.items():
        for link in LINK.findall(CODE.sub("", text)):
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            known = target.exists() and (not anchor or anchor in sections(PAGES.get(target, "")))
            if not known:
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []


def test_each_page_is_in_the_index():
    index = ROOT / "docs" / "README.md"
    links = {link.partition("#")[0] for link in LINK.findall(PAGES[index])}
    listed = {(index.parent / link).resolve() for link in links}
    pages = {page for page in PAGES if page.is_relative_to(index.parent)}
    assert pages - listed == {index}


def test_each_named_file_exists():
    files = {path for text in PAGES.values() for path in SOURCE.findall(text)}
    assert len(files) > 100
    assert {path for path in files if not (ROOT / path).exists()} == {
        "messaging/providers/examplesms.py",  # the reader of adding-a-provider.md writes these
        "push/providers/examplepush.py",
    }


def test_short_paths_in_the_architecture_exist():
    """Tables leave out the app that they are about: `store/events.py`, `content/rendering/`."""
    page = PAGES[ROOT / "docs" / "architecture.md"]
    paths = set(re.findall(r"`([\w/.-]+(?:\.py|/))`", page))
    assert len(paths) > 80
    assert [path for path in sorted(paths) if not _exists(path)] == []


def _exists(path: str) -> bool:
    return (ROOT / path).exists() or any(
        True for folder in FOLDERS for _ in (ROOT / folder).glob(f"**/{path}")
    )


def named(pattern: str) -> set[str]:
    return {found for text in PAGES.values() for found in re.findall(pattern, text)}


def test_each_named_command_exists():
    assert named(r"manage\.py ([a-z_]+)") - {*get_commands()} == set()
    makefile = (ROOT / "Makefile").read_text()
    targets = {*re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE)}
    assert named(r"`make ([a-z0-9-]+)") - targets == set()
    modules = named(r"python -m ((?:rme|tests|bench)(?:\.\w+)*)")
    assert len(modules) >= 5
    assert [each for each in sorted(modules) if find_spec(each) is None] == []


def test_each_setting_has_its_place_in_the_documents():
    text = (ROOT / "docs" / "settings.md").read_text()
    known = variables.read_by_the_service()
    assert known - {*re.findall(r"`(\w+)`", text)} == set()
    rows = re.findall(r"^\| ((?:`[A-Z0-9_]+`(?:, )?)+) \|", text, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert {each for each in listed if not each.endswith("_FILE")} - known == {
        "RME_VAR"
    }  # read by `rme.run`


SERVICE = [
    path.read_text()
    for package in ("bot", "messaging", "push", "rme")
    for path in sorted((ROOT / package).rglob("*.py"))
]


def serious_events() -> set[str]:
    """Return the names of the events that the service logs as warnings and errors."""
    calls = [
        node
        for source in SERVICE
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("warning", "error", "exception")
        and "log" in ast.unparse(node.func.value).lower()
    ]
    first = [
        ast.literal_eval(node.args[0]) for node in calls if isinstance(node.args[0], ast.Constant)
    ]
    return {each for each in first if re.fullmatch(r"[a-z_]+(\.[a-z_]+)?", each)}


def test_operations_names_each_log_event_of_warning_and_error():
    page = PAGES[ROOT / "docs" / "operations.md"]
    serious = serious_events()
    assert len(serious) > 60
    assert serious - set(re.findall(r"`([a-z_.]+)`", page)) == set()
    rows = re.findall(r"^\| (`.+`) \| (?:error|warning)", page, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([a-z_.]+)`", row)}
    assert {
        each for each in listed if not any(f'"{each}"' in source for source in SERVICE)
    } == set()


def test_each_log_event_named_in_runbooks_exists():
    events = re.findall(r"`([a-z_]+\.[a-z_]+)`", PAGES[ROOT / "docs" / "runbooks.md"])
    events = [each for each in events if not each.endswith((".yaml", ".py"))]
    assert len(events) > 5
    assert [e for e in events if not any(f'"{e}"' in source for source in SERVICE)] == []


OTHER_PROJECT = re.compile(r"pip\w* (?:install|wheel|download)[^\n`]*[\s'\"]rme(?![-\w/.])")


@pytest.mark.parametrize(
    "command",
    [
        "pip install rme",
        "pip install 'rme[archive]'",
        "uv pip install -U rme==1",
        "pipx install rme",
    ],
)
def test_command_that_installs_another_project_is_found(command):
    assert OTHER_PROJECT.search(command)


def test_no_page_installs_another_project():
    """`rme` in the package index is somebody else's; ours is rme-messaging."""
    assert [str(page) for page, text in PAGES.items() if OTHER_PROJECT.search(text)] == []
    assert not OTHER_PROJECT.search("pip install rme-messaging ./clients/python rme/x")
