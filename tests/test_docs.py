"""Pages that are made from the registries say what the registries say.

To write them anew: ``python tests/test_docs.py``.
"""

import re
from pathlib import Path

import pytest

from console import cli
from console.actions import key_table
from runners.findings import as_markdown as findings_page

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = {"findings.md": findings_page, "keys.md": key_table}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_registry_says(name: str):
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run: python tests/test_docs.py"


def test_the_readme_names_every_verb_and_no_other():
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)[^|]*` \|", readme, re.MULTILINE) == list(cli.VERBS)


def test_every_file_that_the_readme_points_to_is_there():
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", readme)
    assert "docs/screen.svg" in links
    assert [link for link in links if not (DOCS.parent / link).is_file()] == []


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
