"""What the documentation shows is what happens: examples, warnings, public names."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
from pathlib import Path

import pytest

import tightrope
import tightrope.behaviors
import tightrope.bounds
import tightrope.domains
import tightrope.estimators
import tightrope.models
from tightrope.base.warnings import CODES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


refresh = load(DOCS / "refresh.py")


@pytest.mark.parametrize("page", refresh.PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_examples_print_what_the_page_says(page):
    shown, now = page.read_text(encoding="utf-8"), refresh.refreshed(page)
    assert now.splitlines() == shown.splitlines(), f"the page is out of date: python docs/refresh.py {page.stem}"


def test_an_output_that_is_no_longer_true_is_found(tmp_path):
    page = tmp_path / "page.md"
    text = "```python\nx = 2\nprint(x)\n```\n\n```text\n{}```\n\n```python\nprint(x + 1)\n```\n```text\n{}```\n"
    page.write_text(text.format("3\n", ""))
    assert refresh.refreshed(page) == text.format("2\n", "3\n")


def test_a_command_is_run_and_its_output_written_below_it(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ tightrope --version\nold\n```\n")
    assert refresh.refreshed(page) == f"```console\n$ tightrope --version\ntightrope {tightrope.__version__}\n```\n"


def test_other_programs_are_not_run(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ rm -rf x\n```\n")
    with pytest.raises(ValueError, match="only tightrope"):
        refresh.refreshed(page)


def test_an_example_that_fails_names_its_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\nx = 1\nx.none\n```\n")
    with pytest.raises(AttributeError) as caught:
        refresh.refreshed(page)
    assert caught.traceback[-1].lineno + 1 == 5


def test_every_warning_is_explained():
    page = refresh.METHODS.read_text(encoding="utf-8")
    assert refresh.with_warnings(page) == page, "the table of warnings is out of date: python docs/refresh.py methods"
    shown = re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)
    assert shown == list(CODES)


def test_a_table_of_warnings_that_is_no_longer_true_is_found():
    page = "# Title\n\n| code | | means |\n|---|---|\n| `old` | | |\n\nText.\n"
    fresh = refresh.with_warnings(page)
    assert "`old`" not in fresh
    assert "| `skew` | against bootstraps |" in fresh
    assert fresh.startswith("# Title\n\n| code |")
    assert fresh.endswith("|\n\nText.\n")


@pytest.mark.parametrize(
    ("module", "pages"),
    [
        (tightrope, ("api", "policies")),
        (tightrope.estimators, ("estimators",)),
        (tightrope.bounds, ("bounds",)),
        (tightrope.models, ("models",)),
        (tightrope.domains, ("domains",)),
        (tightrope.behaviors, ("policies",)),
        (tightrope.adapters, ("policies",)),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_public_names_are_in_the_reference(module, pages):
    text = "".join((DOCS / "reference" / f"{page}.md").read_text() for page in pages)
    shown = set(re.findall(r"\.\. auto\w+:: tightrope[\w.]*\.(\w+)$", text, re.MULTILINE))
    documented = {name for name in module.__all__ if isinstance(getattr(module, name), type) or name.islower()}
    small_print = {"Anchor", "Evaluated", "has_tabular", "is_discrete", "is_model_based", "Method"}
    assert documented - small_print <= shown


def test_pages_link_to_files_that_exist():
    """Also on a code host, where no build rewrites them."""
    broken = []
    for page in [*DOCS.rglob("*.md"), ROOT / "README.md"]:
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert broken == []


def test_everything_in_the_reference_exists():
    missing = []
    for page in (DOCS / "reference").glob("*.md"):
        for name in re.findall(r"\.\. auto\w+:: (tightrope[\w.]*)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            try:
                pkgutil.resolve_name(name)
            except (ImportError, AttributeError):
                missing.append(f"{page.name}: {name}")
    assert missing == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/design.md", "docs/errata.md"])
def test_files_and_folders_that_a_page_names_exist(page):
    """With a slash from the root or from the package (`bounds/base.py`); a bare name (`lock.py`) in any room."""
    text = (ROOT / page).read_text(encoding="utf-8")
    names = re.findall(r"`((?:[\w.-]+/)+|(?:[\w.-]+/)*[\w-]+\.(?:py|md|svg|toml))`", text)
    package = ROOT / "src" / "tightrope"
    known = {path.name for path in [*ROOT.iterdir(), *package.rglob("*")]}
    gone = [name for name in names if not ((ROOT / name).exists() or (package / name).exists() or name in known)]
    assert gone == []
