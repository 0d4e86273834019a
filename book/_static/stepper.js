// A stepped figure: the steps that course_lib/figures/stepper.py writes one below the other become one that buttons and arrow
// keys go through. Without this script all steps stand on the page. Nothing is stored and nothing is sent.
"use strict";

(() => {
  function makeButton(caption, pressed) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = caption;
    button.addEventListener("click", pressed);
    return button;
  }

  function prepareStepper(root) {
    const steps = [...root.querySelectorAll(".stepper-step")];
    let shown = 0;

    const status = document.createElement("p");
    status.className = "stepper-status";
    status.setAttribute("role", "status");
    const back = makeButton("Back", () => show(shown - 1));
    const next = makeButton("Next", () => show(shown + 1));

    function show(number) {
      shown = Math.min(Math.max(number, 0), steps.length - 1);
      steps.forEach((step, place) => { step.hidden = place !== shown; });
      // Not disabled: a disabled button would lose the focus of the reader who just pressed it.
      back.setAttribute("aria-disabled", String(shown === 0));
      next.setAttribute("aria-disabled", String(shown === steps.length - 1));
      status.textContent = `Step ${shown + 1} of ${steps.length}: ${steps[shown].dataset.title}`;
    }

    const controls = document.createElement("div");
    controls.className = "stepper-controls";
    controls.setAttribute("role", "group");
    controls.setAttribute("aria-label", "Steps");
    controls.append(back, next, status);
    controls.addEventListener("keydown", (event) => {
      const places = { ArrowLeft: shown - 1, ArrowRight: shown + 1, Home: 0, End: steps.length - 1 };
      if (!(event.key in places) || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation(); // the theme turns pages on these keys
      show(places[event.key]);
    });
    root.querySelector(".stepper-steps").before(controls);
    root.classList.add("stepper-live"); // the status says the title of the step, which then need not stand below
    show(0);
  }

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".stepper").forEach(prepareStepper));
})();
