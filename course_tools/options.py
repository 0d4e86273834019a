"""Options and arguments with their help, and errors in words, for commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer


def option(default: Any, words: str, *names: str, **more: Any) -> Any:
    """An option and its help, under other names than its own if some are given."""
    return typer.Option(default, *names, help=words or None, **more)


def argument(default: Any, words: str) -> Any:
    """An argument and its help; ``...`` if nothing stands in its place."""
    return typer.Argument(default, help=words)


@contextmanager
def in_words(*errors: type[Exception], code: int = 2) -> Iterator[None]:
    """End a command with what an error says, where its text tells what to do."""
    try:
        yield
    except errors as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=code) from error
