// BERT, live: the book's own pre-trained models run in the page, on what a reader types.
// bert.js is the model, wordpiece.js the tokenizer; this file loads weights, runs the model in a worker and shows numbers.
// The weights lie in scripts of their own (course_tools/site/live.py writes them), which are loaded when the reader asks for
// them; a page from disk may load a script and nothing else, and start a worker from a blob.
// What is typed becomes text nodes only, and stands in the address behind #, which no browser sends.
"use strict";

globalThis.courseLive = (() => {
  const FOLDER = "_static/live";
  const SHOWN = 5; // predictions of a position
  const PAUSE = 150; // milliseconds without an answer before the larger parts are drawn
  const LARGEST_MATRIX = 40; // tokens: more squares than that would make typing wait
  const FEATURES = 8; // of a vector, in the steps through a layer

  // -- Models --------------------------------------------------------------------------------------------------------

  // This runs in the worker: it is given bytes, builds the model and, if asked for, one that has learnt nothing, and answers.
  function liveWorker(bert, withControl) {
    const received = [];
    let models = [];
    function bytesOf(text) {
      const raw = atob(text), bytes = new Uint8Array(raw.length);
      for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
      return bytes;
    }
    async function build({ config, table }) {
      const weights = bert.readWeights(table, await new Blob(received).arrayBuffer());
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
        postMessage({
          number, which, trace: place ? null : trace, next, last: place === models.length - 1,
          top: positions.map((_, t) => best(chances.row(t), most)),
          alone: alone.map(statesOf),
        });
      });
    }
    onmessage = ({ data }) => {
      if (data.part) received.push(bytesOf(data.part));
      else if (data.table) build(data);
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
      if (told.part === 0) settings = { config: told.config, table: told.table };
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

  // A table of texts; its frame scrolls, by keyboard too.
  function table(caption, headers, rows) {
    const scoped = (scope, text) => Object.assign(element("th", "", text), { scope });
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

  // Weights as squares whose area is the weight; the number is there for who does not see it.
  function weightMatrix(tokens, weights, caption) {
    const rows = tokens.map((token, t) => [token, ...Array.from(rowOf(weights, t), (weight) => {
      const square = element("span", "live-square");
      const side = Number.isFinite(weight) ? Math.sqrt(Math.max(weight, 0)) : 0;
      square.style.width = square.style.height = `${side}rem`;
      return element("span", "live-cell", square, element("span", "live-number", shown(weight)));
    })]);
    const made = table(caption, ["query ↓ key →", ...tokens], rows);
    made.classList.add("live-matrix");
    return made;
  }

  function predictionList(name, hits, vocabulary) {
    const list = element("ol", "live-predictions", ...hits.map(({ id, chance }) => {
      const bar = element("span", "live-bar");
      bar.style.width = `${Number.isFinite(chance) ? 100 * chance : 0}%`;
      return element("li", "", element("code", "", vocabulary[id]), " ", percent(chance), bar);
    }));
    list.setAttribute("role", "list");
    list.setAttribute("aria-label", name);
    return element("div", "", element("p", "live-name", name), list);
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

  function preparePage(write, places) {
    const saved = fragment.read();
    const whole = (name, other) => Number.parseInt(saved.get(name) ?? other, 10) || 0;
    const state = {
      model: saved.get("model") === "mini" ? "mini" : "tiny",
      text: saved.get("text") ?? EXAMPLES[0][1], second: saved.get("second") ?? "",
      masked: new Set((saved.get("masked") ?? "").split(",").filter(Boolean).map(Number)),
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
    const showExamples = menu(menus, "Example", (place) => {
      if (!place) return;
      [, boxes[0].value, boxes[1].value] = EXAMPLES[place - 1];
      state.masked.clear();
      typed();
    });
    const labels = [];
    const boxes = ["Your sentence", "A second sentence, if you like"].map((caption, place) => {
      const box = element("textarea", "live-text");
      Object.assign(box, { rows: 2, maxLength: 400, spellcheck: false, value: [state.text, state.second][place] });
      box.addEventListener("input", typed);
      labels.push(element("label", "live-label", caption, box));
      return box;
    });
    const tokens = element("div", "live-tokens");
    tokens.setAttribute("role", "group");
    tokens.setAttribute("aria-label", "Tokens: press one to mask it");
    const predictions = element("div", "live-results");
    write.replaceChildren(menus, button, bar, ...labels, tokens, status, predictions);
    showModels(["tiny", "mini"], state.model === "mini" ? 1 : 0);
    showExamples(["choose …", ...EXAMPLES.map(([name]) => name)], 0);
    const attention = attentionPart(places.attention), layer = layerPart(places.layer), compare = comparePart(places.compare);

    const label = () => {
      button.textContent = `Load BERT ${state.model} (${state.model === "mini" ? "7.7" : "2.3"} MB)`;
    };
    button.type = "button";
    button.addEventListener("click", start);
    label();
    status.textContent = "Load the model, then type.";
    if (saved.size) start();

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
      [state.text, state.second] = boxes.map((box) => box.value);
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
      showTokens();
      model.ask({ ids: now.ids, types: now.types, mask: null, positions, alone: now.alone, most: SHOWN });
      keep();
    }

    function keep() {
      const { text, second, token, layer: number, head, step, words } = state;
      fragment.write({ model: state.model, text, second, masked: [...state.masked].join(), token, layer: number, head, step,
        word1: words[0], word2: words[1] });
    }

    // Another layer, head, step or word: the numbers are there already.
    function look(changed) {
      Object.assign(state, changed);
      keep();
      showInside();
    }

    function showInside() {
      if (!results.trained) return;
      attention();
      layer();
      compare();
    }

    function answer(data) {
      results[data.which] = data;
      showPredictions();
      clearTimeout(later);
      later = setTimeout(() => {
        showInside();
        if (results.untrained) write.removeAttribute("aria-busy");
      }, PAUSE);
    }

    function showTokens() {
      const focused = [...tokens.children].indexOf(document.activeElement);
      tokens.replaceChildren(...now.tokens.map((token, t) => {
        const one = element("button", "live-token", token);
        one.type = "button";
        one.setAttribute("aria-pressed", String(state.masked.has(t)));
        one.disabled = ["[CLS]", "[SEP]"].includes(token);
        one.addEventListener("click", () => {
          if (!state.masked.delete(t)) state.masked.add(t);
          state.token = t;
          run();
        });
        return one;
      }));
      tokens.children[focused]?.focus();
    }

    function showPredictions() {
      const { vocabulary } = files.tokenizer, { trained, untrained } = results;
      const parts = now.positions.map((position, place) => {
        const lists = [["BERT " + state.model, trained], ["the same, untrained", untrained]].filter(([, result]) => result)
          .map(([name, result]) => predictionList(name, result.top[place], vocabulary));
        const what = now.holes.length ? "behind [MASK]" : `where “${now.tokens[position]}” stands, which the model sees`;
        return element("div", "live-position", element("p", "", `Position ${position}: what the model predicts ${what}`),
          element("div", "live-lists", ...lists));
      });
      const said = now.positions.map((position, place) => `Position ${position}: ` +
        trained.top[place].slice(0, 3).map(({ id, chance }) => `${vocabulary[id]} ${percent(chance)}`).join(", ") + ".");
      if (now.alone.length) {
        const control = untrained ? `; untrained ${percent(untrained.next)}` : "";
        said.push(`The second sentence follows the first: ${percent(trained.next)}${control}.`);
      }
      predictions.replaceChildren(...parts);
      if (untrained || !now.alone.length) status.textContent = said.join(" ");
    }

    function attentionPart(root) {
      const choices = element("div", "explorer-menus"), view = element("div", "");
      const showLayers = menu(choices, "Layer", (place) => look({ layer: place }));
      const showHeads = menu(choices, "Head", (place) => look({ head: place }));
      const showQueries = menu(choices, "Token that attends", (place) => {
        look({ token: place });
        if (!now.holes.length) run(); // that token is predicted
      });
      root.replaceChildren(choices, view);
      return () => {
        const { layers } = results.trained.trace;
        state.layer = Math.min(state.layer, layers.length - 1);
        state.head = Math.min(state.head, layers[0].heads.length - 1);
        showLayers(layers.map((_, l) => `${l + 1}`), state.layer);
        showHeads(layers[0].heads.map((_, h) => `${h + 1}`), state.head);
        showQueries(named(now.tokens), state.token);
        const { weights } = layers[state.layer].heads[state.head], row = rowOf(weights, state.token);
        const keys = element("ol", "explorer-keys", ...now.tokens.map((token, t) => {
          const inner = element("span", "explorer-bar"), column = element("span", "explorer-column", inner);
          inner.style.height = `${100 * row[t]}%`;
          column.setAttribute("aria-hidden", "true");
          return element("li", "", token, " ", element("span", "explorer-weight", shown(row[t])), column);
        }));
        keys.setAttribute("role", "list");
        keys.setAttribute("aria-label", "Tokens and their weights");
        const matrix = now.ids.length > LARGEST_MATRIX
          ? element("p", "", `All weights are shown as squares for up to ${LARGEST_MATRIX} tokens.`)
          : weightMatrix(now.tokens, weights, `All weights of layer ${state.layer + 1}, head ${state.head + 1}`);
        view.replaceChildren(element("p", "", `“${now.tokens[state.token]}” attends to:`), keys, matrix);
      };
    }

    function layerPart(root) {
      const list = element("ol", "live-steps"), view = element("div", "");
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

    function comparePart(root) {
      const choices = element("div", "explorer-menus"), view = element("div", "");
      const pick = (side) => (place) => look({ words: state.words.with(side, place) });
      const showWords = ["Word in the first", "Word in the second"].map((caption, side) => menu(choices, caption, pick(side)));
      root.replaceChildren(choices, view);
      choices.hidden = true;
      return () => {
        choices.hidden = !now.alone.length;
        if (!now.alone.length) {
          view.replaceChildren(element("p", "", "Type a second sentence above, or choose the example “One word, two senses”."));
          return;
        }
        now.alone.forEach((ids, side) => {
          state.words[side] = Math.min(state.words[side], ids.length - 1);
          showWords[side](named(ids.map((id) => files.tokenizer.vocabulary[id])), state.words[side]);
        });
        const told = [results.trained, results.untrained].filter(Boolean).map(({ alone }) => alone);
        const layers = told[0][0].map((_, l) => [l ? `after layer ${l}` : "embeddings",
          ...told.flatMap(([one, two]) => [
            shown(cosine(rowOf(one[l], state.words[0]), rowOf(two[l], state.words[1]))),
            shown(cosine(mean(one[l]), mean(two[l])))])]);
        const heads = ["", "word", "sentences", "word, untrained", "sentences, untrained"].slice(0, 1 + 2 * told.length);
        view.replaceChildren(table("Cosines of the two words, and of the means of all tokens", heads, layers));
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

  document.addEventListener("DOMContentLoaded", () => {
    const places = Object.fromEntries([...document.querySelectorAll("[data-live]")].map((part) => [part.dataset.live, part]));
    if (places.write) preparePage(places.write, places);
  });

  return { load, startModel, element, menu, table, weightMatrix, predictionList, fragment, sequence, percent, shown, rowOf };
})();
