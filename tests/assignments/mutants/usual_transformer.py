"""Answers to the transformer assignment in the most usual way, written from the task's text
by somebody who had not seen the model answer; a cell begins with its name.
"""

import math

import torch


# %% by-loops
def attention_by_loops(query, key, value, cap=None):
    D = query.shape[-1]
    outputs = []
    for q in query:
        scores = []
        for k in key:
            score = torch.dot(q, k) / math.sqrt(D)
            if cap is not None:
                score = cap * torch.tanh(score / cap)
            scores.append(score)
        scores = torch.stack(scores)
        scores = scores - scores.max()
        weights = torch.exp(scores)
        weights = weights / weights.sum()
        output = torch.zeros_like(value[0])
        for w, v in zip(weights, value, strict=True):
            output = output + w * v
        outputs.append(output)
    return torch.stack(outputs)


# %% by-matrices
def attention(query, key, value, mask=None, cap=None):
    D = query.shape[-1]
    scores = query @ key.transpose(-2, -1) / math.sqrt(D)
    if cap is not None:
        scores = cap * torch.tanh(scores / cap)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    output = weights @ value
    return output, weights


# %% heads
def split_heads(hidden, num_heads, dealt=False):
    B, T, D = hidden.shape
    N = D // num_heads
    if dealt:
        return hidden.view(B, T, N, num_heads).permute(0, 3, 1, 2)
    return hidden.view(B, T, num_heads, N).transpose(1, 2)


def merge_heads(heads, dealt=False):
    B, H, T, N = heads.shape
    if dealt:
        return heads.permute(0, 2, 3, 1).reshape(B, T, H * N)
    return heads.transpose(1, 2).reshape(B, T, H * N)


