"""Implementations of `smoothed_loss` that a student's `check_smoothed_loss` has to tell apart."""

FUNCTION = "smoothed_loss"
VISIBLE = (
    "the right word gets what is smoothed away, too",
    "padding counts",
    "the sum over words",
)

RIGHT = {
    "the reference": """
def smoothed_loss(logits, targets, smoothing, padding):
    logs = logits.log_softmax(-1)
    own = logs.gather(-1, targets[..., None])[..., 0]
    others = logs.sum(-1) - own - logs[..., padding]
    losses = -(1 - smoothing) * own - smoothing / (logs.shape[-1] - 2) * others
    real = targets != padding
    return losses.masked_fill(~real, 0).sum() / real.sum().clamp(min=1)
""",
    "a table of wanted shares": """
import torch
def smoothed_loss(logits, targets, smoothing, padding):
    V = logits.shape[-1]
    wanted = torch.full_like(logits, smoothing / (V - 2))
    wanted.scatter_(-1, targets.unsqueeze(-1), 1 - smoothing)
    wanted[..., padding] = 0
    table = -(wanted * torch.log_softmax(logits, dim=-1)).sum(dim=-1)
    total = torch.where(targets == padding, torch.zeros_like(table), table).sum()
    return total / max(1, int((targets != padding).sum()))
""",
    "word by word": """
import torch
def smoothed_loss(logits, targets, smoothing, padding):
    V, rows = logits.shape[-1], logits.reshape(-1, logits.shape[-1])
    losses = []
    for row, target in zip(rows, targets.flatten().tolist()):
        if target == padding:
            continue
        logs = row - row.logsumexp(0)
        rest = [logs[v] for v in range(V) if v not in (target, padding)]
        losses.append(-(1 - smoothing) * logs[target] - smoothing * sum(rest) / len(rest))
    return torch.stack(losses).mean() if losses else logits.masked_fill((targets == padding)[..., None], 0).sum()
""",
    "real positions picked first": """
import torch
def smoothed_loss(logits, targets, smoothing, padding):
    real = targets != padding
    logs, words = torch.log_softmax(logits[real], -1), targets[real]
    keep = torch.ones_like(logs).scatter(1, words[:, None], 0)
    keep[:, padding] = 0
    each = (1 - smoothing) * torch.nn.functional.nll_loss(logs, words, reduction="none")
    each = each - smoothing * (logs * keep).sum(1) / (logits.shape[-1] - 2)
    return each.sum() / max(len(words), 1)
""",
    "cross entropy and a mean": """
import torch
def smoothed_loss(logits, targets, smoothing, padding):
    V = logits.size(-1)
    flat, words = logits.reshape(-1, V), targets.reshape(-1)
    flat = flat.masked_fill((words == padding)[:, None], 0)
    hard = torch.nn.functional.cross_entropy(flat, words, ignore_index=padding, reduction="sum")
    real = (words != padding).to(flat.dtype)
    logs = flat.log_softmax(1)
    every = -(logs.sum(1) - logs[:, padding]) @ real
    share = smoothing / (V - 2)
    return ((1 - smoothing - share) * hard + share * every) / real.sum().clamp(min=1)
""",
    "in float64": """
def smoothed_loss(logits, targets, smoothing, padding):
    wide = logits.double()
    logs = wide - wide.logsumexp(-1, keepdim=True)
    total, count = wide.masked_fill((targets == padding)[..., None], 0).sum() * 0, 0
    for place in (targets != padding).nonzero().tolist():
        row, word = logs[tuple(place)], targets[tuple(place)].item()
        rest = row.sum() - row[word] - row[padding]
        total = total - (1 - smoothing) * row[word] - smoothing * rest / (len(row) - 2)
        count += 1
    return (total / (count or 1)).to(logits.dtype)
""",
}

LOGS = "    logs = logits.log_softmax(-1)\n"
OTHERS = "    others = logs.sum(-1) - own - logs[..., padding]\n"
LOSSES = "    losses = -(1 - smoothing) * own - smoothing / (logs.shape[-1] - 2) * others\n"
REAL = "    real = targets != padding\n"
BACK = "    return losses.masked_fill(~real, 0).sum() / real.sum().clamp(min=1)\n"
MAKE = "def smoothed_loss(logits, targets, smoothing, padding):\n"

