"""The map of the book on its first page: what leads to what."""

from course_lib.figures.diagrams import Area, Diagram

__all__ = ["course_map"]

#: Where a chapter stands: its number, the words in its box, x, y, width.
PLACES = {
    1: ("Attention between\ntwo sentences", 108, 12, 168),
    2: ("Self-attention", 108, 84, 168),
    3: ("Transformer", 108, 146, 168),
    4: ("WordPiece:\ntext to tokens", 294, 128, 150),
    5: ("BERT, the encoder", 200, 222, 220),
    6: ("Pre-training", 200, 284, 220),
    7: ("Words in\ncontext", 52, 356, 92),
    8: ("Fine-tuning", 152, 356, 96),
    9: ("Sentences", 252, 356, 92),
    10: ("Relatives", 350, 356, 92),
    11: ("Encoders today", 202, 438, 192),
}
LEADS_TO = {
    **{1: (2,), 2: (3,), 3: (5,), 4: (5,), 5: (6,)},
    **{6: (7, 8, 9, 10), 8: (11,), 9: (11,)},
}
USES = (7, 8, 9, 10)


def course_map() -> Diagram:
    """Draw the eleven chapters and what each of them needs."""
    names = {number: text.replace("\n", " ") for number, (text, *_) in PLACES.items()}
    needs = "; ".join(
        f"{number} ({names[number]}) leads to {', '.join(map(str, leads))}"
        for number, leads in LEADS_TO.items()
    )
    diagram = Diagram("course-map", 482, "Map of the book", f"Chapter {needs}.")
    boxes: dict[int, Area] = {}
    for number, (text, x, y, width) in PLACES.items():
        lines = text.count("\n") + 1
        height = 52 if number in USES else 22 + 15 * lines
        role = "k" if number == 4 else "v" if number in USES else "w"
        boxes[number] = diagram.box(
            x, y, width, height, text if number in USES else f"{number}  {text}", role
        )
        if number in USES:
            diagram.label(x - 14, y - 10, f"{number}", "small bold")
    for number, leads in LEADS_TO.items():
        for place in leads:
            if place in USES:
                end = boxes[place].top
                turns = (200, 332), (end[0], 332)
                diagram.arrow(boxes[6].bottom, *turns, end, gap=0)
            elif number in (3, 4, 8, 9):
                start = boxes[number].bottom
                diagram.arrow(start, (start[0], boxes[place].y), gap=0)
            else:
                diagram.arrow(boxes[number].bottom, boxes[place].top, gap=0)
    return diagram
