"""Pages that are made from the registries say what the registries say.

To write them anew: ``python tests/test_docs.py``.
"""

from pathlib import Path

import pytest

from console.actions import key_table
from runners.findings import as_markdown as findings_page

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = {"findings.md": findings_page, "keys.md": key_table}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_registry_says(name: str):
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run: python tests/test_docs.py"


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
