// The tokenizer in the page: type a sentence, and see the pieces, ids and offsets that the chapter's WordPiece gives it.
// The algorithm stands in wordpiece.js.
// What is typed becomes text nodes only. Nothing is stored and nothing is sent.
"use strict";

(() => {
  function element(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children);
    return made;
  }

  const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
  const json = (root, name) => JSON.parse(root.querySelector(`script.${name}`).textContent);

  function prepareTokenizer(root, number) {
    const data = json(root, "tokenizer-data");
    const tokenizer = courseWordPiece.prepare(data);

    const input = element("textarea", "tokenizer-text");
    input.id = `tokenizer-text-${number}`;
    input.rows = 2;
    input.maxLength = data.most_characters;
    input.spellcheck = false;
    input.value = data.sentence;
    const label = element("label", "", "Your sentence");
    label.htmlFor = input.id;
    const status = element("p", "tokenizer-status");
    status.setAttribute("role", "status");
    const list = element("ol", "tokenizer-pieces");
    list.setAttribute("role", "list"); // some screen readers drop the role of a list without marks
    list.setAttribute("aria-label", "Pieces, ids and offsets");

    function showPieces() {
      const { words, pieces } = courseWordPiece.encode(input.value, tokenizer);
      list.replaceChildren(...pieces.map(({ token, id, start, end, special }) => {
        const item = element("li", "",
          element("code", "tokenizer-piece", token), " ",
          element("span", "tokenizer-id", `id ${id}`), " ",
          element("span", "tokenizer-offsets", `${start}–${end}`));
        if (token === tokenizer.unknown) item.dataset.kind = "unknown";
        else if (special) item.dataset.kind = "special";
        else if (token.startsWith(tokenizer.prefix)) item.dataset.kind = "continuation";
        return item;
      }));
      const unknown = pieces.filter(({ token }) => token === tokenizer.unknown).length;
      status.textContent = `${counted(words, "word")} in ${counted(pieces.length - 2, "piece")}, ` +
        `${unknown} unknown; with ${tokenizer.first} and ${tokenizer.last} ${counted(pieces.length, "id")}.`;
    }

    const parts = [label, input, status, list];
    if (root.querySelector("script.tokenizer-recorded")) {
      const button = element("button", "", "Check this browser against the library");
      button.type = "button";
      const verdict = element("p", "tokenizer-verdict");
      verdict.setAttribute("role", "status");
      button.addEventListener("click", () => {
        const recorded = json(root, "tokenizer-recorded");
        const same = recorded.sentences.filter(({ text, ids, offsets }) => {
          const pieces = courseWordPiece.encode(text, tokenizer).pieces;
          return pieces.length === ids.length && pieces.every(({ id, start, end }, place) =>
            id === ids[place] && start === offsets[place][0] && end === offsets[place][1]);
        }).length;
        verdict.textContent =
          `${same} of ${recorded.sentences.length} recorded sentences have the ids and offsets of ${recorded.by}.`;
      });
      parts.push(button, verdict);
    }
    input.addEventListener("input", showPieces);
    root.querySelector(".tokenizer-static").before(...parts);
    root.querySelector(".tokenizer-static").open = false;
    showPieces();
  }

  document.addEventListener("DOMContentLoaded",
    () => document.querySelectorAll(".tokenizer-explorer").forEach(prepareTokenizer));
})();
