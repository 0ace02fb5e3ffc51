"""The command line as ``python -m tightrope``."""

from tightrope.cli import app

app(prog_name="tightrope")