# %% multi-head
class MultiHeadAttention(torch.nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        if dim % num_heads:
            raise ValueError(f"{num_heads} heads cannot share {dim} features equally")
        self.num_heads = num_heads
        self.to_query = torch.nn.Linear(dim, dim)
        self.to_key = torch.nn.Linear(dim, dim)
        self.to_value = torch.nn.Linear(dim, dim)
        self.to_output = torch.nn.Linear(dim, dim)

    def forward(self, query, key, value, mask=None, active=None):
        q = split_heads(self.to_query(query), self.num_heads)
        k = split_heads(self.to_key(key), self.num_heads)
        v = split_heads(self.to_value(value), self.num_heads)
        if mask is not None:
            mask = mask.unsqueeze(1)
        output, weights = attention(q, k, v, mask)
        if active is not None:
            output = output * active.view(1, -1, 1, 1).to(output.dtype)
        output = self.to_output(merge_heads(output))
        return output, weights


# %% masks
def padding_mask(lengths, size, left=False):
    positions = torch.arange(size, device=lengths.device)
    if left:
        mask = positions[None, :] >= (size - lengths)[:, None]
    else:
        mask = positions[None, :] < lengths[:, None]
    return mask.unsqueeze(1)


def causal_mask(size, device=None, window=None):
    mask = torch.tril(torch.ones(size, size, dtype=torch.bool, device=device))
    if window is not None:
        mask = mask & torch.triu(
            torch.ones(size, size, dtype=torch.bool, device=device), diagonal=1 - window
        )
    return mask


def decoder_mask(lengths, size, window=None):
    return padding_mask(lengths, size) & causal_mask(size, lengths.device, window)


# %% encoding
def positional_encoding(length, dim, base=10000.0, first=0):
    position = torch.arange(first, first + length, dtype=torch.float32).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, dim, 2).float() * (-math.log(base) / dim))
    pe = torch.zeros(length, dim)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)[:, : dim // 2]
    return pe


# %% embed
def embed(tokens, embedding):
    T, D = tokens.shape[1], embedding.shape[1]
    x = embedding[tokens] * math.sqrt(D)
    return x + positional_encoding(T, D).to(
        device=embedding.device, dtype=embedding.dtype
    )


# %% norm
class LayerNorm(torch.nn.Module):
    def __init__(self, dim, eps=1e-5, centred=True):
        super().__init__()
        self.eps, self.centred = eps, centred
        self.gain = torch.nn.Parameter(torch.ones(dim))
        self.offset = torch.nn.Parameter(torch.zeros(dim))

    def forward(self, hidden):
        if self.centred:
            mean = hidden.mean(dim=-1, keepdim=True)
            hidden = hidden - mean
        variance = hidden.pow(2).mean(dim=-1, keepdim=True)
        return self.gain * hidden / torch.sqrt(variance + self.eps) + self.offset


# %% feed-forward
class FeedForward(torch.nn.Module):
    def __init__(self, dim, hidden_dim, gated=False):
        super().__init__()
        self.inner = torch.nn.Linear(dim, hidden_dim)
        self.outer = torch.nn.Linear(hidden_dim, dim)
        self.gate = torch.nn.Linear(dim, hidden_dim) if gated else None

    def forward(self, hidden):
        if self.gate is None:
            x = torch.relu(self.inner(hidden))
        else:
            x = torch.relu(self.gate(hidden)) * self.inner(hidden)
        return self.outer(x)


# %% encoder
class EncoderBlock(torch.nn.Module):
    def __init__(self, dim, num_heads, hidden_dim, alpha=1.0):
        super().__init__()
        self.alpha = alpha
        self.self_attention = MultiHeadAttention(dim, num_heads)
        self.attention_norm = LayerNorm(dim)
        self.feed_forward = FeedForward(dim, hidden_dim)
        self.feed_forward_norm = LayerNorm(dim)

    def forward(self, hidden, mask=None):
        attended, _ = self.self_attention(hidden, hidden, hidden, mask)
        hidden = self.attention_norm(self.alpha * hidden + attended)
        return self.feed_forward_norm(self.alpha * hidden + self.feed_forward(hidden))


# %% decoder
class DecoderBlock(torch.nn.Module):
    def __init__(self, dim, num_heads, hidden_dim, alpha=1.0):
        super().__init__()
        self.alpha = alpha
        self.self_attention = MultiHeadAttention(dim, num_heads)
        self.self_norm = LayerNorm(dim)
        self.cross_attention = MultiHeadAttention(dim, num_heads)
        self.cross_norm = LayerNorm(dim)
        self.feed_forward = FeedForward(dim, hidden_dim)
        self.feed_forward_norm = LayerNorm(dim)

    def forward(self, hidden, memory, mask=None, memory_mask=None):
        attended, _ = self.self_attention(hidden, hidden, hidden, mask)
        hidden = self.self_norm(self.alpha * hidden + attended)
        attended, _ = self.cross_attention(hidden, memory, memory, memory_mask)
        hidden = self.cross_norm(self.alpha * hidden + attended)
        return self.feed_forward_norm(self.alpha * hidden + self.feed_forward(hidden))


# %% search
def greedy_decode(model, source, lengths, bos, eos, max_length):
    memory = model.encode(source, lengths)
    B = source.shape[0]
    target = torch.full((B, 1), bos, dtype=torch.long, device=source.device)
    finished = torch.zeros(B, dtype=torch.bool, device=source.device)
    for _ in range(max_length):
        scores = model.decode(target, memory, lengths)
        next_word = scores[:, -1].argmax(dim=-1)
        target = torch.cat([target, next_word.unsqueeze(1)], dim=1)
        finished = finished | (next_word == eos)
        if finished.all():
            break
    results = []
    for row in target[:, 1:].tolist():
        if eos in row:
            row = row[: row.index(eos)]
        results.append(row)
    return results


# %% own-check
def check_smoothed_loss(implementation):
    generator = torch.Generator().manual_seed(3)
    for padding in [0, 2, 5]:
        for smoothing in [0.0, 0.1, 0.4]:
            B, T, V = 2, 5, 6
            logits = torch.randn(B, T, V, generator=generator, dtype=torch.float64)
            targets = torch.randint(0, V, (B, T), generator=generator)
            targets[0, -1] = padding
            targets[1, -2:] = padding
            logits_before = logits.clone()
            targets_before = targets.clone()
            result = implementation(logits, targets, smoothing, padding)
            log_probs = torch.log_softmax(logits, dim=-1)
            total = 0.0
            count = 0
            for b in range(B):
                for t in range(T):
                    if targets[b, t] == padding:
                        continue
                    count += 1
                    for v in range(V):
                        if v == padding:
                            p = 0.0
                        elif v == targets[b, t]:
                            p = 1 - smoothing
                        else:
                            p = smoothing / (V - 2)
                        total -= p * log_probs[b, t, v].item()
            if abs(result.item() - total / count) > 1e-8:
                raise AssertionError("the loss is wrong")
            if not torch.equal(logits, logits_before):
                raise AssertionError("the logits were changed")
            if not torch.equal(targets, targets_before):
                raise AssertionError("the targets were changed")
    all_padding = torch.full((2, 3), 1)
    logits = torch.randn(2, 3, 4, generator=generator)
    if implementation(logits, all_padding, 0.1, 1).item() != 0:
        raise AssertionError("padding alone must give 0")
    large = torch.tensor([[[1000.0, 0.0, -1000.0]]])
    result = implementation(large, torch.tensor([[0]]), 0.0, 2)
    if not torch.isfinite(result):
        raise AssertionError("large scores must not overflow")
