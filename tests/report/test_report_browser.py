"""The report in a real browser: nothing overlaps, nothing is cut off, nothing is fetched, everything has its words."""

from __future__ import annotations

import re
import shutil

import pytest
from playwright.sync_api import sync_playwright

from tests.reports import MAKERS, SITUATIONS, report_of
from tightrope.report.line import marks_of

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = (400, 1000, 1600)
TALLEST = {400: 4000, 1000: 2500}  # pixels of a page as it comes, by its width
PAPER = {"width": 733, "height": 1062}  # A4 without its margins, in pixels
FIGURES = {"line", "forest", "effective", "share", "tail", "bootstrap"}
NO_FIGURES = {
    **{name: {"effective", "share"} for name in ("every method", "one step", "no propensities")},  # there is one step
    "broken overlap": {"tail", "bootstrap"},  # all ratios and all replicates are alike
    "no common support": {"effective", "share", "tail"},  # there are no ratios
}

# Letters of an svg that touch others or leave their svg. Inner svgs stretch; the outermost is the picture.
MISPLACED = """() => {
  const wrong = [];
  for (const picture of document.querySelectorAll('svg[role=img]')) {
    const frame = picture.getBoundingClientRect();
    const texts = [...picture.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()])
      .filter(([, r]) => r.width > 0);
    texts.forEach(([words, r], i) => {
      if (r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 || r.bottom > frame.bottom + 1)
        wrong.push(`cut off: ${words}`);
      for (const [others, s] of texts.slice(i + 1))
        if (r.left < s.right - .5 && s.left < r.right - .5 && r.top < s.bottom - 1.5 && s.top < r.bottom - 1.5)
          wrong.push(`overlap: ${words} | ${others}`);
    });
  }
  return wrong;
}"""

# Words less than 4.5 times as bright or dark as their ground.
FAINT = """() => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = c => { const [r, g, b] = parse(c).map(v => { v /= 255; return v <= .03928 ? v / 12.92 :
    Math.pow((v + .055) / 1.055, 2.4); }); return .2126 * r + .7152 * g + .0722 * b; };
  const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    const p = parse(c); if (p.length === 3 || p[3] === 1) return c; } return 'rgb(255, 255, 255)'; };
  const wrong = [];
  for (const e of document.querySelectorAll('body *')) {
    const inside = e.closest('svg');
    if (inside ? e.tagName !== 'text' : ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
      continue;
    const style = getComputedStyle(e), a = light(inside ? style.fill : style.color), b = light(ground(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) wrong.push(`${ratio.toFixed(2)}: ${e.textContent.trim().slice(0, 40)}`);
  }
  return wrong;
}"""

STRUCTURE = """() => ({
  headings: [...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1])),
  landmarks: ['header', 'main', 'footer'].map(tag => document.querySelectorAll(tag).length),
  sections: [...document.querySelectorAll('section')].map(s =>
    (document.getElementById(s.getAttribute('aria-labelledby')) || {}).textContent || ''),
  tables: [...document.querySelectorAll('table')].map(t => t.caption ? t.caption.textContent : ''),
  heads: [...document.querySelectorAll('th')].map(h => h.getAttribute('scope')),
  language: document.documentElement.lang,
  ids: [...document.querySelectorAll('[id]')].map(e => e.id),
  scripts: document.scripts.length,
  figures: [...document.querySelectorAll('svg[role=img]')].map(f => ({
    id: f.getAttribute('aria-labelledby').split(' ')[0].split('-')[1],
    words: f.getAttribute('aria-labelledby').split(' ').map(i => document.getElementById(i).textContent),
    size: [f.getBoundingClientRect().width, f.getBoundingClientRect().height]})),
  unnamed: [...document.querySelectorAll('svg:not([role=img])')].filter(f => !f.parentElement.closest('svg')).length,
})"""


# Rows of tables that are wider than their place, which on paper is a column.
WIDE = """() => [...document.querySelectorAll('tr')].map(r => [r.textContent.trim().replace(/\\s+/g, ' '),
    r.getBoundingClientRect().width - r.closest('table').parentElement.clientWidth])
  .filter(([, over]) => over > 1).map(([words, over]) => `${over.toFixed(0)} too wide: ${words}`)"""

# The marks of the number line from left to right, and the frame that they must stay in.
LINE = """() => {
  const line = document.querySelector('svg.line'), box = e => e.getBoundingClientRect();
  const places = [...line.querySelectorAll('.tick, .dot, .tip')].map(e => (box(e).left + box(e).right) / 2);
  const texts = [...line.querySelectorAll('text')].map(e => e.textContent);
  return {places: places.sort((a, b) => a - b), texts, left: box(line).left, right: box(line).right};
}"""


def unfold(page, opened=True):
    page.evaluate("opened => document.querySelectorAll('details').forEach(d => { d.open = opened; })", opened)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert found, "these tests need a chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"), executable_path=found, headless=True, args=ARGUMENTS
        )
        yield context
        context.close()


