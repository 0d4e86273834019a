// Search in the page: type a question, and see the paragraphs that words, vectors and both together find.
// The data lie in a script of their own, several megabytes, which is loaded when the reader asks for it; a page from disk
// may load a script and nothing else. It holds a tokenizer, a vector for each of its pieces, and all paragraphs,
// compressed (course_lab/ch09_sentence_bert/search_explorer.py writes it). The index is made here: of each paragraph its words, and the mean
// of the vectors of its pieces. What is computed is that of course_lab/ch09_sentence_bert/bm25.py and sentence_encoders.py.
// What is typed and found becomes text nodes only. Nothing is stored and nothing is sent.
"use strict";

(() => {
  const WAYS = ["By words (BM25)", "By vectors", "Both added"];
  const SHOWN = 5; // hits of each way
  const AT_ONCE = 1500; // paragraphs that are indexed before the page may move
  const PAUSE = 250; // milliseconds without a key before a question is answered
  const WORD = /[\p{L}\p{N}_]+/gu; // what Python's \w matches

  // -- Reading the data ----------------------------------------------------------------------------------------------

  const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

  async function unpack(data) {
    const stream = new Blob([bytesOf(data.collection)]).stream().pipeThrough(new DecompressionStream("gzip"));
    const collection = JSON.parse(await new Response(stream).text());
    const scales = new Float32Array(bytesOf(data.scales).buffer);
    const numbers = new Int8Array(bytesOf(data.table).buffer);
    const table = Float32Array.from(numbers, (number, place) => number * scales[Math.floor(place / data.features)]);
    return { ...collection, paragraphs: collection.paragraphs.split("\n"), table };
  }

  let loading = null;
  function load(source) { // once for all searches of a page
    loading ??= new Promise((resolve, reject) => {
      globalThis.courseSearchData = (data) => unpack(data).then((parts) => resolve({ ...data, ...parts }), reject);
      const script = document.createElement("script");
      script.src = source;
      script.onerror = () => reject(new Error(`could not load ${source}`));
      document.head.append(script);
    });
    return loading;
  }

  // -- Vectors -------------------------------------------------------------------------------------------------------

  // Ids without [CLS] and [SEP]. A space ends a word, so what stands between two spaces is cut once and kept.
  function idsOf(text, tokenizer, known) {
    return text.split(" ").flatMap((part) => {
      if (!known.has(part)) {
        known.set(part, courseWordPiece.encode(part, tokenizer).pieces.slice(1, -1).map(({ id }) => id));
      }
      return known.get(part);
    });
  }

  // The mean of the pieces' vectors, with length 1; zeros if there is no piece. Lengths do not matter, so a sum will do.
  function addVector(ids, table, features, target, start) {
    for (const id of ids) {
      for (let f = 0; f < features; f += 1) target[start + f] += table[id * features + f];
    }
    let square = 0;
    for (let f = 0; f < features; f += 1) square += target[start + f] ** 2;
    if (square > 0) for (let f = 0; f < features; f += 1) target[start + f] /= Math.sqrt(square);
  }

  // -- BM25 ----------------------------------------------------------------------------------------------------------

  function countWords(text, numbers) {
    const counts = new Map();
    const words = text.toLowerCase().match(WORD) ?? [];
    for (const word of words) {
      if (!numbers.has(word)) numbers.set(word, numbers.size);
      const number = numbers.get(word);
      counts.set(number, (counts.get(number) ?? 0) + 1);
    }
    return { counts, length: words.length };
  }

  // For each word the paragraphs that have it, and how often: three flat arrays.
  function invert(counted, size) {
    const starts = new Uint32Array(size + 1);
    for (const { counts } of counted) for (const word of counts.keys()) starts[word + 1] += 1;
    for (let word = 0; word < size; word += 1) starts[word + 1] += starts[word];
    const next = starts.slice(), places = new Uint32Array(starts[size]), times = new Uint16Array(starts[size]);
    counted.forEach(({ counts }, place) => counts.forEach((count, word) => {
      places[next[word]] = place;
      times[next[word]] = count;
      next[word] += 1;
    }));
    return { starts, places, times };
  }

  // -- The index -----------------------------------------------------------------------------------------------------

  async function makeIndex(data, report) {
    const { paragraphs, features, table } = data;
    const tokenizer = courseWordPiece.prepare(data.tokenizer);
    const known = new Map(), numbers = new Map(), counted = [];
    const vectors = new Float32Array(paragraphs.length * features);
    for (let first = 0; first < paragraphs.length; first += AT_ONCE) {
      const last = Math.min(first + AT_ONCE, paragraphs.length);
      for (let place = first; place < last; place += 1) {
        addVector(idsOf(paragraphs[place], tokenizer, known), table, features, vectors, place * features);
        counted.push(countWords(paragraphs[place], numbers));
      }
      report(last / paragraphs.length);
      await new Promise((resolve) => setTimeout(resolve));
    }
    const inverted = invert(counted, numbers.size), lengths = counted.map(({ length }) => length);
    const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
    const [k1, b] = data.bm25;
    const held = Float64Array.from(lengths, (length) => k1 * (1 - b + (b * length) / mean));

    function encode(text) {
      const ids = idsOf(text, tokenizer, new Map()), vector = new Float32Array(features);
      addVector(ids, table, features, vector, 0);
      return { ids, vector };
    }

    function cosines(text) {
      const { vector } = encode(text), scores = new Float64Array(paragraphs.length);
      for (let place = 0, at = 0; place < scores.length; place += 1) {
        let sum = 0;
        for (let f = 0; f < features; f += 1, at += 1) sum += vector[f] * vectors[at];
        scores[place] = sum;
      }
      return scores;
    }

    function words(text) {
      const { starts, places, times } = inverted, scores = new Float64Array(paragraphs.length);
      for (const word of text.toLowerCase().match(WORD) ?? []) {
        const number = numbers.get(word);
        if (number === undefined) continue; // a word that no paragraph has
        const from = starts[number], to = starts[number + 1];
        const rare = Math.log1p((paragraphs.length - (to - from) + 0.5) / (to - from + 0.5));
        for (let at = from; at < to; at += 1) {
          scores[places[at]] += (rare * times[at] * (k1 + 1)) / (times[at] + held[places[at]]);
        }
      }
      return scores;
    }

    function search(text, most = SHOWN) {
      const byWords = words(text), byVectors = cosines(text);
      const greatest = Math.max(byWords.reduce((a, score) => Math.max(a, score), 0), 1e-9);
      const both = byVectors.map((score, place) => byWords[place] / greatest + score);
      return [byWords, byVectors, both].map((scores) => best(scores, most));
    }

    return { encode, search };
  }

  // The places of the largest scores above 0, the largest first; among equals the first.
  function best(scores, most) {
    const hits = [];
    scores.forEach((score, place) => {
      if (score <= 0 || (hits.length === most && score <= hits[most - 1].score)) return;
      const at = hits.findIndex((hit) => hit.score < score);
      hits.splice(at < 0 ? hits.length : at, 0, { place, score });
      hits.length = Math.min(hits.length, most);
    });
    return hits;
  }

  // -- The page ------------------------------------------------------------------------------------------------------

  function element(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children);
    return made;
  }

  // For each paragraph the document that it is of.
  function ownersOf({ documents, packages }) {
    return documents.flatMap(([number, title, count]) => new Array(count).fill({ package: packages[number][0], title }));
  }

  function licencesOf({ packages }) {
    const parts = packages.map(([name, version, licence, text]) =>
      element("details", "", element("summary", "", `${name} ${version}: ${licence}`), element("pre", "", text)));
    for (const part of parts) part.querySelector("pre").tabIndex = 0; // it scrolls
    return element("details", "searcher-licences", element("summary", "", "Licences of the texts"), ...parts);
  }

  function prepareSearch(root, number) {
    const settings = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const count = settings.paragraphs.toLocaleString("en");
    const input = element("input", "searcher-question");
    input.id = `searcher-question-${number}`;
    input.type = "search";
    input.maxLength = 500;
    input.autocomplete = "off";
    input.value = settings.question;
    const label = element("label", "", "Your question");
    label.htmlFor = input.id;
    const button = element("button", "", `Search ${count} paragraphs (loads ${settings.megabytes} MB)`);
    const form = element("form", "", label, input, button);
    const status = element("p", "searcher-status");
    status.setAttribute("role", "status");
    const bar = element("progress", "");
    bar.setAttribute("aria-label", "Making the index");
    bar.hidden = true;
    const results = element("div", "searcher-results");

    let index = null, owners = null, paragraphs = null, starting = false, waiting = 0;

    function showHits() {
      clearTimeout(waiting);
      const question = input.value.trim();
      if (!question) {
        results.replaceChildren();
        status.textContent = "Type a question.";
        return;
      }
      const found = index.search(question);
      results.replaceChildren(...found.map((hits, way) => {
        const list = element("ol", "", ...hits.map(({ place, score }) => element("li", "",
          element("code", "", owners[place].title), " ",
          element("span", "searcher-score", `${owners[place].package}, ${score.toFixed(2)}`),
          element("p", "", paragraphs[place]))));
        list.setAttribute("role", "list"); // some screen readers drop the role of a list that is styled
        list.setAttribute("aria-label", WAYS[way]);
        return element("div", "", element("p", "searcher-way", WAYS[way]), hits.length ? list : element("p", "", "Nothing."));
      }));
      const [byWords, byVectors] = found.map((hits) => hits.map(({ place }) => place));
      const shared = byWords.filter((place) => byVectors.includes(place)).length;
      status.textContent = `Found for “${question}”: the first ${SHOWN} of each way. ` +
        `Words and vectors share ${shared} of them.`;
    }

    async function start() {
      if (starting) return;
      starting = true;
      button.setAttribute("aria-disabled", "true");
      status.textContent = `Loading ${settings.megabytes} MB, and making the index …`;
      bar.hidden = false;
      try {
        const data = await load(settings.source);
        index = await makeIndex(data, (share) => { bar.value = share; });
        [owners, paragraphs] = [ownersOf(data), data.paragraphs];
        root.courseSearch = index; // for a curious reader's console
        root.append(licencesOf(data));
        button.textContent = "Search";
        showHits();
      } catch (error) {
        starting = false;
        loading = null;
        status.textContent = `The search cannot start: ${error.message}.`;
      }
      bar.hidden = true;
      button.removeAttribute("aria-disabled");
    }

    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (index) showHits();
      else start();
    });
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      if (index) waiting = setTimeout(showHits, PAUSE);
    });
    root.querySelector(".searcher-static").before(form, status, bar, results);
    root.querySelector(".searcher-static").open = false;
    status.textContent = "Press Enter to load the paragraphs.";
  }

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".searcher").forEach(prepareSearch));
})();
