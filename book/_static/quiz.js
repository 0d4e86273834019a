// Behaviour of the {quiz} directive: check the chosen answers and show their explanations.
// A wrong answer shows what was chosen and why it is wrong; a right one shows the explanation of every choice.
// Nothing is stored and nothing is sent.
"use strict";

function prepareQuiz(form) {
  const inputs = [...form.querySelectorAll("input")];
  const explanations = [...form.querySelectorAll(".quiz-explanation")];
  const feedback = form.querySelector(".quiz-feedback");
  const answers = form.querySelector(".quiz-answers");

  const verdict = document.createElement("p");
  verdict.className = "quiz-result";
  const list = answers.querySelector("ul");
  explanations.forEach((explanation) => { explanation.hidden = true; });
  feedback.append(verdict, list);
  answers.remove();
  form.querySelector(".quiz-check").hidden = false;

  function clear() {
    verdict.textContent = "";
    form.removeAttribute("data-result");
    explanations.forEach((explanation) => { explanation.hidden = true; });
  }

  function check(event) {
    event.preventDefault();
    clear();
    if (!inputs.some((input) => input.checked)) {
      verdict.textContent = "Choose an answer first.";
      return;
    }
    const right = inputs.every((input) => input.checked === (input.dataset.correct === "true"));
    const falseTick = inputs.some((input) => input.checked && input.dataset.correct === "false");
    form.dataset.result = right ? "right" : "wrong";
    verdict.textContent = right ? "Right." : falseTick ? "Not right. Try again." : "Right so far, but there is more to tick.";
    explanations.forEach((explanation, position) => { explanation.hidden = !(right || inputs[position].checked); });
  }

  form.addEventListener("change", clear);
  form.addEventListener("submit", check);
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("form.quiz").forEach(prepareQuiz));
