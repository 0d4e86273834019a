"""Answers to the pretraining assignment in the most usual way, written from the task's text
by somebody who had not seen the model answer; a cell begins with its name.
"""

import torch


# %% mask
def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):
    labels = input_ids.clone()
    masked_ids = input_ids.clone()
    special = torch.zeros_like(input_ids, dtype=torch.bool)
    for special_id in special_ids:
        special |= input_ids == special_id
    probability = torch.full(input_ids.shape, rate)
    probability.masked_fill_(special, 0.0)
    chosen = torch.bernoulli(probability, generator=generator).bool()
    labels[~chosen] = -100
    draw = torch.rand(input_ids.shape, generator=generator)
    masked = chosen & (draw < 0.8)
    masked_ids[masked] = mask_id
    randomised = chosen & (draw >= 0.8) & (draw < 0.9)
    ordinary = torch.tensor([i for i in range(vocab_size) if i not in special_ids])
    random_words = ordinary[
        torch.randint(len(ordinary), input_ids.shape, generator=generator)
    ]
    masked_ids[randomised] = random_words[randomised]
    return masked_ids, labels


# %% fill
def fill_segments(document, most):
    segments = []
    current = []
    for sentence in document:
        if current and len(current) + len(sentence) > most:
            segments.append(current)
            current = []
        current = current + sentence[:most]
    if current:
        segments.append(current)
    return segments


# %% next
def sentence_pairs(documents, random):
    if len(documents) < 2:
        raise ValueError("need at least two documents")
    pairs = []
    for i, document in enumerate(documents):
        for j in range(len(document) - 1):
            if random.random() < 0.5:
                pairs.append((document[j], document[j + 1], 0))
            else:
                other = random.randrange(len(documents) - 1)
                if other >= i:
                    other += 1
                pairs.append((document[j], random.choice(documents[other]), 1))
    return pairs


# %% pack
def pack_pairs(pairs, cls_id, sep_id, pad_id):
    rows = []
    types = []
    labels = []
    for first, second, label in pairs:
        rows.append([cls_id, *first, sep_id, *second, sep_id])
        types.append([0] * (len(first) + 2) + [1] * (len(second) + 1))
        labels.append(label)
    longest = max(len(row) for row in rows)
    input_ids = torch.full((len(rows), longest), pad_id, dtype=torch.long)
    token_type_ids = torch.zeros((len(rows), longest), dtype=torch.long)
    attention_mask = torch.zeros((len(rows), longest), dtype=torch.bool)
    for i, (row, kind) in enumerate(zip(rows, types, strict=True)):
        input_ids[i, : len(row)] = torch.tensor(row)
        token_type_ids[i, : len(row)] = torch.tensor(kind)
        attention_mask[i, : len(row)] = True
    return {
        "input_ids": input_ids,
        "token_type_ids": token_type_ids,
        "attention_mask": attention_mask,
        "next_sentence_labels": torch.tensor(labels, dtype=torch.long),
    }


# %% loss
def masked_loss(logits, labels):
    chosen = labels != -100
    if not chosen.any():
        return logits.sum() * 0.0
    log_probs = torch.log_softmax(logits[chosen], dim=-1)
    picked = log_probs.gather(-1, labels[chosen].unsqueeze(-1)).squeeze(-1)
    return -picked.mean()


# %% rows
def masked_logits(head, hidden, labels, most=None):
    chosen = labels != -100
    states = hidden[chosen]
    if most is None or len(states) == 0:
        logits = head(states)
    else:
        logits = torch.cat(
            [head(states[i : i + most]) for i in range(0, len(states), most)]
        )
    return logits, labels[chosen]


# %% total
def pretraining_loss(token_logits, labels, pair_logits, next_sentence_labels):
    mlm = masked_loss(token_logits, labels)
    nsp = masked_loss(pair_logits, next_sentence_labels)
    return mlm + nsp


# %% own-check
def check_whole_words(implementation):
    def check(chosen, words, most, expected):
        chosen = torch.tensor(chosen, dtype=torch.bool)
        words = torch.tensor(words)
        chosen_before = chosen.clone()
        words_before = words.clone()
        result = implementation(chosen, words, most)
        if result.dtype != torch.bool:
            raise AssertionError("the result must be bool")
        if result.tolist() != torch.tensor(expected, dtype=torch.bool).tolist():
            raise AssertionError("wrong tokens are taken")
        if not torch.equal(chosen, chosen_before):
            raise AssertionError("chosen was changed")
        if not torch.equal(words, words_before):
            raise AssertionError("words was changed")

    # one word with three pieces, chosen in the middle
    check([[0, 0, 1, 0, 0]], [[-1, 0, 0, 0, -1]], None, [[0, 1, 1, 1, 0]])
    # special tokens are never taken
    check([[1, 0, 0, 0, 1]], [[-1, 0, 0, 0, -2]], None, [[0, 0, 0, 0, 0]])
    # the second segment counts from 0 again
    check([[0, 1, 0, 0, 0, 0]], [[-1, 0, 0, -1, 0, 0]], None, [[0, 1, 1, 0, 0, 0]])
    # two rows, each with its own limit
    check(
        [[1, 0, 0, 1], [0, 1, 1, 0]],
        [[0, 0, 1, 1], [0, 0, 1, 2]],
        2,
        [[1, 1, 0, 0], [1, 1, 0, 0]],
    )
    # a word that is too long is passed over
    check([[1, 0, 0, 1, 1]], [[0, 0, 0, 1, 2]], 2, [[0, 0, 0, 1, 1]])
    # nothing fits
    check([[1, 1]], [[0, 1]], 0, [[0, 0]])
    with_error = False
    try:
        implementation(torch.ones(1, 2).bool(), torch.zeros(1, 2).long(), -1)
    except ValueError:
        with_error = True
    if not with_error:
        raise AssertionError("a negative limit must be an error")
