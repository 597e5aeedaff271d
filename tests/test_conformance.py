"""docs/conformance*.md: each promise is held by a test, and the pages show which files have one."""

from collections import Counter

from docs import conformance


def test_each_promise_is_held_by_a_test():
    promises, holders = conformance.promised(), conformance.holders()
    assert len(promises) > 500
    assert [each for each in promises if each not in holders] == []


def test_each_promise_that_a_test_names_is_on_a_page():
    assert set(conformance.holders()) - set(conformance.promised()) == set()


def test_no_id_is_given_twice():
    assert [each for each, count in Counter(conformance.promised()).items() if count > 1] == []


def test_each_row_of_a_page_has_an_id():
    for page in conformance.PAGES:
        rows = [each for each in page.read_text().splitlines() if each.startswith("| ")]
        heads = [each for each in rows if each == "| id | promise | tests |"]
        assert len(rows) - len(heads) == len(conformance.ROW.findall(page.read_text())) > 0


def test_pages_show_the_files_with_the_tests():
    """If this fails, run `make conformance`."""
    holders = conformance.holders()
    stale = [
        page.name
        for page in conformance.PAGES
        if conformance.filled(page.read_text(), holders) != page.read_text()
    ]
    assert stale == []
