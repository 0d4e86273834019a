"""Options and arguments with their help, and errors in words, for commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer


def option(words: str, *names: str, default: Any = None, **more: Any) -> Any:
    """An option and its help, under other names than its own if some are given."""
    return typer.Option(default, *names, help=words or None, **more)


def flag(words: str, *names: str, **more: Any) -> Any:
    """An option that is off unless it is given."""
    return option(words, *names, default=False, **more)


def argument(words: str, default: Any = ...) -> Any:
    """An argument and its help; there must be one if nothing stands in its place."""
    return typer.Argument(default, help=words)


@contextmanager
def in_words(*errors: type[Exception], code: int = 2) -> Iterator[None]:
    """End a command with what an error says, where its text tells what to do."""
    try:
        yield
    except errors as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=code) from error
