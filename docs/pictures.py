"""Make every picture of the documentation, or those that are named.

- pictures that are drawn: ``house``, ``hero``, ``tree``, ``trust``, ``tether``,
  ``rehearsal``, ``tails``, ``improve`` and ``field-map``, each by a script of its own;
- figures that the examples of a page save: the name of the page, such as ``health``;
- photographs of the report (``report``), of a notebook's output (``notebook``) and of
  the pages of decisions (``compare``, ``plan``), in Chromium.

``python docs/pictures.py`` takes a minute. The same sources give the same bytes.
"""

from __future__ import annotations

import io
import re
import runpy
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl

DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures"
DRAWN = {
    "house": "house.py",
    "hero": "hero.py",
    "tree": "tree.py",
    "trust": "trust.py",
    "tether": "tether_picture.py",
    "rehearsal": "rehearsal_picture.py",
    "tails": "tails_picture.py",
    "improve": "improve_picture.py",
    "field-map": "field_map_picture.py",
}
WIDE, SCALE, COLORS, FRAME = 860, 1.5, 200, "#cdd2d9"
NOTEBOOK = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; padding: 18px 24px; background: #fff;
       font: 14px system-ui, "DejaVu Sans", sans-serif; }}
pre {{ background: #f5f5f5; border: 1px solid #e0e0e0; padding: 10px 12px; margin: 0;
      font: 13px "DejaVu Sans Mono", monospace; line-height: 1.45; }}
.cell {{ display: grid; grid-template-columns: 52px 1fr; gap: 10px 6px; }}
.n {{ color: #307fc1; font: 13px "DejaVu Sans Mono", monospace; padding-top: 11px; }}
</style><div class="cell"><div class="n">[1]:</div><pre>{code}</pre>
<div class="n">[1]:</div><div>{output}</div></div>"""


def refresh() -> dict[str, Any]:
    """What runs the examples of a page."""
    return runpy.run_path(str(DOCS / "refresh.py"))


def figures(page: Path) -> None:
    """Run a page's examples, and keep the figures that they save."""
    mpl.rcParams["svg.hashsalt"] = "tightrope"
    mpl.rcParams["svg.fonttype"] = "none"
    mpl.rcParams["figure.constrained_layout.w_pad"] = 0.12  # inches, as h_pad
    mpl.rcParams["figure.constrained_layout.h_pad"] = 0.12
    with tempfile.TemporaryDirectory() as folder:
        refresh()["refreshed"](page, keep=Path(folder))
        for file in sorted(Path(folder).glob("*.svg")):
            text = file.read_text(encoding="utf-8")
            text = re.sub(r" <metadata>.*?</metadata>\n", "", text, flags=re.DOTALL)
            text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
            (PICTURES / file.name).write_text(text, encoding="utf-8")


def report() -> None:
    """The first screen of the report that the README's example writes."""
    with tempfile.TemporaryDirectory() as folder:
        refresh()["refreshed"](DOCS.parent / "README.md", keep=Path(folder))
        html = (Path(folder) / "report.html").read_text(encoding="utf-8")
        photograph(html, "report", 640)


def notebook() -> None:
    """The first cell of the page on notebooks, and what it shows."""
    page = DOCS / "tutorials" / "notebooks.md"
    code = refresh()["EXAMPLE"].search(page.read_text(encoding="utf-8"))["code"]
    names: dict[str, Any] = {}
    exec(code, names)
    output = names["result"]._repr_html_()
    photograph(NOTEBOOK.format(code=code.strip(), output=output), "notebook", 820)


def decision(name: str) -> None:
    """The page that the example of a tutorial writes."""
    with tempfile.TemporaryDirectory() as folder:
        refresh()["refreshed"](DOCS / "tutorials" / f"{name}.md", keep=Path(folder))
        html = (Path(folder) / f"{name}.html").read_text(encoding="utf-8")
        photograph(html, name, 760)


def photograph(html: str, name: str, high: int) -> None:
    """A small PNG of the top of a page."""
    from PIL import Image, ImageOps
    from playwright.sync_api import sync_playwright

    browsers = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, browsers)), None)
    if found is None:
        raise SystemExit("photographs need chromium (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox"]
        )
        page = browser.new_page(
            viewport={"width": WIDE, "height": high}, device_scale_factor=SCALE
        )
        page.set_content(html)
        height = min(high, page.evaluate("document.documentElement.scrollHeight"))
        picture = page.screenshot(
            clip={"x": 0, "y": 0, "width": WIDE, "height": height}
        )
        browser.close()
    image = ImageOps.expand(Image.open(io.BytesIO(picture)).convert("RGB"), 2, FRAME)
    image.quantize(COLORS).save(PICTURES / f"{name}.png", optimize=True)


def works() -> dict[str, Callable[[], object]]:
    """What can be made, by name."""
    made: dict[str, Callable[[], object]] = {
        name: lambda file=file: runpy.run_path(str(DOCS / file), run_name="__main__")
        for name, file in DRAWN.items()
    }
    for page in sorted((DOCS / "tutorials").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if ".savefig(" in text or "--plot " in text:
            made[page.stem] = lambda page=page: figures(page)
    decisions = {name: partial(decision, name) for name in ("compare", "plan")}
    return made | {"report": report, "notebook": notebook} | decisions


def main(chosen: list[str]) -> None:
    """Make the pictures named, or all."""
    PICTURES.mkdir(exist_ok=True)
    known = works()
    for name in chosen or known:
        if name not in known:
            raise SystemExit(f"no picture is called {name}: {', '.join(known)}")
        known[name]()
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
