// Slides of a chapter: one at a time, as large as the window. Arrow keys, Space, Page Up and Page Down go through the steps of a
// stepped figure, then show the answer to a question, or what is shown later, then turn to the next slide. S opens the speaker's notes in a window of
// their own, which turns with this one; F fills the screen. The address with ?print-pdf has each step on a page, for printing.
// Nothing is stored and nothing is sent but between these two windows.
"use strict";

(() => {
  const asked = new URLSearchParams(location.search);
  const isSpeaker = asked.has("notes"), isPrint = asked.has("print-pdf");
  const WIDTH = 1280, HEIGHT = 720, SMALLEST = 0.5, LARGEST = 2.4, LARGEST_TEXT = 1.8, READABLE = 1.2;
  const WAITS = ".question, .later"; // what the next key shows: the right choice, or what the class has thought about
  let slides = [], current = 0, partner = isSpeaker ? window.opener : null, panel = null;

  // As large as there is room for: `zoom` counts in the layout, so that long lines and tables wrap.
  function fit(slide) {
    const room = slide.querySelector(".shown"), part = slide.querySelector(".fit");
    if (!part) return;
    const fits = (zoom) => {
      part.style.zoom = zoom;
      const wide = [part, ...part.querySelectorAll("pre, table, svg, img, mjx-math")];
      const right = room.getBoundingClientRect().right + 1, bottom = room.getBoundingClientRect().bottom + 1;
      const scrolls = [...part.querySelectorAll(".stepper-frame")].some((frame) => frame.scrollWidth > frame.clientWidth);
      return !scrolls && wide.every((one) => one.getBoundingClientRect().right <= right && one.getBoundingClientRect().bottom <= bottom);
    };
    const largest = () => {
      let low = SMALLEST, high = part.querySelector("pre, table") ? LARGEST_TEXT : LARGEST;
      for (let turn = 0; turn < 7; turn += 1) {
        const middle = (low + high) / 2;
        if (fits(middle)) low = middle; else high = middle;
      }
      return low;
    };
    // A line stays a line in tables and in what a cell prints, unless its letters became small.
    part.classList.add("one-line");
    let zoom = largest();
    if (zoom < READABLE) { part.classList.remove("one-line"); zoom = largest(); }
    fits(zoom);
    const left = room.clientHeight - part.getBoundingClientRect().height / scale();
    part.style.top = slide.querySelector(".question") ? 0 : `${Math.max(0, left / 2) / zoom}px`;
  }

  function scale() {
    return isPrint ? 1 : Math.min((isSpeaker ? 0.5 : 1) * innerWidth / WIDTH, innerHeight / HEIGHT);
  }

  function place() {
    const room = isSpeaker ? innerWidth / 2 : innerWidth, size = scale();
    for (const slide of slides) {
      const left = Math.max(0, (room - WIDTH * size) / 2), top = isSpeaker ? 0 : Math.max(0, (innerHeight - HEIGHT * size) / 2);
      slide.style.transform = isPrint ? "" : `translate(${left}px, ${top}px) scale(${size})`;
    }
  }

  function show(number, told = false) {
    current = Math.min(Math.max(number, 0), slides.length - 1);
    slides.forEach((slide, at) => slide.classList.toggle("current", at === current));
    history.replaceState(null, "", `#${current + 1}`);
    if (panel) {
      const next = slides[current + 1]?.querySelector("h1, h2").textContent ?? "the end";
      panel.querySelector(".notes").innerHTML = slides[current].querySelector(".notes").innerHTML || "<p>No notes.</p>";
      const minutes = (upTo) => slides.slice(0, upTo).reduce((sum, slide) => sum + Number(slide.dataset.minutes), 0);
      const time = `About ${slides[current].dataset.minutes} min, ${minutes(current + 1)} of ${minutes(slides.length)} at its end`;
      panel.querySelector(".next").textContent = `${time}. Next: ${next}`;
    } else {
      slides[current].focus({ preventScroll: true });
    }
    if (!told) tell();
  }

  const tell = () => partner?.postMessage({ slide: current, state: stateOf(slides[current]) }, "*");
  const stepOf = (slide) => {
    const buttons = slide.querySelectorAll(".stepper-controls button");
    return buttons.length ? { back: buttons[0], next: buttons[1] } : null;
  };
  function stateOf(slide) {
    const steps = [...slide.querySelectorAll(".stepper-step")];
    return { step: steps.findIndex((step) => !step.hidden), answered: Boolean(slide.querySelector(".answered")) };
  }
  function restore(slide, state) {
    for (let turn = 0; turn < 50 && stateOf(slide).step !== state.step; turn += 1) {
      stepOf(slide)[stateOf(slide).step < state.step ? "next" : "back"].click();
    }
    slide.querySelector(WAITS)?.classList.toggle("answered", state.answered);
  }

  function turn(direction) {
    const slide = slides[current], buttons = stepOf(slide), question = slide.querySelector(WAITS);
    const button = buttons && (direction > 0 ? buttons.next : buttons.back);
    if (button && button.getAttribute("aria-disabled") !== "true") { button.click(); tell(); }
    else if (question && question.classList.contains("answered") !== direction > 0) {
      question.classList.toggle("answered", direction > 0);
      tell();
    } else show(current + direction);
  }

  function openNotes() {
    const address = new URL(location.href);
    address.search = "?notes";
    partner = window.open(address.href, "speaker", "width=1200,height=700");
  }

  const KEYS = {
    ArrowRight: () => turn(1), PageDown: () => turn(1), " ": () => turn(1), ArrowLeft: () => turn(-1), PageUp: () => turn(-1),
    Home: () => show(0), End: () => show(slides.length - 1), s: openNotes,
    f: () => (document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen()),
  };

  function pressed(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (event.ctrlKey || event.altKey || event.metaKey || !(key in KEYS)) return;
    if (key === " " && event.target.closest("a, button, input")) return;
    event.preventDefault();
    KEYS[key]();
  }

  function addControls() {
    const bar = document.createElement("nav");
    bar.className = "controls";
    bar.setAttribute("aria-label", "Slides");
    for (const [name, act] of [["Back", () => turn(-1)], ["Next", () => turn(1)], ["Notes", openNotes]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", act);
      bar.append(button);
    }
    document.body.append(bar);
  }

  // Each step of a stepped figure on a page of its own; an answer on the page after its question.
  function spread(slide) {
    const steps = slide.querySelectorAll(".stepper-step").length, question = slide.querySelector(".question");
    const copies = [slide];
    for (let made = 1; made < (question ? 2 : steps); made += 1) copies.push(slide.cloneNode(true));
    slide.after(...copies.slice(1));
    copies.forEach((copy, at) => {
      copy.querySelectorAll(".stepper-step").forEach((step, number) => { step.hidden = number !== at; });
      if (question && at) copy.querySelector(".question").classList.add("answered");
    });
  }

  async function begin() {
    slides = [...document.querySelectorAll(".slide")];
    slides.forEach((slide, at) => {
      const number = document.createElement("span");
      number.textContent = `${at + 1} / ${slides.length}`;
      slide.querySelector("footer").append(number);
      slide.tabIndex = -1;
    });
    if (window.MathJax?.startup?.promise) await MathJax.startup.promise;
    await document.fonts.ready;
    slides.forEach(fit);
    if (isPrint) { slides.forEach(spread); document.documentElement.dataset.ready = ""; return; }
    document.documentElement.classList.add("live");
    if (isSpeaker) {
      document.documentElement.classList.add("speaker");
      panel = document.createElement("div");
      panel.className = "panel";
      panel.innerHTML = '<p class="next"></p><div class="notes"></div>';
      document.body.append(panel);
    }
    addControls();
    place();
    show(Number(location.hash.slice(1)) - 1 || 0);
    addEventListener("resize", place);
    addEventListener("hashchange", () => show(Number(location.hash.slice(1)) - 1 || 0));
    addEventListener("keydown", pressed);
    addEventListener("message", (event) => {
      if (event.source !== partner && partner !== null || typeof event.data?.slide !== "number") return;
      partner = event.source;
      show(event.data.slide, true);
      restore(slides[current], event.data.state);
    });
    document.documentElement.dataset.ready = "";
  }

  addEventListener("load", begin);
})();
