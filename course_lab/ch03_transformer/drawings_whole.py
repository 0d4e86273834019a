"""The whole Transformer as one drawing, with "you are here" (chapter 3)."""

from course_lib.figures.diagrams import Area, Diagram, Number
from course_lib.transformer.model import TransformerConfig

#: The base model of Vaswani et al. 2017, table 3.
PAPER = TransformerConfig(
    37_000, 37_000, 512, 8, 6, 2048, dropout=0.1, share_embeddings=True
)
SOURCE, TARGET = ["the", "cat", "sleeps"], ["le", "chat", "dort"]
#: What `whole_transformer` can show as "here".
PARTS = (
    "embeddings",
    "positions",
    "self-attention",
    "residual and norm",
    "feed-forward",
    "cross-attention",
    "output",
    "encoder",
    "decoder",
)
#: Distances in `whole_transformer`: of two sub-layers, and of the columns' centres.
FLOOR, COLUMNS = 96, (104, 296)
HEIGHT = 470


def whole_transformer(
    here: str | None = None, config: TransformerConfig = PAPER
) -> Diagram:
    """Draw encoder and decoder (Vaswani et al. 2017, figure 1), one part of it lit."""
    diagram = Diagram(
        f"transformer-{(here or 'all').replace(' ', '-')}",
        HEIGHT,
        "The Transformer" + f": {here}" * bool(here),
        "Read upwards. Encoder, left: embeddings plus positions, then"
        f" {config.num_layers} blocks of self-attention and feed-forward, each followed"
        " by add and norm, with a residual path around it. Decoder, right: the same"
        " with masked self-attention, and cross-attention between the two: queries from"
        " the decoder, keys and values from the top of the"
        " encoder; then a linear layer and a softmax over the vocabulary give the next"
        " word." + f" Lit here: {here}." * bool(here),
        here,
    )

    def part(name: str, column: str) -> str:
        return column if here in ("encoder", "decoder") else name

    def sublayer(
        name: str, column: str, y: Number, text: str, role: str, gets: str
    ) -> Area:
        """Draw what a sub-layer gets at height y, the layer, add and norm, and the
        residual path; return the layer."""
        x, side = (COLUMNS[0], -1) if column == "encoder" else (COLUMNS[1], 1)
        with diagram.part(part("residual and norm", column)):
            norm = diagram.box(x, y - 82, 132, 20, "add + norm", "r")
            beside = (x + side * 80, norm.left[1])
            end = norm.at((1 + side) / 2, 0.5)
            diagram.arrow((x, y + 6), "-", beside, end, role="r", dash=True)
        with diagram.part(part(name, column)):
            layer = diagram.box(x, y - 54, 132, 34, text, role)
            diagram.arrow((x, y + 14), (x, y - 3), head=False, gap=0)
            for letter, across in zip(gets, (0, -42, 42), strict=False):
                diagram.arrow(
                    *((x, y - 3), "-", (x + across, layer.bottom[1])),
                    role=letter.strip().lower(),
                    label=letter.strip(),
                    at=(x + across + 6, y - 9 - 3 * (gets == "Q")),
                    gap=0,
                )
            diagram.arrow(layer.top, norm.bottom, gap=0)
        return layer

    tops = []
    for column, x, words in (
        ("encoder", COLUMNS[0], " ".join(SOURCE)),
        ("decoder", COLUMNS[1], " ".join(["<bos>", *TARGET[:-1]])),
    ):
        side = -1 if column == "encoder" else 1
        with diagram.part(part("embeddings", column)):
            diagram.label(x, HEIGHT - 8, words)
            embeddings = diagram.box(x, HEIGHT - 46, 132, 24, "embeddings")
            diagram.arrow((x, HEIGHT - 15), embeddings.bottom, gap=0)
        with diagram.part(part("positions", column)):
            plus = diagram.box(x, HEIGHT - 72, 16, 16, "+", "r")
            diagram.arrow(embeddings.top, plus.bottom, gap=0)
            diagram.arrow(
                (x + side * 30, plus.left[1]), (x + side * 8, plus.left[1]), gap=0
            )
            diagram.label(x + side * 60, plus.left[1], "positions", "small")
        kinds = [("self-attention", "self-attention", "w", "QKV")]
        if column == "decoder":
            kinds[0] = ("self-attention", "masked\nself-attention", "w", "QKV")
            kinds.append(("cross-attention", "cross-attention", "w", "Q"))
        kinds.append(("feed-forward", "feed-forward", "n", " "))
        for floor, (name, text, role, gets) in enumerate(kinds):
            layer = sublayer(
                name, column, HEIGHT - 86 - FLOOR * floor, text, role, gets
            )
            if name == "cross-attention":
                cross = layer
        tops.append(HEIGHT - 72 - FLOOR * len(kinds))
        with diagram.part(part("block", column)):
            left = x - 92 if side < 0 else x - 76
            frame = diagram.group(left, tops[-1] - 6, 168, HEIGHT - 74 - tops[-1])
            name = f"{column.capitalize()} \N{MULTIPLICATION SIGN} {config.num_layers}"
            place = frame.at(0, 0) if side < 0 else frame.at(1, 0)
            anchor = "small bold " + ("start" if side < 0 else "end")
            diagram.label(place[0], place[1] - 9, name, anchor)
    with diagram.part(part("cross-attention", "decoder")):
        for role, start, up, over, into in (
            ("k", 112, 30, 206, 0.3),
            ("v", 124, 16, 198, 0.72),
        ):
            above = (start, tops[0] - up)
            diagram.arrow(
                *((start, tops[0]), above, "-", (over, cross.at(0, into)[1])),
                cross.at(0, into),
                role=role,
                gap=0,
                label=role.upper(),
                at=(over + 6 - 18 * (role == "v"), cross.y - 14),
            )
    with diagram.part(part("output", "decoder")):
        x = COLUMNS[1]
        linear = diagram.box(x, tops[1] - 50, 132, 22, "linear")
        softmax = diagram.box(x, tops[1] - 80, 132, 22, "softmax", "w")
        diagram.arrow((x, tops[1]), linear.bottom, gap=0)
        diagram.arrow(linear.top, softmax.bottom, gap=0)
        diagram.arrow(softmax.top, (x, tops[1] - 91), gap=0)
        diagram.label(x, tops[1] - 99, " ".join(TARGET))
    for row, (role, text) in enumerate(
        (("q", "Q  query"), ("k", "K  key"), ("v", "V  value"), ("r", "residual path"))
    ):
        y = 14 + 18 * row
        diagram.arrow(
            (8, y), (34, y), role=role, dash=role == "r", label=text, at=(42, y)
        )
    if here:
        box = diagram.group(8, 90, 136, 40, here=True)
        diagram.label(*box.at(0.5, 0.5), f"You are here:\n{here}", "small bold")
    return diagram
