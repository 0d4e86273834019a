// BERT in plain JavaScript: the forward pass of course_lib/bert, with its names and in its order, for one sequence.
// It is one function, so that a page can start a worker from its text (`String(courseBert)`) where no file can be fetched,
// and so that the clinic can change one line of that text. What it does not do: no batch, no dropout, no gradients.
//
//   T  tokens     D  features     H  heads     N  features of one head     V  tokens of the vocabulary
//
// The numbers of lines are those of course_lib/bert/model.py, which are those of Phuong and Hutter 2022, algorithm 9.
"use strict";

globalThis.courseBert = function courseBert() {
  // -- Matrices ------------------------------------------------------------------------------------------------------

  // Rows one after the other in a typed array: row t is the vector of token t.
  class Matrix {
    constructor(rows, columns, data = new Float32Array(rows * columns)) {
      Object.assign(this, { rows, columns, data });
    }

    row(t) {
      return this.data.subarray(t * this.columns, (t + 1) * this.columns);
    }

    // A matrix of f(value, row, column).
    map(f) {
      const mapped = new Matrix(this.rows, this.columns);
      for (let t = 0, at = 0; t < this.rows; t += 1) {
        for (let i = 0; i < this.columns; i += 1, at += 1) mapped.data[at] = f(this.data[at], t, i);
      }
      return mapped;
    }

    plus(other) {
      return this.map((x, t, i) => x + other.data[t * this.columns + i]);
    }

    transpose() {
      return new Matrix(this.columns, this.rows).map((_, i, t) => this.data[t * this.columns + i]);
    }

    // Some of the rows, in this order; a row may be taken twice.
    gather(rows) {
      return new Matrix(rows.length, this.columns).map((_, t, i) => this.data[rows[t] * this.columns + i]);
    }

    columnsFrom(first, count) {
      return new Matrix(this.rows, count).map((_, t, i) => this.data[t * this.columns + first + i]);
    }
  }

  // Dot products of all rows of one matrix with all rows of another, a b^T, and a number added to each column.
  // Two rows of a and four of b are read at once, so that each number that is read is used several times.
  function dots(a, b, bias = null) {
    const out = new Matrix(a.rows, b.rows), width = a.columns, x = a.data, w = b.data, y = out.data;
    for (let s = 0; s < b.rows; s += 4) {
      const last = b.rows - 1, b0 = s * width, b1 = Math.min(s + 1, last) * width;
      const b2 = Math.min(s + 2, last) * width, b3 = Math.min(s + 3, last) * width;
      for (let t = 0; t < a.rows; t += 2) {
        const next = Math.min(t + 1, a.rows - 1), a0 = t * width, a1 = next * width;
        let s00 = 0, s01 = 0, s02 = 0, s03 = 0, s10 = 0, s11 = 0, s12 = 0, s13 = 0;
        for (let i = 0; i < width; i += 1) {
          const x0 = x[a0 + i], x1 = x[a1 + i], w0 = w[b0 + i], w1 = w[b1 + i], w2 = w[b2 + i], w3 = w[b3 + i];
          s00 += x0 * w0; s01 += x0 * w1; s02 += x0 * w2; s03 += x0 * w3;
          s10 += x1 * w0; s11 += x1 * w1; s12 += x1 * w2; s13 += x1 * w3;
        }
        const y0 = t * b.rows + s, y1 = next * b.rows + s, count = b.rows - s; // what is beyond the last column is left out
        y[y0] = s00; y[y1] = s10;
        if (count > 1) { y[y0 + 1] = s01; y[y1 + 1] = s11; }
        if (count > 2) { y[y0 + 2] = s02; y[y1 + 2] = s12; }
        if (count > 3) { y[y0 + 3] = s03; y[y1 + 3] = s13; }
      }
    }
    if (bias) for (let at = 0; at < y.length; at += 1) y[at] += bias.data[at % b.rows];
    return out;
  }

  // Softmax of each row. Subtracting the largest score changes no weight, and exp cannot overflow.
  function softmax(scores) {
    const weights = new Matrix(scores.rows, scores.columns);
    for (let t = 0; t < scores.rows; t += 1) {
      const row = scores.row(t), largest = row.reduce((a, b) => Math.max(a, b), -Infinity);
      const exponentials = Float64Array.from(row, (score) => Math.exp(score - largest));
      const total = exponentials.reduce((a, b) => a + b, 0);
      weights.row(t).set(exponentials.map((one) => one / total));
    }
    return weights;
  }

  // Each row with mean 0 and variance 1 (divided by D, not by D - 1).
  function standardise(hidden, eps) {
    const normal = new Matrix(hidden.rows, hidden.columns);
    for (let t = 0; t < hidden.rows; t += 1) {
      const row = hidden.row(t), size = row.length;
      const mean = row.reduce((sum, x) => sum + x, 0) / size;
      const variance = row.reduce((sum, x) => sum + (x - mean) ** 2, 0) / size;
      normal.row(t).set(row.map((x) => (x - mean) / Math.sqrt(variance + eps)));
    }
    return normal;
  }

  // The error function, to 2e-7 (Abramowitz and Stegun 1964, 7.1.26).
  function erf(x) {
    const t = 1 / (1 + 0.3275911 * Math.abs(x));
    const series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
    return Math.sign(x) * (1 - series * Math.exp(-x * x));
  }

  function gelu(x) {
    return 0.5 * x * (1 + erf(x / Math.SQRT2));
  }

  // -- Layers that every network has ---------------------------------------------------------------------------------

  class Linear {
    constructor(weights, name, shared = null) {
      this.weight = shared ?? weights.get(`${name}.weight`);
      this.bias = weights.get(`${name}.bias`);
    }

    forward(input) {
      return dots(input, this.weight, this.bias); // x W^T + b
    }
  }

  class LayerNorm {
    constructor(weights, name, eps) {
      this.gain = weights.get(`${name}.weight`);
      this.bias = weights.get(`${name}.bias`);
      this.eps = eps;
    }

    forward(hidden) {
      const normal = standardise(hidden, this.eps);
      return normal.map((x, t, i) => this.gain.data[i] * x + this.bias.data[i]);
    }
  }

  // -- Attention (course_lib/attention/multi_head.py) ----------------------------------------------------------------

  function scaledDotProductAttention(query, key, value, mask) {
    let scores = dots(query, key).map((score) => score / Math.sqrt(query.columns)); // (T, T)
    if (mask) scores = scores.map((score, t, s) => (mask[s] ? score : -Infinity));
    const weights = softmax(scores); // each row sums to 1
    return { mixed: dots(weights, value.transpose()), weights, scores }; // mixed: (T, N)
  }

  // Head h holds features h N to (h + 1) N - 1.
  function splitHeads(hidden, numHeads) {
    const width = hidden.columns / numHeads;
    return Array.from({ length: numHeads }, (_, h) => hidden.columnsFrom(h * width, width));
  }

  function mergeHeads(heads) {
    const [{ rows, columns: width }] = heads;
    const merged = new Matrix(rows, heads.length * width);
    heads.forEach((head, h) => {
      for (let t = 0; t < rows; t += 1) {
        const place = t * merged.columns + h * width;
        merged.data.set(head.row(t), place);
      }
    });
    return merged;
  }

  class MultiHeadAttention {
    constructor(weights, name, config) {
      this.numHeads = config.num_attention_heads;
      for (const part of ["query", "key", "value", "output"]) this[part] = new Linear(weights, `${name}.${part}`);
    }

    forward(hidden, mask, trace) {
      const query = splitHeads(this.query.forward(hidden), this.numHeads); // H times (T, N)
      const key = splitHeads(this.key.forward(hidden), this.numHeads);
      const value = splitHeads(this.value.forward(hidden), this.numHeads);
      const heads = query.map((_, h) => scaledDotProductAttention(query[h], key[h], value[h], mask));
      const mixed = mergeHeads(heads.map((head) => head.mixed)); // (T, D)
      const output = this.output.forward(mixed);
      if (trace) Object.assign(trace, { query, key, value, heads, mixed, output });
      return output;
    }
  }

  // -- The encoder's block (course_lib/transformer/blocks.py) --------------------------------------------------------

  class FeedForward {
    constructor(weights, name) {
      this.expand = new Linear(weights, `${name}.expand`);
      this.contract = new Linear(weights, `${name}.contract`);
    }

    forward(hidden) {
      return this.contract.forward(this.expand.forward(hidden).map(gelu));
    }
  }

  class EncoderBlock {
    constructor(weights, name, config) {
      this.attention = new MultiHeadAttention(weights, `${name}.attention`, config);
      this.feedForward = new FeedForward(weights, `${name}.feed_forward`);
      this.norm1 = new LayerNorm(weights, `${name}.norm1`, config.layer_norm_eps);
      this.norm2 = new LayerNorm(weights, `${name}.norm2`, config.layer_norm_eps);
    }

    forward(hidden, mask, trace) {
      const attended = this.attention.forward(hidden, mask, trace);
      const between = this.norm1.forward(hidden.plus(attended));
      const transformed = this.feedForward.forward(between);
      if (trace) Object.assign(trace, { input: hidden, between, transformed });
      return this.norm2.forward(between.plus(transformed));
    }
  }

  // -- BERT (course_lib/bert/layers.py and model.py) -----------------------------------------------------------------

  class BertEmbeddings {
    constructor(weights, name, config) {
      for (const table of ["token", "position", "segment"]) this[table] = weights.get(`${name}.${table}.weight`);
      this.norm = new LayerNorm(weights, `${name}.norm`, config.layer_norm_eps);
    }

    forward(inputIds, tokenTypeIds, trace) {
      const positions = inputIds.map((_, t) => t);
      const token = this.token.gather(inputIds); // (T, D)
      const position = this.position.gather(positions);
      const segment = this.segment.gather(tokenTypeIds);
      const sum = token.plus(position).plus(segment);
      if (trace) Object.assign(trace, { token, position, segment, sum });
      return this.norm.forward(sum);
    }
  }

  class BertPooler {
    constructor(weights, name) {
      this.dense = new Linear(weights, `${name}.dense`);
    }

    forward(hidden) {
      return this.dense.forward(hidden.gather([0])).map(Math.tanh); // the state of [CLS]
    }
  }

  class MaskedLanguageModelHead {
    constructor(weights, name, config, embedding) {
      this.dense = new Linear(weights, `${name}.dense`);
      this.norm = new LayerNorm(weights, `${name}.norm`, config.layer_norm_eps);
      this.output = new Linear(weights, `${name}.output`, embedding); // the embedding matrix is shared
    }

    forward(hidden) {
      const transformed = this.dense.forward(hidden).map(gelu); // line 10
      return this.output.forward(this.norm.forward(transformed)); // lines 11 and 12, without the softmax
    }
  }

  class NextSentenceHead {
    constructor(weights, name) {
      this.output = new Linear(weights, `${name}.output`);
    }

    forward(pooled) {
      return this.output.forward(pooled); // logit 0 stands for IsNext, 1 for NotNext
    }
  }

  class BertModel {
    constructor(weights, name, config) {
      this.embeddings = new BertEmbeddings(weights, `${name}.embeddings`, config);
      this.blocks = Array.from({ length: config.num_hidden_layers },
        (_, number) => new EncoderBlock(weights, `${name}.blocks.${number}`, config));
      this.pooler = new BertPooler(weights, `${name}.pooler`);
    }

    // `trace`, an object, is given what happens inside: { embeddings, layers, states }.
    forward(inputIds, attentionMask, tokenTypeIds, trace) {
      if (trace) Object.assign(trace, { embeddings: {}, layers: [], states: [] });
      let hidden = this.embeddings.forward(inputIds, tokenTypeIds, trace?.embeddings); // line 2
      trace?.states.push(hidden);
      for (const block of this.blocks) { // line 4
        const inside = trace && {};
        hidden = block.forward(hidden, attentionMask, inside); // lines 5 to 8
        trace?.layers.push(inside);
        trace?.states.push(hidden);
      }
      return { lastHiddenState: hidden, poolerOutput: this.pooler.forward(hidden) };
    }
  }

  class BertForPreTraining {
    // `weights`: a Map from the library's names of parameters to matrices; a vector is a matrix of one row.
    constructor(config, weights) {
      this.bert = new BertModel(weights, "bert", config);
      this.mlmHead = new MaskedLanguageModelHead(weights, "mlm_head", config, this.bert.embeddings.token);
      this.nspHead = new NextSentenceHead(weights, "nsp_head");
    }

    // `inputIds`, `tokenTypeIds`: arrays of T whole numbers; `attentionMask`: T booleans, or null; `maskedPositions`: where
    // tokens are to be predicted.
    forward(inputIds, attentionMask, tokenTypeIds, maskedPositions, trace) {
      const { lastHiddenState, poolerOutput } = this.bert.forward(inputIds, attentionMask, tokenTypeIds, trace);
      return {
        predictionLogits: this.mlmHead.forward(lastHiddenState.gather(maskedPositions)), // one row a position
        seqRelationshipLogits: this.nspHead.forward(poolerOutput),
      };
    }
  }

  // -- What goes in --------------------------------------------------------------------------------------------------

  // [CLS] first, [SEP] behind each segment; segment 0 for the first and its special tokens, 1 for the second.
  // Too long a pair loses tokens at the end of the longer segment.
  function pairInput(first, second, clsId, sepId, maxLength) {
    const segments = second ? [[...first], [...second]] : [[...first]];
    while (segments.flat().length + 1 + segments.length > maxLength) {
      const longest = Math.max(...segments.map((segment) => segment.length));
      segments.findLast((segment) => segment.length === longest).pop();
    }
    const inputIds = [clsId], tokenTypeIds = [0];
    segments.forEach((segment, number) => {
      inputIds.push(...segment, sepId);
      tokenTypeIds.push(...segment.map(() => number), number);
    });
    return { inputIds, tokenTypeIds };
  }

  // -- Weights -------------------------------------------------------------------------------------------------------

  // The bytes in the texts that course_tools/site/live.py writes: five characters, digits to base 85, are four bytes; the
  // first `size` of them are deflated (RFC 1951), the rest fills the last five characters.
  const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%:()*+-;,=.?@^_`{|}~";
  async function unpack(texts, size) {
    const digits = new Uint8Array(128);
    [...DIGITS].forEach((character, digit) => { digits[character.charCodeAt(0)] = digit; });
    const parts = texts.map((text) => {
      const part = new DataView(new ArrayBuffer(text.length / 5 * 4));
      for (let i = 0; i < text.length; i += 5) {
        let word = 0;
        for (let k = i; k < i + 5; k += 1) word = 85 * word + digits[text.charCodeAt(k)];
        part.setUint32(i / 5 * 4, word);
      }
      return part;
    });
    const inflated = new Blob(parts).slice(0, size).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(inflated).arrayBuffer();
  }

  // Each tensor of the table, in its order, as float32, or, where it has a step, as whole numbers of steps: first the upper
  // bytes of all its numbers, then the lower ones, which are below 32.
  function readWeights(table, buffer) {
    const weights = new Map();
    let at = 0;
    for (const [name, rows, columns, step] of table) {
      const count = rows * columns;
      if (step === null) weights.set(name, new Matrix(rows, columns, new Float32Array(buffer.slice(at, at += 4 * count))));
      else {
        const upper = new Int8Array(buffer, at, count), lower = new Uint8Array(buffer, at + count, count);
        const number = (_, t, i) => step * (32 * upper[t * columns + i] + lower[t * columns + i]);
        weights.set(name, new Matrix(rows, columns).map(number));
        at += 2 * count;
      }
    }
    return weights;
  }

  // A model that has learnt nothing, the control: normal numbers cut off at two standard deviations, gains 1, biases 0.
  function untrainedWeights(table, std, seed) {
    let state = seed;
    function uniform() { // mulberry32, above 0
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return (((t ^ (t >>> 14)) >>> 0) + 1) / 4294967297;
    }
    function normal() {
      const x = Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
      return Math.abs(x) > 2 ? normal() : x;
    }
    return new Map(table.map(([name, rows, columns]) => {
      const start = rows > 1 ? () => std * normal() : () => (name.endsWith(".weight") ? 1 : 0);
      return [name, new Matrix(rows, columns).map(start)];
    }));
  }

  return { Matrix, BertForPreTraining, pairInput, unpack, readWeights, untrainedWeights, softmax };
};
