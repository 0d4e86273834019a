"""The sheet that a student gets, one A4 page, and its key."""

import ast
import math
import re
from html import escape

from course_tools.grading.viva.changes import definition
from course_tools.grading.viva.questions import Asked, Question

#: Lines of the page in the sizes below, and letters of code on a line.
LINES, LETTERS = 78, 98
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy"
content="default-src 'none'; style-src 'unsafe-inline'">
<style>@page {{ size: A4; margin: 11mm 13mm }} body {{ font: 8.5pt/1.35 sans-serif;
margin: 0 auto; max-width: 184mm; color: #000; background: #fff }}
section {{ break-after: page }} section:last-child {{ break-after: auto }}
h1 {{ font-size: 11pt; margin: 0 0 1mm }} p {{ margin: 1.5mm 0 .5mm }}
pre, code {{ font: 7.8pt/1.35 monospace; white-space: pre-wrap;
overflow-wrap: anywhere }}
pre {{ margin: 2.5mm 0 1mm; border-left: .6mm solid #888; padding-left: 2mm }}
ol {{ margin: 0; padding-left: 7mm; list-style: lower-alpha }}
hr {{ border: 0; height: 5.5mm; margin: 0; border-bottom: .2mm solid #888 }}
</style></head><body>{sections}</body></html>
"""
HEAD = (
    "A question may change one line of your own code, and nothing else. Write down the"
    " answer and, in a few words, why. Results are rounded to four decimal places. "
)


def page(title: str, sections: list[str]) -> str:
    """Write sheets, or keys, as a page that can be printed."""
    return PAGE.format(title=escape(title), sections="\n".join(sections))


def code(text: str) -> str:
    """A piece of code within a sentence."""
    return f"<code>{escape(text.strip())}</code>"


def gives(text: str) -> str:
    """What a call does, in words."""
    error = text.removeprefix("raises ")
    return f"raises {code(error)}" if error != text else f"gives {code(text)}"


def becomes(line: int, new: str) -> str:
    """Say what is changed."""
    new = re.sub(r"\s+#[^'\"]*$", "", new).strip()
    return f"Line {line} " + (
        f"becomes {code(new)}" if new != "pass" else "is left out"
    )


def listing(asked: Asked) -> list[str]:
    """The numbered lines of a function, without docstrings, comments and blanks."""
    body = definition(asked.source, asked.name)
    hidden: set[int] = set()
    for node in ast.walk(body):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            hidden |= {*range(node.lineno, (node.end_lineno or 0) + 1)}
    lines = [*enumerate(asked.source.split("\n"), start=1)]
    return [
        f"{number:3}  {line}"
        for number, line in lines[body.lineno - 1 : body.end_lineno]
        if number not in hidden and line.strip() and line.strip()[0] != "#"
    ]


def ask(one: Question) -> tuple[str, list[str]]:
    """The words of a question, and what there is to choose from."""
    calls, change = [*map(code, one.calls)], becomes(one.line, one.new)
    told = [f"{a} {gives(b)}" for a, b in zip(calls, one.before, strict=True)]
    if one.kind == "line":
        return f"Which of these calls makes line {one.line} run?", calls
    if one.kind == "which":
        words = "One of these calls then gives something else. Which one, and what does"
        return f"{change}. {words} it give?", told
    words = f"{told[0]}. {change}. What does the call give then?"
    return words, [*map(code, one.options)]


def answer(one: Question) -> str:
    """The answer, and where what it is not comes from."""
    words = f"{code(one.name)}, line {one.line}: <b>{'abcd'[one.answer]}</b>"
    words += f", {gives(one.value)}" * bool(one.value)
    for place, change in enumerate(one.others):
        if place != one.answer:
            words += f"<br>{'abcd'[place]}: {becomes(*change)}"
    return words


def sections(
    title: str, questions: list[Question], asked: dict[str, Asked], words: str
) -> tuple[str, str, bool]:
    """The sheet, its key, and whether the sheet stands on one page. What helps calls is
    explained where one is helped."""
    called = " ".join(call for one in questions for call in one.calls)
    helpers = re.findall(r"(\w+)\(", words)
    words *= any(f"{name}(" in called for name in helpers)
    sheet, key = [f"<p>{HEAD}{escape(words)}</p>"], ""
    for name in dict.fromkeys(one.name for one in questions):
        sheet += ["<pre>", *map(escape, listing(asked[name])), "</pre>"]
        for one in (one for one in questions if one.name == name):
            number, (text, options) = key.count("<p>") + 1, ask(one)
            sheet += [f"<p><b>{number}.</b> {text}</p>", "<ol>"]
            sheet += [*(f"<li>{option}</li>" for option in options), "</ol><hr>"]
            key += f"<p><b>{number}.</b> {answer(one)}</p>"
    plain = [re.sub(r"<[^>]*>", "", part) for part in sheet]
    used = 5 + 2.5 * len(questions) + 1.5 * sheet.count("<pre>")
    used += sum(math.ceil(len(part) / LETTERS) for part in plain)
    head, text = f"<section><h1>{escape(title)}", "\n".join(sheet)
    text = text.replace("<pre>\n", "<pre>").replace("\n</pre>", "</pre>")
    key = f"{head}: key</h1>{key}</section>"
    return f"{head}</h1>{text}</section>", key, used <= LINES
