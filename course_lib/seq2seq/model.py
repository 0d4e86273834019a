"""An encoder-decoder of gated recurrent units, with attention or without (chapter 1).

The two models differ in one thing only. With attention, each step of the decoder
averages all encoder states anew (Bahdanau et al. 2015; Luong et al. 2015). Without,
each step is handed the same last encoder state: the bottleneck (Sutskever et al. 2014;
Cho et al. 2014). All other layers have the same shapes, so a comparison is of
attention.

B sentences in a batch, S source words, T target words, V words in the target
vocabulary, D features of a hidden state.

What this module does not do: no stacked layers, no copying of unknown words.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from course_lib.attention.masks import padding_mask
from course_lib.attention.multi_head import attend
from course_lib.attention.scores import AdditiveScore, BilinearScore, DotScore


@dataclass(frozen=True)
class Seq2SeqConfig:
    """Sizes of a `Seq2Seq`.

    Parameters
    ----------
    source_vocab, target_vocab
        Number of different words on each side, special tokens included.
    embedding_dim
        Features of a word embedding.
    hidden_dim
        Features D of the decoder's state and of an encoder state; even, since the
        encoder's two directions share it.
    attention
        The score that compares a decoder state with an encoder state: "dot",
        "bilinear", "scaled" (bilinear, over the root of D) or "additive"; None for no
        attention.
    dropout
        Share of features set to zero in training, on embeddings and before the output
        layer.
    tie_output
        Whether the output layer's matrix is the target embedding (Press and Wolf 2017);
        needs `embedding_dim` equal to `hidden_dim`.
    conditional
        Whether a step of the decoder has two recurrent halves with attention between
        them (the conditional GRU of Sennrich et al. 2017, section 2): the first reads
        the last word, its state asks, and the second reads the answer. The output layer
        then reads the last word too, and dropout falls on the encoder's states as well.
    layer_norm
        Whether the encoder's states, and what goes to the output layer, are
        layer-normalised (Ba et al. 2016).

    Raises
    ------
    ValueError
        If a size cannot be used, or two options exclude each other.

    Examples
    --------
    >>> Seq2SeqConfig(
    ...     source_vocab=9, target_vocab=8, embedding_dim=4, hidden_dim=6
    ... ).attention
    'dot'
    """

    source_vocab: int
    target_vocab: int
    embedding_dim: int = 128
    hidden_dim: int = 128
    attention: str | None = "dot"
    dropout: float = 0.0
    tie_output: bool = False
    conditional: bool = False
    layer_norm: bool = False

    def __post_init__(self) -> None:
        for name in ("source_vocab", "target_vocab", "embedding_dim", "hidden_dim"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it must be at least 1"
                )
        if self.hidden_dim % 2:
            raise ValueError(
                f"hidden_dim is {self.hidden_dim}, but the encoder's two directions"
                f" share it; choose an even number, e.g. {self.hidden_dim + 1}"
            )
        if self.attention not in (None, "dot", "bilinear", "scaled", "additive"):
            raise ValueError(
                f"attention is {self.attention!r}; choose 'dot', 'bilinear', 'scaled',"
                " 'additive' or None"
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(
                f"dropout is {self.dropout}; it is a share, at least 0 and below 1"
            )
        if self.tie_output and self.embedding_dim != self.hidden_dim:
            raise ValueError(
                "tie_output shares one matrix between embedding_dim"
                f" {self.embedding_dim} and hidden_dim {self.hidden_dim}; make them"
                " equal"
            )


@dataclass
class DecoderState:
    """What the decoder carries from step to step; each tensor has the batch first."""

    hidden: Tensor  # (B, D): the decoder's own state, new after each step
    encoder_states: Tensor  # (B, S, D): all of them, for attention
    source_mask: Tensor  # (B, S): True at words, False at padding
    summary: Tensor  # (B, D): the last state of each direction


class Encoder(nn.Module):
    """Read the source in both directions and keep a state for each word (Bahdanau et
    al. 2015, section 3.2).

    Parameters
    ----------
    vocab_size, embedding_dim, hidden_dim
        As in `Seq2SeqConfig`; each direction has ``hidden_dim / 2`` features.
    dropout
        Share of embedding features set to zero in training.
    state_dropout
        Share of the states' features set to zero in training; the last states, which
        begin the decoder, keep all.
    layer_norm
        As in `Seq2SeqConfig`.

    Examples
    --------
    >>> encoder = Encoder(vocab_size=9, embedding_dim=4, hidden_dim=6)
    >>> states, last = encoder(
    ...     torch.tensor([[5, 7, 8], [5, 0, 0]]), torch.tensor([3, 1])
    ... )
    >>> states.shape, last.shape
    (torch.Size([2, 3, 6]), torch.Size([2, 6]))
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_dim: int,
        hidden_dim: int,
        dropout: float = 0.0,
        state_dropout: float = 0.0,
        layer_norm: bool = False,
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_dim)
        self.dropout = nn.Dropout(dropout)
        self.state_dropout = nn.Dropout(state_dropout)
        self.norm = nn.LayerNorm(hidden_dim) if layer_norm else nn.Identity()
        self.gru = nn.GRU(
            embedding_dim, hidden_dim // 2, batch_first=True, bidirectional=True
        )

    def forward(
        self, source_ids: Int[Tensor, "B S"], source_lengths: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B S D"], Float[Tensor, "B D"]]:
        """Return the states (at padding zeros, or what layer normalisation makes of
        them), and each direction's last state side by side."""
        embedded = self.dropout(self.embedding(source_ids))
        # Packing stops each direction at the sentence's own last word: padding cannot
        # leak into a state.
        packed = pack_padded_sequence(
            embedded, source_lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, last = self.gru(packed)
        states, _ = pad_packed_sequence(
            states, batch_first=True, total_length=source_ids.shape[1]
        )
        last = last.transpose(0, 1).flatten(1)  # (2, B, D/2) -> (B, D)
        return self.state_dropout(self.norm(states)), last


class Decoder(nn.Module):
    """Write the target word by word, looking back at the encoder's states.

    Parameters
    ----------
    config
        The sizes, and the score that attention uses.

    Notes
    -----
    Luong et al. 2015, section 3: the context is joined to the state after the recurrent
    layer, so all steps of a known target run at once.

    Examples
    --------
    >>> decoder = Decoder(
    ...     Seq2SeqConfig(source_vocab=9, target_vocab=8, embedding_dim=4, hidden_dim=6)
    ... )
    >>> states, mask = torch.randn(1, 3, 6), torch.ones(1, 3, dtype=torch.bool)
    >>> start = DecoderState(torch.zeros(1, 6), states, mask, states[:, -1])
    >>> logits, weights, end = decoder(torch.tensor([[1, 5]]), start)
    >>> logits.shape, weights.shape
    (torch.Size([1, 2, 8]), torch.Size([1, 2, 3]))
    """

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        dim = config.hidden_dim
        self.embedding = nn.Embedding(config.target_vocab, config.embedding_dim)
        self.dropout = nn.Dropout(config.dropout)
        self.gru = nn.GRU(config.embedding_dim, dim, batch_first=True)
        self.score = _make_score(config.attention, dim)
        self.combine = nn.Linear(2 * dim, dim)
        self.norm = nn.LayerNorm(dim) if config.layer_norm else nn.Identity()
        self.output = _output_layer(config, self.embedding)

    def forward(
        self, target_ids: Int[Tensor, "B T"], state: DecoderState
    ) -> tuple[Float[Tensor, "B T V"], Float[Tensor, "B T S"] | None, DecoderState]:
        """Return the logits of the next word after each target word, the attention
        weights (None without attention), and the state after the last word."""
        embedded = self.dropout(self.embedding(target_ids))
        hidden, last = self.gru(embedded, state.hidden[None])  # (B, T, D)
        context, weights = self.look(hidden, state)
        # Luong et al. 2015, equation 5
        combined = self.norm(self.combine(torch.cat([context, hidden], dim=-1))).tanh()
        logits = self.output(self.dropout(combined))
        return logits, weights, replace(state, hidden=last[0])

    def look(
        self, hidden: Float[Tensor, "B T D"], state: DecoderState
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T S"] | None]:
        """What the decoder's states find in the source, and with which weights."""
        if self.score is None:  # the bottleneck: the last state of each direction
            return state.summary[:, None].expand_as(hidden), None  # (B, D) -> (B, T, D)
        scores = self.score(hidden, state.encoder_states)
        return attend(scores, state.encoder_states, state.source_mask[:, None])


class ConditionalDecoder(Decoder):
    """Two recurrent halves a step: the first reads the word and asks, the second reads
    what attention found. The output reads the word too (Bahdanau et al. 2015, A.2)."""

    def __init__(self, config: Seq2SeqConfig):
        nn.Module.__init__(self)  # the layers have other sizes
        dim = config.hidden_dim
        self.embedding = nn.Embedding(config.target_vocab, config.embedding_dim)
        self.dropout = nn.Dropout(config.dropout)
        self.gru = nn.GRU(config.embedding_dim, dim, batch_first=True)
        self.second = nn.GRU(dim, dim, batch_first=True)
        self.score = _make_score(config.attention, dim)
        self.combine = nn.Linear(2 * dim + config.embedding_dim, dim)
        self.norm = nn.LayerNorm(dim) if config.layer_norm else nn.Identity()
        self.output = _output_layer(config, self.embedding)

    def forward(
        self, target_ids: Int[Tensor, "B T"], state: DecoderState
    ) -> tuple[Float[Tensor, "B T V"], Float[Tensor, "B T S"] | None, DecoderState]:
        """Return what `Decoder` returns, one word after the other."""
        steps, rows = [], []
        for word in self.dropout(self.embedding(target_ids)).split(1, dim=1):
            asking, half = self.gru(word, state.hidden[None])
            context, weights = self.look(asking, state)
            hidden, last = self.second(context, half)
            state = replace(state, hidden=last[0])
            steps.append(torch.cat([context, hidden, word], dim=-1))
            rows += [] if weights is None else [weights]
        combined = self.norm(self.combine(torch.cat(steps, dim=1))).tanh()
        weights = torch.cat(rows, dim=1) if rows else None  # (B, T, S)
        return self.output(self.dropout(combined)), weights, state


def _make_score(kind: str | None, dim: int) -> nn.Module | None:
    match kind:
        case "dot":
            return DotScore()
        case "bilinear" | "scaled":
            return BilinearScore(dim, dim, scaled=kind == "scaled")
        case "additive":
            return AdditiveScore(dim, dim, dim)
    return None


def _output_layer(config: Seq2SeqConfig, embedding: nn.Embedding) -> nn.Linear:
    output = nn.Linear(config.hidden_dim, config.target_vocab)
    if config.tie_output:
        output.weight = embedding.weight
        # so that the first scores have variance near 1
        nn.init.normal_(embedding.weight, std=config.hidden_dim**-0.5)
    return output


class Seq2Seq(nn.Module):
    """Translate: an encoder, a decoder, and the bridge between them.

    Parameters
    ----------
    config
        The sizes.

    Notes
    -----
    `start` and `step` are what the searches of `course_lib.seq2seq.search` need.

    Examples
    --------
    >>> model = Seq2Seq(
    ...     Seq2SeqConfig(source_vocab=9, target_vocab=8, embedding_dim=4, hidden_dim=6)
    ... )
    >>> source_ids = torch.tensor([[5, 7, 8], [5, 0, 0]])
    >>> source_lengths = torch.tensor([3, 1])
    >>> model(
    ...     source_ids, source_lengths, target_ids=torch.tensor([[1, 6], [1, 7]])
    ... ).shape
    torch.Size([2, 2, 8])
    """

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        self.config = config
        sizes = config.source_vocab, config.embedding_dim, config.hidden_dim
        on_states = config.dropout if config.conditional else 0.0
        self.encoder = Encoder(*sizes, config.dropout, on_states, config.layer_norm)
        self.bridge = nn.Linear(config.hidden_dim, config.hidden_dim)
        self.decoder = (ConditionalDecoder if config.conditional else Decoder)(config)
        if config.conditional:
            _shorten_embeddings(self)

    def start(
        self, source_ids: Int[Tensor, "B S"], source_lengths: Int[Tensor, "B"]
    ) -> DecoderState:
        """Encode the source and return the decoder's first state.

        Parameters
        ----------
        source_ids
            Word ids, padded on the right with any id.
        source_lengths
            Number of words of each sentence, at least 1.

        Returns
        -------
        DecoderState
            The state before the first target word.

        Raises
        ------
        ValueError
            If a sentence is empty, or longer than the padded length.

        Notes
        -----
        The decoder starts from tanh(W · last encoder state) (Bahdanau et al. 2015,
        appendix A.2.2).
        """
        mask = padding_mask(source_lengths, max_length=source_ids.shape[1])
        mask = mask.to(source_ids.device)  # torch packs by lengths on the CPU
        states, last = self.encoder(source_ids, source_lengths)
        return DecoderState(self.bridge(last).tanh(), states, mask, summary=last)

    def step(
        self, state: DecoderState, tokens: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B V"], DecoderState]:
        """Read one target word for each sentence and score the next.

        Parameters
        ----------
        state
            From `start` or from the step before.
        tokens
            The word just written (``<bos>`` at first).

        Returns
        -------
        tuple of Tensor and DecoderState
            Log-probabilities of the next word, and the state after reading `tokens`.
        """
        logits, _, state = self.decoder(tokens[:, None], state)  # (B) -> (B, 1)
        return logits[:, 0].log_softmax(dim=-1), state

    def forward(
        self,
        source_ids: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, "B"],
        target_ids: Int[Tensor, "B T"],
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor | None]:
        """Score a known target: teacher forcing (Williams and Zipser 1989).

        Parameters
        ----------
        source_ids, source_lengths
            The padded source and its lengths.
        target_ids
            The target, shifted: it begins with ``<bos>`` and lacks the last token.
            Position t predicts token t + 1.
        return_weights
            Whether to return the attention weights too. Row t belongs to the word that
            position t predicts.

        Returns
        -------
        Tensor or tuple
            Logits, or logits and weights (None if the model has no attention).

        Raises
        ------
        ValueError
            If a source sentence is empty.
        """
        state = self.start(source_ids, source_lengths)
        logits, weights, _ = self.decoder(target_ids, state)
        return (logits, weights) if return_weights else logits


def _shorten_embeddings(model: Seq2Seq) -> None:
    """An optimizer moves every number by about a learning rate a step: from torch's
    numbers near 1 that is long."""
    for embedding in (model.encoder.embedding, model.decoder.embedding):
        nn.init.normal_(embedding.weight, std=model.config.embedding_dim**-0.5)
