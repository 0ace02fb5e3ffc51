"""Run the examples in the documentation, page by page, and write down what they print.

A fence of python is run, in one namespace a page; the fence of text right after it
holds what it printed. A fence of console holds commands after a dollar sign, each
followed by its output. ``python docs/refresh.py`` rewrites the outputs (of the pages
or folders named, or of all), and ``tests/docs/test_documentation.py`` fails where a
page is not true. The table of warnings in the guide is written from the registry of
their codes. Pictures that examples save are kept by ``docs/pictures.py``.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
WIDTH = "88"
PYTHON = r"^```python\n(?P<code>.*?)^```\n(?:(?P<opening>\n*```text\n).*?^```\n)?"
CONSOLE = r"^```console\n(?P<commands>.*?)^```\n"
METHODS = DOCS / "guide" / "methods.md"  # has the table of warnings
TABLE = re.compile(r"^\| code \|.*\n(?:\|.*\n)*", re.MULTILINE)
EXAMPLE = re.compile(f"{PYTHON}|{CONSOLE}", re.DOTALL | re.MULTILINE)
FOLDERS = (DOCS / "guide", DOCS / "tutorials", DOCS / "reference")
PAGES = tuple(
    page
    for page in (
        README,
        DOCS / "comparison.md",
        *(one for each in FOLDERS for one in sorted(each.glob("*.md"))),
    )
    if EXAMPLE.search(page.read_text(encoding="utf-8"))
)


def refreshed(page: Path, keep: Path | None = None) -> str:
    """The page with every output as it is now; the examples run in an empty folder.

    What they wrote is copied to ``keep``.
    """
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}

    def run(found: re.Match[str]) -> str:
        code, opening, commands = found["code"], found["opening"], found["commands"]
        if commands is not None:
            return f"```console\n{_commands(commands)}```\n"
        above = text.count("\n", 0, found.start("code"))  # for the lines of a traceback
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile("\n" * above + code, str(page), "exec"), names)
        shown = f"{opening}{_tidy(out.getvalue())}```\n" if opening else ""
        return f"```python\n{code}```\n{shown}"

    with _workshop(page):
        text = EXAMPLE.sub(run, text)
        if keep is not None:
            shutil.copytree(".", keep, dirs_exist_ok=True)
        return text


def with_warnings(text: str) -> str:
    """The page of methods with every code of a warning as it is now."""
    from tightrope.base.warnings import table

    rows = "".join(f"{line}\n" for line in table())
    return TABLE.sub(lambda _: rows, text)


def _commands(block: str) -> str:
    """The commands of a block, each with what it prints now."""
    from typer.testing import CliRunner

    from tightrope.cli import app

    shown = []
    for line in block.splitlines():
        if line.startswith("$ tightrope "):
            result = CliRunner().invoke(app, shlex.split(line, comments=True)[2:])
            if result.exception and not isinstance(result.exception, SystemExit):
                raise result.exception
            shown.append(f"{line}\n{_tidy(result.output)}")
        elif line.startswith("$"):
            raise ValueError(f"only tightrope itself can be run here, not {line!r}")
    return "".join(shown)


def _tidy(output: str) -> str:
    """Without the blanks that tables are filled up with."""
    return "".join(f"{line.rstrip()}\n" for line in output.strip("\n").splitlines())


@contextlib.contextmanager
def _workshop(page: Path) -> Iterator[None]:
    """An empty folder to work in, and a terminal of known width."""
    width, plain = os.environ.get("COLUMNS"), os.environ.get("NO_COLOR")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ |= {"COLUMNS": WIDTH, "NO_COLOR": "1"}
        try:
            if page == README:
                _cart_pole()
            yield
        finally:
            for name, value in (("COLUMNS", width), ("NO_COLOR", plain)):
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _cart_pole() -> None:
    """What the README takes for given: a policy, and the logs of a worse one.

    Both steer by hand-made weights, so that nothing has to be trained.
    """
    import torch
    from stable_baselines3 import PPO

    import tightrope

    for name, firmness in (("old", 0.7), ("new", 1.0)):
        model = PPO(
            "MlpPolicy", "CartPole-v1", policy_kwargs={"net_arch": []}, n_steps=8,
            batch_size=8, seed=0, device="cpu",
        )  # fmt: skip
        with torch.no_grad():
            last = model.policy.action_net
            last.bias.zero_()
            last.weight.zero_()
            last.weight[1] = firmness * torch.tensor([0.0, 0.2, 3.0, 1.0])
        model.save(f"{name}.zip")
        if name == "old":
            logs = tightrope.log_episodes(
                "CartPole-v1", model, episodes=300, horizon=50, seed=0
            )
            tightrope.write(logs, "logs.parquet")


def main(chosen: list[str]) -> None:
    """Rewrite the outputs of the pages named, or of all."""
    for page in (*PAGES, METHODS):
        if chosen and not {page.stem, page.parent.name} & set(chosen):
            continue
        before = page.read_text(encoding="utf-8")
        after = with_warnings(before) if page == METHODS else refreshed(page)
        page.write_text(after, encoding="utf-8")
        print(page.name, "as it was" if after == before else "changed")


if __name__ == "__main__":
    main(sys.argv[1:])
