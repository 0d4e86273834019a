"""An encoder-decoder of gated recurrent units, with attention or without (chapter 1).

The two models differ in one thing only. With attention, each step of the decoder
averages all encoder states anew (Bahdanau et al. 2015; Luong et al. 2015). Without,
each step is handed the same last encoder state: the bottleneck (Sutskever et al. 2014;
Cho et al. 2014). All other layers have the same shapes, so a comparison is of
attention.

Dimension letters, everywhere in this module::

    B  sentences in a batch     S  source length     T  target length     V  words in the target vocabulary
    D  features of a hidden state

What this module does not do: no stacked layers, no copying of unknown words.
"""  # noqa: E501

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, overload

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from course_lib.attention.masks import padding_mask
from course_lib.attention.multi_head import attend
from course_lib.attention.scores import AdditiveScore, BilinearScore, DotScore
from course_lib.seq2seq.config import Seq2SeqConfig

__all__ = ["Decoder", "DecoderState", "Encoder", "Seq2Seq"]


@dataclass
class DecoderState:
    """What the decoder carries from one step to the next; the first dimension of every
    tensor is the sentence.

    Parameters
    ----------
    hidden
        The recurrent state, ``(B, D)``.
    encoder_states
        One state for each source word, ``(B, S, D)``.
    source_mask
        True at source words, False at padding, ``(B, S)``.
    summary
        The last encoder state, ``(B, D)``: all that a decoder without attention sees of
        the source.
    combined
        What the last step gave to the output layer, ``(B, D)``; zeros at first. Input
        feeding reads it.
    """

    hidden: Tensor
    encoder_states: Tensor
    source_mask: Tensor
    summary: Tensor
    combined: Tensor


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
        return self.state_dropout(self.norm(states)), last.transpose(0, 1).flatten(
            1
        )  # (2, B, D/2) -> (B, D)


class Decoder(nn.Module):
    """Write the target word by word, looking back at the encoder's states.

    Parameters
    ----------
    config
        The sizes, and the score that attention uses.

    Notes
    -----
    Luong et al. 2015, section 3: the context is joined to the state after the recurrent
    layer, so all steps of a known target run at once, unless input feeding makes each
    step wait for the one before, or the decoder is conditional.

    Examples
    --------
    >>> decoder = Decoder(
    ...     Seq2SeqConfig(source_vocab=9, target_vocab=8, embedding_dim=4, hidden_dim=6)
    ... )
    >>> states, mask = torch.randn(1, 3, 6), torch.ones(1, 3, dtype=torch.bool)
    >>> start = DecoderState(
    ...     torch.zeros(1, 6), states, mask, states[:, -1], combined=torch.zeros(1, 6)
    ... )
    >>> logits, weights, end = decoder(torch.tensor([[1, 5]]), start)
    >>> logits.shape, weights.shape
    (torch.Size([1, 2, 8]), torch.Size([1, 2, 3]))
    """

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        dim = config.hidden_dim
        self.embedding = nn.Embedding(config.target_vocab, config.embedding_dim)
        self.dropout = nn.Dropout(config.dropout)
        self.input_feeding = config.input_feeding
        self.gru = nn.GRU(
            config.embedding_dim + (dim if config.input_feeding else 0),
            dim,
            batch_first=True,
        )
        self.second = nn.GRU(dim, dim, batch_first=True) if config.conditional else None
        self.score = _make_score(config)
        # Bahdanau et al. 2015, appendix A.2.2: the output of a conditional decoder
        # depends on the last word too.
        self.combine = nn.Linear(
            2 * dim + (config.embedding_dim if config.conditional else 0), dim
        )
        self.norm = nn.LayerNorm(dim) if config.layer_norm else nn.Identity()
        self.output = nn.Linear(dim, config.target_vocab)
        if config.tie_output:
            self.output.weight = self.embedding.weight
            nn.init.normal_(
                self.embedding.weight, std=dim**-0.5
            )  # so that the first scores have variance near 1

    def forward(
        self, target_ids: Int[Tensor, "B T"], state: DecoderState
    ) -> tuple[Float[Tensor, "B T V"], Float[Tensor, "B T S"] | None, DecoderState]:
        """Return the logits of the next word after each target word, the attention
        weights (None without attention), and the state after the last word."""
        embedded = self.dropout(self.embedding(target_ids))
        if self.second is not None:
            combined, weights, state = self._run_in_halves(embedded, state, self.second)
        else:
            combined, weights, state = (
                self._feed if self.input_feeding else self._run
            )(embedded, state)
        return self.output(self.dropout(combined)), weights, state

    def _run(
        self, inputs: Tensor, state: DecoderState
    ) -> tuple[Tensor, Tensor | None, DecoderState]:
        """All steps at once, (B, T, inputs): what each gives to the output layer, its
        weights, and the last state."""
        hidden, last = self.gru(inputs, state.hidden[None])  # (B, T, D)
        context, weights = self._look(hidden, state)
        # Luong et al. 2015, equation 5
        combined = self.norm(self.combine(torch.cat([context, hidden], dim=-1))).tanh()
        return (
            combined,
            weights,
            replace(state, hidden=last[0], combined=combined[:, -1]),
        )

    def _look(
        self, hidden: Tensor, state: DecoderState
    ) -> tuple[Tensor, Tensor | None]:
        """What states (B, T, D) find in the source, and with which weights; without
        attention its last state."""
        if self.score is None:
            return state.summary[:, None].expand_as(hidden), None  # (B, D) -> (B, T, D)
        scores = self.score(hidden, state.encoder_states)
        return attend(scores, state.encoder_states, state.source_mask[:, None])

    def _feed(
        self, embedded: Tensor, state: DecoderState
    ) -> tuple[Tensor, Tensor | None, DecoderState]:
        """The same step by step: each reads the word and what the step before gave to
        the output layer."""
        outputs, rows = [], []
        for word in embedded.split(1, dim=1):
            combined, weights, state = self._run(
                torch.cat([word, state.combined[:, None]], dim=-1), state
            )
            outputs.append(combined)
            rows.append(weights)
        return torch.cat(outputs, dim=1), _joined(rows), state

    def _run_in_halves(
        self, embedded: Tensor, state: DecoderState, second: nn.GRU
    ) -> tuple[Tensor, Tensor | None, DecoderState]:
        """A conditional decoder's steps: the first half reads the word and asks, the
        second reads what was found."""
        outputs, rows = [], []
        for word in embedded.split(1, dim=1):
            asking, half = self.gru(word, state.hidden[None])
            context, weights = self._look(asking, state)
            hidden, last = second(context, half)
            state = replace(state, hidden=last[0])
            outputs.append(torch.cat([context, hidden, word], dim=-1))
            rows.append(weights)
        combined = self.norm(self.combine(torch.cat(outputs, dim=1))).tanh()
        return combined, _joined(rows), replace(state, combined=combined[:, -1])


