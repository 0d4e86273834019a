// The attention explorer: choose a sentence, a kind of attention, a layer, a head and a word, and see its weights.
// course_lib/figures/explorer.py writes the weights beside it as JSON, in hundredths, and tables for readers without a script.
// The words are radio buttons: the Tab key reaches them, arrow keys go through them, a pointer previews and chooses.
// Nothing is stored and nothing is sent.
"use strict";

(() => {
  const STRONGEST = 3; // how many key words the sentence below the bars names

  function element(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children);
    return made;
  }

  function inLanguage(text, language) {
    const span = element("span", "", text);
    span.lang = language;
    return span;
  }

  const shown = (hundredths) => (hundredths / 100).toFixed(2);

  // A labelled menu; one that offers no choice is left out.
  function addMenu(parent, caption, options, changed) {
    const select = element("select", "", ...options.map((text) => element("option", "", text)));
    select.addEventListener("change", changed);
    if (options.length > 1) parent.append(element("label", "", `${caption} `, select));
    return select;
  }

  function prepareExplorer(root, number) {
    const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const tables = root.querySelector(".explorer-tables");
    let view, inputs, items, previewed = null;

    const menus = element("div", "explorer-menus");
    const sentence = addMenu(menus, "Sentence", data.sentences, showWords);
    const kind = addMenu(menus, "Attention", data.kinds, showWords);
    const layer = addMenu(menus, "Layer", data.layers, showWeights);
    const head = addMenu(menus, "Head", data.heads, showWeights);

    const queries = element("div", "explorer-words");
    queries.addEventListener("pointerleave", () => preview(null));
    queries.addEventListener("change", () => preview(null));
    const keys = element("ol", "explorer-keys");
    keys.setAttribute("role", "list"); // some screen readers drop the role of a list without marks
    keys.setAttribute("aria-label", "Key words and their weights");
    const status = element("p", "explorer-status");
    status.setAttribute("role", "status");

    function preview(position) {
      if (position === null || position !== previewed) {
        previewed = position;
        showWeights();
      }
    }

    function addQuery(word, position) {
      const input = element("input");
      input.type = "radio";
      input.name = `attention-explorer-${number}`;
      input.checked = position === 0;
      const label = element("label", "", input, inLanguage(word, view.languages[0]));
      // Not pointerenter: words that come to lie under a resting pointer are not meant.
      label.addEventListener("pointermove", (event) => { if (event.pointerType === "mouse") preview(position); });
      queries.append(label);
      return input;
    }

    function addKey(word) {
      const weight = element("span", "explorer-weight");
      const bar = element("span", "explorer-bar");
      const column = element("span", "explorer-column", bar);
      column.setAttribute("aria-hidden", "true");
      // Read in this order; drawn the other way round, with the word at the foot of its bar.
      keys.append(element("li", "", inLanguage(word, view.languages[1]), " ", weight, column));
      return { weight, bar };
    }

    function showWords() {
      view = data.views[sentence.selectedIndex][kind.selectedIndex];
      queries.replaceChildren();
      keys.replaceChildren();
      inputs = view.queries.map(addQuery);
      items = view.keys.map(addKey);
      preview(null);
    }

    function showWeights() {
      const position = previewed ?? inputs.findIndex((input) => input.checked);
      const weights = view.weights[layer.selectedIndex][head.selectedIndex][position];
      inputs.forEach((input, place) => { input.parentElement.toggleAttribute("data-shown", place === position); });
      items.forEach(({ weight, bar }, place) => {
        weight.textContent = shown(weights[place]);
        bar.style.height = `${weights[place]}%`;
      });
      // A stable sort: of equal weights, the word that comes first.
      const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, STRONGEST);
      const named = order.flatMap((place, rank) => [
        rank ? ", " : " ", inLanguage(view.keys[place], view.languages[1]), ` ${shown(weights[place])}`]);
      const which = head.value === "mean" ? "mean of the heads" : `head ${head.value}`;
      status.replaceChildren(
        inLanguage(view.queries[position], view.languages[0]),
        ` (word ${position + 1}, layer ${layer.value}, ${which}) attends most to:`, ...named, ".");
    }

    const legend = element("legend", "", "Word that attends (query)");
    const caption = element("p", "explorer-caption", "Weights on the words that it attends to (keys)");
    tables.before(menus, element("fieldset", "", legend, queries), caption, keys, status);
    tables.open = false;
    showWords();
  }

  document.addEventListener("DOMContentLoaded",
    () => document.querySelectorAll(".attention-explorer:not(.bert-live)").forEach(prepareExplorer));
})();
