"""Parse, call, print."""

import typer

app = typer.Typer()
