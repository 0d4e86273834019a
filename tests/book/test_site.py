"""The built site, its settings and the code that its pages include."""

import json
import re
import textwrap

import pytest
from places import BOOK, ROOT

from course_lib.data import DATASETS
from course_lib.files import RESULTS
from course_tools.site.build import executed_pages
from course_tools.site.cache import PageCache


@pytest.mark.slow  # the site is built first, where it is not
def test_every_data_set_has_a_page_and_those_that_the_course_makes_have_figures(site):
    for name, entry in DATASETS.items():
        card = (BOOK / "_generated" / "data" / f"{name}.md").read_text(encoding="utf-8")
        assert card.startswith(f"(data-{name})=\n# `{name}`\n")
        if entry.embedded:
            assert "Measured from the rows that loaded when this was written." in card
        page = (site / "_generated" / "data" / f"{name}.html").read_text(
            encoding="utf-8"
        )
        assert f'id="data-{name.replace("_", "-")}"' in page
    alignments = (BOOK / "_generated" / "data" / "translation.md").read_text(
        encoding="utf-8"
    )
    assert alignments.count("- `alignment`: ") == 3


def test_a_docstring_is_left_out_and_the_code_is_not():
    from library_code import without_docstring

    source = '''
        class Score:
            """Score pairs.

            >>> Score()
            """

            def forward(self, query):
                """Return scores."""
                # why
                return query * 2
    '''
    expected = """
        class Score:
            def forward(self, query):
                # why
                return query * 2
    """
    assert (
        without_docstring(textwrap.dedent(source)).strip()
        == textwrap.dedent(expected).strip()
    )


def test_settings_send_nothing_to_other_hosts():
    settings = (ROOT / "_config.yml").read_text()
    assert "nb_ipywidgets_js: {}" in settings
    assert json.dumps("https://unpkg.com") not in settings


@pytest.mark.slow  # the site is built first, where it is not
def test_each_record_that_a_page_loads_is_among_what_the_page_is_made_of(site):
    """Its kernel was seen to read it; else a new record would execute no page."""
    cache = PageCache(ROOT)
    missing = [
        (page.stem, name)
        for page in executed_pages(ROOT)
        for made_of in [cache.made_of(page)]
        for name in re.findall(r'records\.load\("([^"]+)"\)', page.read_text("utf-8"))
        if f"book/results/{name}.json" not in made_of
        and (RESULTS / f"{name}.json").is_file()  # else it is not recorded yet
    ]
    assert missing == []
