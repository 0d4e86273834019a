// The clinic's patients: twenty-four mistakes that people make in a BERT, each as a change of one place in bert.js.
// The names are those of the known wrong answers to the assignments (tests/assignments/mutants): the fault in Python has the
// same name, and the tests compare the two. `from` stands once in bert.js, `library` once in the file of the library.
"use strict";

globalThis.coursePatients = (() => {
  const ATTENTION = "course_lib/attention/multi_head.py", BLOCKS = "course_lib/transformer/blocks.py";
  const LAYERS = "course_lib/bert/layers.py", MODEL = "course_lib/bert/model.py", LAY_OUT = "course_lib/pretraining/sequences.py";

  const part = (name, chapter, file, patients) => patients.map((patient) => ({ part: name, chapter, file, ...patient }));
  const TWO = ["02-self-attention", "chapter 2"], THREE = ["03-transformer", "chapter 3"], FIVE = ["05-bert", "chapter 5"];

  return [
    ...part("Segments", FIVE, LAY_OUT, [
      {
        name: "second_segment_one_late",
        fault: "The second segment starts one token late",
        from: "    return { inputIds, tokenTypeIds };",
        to: "    if (segments.length === 2) tokenTypeIds[segments[0].length + 2] = 0;\n    return { inputIds, tokenTypeIds };",
        library: "segments[_ranges(place, sizes + 1)] = np.repeat(",
        test: "Write down the segment ids of a pair with two words and one word by hand: 0 0 0 0 1 1.",
      },
      {
        name: "one_segment_id_for_all",
        fault: "Every token has segment 0",
        from: "tokenTypeIds.push(...segment.map(() => number), number);",
        to: "tokenTypeIds.push(...segment.map(() => 0), 0);",
        library: "segments[_ranges(place, sizes + 1)] = np.repeat(",
        test: "Write down the segment ids of a pair by hand: those of the second segment are 1.",
      },
    ]),
    ...part("Embeddings", FIVE, LAYERS, [
      {
        name: "no_positions",
        fault: "The positions are not added",
        from: "token.plus(position).plus(segment)",
        to: "token.plus(segment)",
        library: "hidden = self.token(input_ids) + self.position(positions)  # (B, T, D)",
        test: "Swap two words: if the output is the same vectors swapped, the model does not know the order.",
      },
      {
        name: "positions_from_one",
        fault: "Positions are counted from 1",
        from: "inputIds.map((_, t) => t)",
        to: "inputIds.map((_, t) => t + 1)",
        library: "positions = torch.arange(input_ids.shape[1], device=input_ids.device)",
        test: "Set the position table to 0 but for row 0: the state of [CLS] must change.",
      },
      {
        name: "embeddings_without_norm",
        fault: "The sum of the embeddings is not normalised",
        from: "return this.norm.forward(sum);",
        to: "return sum;",
        library: "return self.dropout(self.norm(hidden + self.segment(segments)))",
        test: "With gain 1 and bias 0, each vector that leaves the embeddings has mean 0 and variance 1.",
      },
      {
        name: "words_times_root_d",
        fault: "Token embeddings are multiplied by √D, as in the Transformer",
        from: "const token = this.token.gather(inputIds); // (T, D)",
        to: "const token = this.token.gather(inputIds).map((x) => x * Math.sqrt(this.token.columns)); // (T, D)",
        library: "hidden = self.token(input_ids) + self.position(positions)  # (B, T, D)",
        test: "Compare the sum of the three embeddings with one computed by hand.",
      },
    ]),
    ...part("Attention", TWO, ATTENTION, [
      {
        name: "not_scaled",
        fault: "Scores are not divided by √N (N: features of a head)",
        from: ".map((score) => score / Math.sqrt(query.columns))",
        to: "",
        library: "scores = query @ key.mT / math.sqrt(query.shape[-1])  # (*batch, T, S)",
        test: "One query, two keys, numbers by hand: scores 1 and 0 with N = 2 give the weights 0.67 and 0.33, not 0.73 and 0.27.",
      },
      {
        name: "scaled_by_all_features",
        fault: "Scores are divided by √D (features of a state) instead of √N (of a head)",
        from: "Math.sqrt(query.columns)",
        to: "Math.sqrt(heads * query.columns)",
        also: [["value, mask) {", "value, mask, heads) {"], ["value[h], mask)", "value[h], mask, this.numHeads)"]],
        library: "scores = query @ key.mT / math.sqrt(query.shape[-1])  # (*batch, T, S)",
        test: "Test attention with two heads, not with one: with one head N and D are equal, and nothing is found.",
      },
      {
        name: "softmax_over_queries",
        fault: "The softmax is taken over the queries instead of the keys",
        from: "const weights = softmax(scores);",
        to: "const weights = softmax(scores.transpose()).transpose();",
        library: "weights = scores.softmax(dim=-1)  # each row sums to 1",
        test: "Each row of the weights must sum to 1. Here the columns do.",
      },
      {
        name: "heads_joined_without_transpose",
        fault: "The heads' outputs are merged in the wrong order",
        from: "t * merged.columns + h * width",
        to: "(h * rows + t) * width",
        library: "side_by_side = heads.transpose(-3, -2)  # (*batch, T, H, N)",
        test: "Merging must undo splitting: split 0, 1, 2, ... into heads, merge, compare. The shape alone is right either way.",
      },
      {
        name: "query_for_key",
        fault: "Keys are made with the matrix of the queries",
        from: "splitHeads(this.key.forward(hidden), this.numHeads)",
        to: "splitHeads(this.query.forward(hidden), this.numHeads)",
        library: "split_heads(self.key(key), self.num_heads),  # (B, H, S, N)",
        test: "Change the key matrix: the weights must change. Here the table of scores is symmetric.",
      },
      {
        name: "values_not_projected",
        fault: "The values are the hidden states themselves",
        from: "splitHeads(this.value.forward(hidden), this.numHeads)",
        to: "splitHeads(hidden, this.numHeads)",
        library: "split_heads(self.value(value), self.num_heads),",
        test: "Set the value matrix to 0: the output must not depend on the input any more.",
      },
      {
        name: "padding_attended_to",
        fault: "The mask is ignored: padding is attended to",
        from: "if (mask) scores",
        to: "if (false) scores",
        library: "scores = scores.masked_fill(~mask, -math.inf)",
        test: "A sentence alone and the same sentence padded must have the same states.",
      },
      {
        name: "mask_after_the_softmax",
        fault: "The mask is applied after the softmax",
        from: "if (mask) scores = scores.map((score, t, s) => (mask[s] ? score : -Infinity));\n    const weights = softmax(scores);",
        to: "const weights = softmax(scores).map((weight, t, s) => (!mask || mask[s] ? weight : 0));",
        library: "scores = scores.masked_fill(~mask, -math.inf)",
        test: "Each row of the weights must sum to 1, with a mask as well.",
      },
      {
        name: "causal_mask_as_in_a_decoder",
        fault: "Each token sees only the tokens before it",
        from: "const weights = softmax(scores);",
        to: "const weights = softmax(scores.map((score, t, s) => (s > t ? -Infinity : score)));",
        library: "scores = scores.masked_fill(~mask, -math.inf)",
        test: "Change the last word: the state of the first must change, because BERT reads both ways.",
      },
    ]),
    ...part("Block", THREE, BLOCKS, [
      {
        name: "relu_for_gelu",
        chapter: FIVE,
        fault: "ReLU stands where GELU should",
        from: "return 0.5 * x * (1 + erf(x / Math.SQRT2));",
        to: "return Math.max(x, 0);",
        library: 'ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}',
        test: "GELU of -1 is -0.16, ReLU of -1 is 0. A test with positive numbers alone hardly finds it.",
      },
      {
        name: "network_without_gelu",
        fault: "The feed-forward network has no activation",
        from: "this.contract.forward(this.expand.forward(hidden).map(gelu))",
        to: "this.contract.forward(this.expand.forward(hidden))",
        library: "return self.contract(self.dropout(self.activation(self.expand(hidden))))",
        test: "Double the input, with all biases 0: a network without activation doubles its output, which two matrices alone do.",
      },
      {
        name: "first_residual_forgotten",
        fault: "The residual connection around attention is lost",
        from: "this.norm1.forward(hidden.plus(attended))",
        to: "this.norm1.forward(attended)",
        library: "hidden = self.norm1(self.skip(hidden) + self.dropout(mixed))",
        test: "Set attention's output matrix to 0: what goes into the block must still reach the norm.",
      },
      {
        name: "second_residual_forgotten",
        fault: "The residual connection around the feed-forward network is lost",
        from: "this.norm2.forward(between.plus(transformed))",
        to: "this.norm2.forward(transformed)",
        library: "return self.norm2(self.skip(hidden) + self.dropout(mixed))",
        test: "Set the network's second matrix to 0: what goes into the network must still reach the norm.",
      },
      {
        name: "attention_output_forgotten",
        file: ATTENTION,
        fault: "Attention's output matrix is left out",
        from: "const output = this.output.forward(mixed);",
        to: "const output = mixed;",
        library: "output = self.output(merge_heads(mixed))  # (B, T, D)",
        test: "Set the output matrix to 0: attention must give its bias and nothing else.",
      },
      {
        name: "one_norm_for_both",
        fault: "The first layer norm of a block is used twice",
        from: "this.norm2.forward(between.plus(transformed))",
        to: "this.norm1.forward(between.plus(transformed))",
        library: "return self.norm2(self.skip(hidden) + self.dropout(mixed))",
        test: "Give the two norms different gains. With fresh weights both have gain 1, and nothing is found.",
      },
      {
        name: "normed_over_time",
        fault: "Layer norm takes mean and variance over the tokens instead of the features",
        from: "standardise(hidden, this.eps)",
        to: "standardise(hidden.transpose(), this.eps).transpose()",
        library: "mean = hidden.mean(dim=-1, keepdim=True)",
        test: "The norm of one token must not depend on the others: norm a sentence, and each of its tokens alone.",
      },
    ]),
    ...part("Whole model", FIVE, MODEL, [
      {
        name: "layers_backwards",
        fault: "The layers run in the wrong order, the last one first",
        from: "of this.blocks) {",
        to: "of [...this.blocks].reverse()) {",
        library: "for block in self.blocks:  # line 4",
        test: "Put in layers that add 1 and double: (x + 1) · 2 is not 2x + 1. The number of parameters is right either way.",
      },
      {
        name: "pooler_of_the_last_position",
        file: LAYERS,
        fault: "The pooler takes the last token instead of [CLS]",
        from: "hidden.gather([0])",
        to: "hidden.gather([hidden.rows - 1])",
        library: "return self.dense(hidden[:, 0]).tanh()  # (B, T, D) -> (B, D)",
        test: "Change the state of the last token alone: the pooled vector must stay.",
      },
    ]),
  ];
})();

// The text of bert.js with a patient's mistake in it.
globalThis.coursePatched = ({ from, to, also = [] }) =>
  [[from, to], ...also].reduce((source, [old, made]) => source.replace(old, () => made), String(courseBert));
