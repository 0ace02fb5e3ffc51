"""The pictures are small, each is shown somewhere, and the figures of a page are those that its examples save."""

from __future__ import annotations

import html
import re

from tests.docs.test_documentation import DOCS, ROOT, load

pictures = load(DOCS / "pictures.py")
PAGES = {page: page.read_text(encoding="utf-8") for page in [*DOCS.rglob("*.md"), ROOT / "README.md"]}
SHOWN = re.compile(r"!\[[^\]]*\]\(([^)]+\.(?:svg|png))\)")


def shown():
    return {(page.parent / target).resolve() for page, text in PAGES.items() for target in SHOWN.findall(text)}


def test_every_picture_is_shown_and_small():
    files = [path for path in pictures.PICTURES.iterdir() if path.suffix in (".svg", ".png")]
    assert [path.name for path in files if path.resolve() not in shown()] == []
    assert [path.name for path in files if path.stat().st_size > 150_000] == []


def test_every_picture_says_what_it_shows():
    words = [words for text in PAGES.values() for words in re.findall(r"!\[([^\]]*)\]\(", text)]
    assert len(words) > 10
    assert [one for one in words if len(one) < 20] == []


def test_a_page_shows_the_figures_that_its_examples_save():
    saved = 0
    for page, text in PAGES.items():
        for name in re.findall(r"\.savefig\(\"([\w-]+\.svg)\"\)", text):
            assert f"](../pictures/{name})" in text
            assert page.stem in pictures.works(), "docs/pictures.py does not make it"
            saved += 1
    assert saved >= 6


def test_figures_do_not_tell_when_they_were_made():
    for path in pictures.PICTURES.glob("*-*.svg"):
        assert "<dc:date>" not in path.read_text(encoding="utf-8")


def test_the_first_picture_has_the_numbers_of_the_demo():
    words = html.unescape((pictures.PICTURES / "hero.svg").read_text(encoding="utf-8")).replace("−", "-")
    recommended, exact = re.findall(r"at least (-[\d.]+)", words)
    (truth,) = re.findall(r"true value (-[\d.]+)", words)
    demo = PAGES[DOCS / "guide" / "quickstart.md"]
    assert f"value ≥ {recommended} (0.95, approximate)" in demo
    assert f"value ≥ {exact} (0.95, exact)" in demo
    assert f"{float(re.findall('known here: (-[0-9.]+)', demo)[0]):.2f}" == truth
