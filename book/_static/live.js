// BERT, live: the book's own pre-trained models run in the page, on what a reader types.
// bert.js is the model, wordpiece.js the tokenizer; this file loads weights, runs the model in a worker and shows numbers.
// The weights lie in scripts of their own (course_tools/site/live.py writes them), which are loaded when the reader asks for
// them; a page from disk may load a script and nothing else, and start a worker from a blob.
// What is typed becomes text nodes only, and stands in the address behind #, which no browser sends.
// A chapter has some of the parts of the page, with a sentence of its own: see `prepareSmall`.
"use strict";

globalThis.courseLive = (() => {
  const FOLDER = "_static/live";
  const SHOWN = 5; // predictions of a position
  const PAUSE = 150; // milliseconds without an answer before the larger parts are drawn
  const NOT_LOADED = "Load the model above.";
  const LARGEST_MATRIX = 40; // tokens: more squares than that would make typing wait
  const FEATURES = 8; // of a vector, in the steps through a layer

  // -- Models --------------------------------------------------------------------------------------------------------

  // This runs in the worker: it is given texts, builds the model and, if asked for, one that has learnt nothing, and answers.
  function liveWorker(bert, withControl) {
    const received = [];
    let models = [];
    async function build({ config, table, bytes }) {
      const weights = bert.readWeights(table, await bert.unpack(received, bytes));
      models = [["trained", new bert.BertForPreTraining(config, weights)]];
      if (withControl) {
        const fresh = bert.untrainedWeights(table, config.initializer_range, 0);
        models.push(["untrained", new bert.BertForPreTraining(config, fresh)]);
      }
      postMessage({ ready: true });
    }
    function best(chances, most) {
      const hits = [];
      chances.forEach((chance, id) => {
        if (hits.length === most && !(chance > hits[most - 1].chance)) return;
        hits.push({ id, chance });
        hits.sort((a, b) => b.chance - a.chance);
        hits.length = Math.min(hits.length, most);
      });
      return hits;
    }
    function buffersOf(value, found = new Set()) {
      if (value?.data?.buffer) found.add(value.data.buffer);
      else if (value && typeof value === "object") Object.values(value).forEach((part) => buffersOf(part, found));
      return found;
    }
    function run({ number, ids, types, mask, positions, alone, most }) {
      models.forEach(([which, model], place) => {
        const trace = {}, out = model.forward(ids, mask, types, positions, trace);
        const chances = bert.softmax(out.predictionLogits);
        const [next] = bert.softmax(out.seqRelationshipLogits).data;
        const statesOf = (row) => {
          const inside = {};
          model.bert.forward(row, null, row.map(() => 0), inside);
          return inside.states;
        };
        const answer = {
          number, which, trace: place ? null : trace, next, last: place === models.length - 1,
          top: positions.map((_, t) => best(chances.row(t), most)),
          alone: alone.map(statesOf),
        };
        postMessage(answer, [...buffersOf(answer)]); // handed over, not copied: the page has more to do than to read
      });
    }
    onmessage = ({ data }) => {
      if (data.part) received.push(data.part);
      else if (data.table) build(data).catch(({ message }) => postMessage({ failed: `the weights cannot be read (${message})` }));
      else run(data);
    };
  }

  // A model in a worker. While it computes, only the last question waits.
  function startModel({ settings, parts }, source, withControl, answered) {
    const text = `(${liveWorker})((${source})(), ${withControl});`;
    const worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    let busy = true, waiting = null, number = 0;
    function send() {
      if (busy || !waiting) return;
      busy = true;
      worker.postMessage(waiting);
      waiting = null;
    }
    parts.forEach((part) => worker.postMessage({ part }));
    worker.postMessage(settings);
    const ready = new Promise((resolve, reject) => {
      worker.onerror = (event) => reject(new Error(event.message));
      worker.onmessage = ({ data }) => {
        if (data.ready || data.last) busy = false;
        if (data.ready) resolve();
        else if (data.failed) reject(new Error(data.failed));
        else if (data.number === number) answered(data);
        send();
      };
    });
    return {
      ready,
      ask(question) {
        number += 1;
        waiting = { ...question, number };
        send();
      },
      stop: () => worker.terminate(),
    };
  }

  // -- Loading -------------------------------------------------------------------------------------------------------

  function loadScript(source) {
    return new Promise((resolve, reject) => {
      const script = element("script", "");
      script.src = source;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`could not load ${source}`));
      document.head.append(script);
    });
  }

  const loaded = new Map(); // name -> promise of { tokenizer, settings, parts }
  async function loadFiles(name, report) {
    const parts = [];
    let tokenizer = null, settings = null;
    globalThis.courseLiveTokenizer = (data) => { if (data.model === name) tokenizer = courseWordPiece.prepare(data); };
    await loadScript(`${FOLDER}/${name}-tokenizer.js`);
    globalThis.courseLivePart = (told) => {
      if (told.part === 0) settings = { config: told.config, table: told.table, bytes: told.bytes };
      parts[told.part] = told.data;
    };
    for (let part = 0; part < tokenizer.parts; part += 1) {
      await loadScript(`${FOLDER}/${name}-${part}.js`);
      report((part + 1) / tokenizer.parts, tokenizer.bytes);
    }
    return { tokenizer, settings, parts };
  }
  function load(name, report = () => {}) {
    if (!loaded.has(name)) {
      // one after the other: both models call the same function with their parts
      const before = [...loaded.values()].at(-1) ?? Promise.resolve();
      const files = before.catch(() => {}).then(() => loadFiles(name, report));
      files.catch(() => loaded.delete(name));
      loaded.set(name, files);
    }
    return loaded.get(name);
  }

  // -- Elements ------------------------------------------------------------------------------------------------------

  function element(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children);
    return made;
  }

  function menu(parent, caption, changed) {
    const select = element("select", "");
    select.addEventListener("change", () => changed(select.selectedIndex));
    parent.append(element("label", "", `${caption} `, select));
    return (options, chosen) => {
      if ([...select.options].map((option) => option.text).join("\n") !== options.join("\n")) {
        select.replaceChildren(...options.map((text) => element("option", "", text)));
      }
      select.selectedIndex = chosen;
    };
  }

  function setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }

  // One child for each item. Those that are there stay, with their focus, and are shown anew: cheaper than to make them.
  function each(parent, items, make, show) {
    while (parent.children.length > items.length) parent.lastElementChild.remove();
    while (parent.children.length < items.length) parent.append(make(parent.children.length));
    items.forEach((item, place) => show(parent.children[place], item, place));
  }

  const scoped = (scope, text) => Object.assign(element("th", "", text), { scope });

  // A table of texts; its frame scrolls, by keyboard too.
  function table(caption, headers, rows) {
    const body = rows.map(([first, ...cells]) =>
      element("tr", "", scoped("row", first), ...cells.map((cell) => element("td", "", cell))));
    const frame = element("div", "explorer-frame", element("table", "", element("caption", "", caption),
      element("thead", "", element("tr", "", ...headers.map((text) => scoped("col", text)))), element("tbody", "", ...body)));
    frame.tabIndex = 0;
    frame.setAttribute("role", "group");
    frame.setAttribute("aria-label", caption);
    return frame;
  }

  const percent = (share) => `${(100 * share).toFixed(share < 0.001 ? 3 : share < 0.1 ? 1 : 0)} %`;
  const shown = (x) => x.toFixed(2);
  const named = (tokens) => tokens.map((token, t) => `${t} ${token}`);
  const rowOf = ({ data, columns }, t) => data.subarray(t * columns, (t + 1) * columns);

  // Weights as squares whose area is the weight; the number is there for who does not see it, and under the pointer. A cell
  // is one element: a matrix has a thousand.
  function weightMatrix(tokens, weights, caption, frame = table("", [], [])) {
    const [said, head, body] = frame.firstChild.children;
    frame.classList.add("live-matrix");
    frame.setAttribute("aria-label", caption);
    setText(said, caption);
    each(head.firstChild, ["query ↓ key →", ...tokens], () => scoped("col", ""), setText);
    each(body, tokens, () => element("tr", "", scoped("row", "")), (row, token, t) => {
      const texts = [token, ...Array.from(rowOf(weights, t), shown)];
      each(row, texts, () => element("td", ""), (cell, text, place) => {
        if (cell.textContent === text) return;
        cell.textContent = text;
        const side = Math.sqrt(Math.max(text, 0)) || 0; // NaN has no square
        if (!place) return;
        cell.style.backgroundSize = `${side}rem ${side}rem`;
        cell.title = text;
        cell.classList.toggle("live-nan", text === "NaN");
      });
    });
    return frame;
  }

  function predictionList(name, hits, vocabulary, made = null) {
    const block = made ?? element("div", "", element("p", "live-name"), element("ol", "live-predictions"));
    const [title, list] = block.children;
    setText(title, name);
    list.setAttribute("role", "list");
    list.setAttribute("aria-label", name);
    const make = () => element("li", "", element("code", ""), " ", element("span", ""), element("span", "live-bar"));
    each(list, hits, make, ({ children: [code, share, bar] }, { id, chance }) => {
      setText(code, vocabulary[id]);
      setText(share, percent(chance));
      bar.style.width = `${Number.isFinite(chance) ? 100 * chance : 0}%`;
    });
    return block;
  }

  // What stands behind # in the address: shared by all parts of the page.
  const fragment = {
    read: () => new URLSearchParams(location.hash.startsWith("#bert?") ? location.hash.slice(6) : ""),
    write(values) {
      const all = fragment.read();
      Object.entries(values).forEach(([name, value]) => all.set(name, value));
      history.replaceState(null, "", `#bert?${all}`);
    },
  };

  // Ids, segments and tokens of one text or two, with [MASK] where the reader put it.
  function sequence(tokenizer, text, second, masked, most) {
    const idsOf = (part) => courseWordPiece.encode(part, tokenizer).pieces.slice(1, -1).map(({ id }) => id);
    const [cls, sep, mask] = ["[CLS]", "[SEP]", "[MASK]"].map((token) => tokenizer.ids.get(token));
    const pair = [idsOf(text), second.trim() ? idsOf(second) : null];
    const { inputIds, tokenTypeIds } = courseBert().pairInput(...pair, cls, sep, most);
    const ids = inputIds.map((id, t) => (masked.has(t) && id !== cls && id !== sep ? mask : id));
    return {
      ids, types: tokenTypeIds, original: inputIds, tokens: ids.map((id) => tokenizer.vocabulary[id]),
      holes: [...ids.keys()].filter((t) => ids[t] === mask),
      alone: pair[1] ? pair.map((part) => [cls, ...part.slice(0, most - 2), sep]) : [],
    };
  }

  // -- The page ------------------------------------------------------------------------------------------------------

  const EXAMPLES = [
    ["Words of a page of documentation", "Return the number of [MASK] in the list.", ""],
    ["Grammar", "If the file does not [MASK], an error is raised.", ""],
    ["Two sentences that belong together", "Return the inverse of the matrix.", "The matrix must be square."],
    ["Two that do not", "Return the inverse of the matrix.", "The thread waits until the lock is released."],
    ["One word, two senses", "The key of the dictionary is a string.", "Press the key to close the window."],
    ["It fails: the world", "The capital of France is [MASK].", ""],
    ["It fails: not", "A list is not a [MASK].", "A list is a [MASK]."],
  ];
  const STEPS = ["What goes in", "Query and key", "Scores and softmax", "Values", "Add and norm", "Feed-forward, add and norm"];

  // `places`: where the parts go, by name, among them `write`. `given`: what was typed and chosen, as in the address. `keep`: is
  // told when that has changed. `predicts`: whether tokens can be masked and are predicted; `asksTwice`: for a second sentence.
  function prepare({ write, ...places }, given, keep, { predicts, asksTwice, examples }) {
    const whole = (name, other) => Number.parseInt(given.get(name) ?? other, 10) || 0;
    const state = {
      model: given.get("model") === "mini" ? "mini" : "tiny",
      text: given.get("text") ?? EXAMPLES[0][1], second: given.get("second") ?? "",
      masked: new Set((given.get("masked") ?? "").split(",").filter(Boolean).map(Number)),
      token: whole("token", 0), layer: whole("layer", 0), head: whole("head", 0), step: whole("step", 0),
      words: [whole("word1", 1), whole("word2", 1)],
    };
    let files = null, model = null, now = null, results = {}, later = 0;

    const button = element("button", "live-load");
    const bar = element("progress", "");
    bar.setAttribute("aria-label", "Loading the model");
    bar.hidden = true;
    const status = element("p", "live-status");
    status.setAttribute("role", "status");
    const menus = element("div", "explorer-menus");
    const showModels = menu(menus, "Model", (place) => { state.model = ["tiny", "mini"][place]; start(); });
    showModels(["tiny", "mini"], state.model === "mini" ? 1 : 0);
    if (examples) {
      const showExamples = menu(menus, "Example", (place) => {
        if (!place) return;
        [, boxes[0].value, boxes[1].value] = EXAMPLES[place - 1];
        state.masked.clear();
        typed();
      });
      showExamples(["choose …", ...EXAMPLES.map(([name]) => name)], 0);
    }
    const captions = asksTwice ? ["Your sentence", "A second sentence, if you like"] : ["Your sentence"];
    const boxes = captions.map((_, place) => {
      const box = element("textarea", "live-text");
      Object.assign(box, { rows: 2, maxLength: 400, spellcheck: false, value: [state.text, state.second][place] });
      box.addEventListener("input", typed);
      return box;
    });
    const labels = captions.map((caption, place) => element("label", "live-label", caption, boxes[place]));
    const tokens = element("div", "live-tokens");
    tokens.setAttribute("role", "group");
    tokens.setAttribute("aria-label", "Tokens: press one to mask it");
    const predictions = element("div", "live-results");
    write.replaceChildren(menus, button, bar, ...labels, ...(predicts ? [tokens, status, predictions] : [status]));
    // Each returns functions that draw, one after the other, and may say what is to be announced.
    const makers = {
      attention: (root) => attentionPart(root), matrix: (root) => matrixPart(root), layer: (root) => layerPart(root),
      compare: (root) => comparePart(root, ["word", "sentences"]), word: (root) => comparePart(root, ["word"]),
      sentences: (root) => comparePart(root, ["sentences"]),
    };
    const inside = Object.entries(places).map(([name, root]) => makers[name](root));

    const label = () => {
      button.textContent = `Load BERT ${state.model} (${state.model === "mini" ? "7.7" : "2.2"} MB)`;
    };
    button.type = "button";
    button.addEventListener("click", start);
    label();
    status.textContent = "Load the model, then type.";
    return start;

    async function start() {
      label();
      button.setAttribute("aria-disabled", "true");
      bar.hidden = false;
      bar.value = 0;
      status.textContent = `Loading BERT ${state.model} …`;
      try {
        const name = state.model;
        const got = await load(name, (share) => { bar.value = share; });
        if (name !== state.model) return; // the reader has chosen another since
        files = got;
        model?.stop();
        results = {};
        model = startModel(files, String(courseBert), true, answer);
        await model.ready;
        if (name === state.model) {
          button.hidden = true;
          run();
        }
      } catch (error) {
        status.textContent = `The model cannot start: ${error.message}.`;
        button.hidden = false;
      }
      bar.hidden = true;
      button.removeAttribute("aria-disabled");
    }

    // Masks stay with their tokens: those before the place of the change, and those behind it.
    function typed() {
      const before = now?.original ?? [];
      [state.text, state.second = ""] = boxes.map((box) => box.value);
      if (!files) return;
      const { original } = sequence(files.tokenizer, state.text, state.second, new Set(), files.settings.config.max_position_embeddings);
      let first = 0, last = 0;
      const shorter = Math.min(before.length, original.length);
      while (first < shorter && before[first] === original[first]) first += 1;
      while (last < shorter - first && before.at(-1 - last) === original.at(-1 - last)) last += 1;
      const moved = [...state.masked].filter((t) => t < first || t >= before.length - last)
        .map((t) => (t < first ? t : t + original.length - before.length));
      state.masked = new Set(moved);
      run();
    }

    function run() {
      now = sequence(files.tokenizer, state.text, state.second, state.masked, files.settings.config.max_position_embeddings);
      state.token = Math.min(state.token, now.ids.length - 1);
      const positions = now.holes.length ? now.holes : [state.token];
      now.positions = positions;
      clearTimeout(later); // what is known belongs to another text
      results = {};
      write.setAttribute("aria-busy", "true"); // a screen reader waits for what is said in the end
      if (predicts) showTokens();
      model.ask({ ids: now.ids, types: now.types, mask: null, positions, alone: now.alone, most: SHOWN });
    }

    function tell() {
      const { model: name, text, second, masked, token, layer, head, step, words: [word1, word2] } = state;
      keep({ model: name, text, second, masked: [...masked].join(), token, layer, head, step, word1, word2 });
    }

    // Another layer, head, step or word: the numbers are there already.
    function look(changed) {
      Object.assign(state, changed);
      if (results.trained) showInside();
    }

    // Part by part, each in a task of its own, so that no key has to wait for all of them.
    function showInside(wait = 0) {
      const rest = [...inside], said = [];
      function next() {
        const draw = rest.shift();
        if (draw) {
          said.push(draw() ?? "");
          later = setTimeout(next);
          return;
        }
        if (!predicts) status.textContent = said.join(" ");
        tell();
        if (results.untrained) write.removeAttribute("aria-busy");
      }
      clearTimeout(later);
      later = setTimeout(next, wait);
    }

    function answer(data) {
      results[data.which] = data;
      if (predicts) showPredictions();
      showInside(PAUSE);
    }

    function showTokens() {
      function make(t) {
        const one = element("button", "live-token");
        one.type = "button";
        one.addEventListener("click", () => {
          if (!state.masked.delete(t)) state.masked.add(t);
          state.token = t;
          run();
        });
        return one;
      }
      each(tokens, now.tokens, make, (one, token, t) => {
        setText(one, token);
        one.setAttribute("aria-pressed", String(state.masked.has(t)));
        one.disabled = ["[CLS]", "[SEP]"].includes(token);
      });
    }

    function showPredictions() {
      const { vocabulary } = files.tokenizer, { trained, untrained } = results;
      const lists = [["BERT " + state.model, trained], ["the same, untrained", untrained]].filter(([, result]) => result);
      const make = () => element("div", "live-position", element("p", ""), element("div", "live-lists"));
      each(predictions, now.positions, make, ({ children: [text, columns] }, position, place) => {
        const what = now.holes.length ? "behind [MASK]" : `where “${now.tokens[position]}” stands, which the model sees`;
        setText(text, `Position ${position}: what the model predicts ${what}`);
        each(columns, lists, () => predictionList("", [], vocabulary),
          (list, [name, result]) => predictionList(name, result.top[place], vocabulary, list));
      });
      const said = now.positions.map((position, place) => `Position ${position}${now.holes.length ? "" : ", not masked"}: ` +
        trained.top[place].slice(0, 3).map(({ id, chance }) => `${vocabulary[id]} ${percent(chance)}`).join(", ") + ".");
      if (now.alone.length) {
        const control = untrained ? `; untrained ${percent(untrained.next)}` : "";
        said.push(`The second sentence follows the first: ${percent(trained.next)}${control}.`);
      }
      if (untrained || !now.alone.length) setText(status, said.join(" "));
    }

    function attentionPart(root) {
      const choices = element("div", "explorer-menus"), title = element("p", ""), keys = element("ol", "explorer-keys");
      const showLayers = menu(choices, "Layer", (place) => look({ layer: place }));
      const showHeads = menu(choices, "Head", (place) => look({ head: place }));
      const showQueries = menu(choices, "Token that attends", (place) => {
        look({ token: place });
        if (predicts && !now.holes.length) run(); // that token is predicted
      });
      keys.setAttribute("role", "list");
      keys.setAttribute("aria-label", "Tokens and their weights");
      setText(title, NOT_LOADED);
      root.replaceChildren(choices, title, keys);
      choices.hidden = true;
      function make() {
        const column = element("span", "explorer-column", element("span", "explorer-bar"));
        column.setAttribute("aria-hidden", "true");
        return element("li", "", element("span", ""), " ", element("span", "explorer-weight"), column);
      }
      return () => {
        const { layers } = results.trained.trace;
        state.layer = Math.min(state.layer, layers.length - 1);
        state.head = Math.min(state.head, layers[0].heads.length - 1);
        choices.hidden = false;
        showLayers(layers.map((_, l) => `${l + 1}`), state.layer);
        showHeads(layers[0].heads.map((_, h) => `${h + 1}`), state.head);
        showQueries(named(now.tokens), state.token);
        const row = rowOf(layers[state.layer].heads[state.head].weights, state.token);
        setText(title, `“${now.tokens[state.token]}” attends to:`);
        each(keys, now.tokens, make, ({ children: [name, weight, column] }, token, t) => {
          setText(name, token);
          setText(weight, shown(row[t]));
          column.firstChild.style.height = `${100 * row[t]}%`;
        });
        const most = [...row.keys()].sort((a, b) => row[b] - row[a]).slice(0, 3);
        return `“${now.tokens[state.token]}” attends most to ${most.map((t) => `“${now.tokens[t]}” ${shown(row[t])}`).join(", ")}.`;
      };
    }

    function matrixPart(root) {
      const frame = table("", [], []), sorry = element("p", "", `All weights are shown as squares for up to ${LARGEST_MATRIX} tokens.`);
      return () => {
        const { weights } = results.trained.trace.layers[state.layer].heads[state.head];
        const small = now.ids.length <= LARGEST_MATRIX;
        if (small) weightMatrix(now.tokens, weights, `All weights of layer ${state.layer + 1}, head ${state.head + 1}`, frame);
        if (root.firstChild !== (small ? frame : sorry)) root.replaceChildren(small ? frame : sorry);
      };
    }

    function layerPart(root) {
      const list = element("ol", "live-steps"), view = element("div", "");
      view.replaceChildren(element("p", "", NOT_LOADED));
      root.replaceChildren(list, view);
      const buttons = STEPS.map((name, step) => {
        const one = element("button", "", name);
        one.type = "button";
        one.addEventListener("click", () => look({ step }));
        list.append(element("li", "", one));
        return one;
      });
      return () => {
        buttons.forEach((one, step) => one.setAttribute("aria-current", step === state.step ? "step" : "false"));
        view.replaceChildren(...layerStep(results.trained.trace, now.tokens, state));
      };
    }

    function comparePart(root, kinds) {
      const choices = element("div", "explorer-menus"), view = element("div", "");
      const pick = (side) => (place) => look({ words: state.words.with(side, place) });
      const showWords = ["Word in the first", "Word in the second"].map((caption, side) => menu(choices, caption, pick(side)));
      const chosen = (side) => Math.min(state.words[side], now.alone[side].length - 1); // a word may be half typed
      const cosines = {
        word: ([one, two]) => cosine(rowOf(one, chosen(0)), rowOf(two, chosen(1))),
        sentences: ([one, two]) => cosine(mean(one), mean(two)),
      };
      view.replaceChildren(element("p", "", NOT_LOADED));
      root.replaceChildren(choices, view);
      choices.hidden = true;
      return () => {
        choices.hidden = !now.alone.length || !kinds.includes("word");
        if (!now.alone.length) {
          view.replaceChildren(element("p", "", "Type a second sentence above, and both are compared."));
          return "";
        }
        now.alone.forEach((ids, side) => {
          showWords[side](named(ids.map((id) => files.tokenizer.vocabulary[id])), chosen(side));
        });
        const told = [results.trained, results.untrained].filter(Boolean).map(({ alone }) => alone);
        const layers = told[0][0].map((_, l) => [l ? `after layer ${l}` : "embeddings",
          ...told.flatMap((alone) => kinds.map((kind) => shown(cosines[kind](alone.map((states) => states[l])))))]);
        const names = [...kinds, ...kinds.map((kind) => `${kind}, untrained`)].slice(0, kinds.length * told.length);
        const what = { word: "the two words", sentences: "the means of all tokens" };
        view.replaceChildren(table(`Cosines of ${kinds.map((kind) => what[kind]).join(", and of ")}`, ["", ...names], layers));
        const last = names.map((name, place) => `${name} ${layers.at(-1)[1 + place]}`).join("; ");
        return `Cosine after the last layer: ${last}.`;
      };
    }
  }

  function cosine(a, b) {
    const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
    return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
  }

  function mean(states) {
    const sum = new Float64Array(states.columns);
    states.data.forEach((x, at) => { sum[at % states.columns] += x / states.rows; });
    return sum;
  }

  // One step of a layer, with the numbers of the chosen token: tables, and one calculation written out.
  function layerStep({ embeddings, layers, states }, tokens, { layer, head, token, step }) {
    const inside = layers[layer], h = inside.heads[head], width = inside.query[head].columns;
    const vectors = (caption, rows) => table(`${caption}: the first ${FEATURES} features of “${tokens[token]}”`,
      ["", ...Array.from({ length: FEATURES }, (_, i) => `${i + 1}`)],
      rows.map(([name, matrix, t = token]) => [name, ...Array.from(rowOf(matrix, t).subarray(0, FEATURES), shown)]));
    const first = (matrix, t = token) => rowOf(matrix, t)[0];
    const line = (text) => element("p", "live-sum", text);
    const weights = rowOf(h.weights, token), best = weights.indexOf(Math.max(...weights));
    const q = rowOf(inside.query[head], token), k = rowOf(inside.key[head], best);
    const plus = (a, b) => ({ ...a, data: a.data.map((x, i) => x + b.data[i]) });
    if (step === 0 && layer === 0) {
      const { token: word, position, segment, sum } = embeddings;
      return [vectors("The sum of three embeddings, and its norm", [["token", word], ["position", position],
        ["segment", segment], ["sum", sum], ["after layer norm", states[0]]]),
      line(`Feature 1: ${shown(first(word))} + ${shown(first(position))} + ${shown(first(segment))} = ${shown(first(sum))}`)];
    }
    if (step === 0) return [vectors(`What layer ${layer} gives to layer ${layer + 1}`, [["hidden state", states[layer]]])];
    if (step === 1) {
      return [vectors(`Query and key of head ${head + 1}`, [["query", inside.query[head]], ["key", inside.key[head]]]),
        line(`A head has ${width} features. A query is compared with the keys of all tokens: press “${STEPS[2]}”.`)];
    }
    if (step === 2) {
      const scores = rowOf(h.scores, token), largest = Math.max(...scores);
      const exponentials = scores.map((score) => Math.exp(score - largest)), total = exponentials.reduce((a, b) => a + b, 0);
      return [table(`From scores to weights: “${tokens[token]}” with each token`, ["key", "q · k", "score", "exp", "weight"],
        tokens.map((name, s) => [name, shown(scores[s] * Math.sqrt(width)), shown(scores[s]), exponentials[s].toFixed(3),
          weights[s].toFixed(3)])),
      line(`“${tokens[best]}”: q · k = ${shown(q[0])} · ${shown(k[0])} + ${shown(q[1])} · ${shown(k[1])} + … = ` +
        `${shown(scores[best] * Math.sqrt(width))}; divided by √${width} it is ${shown(scores[best])}; ` +
        `exp(${shown(scores[best])} − ${shown(largest)}) / ${shown(total)} = ${weights[best].toFixed(3)}`)];
    }
    if (step === 3) {
      const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, 3);
      return [vectors(`Values of head ${head + 1}, averaged with the weights`, [
        ...order.map((s) => [`value of ${tokens[s]}, weight ${shown(weights[s])}`, inside.value[head], s]),
        ["average over all tokens", h.mixed]]),
      line(`Feature 1: ${order.map((s) => `${shown(weights[s])} · ${shown(first(inside.value[head], s))}`).join(" + ")} + … = ` +
        shown(first(h.mixed)))];
    }
    if (step === 4) {
      const sum = plus(inside.input, inside.output);
      return [vectors("Attention's output is added to what went in", [["what went in", inside.input],
        ["attention's output, of all heads", inside.output], ["sum", sum], ["after layer norm", inside.between]]),
      line(`Feature 1: ${shown(first(inside.input))} + ${shown(first(inside.output))} = ${shown(first(sum))}`)];
    }
    const sum = plus(inside.between, inside.transformed);
    return [vectors("The feed-forward network's output is added to what it was given", [["what it was given", inside.between],
      ["feed-forward", inside.transformed], ["sum", sum], ["after layer norm", states[layer + 1]]]),
    line(`Feature 1: ${shown(first(inside.between))} + ${shown(first(inside.transformed))} = ${shown(first(sum))}`)];
  }

  // The page: its parts stand where its text speaks of them, and what was typed stands in its address.
  function preparePage(places) {
    const matrix = element("div", ""), { attention, ...others } = places, bars = element("div", "");
    attention.replaceChildren(bars, matrix);
    const saved = fragment.read();
    const start = prepare({ attention: bars, matrix, ...others }, saved, fragment.write,
      { predicts: true, asksTwice: true, examples: true });
    if (saved.size) start();
  }

  // A chapter: the parts that `data-parts` names, with a link that takes what was typed to the page.
  function prepareSmall(root) {
    const { parts, ...given } = root.dataset, names = parts.split(" "), write = element("div", "");
    root.querySelector(".live-instead").remove();
    const shownParts = names.filter((name) => name !== "predict").map((name) => [name, element("div", "")]);
    const link = element("a", "", "Go on with this on the page BERT, live");
    const keep = (values) => { link.href = `bert-live.html#bert?${new URLSearchParams(values)}`; };
    link.href = "bert-live.html";
    root.append(write, ...shownParts.map(([, place]) => place), element("p", "", link, "."));
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", "BERT, live");
    prepare({ write, ...Object.fromEntries(shownParts) }, new URLSearchParams(given), keep,
      { predicts: names.includes("predict"), asksTwice: "second" in given, examples: false });
  }

  document.addEventListener("DOMContentLoaded", () => {
    const places = Object.fromEntries([...document.querySelectorAll("[data-live]")].map((part) => [part.dataset.live, part]));
    if (places.write) preparePage(places);
    document.querySelectorAll("[data-parts]").forEach(prepareSmall);
  });

  return { load, startModel, element, menu, table, weightMatrix, predictionList, fragment, sequence, percent, shown, rowOf };
})();