@pytest.fixture(scope="module", params=list(MAKERS))
def opened(request, browser, tmp_path_factory):
    """A report's page, what it asked for and what it complained about."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    report_of(request.param).to_html(path)
    page, asked, complaints = browser.new_page(), [], []
    page.on("request", lambda one: asked.append(one.url))
    page.on("console", lambda one: complaints.append(one.text))
    page.on("pageerror", lambda one: complaints.append(str(one)))
    page.goto(path.as_uri())
    yield request.param, path, page, asked, complaints
    page.close()


@pytest.mark.parametrize("folded", [True, False], ids=["folded", "unfolded"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_overlaps_or_is_cut_off(opened, width, folded):
    _, _, page, _, _ = opened
    page.emulate_media(media="screen", color_scheme="light")
    page.set_viewport_size({"width": width, "height": 900})
    unfold(page, not folded)
    assert page.evaluate(MISPLACED) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    unfold(page, False)


@pytest.mark.parametrize("name", ["one step", "no propensities"])
def test_long_names_stay_on_a_phone(browser, name):
    long = {
        "title": "The ranking of spring " * 6,
        "metric": "clicks per visit of a returning guest " * 2,
        "unit": "clicks" * 9,
    }
    page = browser.new_page()
    page.set_viewport_size({"width": 400, "height": 900})
    page.set_content(report_of(name).to_html(**long))
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.evaluate("document.documentElement.scrollHeight") < TALLEST[400]
    assert page.evaluate(MISPLACED) == []
    page.close()


@pytest.mark.parametrize("width", TALLEST)
def test_a_folded_page_is_short(opened, width):
    _, _, page, _, _ = opened
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("[...document.querySelectorAll('details')].filter(d => d.open).length") == 0
    assert page.evaluate("document.documentElement.scrollHeight") < TALLEST[width]


def test_the_first_screen_holds_the_answer(opened):
    _, _, page, _, _ = opened
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1000, "height": 900})
    assert page.evaluate("document.querySelector('.verdict').getBoundingClientRect().bottom") < 900


def test_folds_open_and_close_by_keyboard(opened):
    _, _, page, _, _ = opened
    page.emulate_media(media="screen")
    unfold(page, False)
    names = page.evaluate("[...document.querySelectorAll('summary')].map(s => s.textContent)")
    page.evaluate("document.activeElement.blur()")
    for name in names:  # nothing else on a folded page takes the focus
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == name
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        for key, is_open in (("Enter", True), ("Space", False)):
            page.keyboard.press(key)
            assert page.evaluate("document.activeElement.parentElement.open") == is_open
            assert page.evaluate("document.activeElement.nextElementSibling.checkVisibility()") == is_open


@pytest.mark.parametrize("width", WIDTHS)
def test_the_number_line_has_its_marks(opened, width):
    name, _, page, _, _ = opened
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": width, "height": 900})
    line, marks = page.evaluate(LINE), sorted(marks_of(report_of(name)), key=lambda mark: mark.value)
    assert {mark.words for mark in marks} <= set(line["texts"])
    assert len(line["places"]) == len(marks)
    assert line["left"] < line["places"][0]
    assert line["places"][-1] < line["right"]
    near = [(mark.value, place) for mark, place in zip(marks, line["places"], strict=True) if mark.cls != "exact"]
    (low, first), (high, last) = near[0], near[-1]
    for value, place in near:  # every mark lies where its value says
        assert place == pytest.approx(first + (last - first) * (value - low) / (high - low or 1.0), abs=1.0)


def test_the_check_sees_overlap_and_cuts(browser):
    page = browser.new_page()
    page.set_content(
        "<svg role=img width=100 height=40><text x=0 y=20>one</text><text x=5 y=20>two</text>"
        "<text x=90 y=35>long words</text></svg>"
    )
    assert page.evaluate(MISPLACED) == ["overlap: one | two", "cut off: long words"]
    page.set_content("<p style='color:#888;background:#fff'>faint</p>")
    assert page.evaluate(FAINT) == ["3.54: faint"]
    page.close()


def test_nothing_is_fetched_and_nothing_complains(opened):
    _, path, _, asked, complaints = opened
    assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]
    assert complaints == []
    assert path.stat().st_size < 100_000


def test_every_figure_is_there_with_its_words(opened):
    name, _, page, _, _ = opened
    unfold(page)
    told = page.evaluate(STRUCTURE)
    unfold(page, False)
    assert {figure["id"] for figure in told["figures"]} == FIGURES - NO_FIGURES.get(name, set())
    for figure in told["figures"]:
        assert all(len(words) > 10 for words in figure["words"])
        assert min(figure["size"]) > 80
    assert told["unnamed"] == 0


def test_a_screen_reader_finds_its_way(opened):
    _, _, page, _, _ = opened
    told = page.evaluate(STRUCTURE)
    assert told["headings"][0] == 1
    assert told["headings"].count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in zip(told["headings"], told["headings"][1:], strict=False))
    assert told["landmarks"] == [1, 1, 1]
    assert all(told["sections"])
    assert all(told["tables"])
    assert set(told["heads"]) <= {"row", "col"}
    assert told["language"] == "en"
    assert len(set(told["ids"])) == len(told["ids"])
    assert told["scripts"] == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(opened, scheme):
    _, _, page, _, _ = opened
    page.emulate_media(media="screen", color_scheme=scheme)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    assert page.evaluate(FAINT) == []


def test_it_prints(opened):
    _, _, page, _, _ = opened
    page.set_viewport_size(PAPER)
    page.emulate_media(media="print", color_scheme="dark")  # paper is white whatever the screen is
    assert page.evaluate(MISPLACED) == []
    assert page.evaluate(FAINT) == []
    assert page.evaluate(WIDE) == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER["width"]


def test_what_is_folded_is_printed_on_two_pages(opened):
    name, _, page, _, _ = opened
    unfold(page, False)
    page.emulate_media(media="print")
    page.set_viewport_size(PAPER)
    shown = page.evaluate("[...document.querySelectorAll('details > :not(summary)')].map(e => e.checkVisibility())")
    assert len(shown) >= 8
    assert all(shown)
    paper = page.pdf(format="A4", prefer_css_page_size=True, print_background=True)
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) <= (2 if name in SITUATIONS else 4)
