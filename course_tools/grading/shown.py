"""Strangers' words, made fit for a terminal, a log or a page.

File names, a platform's names and a notebook's own text are a stranger's words. They
pass through :func:`shown` before anybody sees them, and through nothing else.
"""


def shown(text: object, most: int = 500) -> str:
    r"""Write a stranger's words on one line of bounded length."""
    whole = str(text)
    line = "".join(
        letter if letter.isprintable() else ascii(letter)[1:-1]
        for letter in whole[: most + 1]
    )
    return line if len(line) <= most else line[: most - 3] + "..."
