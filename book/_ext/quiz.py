"""The `{quiz}` directive: one question, its choices, and an explanation for every
choice.

The HTML is a plain form: a fieldset with its legend, radio buttons or check boxes, a
button, and a status region that screen readers announce. `_static/quiz.js` adds the
behaviour; without JavaScript the answers stay in a `<details>`. It loads nothing and
stores nothing. No published extension offers this: those for Sphinx load scripts from
other hosts or have no explanation for a wrong choice.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from docutils import nodes
from quiz_data import Question, QuizError, letter, lint_book, parse_question
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
FEWEST_QUESTIONS_IN_A_CHAPTER = 4


class quiz(nodes.Element):
    """The whole question; `name` groups its inputs, `multiple` chooses between radio
    buttons and check boxes."""


class quiz_legend(nodes.Element):
    """The first paragraph of the question."""


class quiz_detail(nodes.General, nodes.Element):
    """What follows that paragraph, such as code or a displayed formula."""


class quiz_choice(nodes.Element):
    """One input and its label; `correct` says whether it is a key."""


class quiz_answers(nodes.Element):
    """The explanations, in the order of the choices."""


class quiz_explanation(nodes.Element):
    """Why one choice is right or wrong."""


class Quiz(SphinxDirective):
    """Read one question from the directive's body and lay it out."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        try:
            question = parse_question("\n".join(self.content))
        except QuizError as error:
            raise self.error(f"quiz: {error}") from error
        asked = questions_of(self.env)[self.env.docname]
        asked.append(question)
        return [self._lay_out(question, number=len(asked))]

    def _lay_out(self, question: Question, number: int) -> quiz:
        first, *rest = self._parse(question.text)
        element = quiz(name=f"quiz-{number}", multiple=question.multiple)
        element += quiz_legend("", *self._inline(first), number=number)
        if rest:
            element += quiz_detail("", *rest)
        answers = quiz_answers()
        for position, choice in enumerate(question.choices):
            paragraph, *surplus = self._parse(choice.text)
            if surplus:
                raise self.error(
                    f"quiz: choice {letter(position)} must be a single paragraph"
                )
            element += quiz_choice(
                "", *self._inline(paragraph), position=position, correct=choice.correct
            )
            answers += quiz_explanation(
                "",
                *self._parse(choice.explanation),
                position=position,
                correct=choice.correct,
            )
        element += answers
        self.set_source_info(element)
        return element

    def _parse(self, text: str) -> list[nodes.Node]:
        return self.parse_text_to_nodes(text)

    def _inline(self, paragraph: nodes.Node) -> list[nodes.Node]:
        if not isinstance(paragraph, nodes.paragraph):
            raise self.error(
                "quiz: a question and each of its choices begin with a paragraph of"
                " text"
            )
        return paragraph.children


def questions_of(env: BuildEnvironment) -> defaultdict[str, list[Question]]:
    """Return the questions read so far, by page."""
    if not hasattr(env, "quiz_questions"):
        env.quiz_questions = defaultdict(list)
    return env.quiz_questions


def forget_page(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Drop a page's questions before it is read again."""
    questions_of(env).pop(docname, None)


def merge_pages(
    app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment
) -> None:
    """Take over the questions that a parallel reader found."""
    for docname in docnames:
        if docname in questions_of(other):
            questions_of(env)[docname] = questions_of(other)[docname]


def lint(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn, and so fail the build, if keys can be guessed or a chapter with quizzes has
    too few."""
    pages = questions_of(env)
    for docname, questions in pages.items():
        if 0 < len(questions) < FEWEST_QUESTIONS_IN_A_CHAPTER:
            LOGGER.warning(
                f"{len(questions)} quiz questions; a chapter has at least"
                f" {FEWEST_QUESTIONS_IN_A_CHAPTER}",
                location=docname,
                type="quiz",
            )
    for fault in lint_book(
        [question for docname in sorted(pages) for question in pages[docname]]
    ):
        LOGGER.warning(f"quizzes: {fault}", type="quiz")


def visit_quiz(self: HTML5Translator, node: quiz) -> None:
    self.body.append(f'<form class="quiz" id="{node["name"]}" novalidate><fieldset>')


def depart_quiz(self: HTML5Translator, node: quiz) -> None:
    self.body.append("</form>")


def visit_legend(self: HTML5Translator, node: quiz_legend) -> None:
    self.body.append(
        f'<legend><span class="quiz-number">Question {node["number"]}.</span> '
    )


def depart_legend(self: HTML5Translator, node: quiz_legend) -> None:
    self.body.append("</legend>")
    if node.parent["multiple"]:
        self.body.append('<p class="quiz-hint">Tick every choice that is right.</p>')


def visit_detail(self: HTML5Translator, node: quiz_detail) -> None:
    self.body.append('<div class="quiz-detail">')


def depart_detail(self: HTML5Translator, node: quiz_detail) -> None:
    self.body.append("</div>")


def visit_choice(self: HTML5Translator, node: quiz_choice) -> None:
    name, kind = node.parent["name"], "checkbox" if node.parent["multiple"] else "radio"
    identifier = f"{name}-{letter(node['position'])}"
    correct = str(node["correct"]).lower()
    self.body.append(
        f'<div class="quiz-choice"><input type="{kind}" name="{name}" id="{identifier}"'
        f' data-correct="{correct}"><label for="{identifier}"><span'
        f' class="quiz-letter">{letter(node["position"])}.</span> '
    )


def depart_choice(self: HTML5Translator, node: quiz_choice) -> None:
    self.body.append("</label></div>")


def visit_answers(self: HTML5Translator, node: quiz_answers) -> None:
    self.body.append(
        '</fieldset><button type="submit" class="quiz-check" hidden>Check</button><div'
        ' class="quiz-feedback" role="status"></div><details'
        ' class="quiz-answers"><summary>Answers, with an explanation for each'
        " choice</summary><ul>"
    )


def depart_answers(self: HTML5Translator, node: quiz_answers) -> None:
    self.body.append("</ul></details>")


def visit_explanation(self: HTML5Translator, node: quiz_explanation) -> None:
    correct = node["correct"]
    self.body.append(
        f'<li class="quiz-explanation" data-correct="{str(correct).lower()}"><p'
        f' class="quiz-verdict">{letter(node["position"])} is'
        f" {'right' if correct else 'wrong'}.</p>"
    )


def depart_explanation(self: HTML5Translator, node: quiz_explanation) -> None:
    self.body.append("</li>")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_node(quiz, html=(visit_quiz, depart_quiz))
    app.add_node(quiz_legend, html=(visit_legend, depart_legend))
    app.add_node(quiz_detail, html=(visit_detail, depart_detail))
    app.add_node(quiz_choice, html=(visit_choice, depart_choice))
    app.add_node(quiz_answers, html=(visit_answers, depart_answers))
    app.add_node(quiz_explanation, html=(visit_explanation, depart_explanation))
    app.add_directive("quiz", Quiz)
    app.connect("env-purge-doc", forget_page)
    app.connect("env-merge-info", merge_pages)
    app.connect("env-updated", lint)
    return {
        "version": "1",
        "env_version": 1,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
