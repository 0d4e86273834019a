"""Words of a student's, made fit for a terminal, a log or a page: nothing in them plays
tricks, and they have an end.

File names, a platform's names and a notebook's own text are a stranger's words. They
pass through :func:`shown` before anybody sees them, and through nothing else.
"""


def shown(text: object, most: int = 500) -> str:
    r"""Write a stranger's words on one line of bounded length.

    Letters of every script stay as they are. What cannot be printed is written out, as
    Python writes it: control characters and so the escape codes of terminals, ends of
    lines, marks that turn the direction of the text around.

    Args:
        text: what a student wrote, or named.
        most: the number of characters that it may have; more are cut off, and three
        dots say so.

    >>> shown("Zoë/\x1b[2J.ipynb")
    'Zoë/\\x1b[2J.ipynb'
    >>> shown("a name that goes on and on", most=12)
    'a name th...'
    """
    whole = str(text)
    line = "".join(
        letter if letter.isprintable() else ascii(letter)[1:-1]
        for letter in whole[: most + 1]
    )
    return line if len(line) <= most else line[: most - 3] + "..."
