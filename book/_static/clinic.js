// The clinic: one of the mistakes in patients.js is made in bert.js, and runs beside the healthy model on the same text.
// The reader looks, names the fault, and then sees the line that is wrong. What was found is kept in this browser only.
"use strict";

globalThis.courseClinic = (() => {
  const STORE = "course-clinic-found";
  const TEXTS = [ // two sentences, and how many [PAD] stand behind them, as in a batch with a longer pair
    ["Return the number of [MASK] in the list.", "The list is not changed.", 4],
    ["If the file does not [MASK], an error is raised.", "The error can be caught.", 6],
    ["Return the inverse of the [MASK].", "The matrix must be square.", 0],
    ["The key of the [MASK] is a string.", "Press the key to close the window.", 5],
    ["Wait until the thread [MASK].", "The matrix must be square.", 3],
    ["The default [MASK] is None.", "She was tired and calm.", 0],
    ["Read the lines of a text [MASK].", "The encoding is UTF-8.", 8],
    ["The messenger put the [MASK] into a bag.", "The encoding is UTF-8.", 4],
  ];

  // Ids, segments and mask of a prepared text; segments are made by the source that is given, which may be wrong.
  function inputOf(tokenizer, place, source) {
    const [first, second, padding] = TEXTS[place];
    const { pairInput } = (0, eval)(`(${source})`)();
    const [one, two] = [first, second].map((text) =>
      courseWordPiece.encode(text, tokenizer).pieces.slice(1, -1).map(({ id }) => id));
    const id = (token) => tokenizer.ids.get(token);
    const { inputIds, tokenTypeIds } = pairInput(one, two, id("[CLS]"), id("[SEP]"), 128);
    const fill = (row, value) => [...row, ...new Array(padding).fill(value)];
    return {
      ids: fill(inputIds, id("[PAD]")), types: fill(tokenTypeIds, 0), mask: fill(inputIds.map(() => true), false),
      positions: [inputIds.indexOf(id("[MASK]"))], alone: [], most: 5,
    };
  }

  const lengthsOf = (matrix) => Array.from({ length: matrix.rows }, (_, t) => Math.hypot(...courseLive.rowOf(matrix, t)));

  // Lengths after a norm hide what happens before it, so these are asked for, too.
  const INSIDE = [
    ["value of the head", (block, head) => block.value[head]], ["attention's output", (block) => block.output],
    ["after the first norm", (block) => block.between], ["feed-forward's output", (block) => block.transformed],
  ];

  function readFound() {
    try {
      return new Set(JSON.parse(localStorage.getItem(STORE) ?? "[]"));
    } catch {
      return new Set(); // a browser that keeps nothing
    }
  }

  function keepFound(found) {
    try {
      localStorage.setItem(STORE, JSON.stringify([...found]));
    } catch { /* the same */ }
  }

  function prepareClinic(root) {
    const { element, menu, table, weightMatrix, predictionList, fragment, percent, shown } = courseLive;
    const saved = Number.parseInt(fragment.read().get("patient") ?? "", 10);
    const found = readFound(), models = new Map();
    let patient = coursePatients[saved] ?? null, files = null, results = new Map(), text = 0, layer = 0, head = 0, wrong = new Set();

    const button = element("button", "live-load", "A patient, please");
    button.type = "button";
    button.addEventListener("click", () => {
      const others = coursePatients.filter((one) => one !== patient && !found.has(one.name));
      const choice = others.length ? others : coursePatients;
      admit(choice[Math.floor(Math.random() * choice.length)]);
    });
    const menus = element("div", "explorer-menus");
    const showTexts = menu(menus, "Text", (place) => { text = place; examine(); });
    const showLayers = menu(menus, "Layer", (place) => { layer = place; show(); });
    const showHeads = menu(menus, "Head", (place) => { head = place; show(); });
    menus.hidden = true;
    const view = element("div", ""), diagnoses = element("fieldset", "live-diagnoses"), verdict = element("div", "");
    const status = element("p", "live-status");
    status.setAttribute("role", "status");
    const told = () => `${found.size} of ${coursePatients.length} faults found in this browser.`;
    status.textContent = told();
    root.replaceChildren(button, menus, view, diagnoses, status, verdict);
    if (patient) admit(patient);

    async function admit(next) {
      patient = next;
      wrong = new Set();
      verdict.replaceChildren();
      fragment.write({ patient: coursePatients.indexOf(patient) });
      status.textContent = "Loading BERT tiny (2.2 MB) …";
      try {
        files = await courseLive.load("tiny");
        models.get("patient")?.stop();
        for (const [name, source] of [["healthy", String(courseBert)], ["patient", coursePatched(patient)]]) {
          if (name === "healthy" && models.has(name)) continue;
          models.set(name, courseLive.startModel(files, source, false, (data) => {
            results.set(name, data);
            if (results.size === 2) show();
          }));
          await models.get(name).ready;
        }
      } catch (error) {
        status.textContent = `The clinic cannot open: ${error.message}.`;
        return;
      }
      status.textContent = `Something is wrong with this BERT. What is it? ${told()}`;
      button.textContent = "Another patient";
      menus.hidden = false;
      showTexts(TEXTS.map(([first], place) => `${place + 1}. ${first}`), text);
      askForDiagnosis();
      examine();
    }

    function examine() {
      results = new Map();
      models.get("healthy").ask(inputOf(files.tokenizer, text, String(courseBert)));
      models.get("patient").ask(inputOf(files.tokenizer, text, coursePatched(patient)));
    }

    function show() {
      const both = [["healthy", results.get("healthy")], ["patient", results.get("patient")]];
      const [[, healthy]] = both, { ids } = inputOf(files.tokenizer, text, String(courseBert));
      const tokens = ids.map((id) => files.tokenizer.vocabulary[id]);
      showLayers(healthy.trace.layers.map((_, l) => `${l + 1}`), layer);
      showHeads(healthy.trace.layers[0].heads.map((_, h) => `${h + 1}`), head);
      const traces = both.map(([, result]) => result.trace);
      const pairs = (read) => traces.map((trace) => lengthsOf(read(trace)));
      const lengths = (caption, columns, segments = []) => {
        const read = columns.map(([, of]) => pairs(of));
        return table(`${caption}, healthy | patient`, ["token", ...segments.length ? ["segment"] : [], ...columns.map(([name]) => name)],
          tokens.map((token, t) => [token, ...segments.slice(t, t + 1),
            ...read.map(([one, other]) => `${shown(one[t])} | ${shown(other[t])}`)]));
      };
      const types = [String(courseBert), coursePatched(patient)].map((source) => inputOf(files.tokenizer, text, source).types);
      const states = healthy.trace.states.map((_, l) => [l ? `layer ${l}` : "embeddings", (trace) => trace.states[l]]);
      const inside = INSIDE.map(([name, of]) => [name, (trace) => of(trace.layers[layer], head)]);
      view.replaceChildren(
        element("p", "", `${TEXTS[text][0]} ${TEXTS[text][1]}`),
        element("div", "live-lists", ...both.map(([name, result]) => element("div", "",
          predictionList(`${name}: behind [MASK]`, result.top[0], files.tokenizer.vocabulary),
          element("p", "", `The second sentence follows: ${percent(result.next)}`)))),
        ...both.map(([name, result]) => weightMatrix(tokens, result.trace.layers[layer].heads[head].weights,
          `${name}: attention in layer ${layer + 1}, head ${head + 1}`)), // one below the other: padding is at the right end
        lengths("Lengths of the vectors", states, tokens.map((_, t) => types.map((row) => row[t]).join(" | "))),
        lengths(`Lengths inside layer ${layer + 1}`, inside));
    }

    // A list that narrows: a wrong answer goes, and the button takes away all parts of the model but two.
    function askForDiagnosis() {
      const listed = [...coursePatients].sort((one, other) => `${one.part}${one.fault}` < `${other.part}${other.fault}` ? -1 : 1);
      const labels = listed.map((one) => {
        const input = element("input", "");
        Object.assign(input, { type: "radio", name: "clinic-diagnosis", value: one.name });
        const label = element("label", "", input, ` ${one.part}: ${one.fault}`);
        label.hidden = wrong.has(one.name);
        return label;
      });
      const check = element("button", "", "That is it"), narrow = element("button", "", "Show fewer");
      [check, narrow].forEach((one) => { one.type = "button"; });
      check.addEventListener("click", () => {
        const chosen = labels.findIndex((label) => label.firstChild.checked);
        if (chosen < 0) status.textContent = "Choose a fault first.";
        else if (listed[chosen] === patient) reveal();
        else {
          labels[chosen].hidden = true;
          labels[chosen].firstChild.checked = false;
          wrong.add(listed[chosen].name);
          status.textContent = `Not that: ${listed[chosen].fault}. Look again.`;
        }
      });
      narrow.addEventListener("click", () => {
        const left = coursePatients.filter((one) => !wrong.has(one.name));
        const others = left.filter((one) => one !== patient);
        const keep = Math.max(2, Math.floor(left.length / 2)) - 1;
        for (const one of others.sort(() => Math.random() - 0.5).slice(keep)) wrong.add(one.name);
        labels.forEach((label, place) => { label.hidden = wrong.has(listed[place].name); });
        const many = coursePatients.length - wrong.size;
        status.textContent = `${many} faults are still in the list; one of them is this patient's.`;
        narrow.hidden = many === 2;
      });
      const legend = element("legend", "", "What is wrong?");
      diagnoses.replaceChildren(legend, ...labels, check, " ", narrow);
    }

    function reveal() {
      found.add(patient.name);
      keepFound(found);
      status.textContent = `Yes: ${patient.fault}. ${told()}`;
      const link = element("a", "", patient.chapter[1]);
      link.href = `${patient.chapter[0]}.html`;
      const code = (caption, lines) => element("div", "", element("p", "live-name", caption), element("pre", "", lines));
      const source = String(courseBert), at = source.indexOf(patient.from);
      const line = source.slice(source.lastIndexOf("\n", at) + 1, source.indexOf("\n", at + patient.from.length));
      diagnoses.replaceChildren();
      verdict.replaceChildren(
        code("bert.js, as it should be", line.trim()),
        code("bert.js, this patient", line.replace(patient.from, () => patient.to).replace(/ *\/\/.*/g, "").trim()), // a comment may be false now
        code(`The line in ${patient.file}`, patient.library),
        element("p", "", "How a test would have caught it: ", patient.test),
        element("p", "", "It is explained in ", link, "."));
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-clinic]").forEach(prepareClinic);
  });

  return { TEXTS, inputOf };
})();