# fmt: off
WRONG = [
    ("the formula", "the right word gets what is smoothed away, too", OTHERS, "    others = logs.sum(-1) - logs[..., padding]\n"),
    ("padding", "padding counts", BACK, "    return losses.mean()\n"),
    ("the formula", "the sum over words", " / real.sum().clamp(min=1)", ""),
    ("the formula", "no smoothing", LOSSES, "    losses = -own\n"),
    ("the formula", "always a tenth is smoothed away", LOGS, LOGS + "    smoothing = 0.1\n"),
    ("the formula", "shared among all words", "(logs.shape[-1] - 2)", "logs.shape[-1]"),
    ("the formula", "shared among all but one", "(logs.shape[-1] - 2)", "(logs.shape[-1] - 1)"),
    ("the formula", "smoothing and its rest changed", LOGS, LOGS + "    smoothing = 1 - smoothing\n"),
    ("the formula", "the right word keeps everything", "-(1 - smoothing) * own", "-own"),
    ("the formula", "no minus before the right word", "-(1 - smoothing) * own", "(1 - smoothing) * own"),
    ("the formula", "the others count negative", "- smoothing /", "+ smoothing /"),
    ("the formula", "shares for logarithms", LOGS, "    logs = logits.softmax(-1)\n"),
    ("the formula", "logits are taken for logarithms", LOGS, "    logs = logits\n"),
    ("the formula", "logarithms to the base 2", LOGS, "    logs = logits.log_softmax(-1) / 0.6931471805599453\n"),
    ("sizes", "a softmax over the positions", LOGS, "    logs = logits.log_softmax(-2)\n"),
    ("sizes", "the mean of the sentences' means", BACK, "    kept = losses.masked_fill(~real, 0).sum(-1) / real.sum(-1).clamp(min=1)\n    return kept.sum() / real.any(-1).sum().clamp(min=1)\n"),
    ("sizes", "one number for each word", BACK, "    return losses.masked_fill(~real, 0) / real.sum().clamp(min=1)\n"),
    ("padding", "padding gets its share", OTHERS, "    others = logs.sum(-1) - own\n"),
    ("padding", "divided by all positions", "real.sum().clamp(min=1)", "real.numel()"),
    ("padding", "padding is always word 0", LOGS, "    padding = 0\n" + LOGS),
    ("padding", "padding at the end alone", REAL, "    real = (targets != padding).flip(-1).cumsum(-1).flip(-1) > 0\n"),
    ("padding", "nan at padding stays", "losses.masked_fill(~real, 0).sum()", "(losses * real).sum()"),
    ("padding", "words above padding alone", REAL, "    real = targets > padding\n"),
    ("padding", "the last word stands for the padding", "logs[..., padding]", "logs[..., -1]"),
    ("empty input", "nan where all is padding", ".clamp(min=1)", ""),
    ("empty input", "an error where all is padding", REAL, REAL + "    if not real.any():\n        raise ValueError('padding alone')\n"),
    ("small numbers", "the logarithm of shares", LOGS, "    logs = logits.softmax(-1).log()\n"),
    ("small numbers", "powers without care", LOGS, "    logs = logits - logits.exp().sum(-1, keepdim=True).log()\n"),
    ("small numbers", "logarithms end at -20", LOGS, "    logs = logits.log_softmax(-1).clamp(min=-20)\n"),
    ("a wrong gradient", "detached", LOGS, "    logits = logits.detach()\n" + LOGS),
    ("a wrong gradient", "no gradient of the others", "* others\n", "* others.detach()\n"),
    ("number types", "always float32", BACK, BACK.replace("(min=1)", "(min=1).float()").replace("return losses", "return losses.float()")),
    ("number types", "a Python number", BACK, BACK.rstrip("\n").replace("return ", "return (") + ").item()\n"),
    ("changed arguments", "targets at padding become 0", MAKE, MAKE + "    there = targets != padding\n    targets.masked_fill_(~there, 0)\n    logits = logits.masked_fill(~there[..., None], 0)\n"),
    ("changed arguments", "logits are made smaller in place", LOGS, "    kept = logits - logits.amax(-1, keepdim=True).detach()\n    logits.data.copy_(kept.data)\n    logs = kept.log_softmax(-1)\n"),
    ("memory of earlier calls", "the padding of the first call", MAKE, "seen = []\n" + MAKE + "    seen.append(padding)\n    padding = seen[0]\n"),
]
# fmt: on