def _joined(rows: Sequence[Tensor | None]) -> Tensor | None:
    """The weights of all steps, (B, T, S), from those of each; None without
    attention."""
    found = [row for row in rows if row is not None]
    return torch.cat(found, dim=1) if found else None


def _make_score(config: Seq2SeqConfig) -> nn.Module | None:
    dim = config.hidden_dim
    match config.attention:
        case "dot":
            return DotScore()
        case "bilinear":
            return BilinearScore(dim, dim)
        case "scaled":
            return BilinearScore(dim, dim, scaled=True)
        case "additive":
            return AdditiveScore(dim, dim, dim)
    return None


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
    >>> source_ids, source_lengths = (
    ...     torch.tensor([[5, 7, 8], [5, 0, 0]]),
    ...     torch.tensor([3, 1]),
    ... )
    >>> model(
    ...     source_ids, source_lengths, target_ids=torch.tensor([[1, 6], [1, 7]])
    ... ).shape
    torch.Size([2, 2, 8])
    """

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        self.config = config
        self.encoder = Encoder(
            config.source_vocab,
            config.embedding_dim,
            config.hidden_dim,
            config.dropout,
            state_dropout=config.dropout if config.conditional else 0.0,
            layer_norm=config.layer_norm,
        )
        self.bridge = nn.Linear(config.hidden_dim, config.hidden_dim)
        self.decoder = Decoder(config)
        if config.conditional:
            # An optimizer moves every number by about a learning rate a step: from
            # torch's numbers near 1 that is long.
            for embedding in (self.encoder.embedding, self.decoder.embedding):
                nn.init.normal_(embedding.weight, std=config.embedding_dim**-0.5)

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
        states, last = self.encoder(source_ids, source_lengths)
        return DecoderState(
            self.bridge(last).tanh(),
            states,
            mask,
            last,
            combined=torch.zeros_like(last),
        )

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

    @overload
    def forward(
        self,
        source_ids: Tensor,
        source_lengths: Tensor,
        target_ids: Tensor,
        return_weights: Literal[False] = False,
    ) -> Tensor: ...
    @overload
    def forward(
        self,
        source_ids: Tensor,
        source_lengths: Tensor,
        target_ids: Tensor,
        return_weights: Literal[True],
    ) -> tuple[Tensor, Tensor | None]: ...
    def forward(
        self,
        source_ids: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, "B"],
        target_ids: Int[Tensor, "B T"],
        return_weights: bool = False,
    ) -> (
        Float[Tensor, "B T V"]
        | tuple[Float[Tensor, "B T V"], Float[Tensor, "B T S"] | None]
    ):
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
        logits, weights, _ = self.decoder(
            target_ids, self.start(source_ids, source_lengths)
        )
        return (logits, weights) if return_weights else logits
