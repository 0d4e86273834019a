"""Which tests a changed answer can reach: the others are not run for it."""

from cases import for_each
from nbformat.v4 import new_code_cell

from course_tools.grading.assignments.reach import reached, with_what_they_use

ANSWER = "def double(x):\n    return 2 * x"


def cells(answer: str = ANSWER) -> list:
    def cell(source: str, name: str = "", test: bool = False):
        mark = {"grade_id": name, "grade": test, "solution": bool(name) and not test}
        return new_code_cell(source, metadata={"nbgrader": mark} if name else {})

    return [
        cell("def shown(value):\n    return str(value)"),
        cell("def four(x):\n    return g(g(x))"),
        cell(answer, "double"),
        cell("g = double\nCHECKED = ['triple']"),
        cell("def triple(x):\n    return 3 * x", "triple"),
        cell("assert double(2) == 4", "own", True),
        cell("assert four(3) == 12, 'not by double'", "through-others", True),
        cell("assert globals()['double'](1) == 2", "named-in-a-text", True),
        cell("assert shown(triple(2)) == '6'", "another", True),
    ]


EVERY = {"own", "through-others", "named-in-a-text", "another"}


@for_each(
    ("answer", "found"),
    [
        ("def double(x):\n    return x", EVERY - {"another"}),
        ("def double(x):\n    return triple(x)", EVERY - {"another"}),
        ("def double(x):\n    return x\n\ndef triple(x):\n    return x", EVERY),
        ("def double(x):\n    random.seed(1)\n    return 2 * x", EVERY),
        ("math.pi = 3\ndef double(x):\n    return 2 * x", EVERY),
        ("def double(x:\n", EVERY),
    ],
)
def test_a_change_reaches_what_names_it_and_all_if_it_touches_what_is_shared(
    answer, found
):
    assert reached(cells(), cells(answer)) == found


def test_what_changes_nothing_reaches_nothing():
    assert reached(cells(), cells()) == set()


def test_a_test_goes_with_those_that_define_what_it_uses():
    """With the last one before it; the variables of its functions are its own."""

    def test(name: str, source: str):
        mark = {"grade_id": name, "grade": True, "solution": False}
        return new_code_cell(source, metadata={"nbgrader": mark})

    tests = [
        test("ranks", "def ranks(x):\n    return sorted(x)\n\nassert ranks([])"),
        test("rows", "rows = [1]\nassert rows"),
        test("old-spread", "spread = sum\nwidth = 3"),
        test("spread", "spread = ranks\ncolumns = 2"),
        test("experiment", "rows = [2]\nassert spread(rows) == rows"),
        test("other", "def flat(width, columns):\n    return [n for n in width]"),
        test("later", "width = columns = ranks"),
    ]
    found = with_what_they_use(tests, {"experiment"})
    assert found == {"experiment", "spread", "ranks"}
    assert with_what_they_use(tests, {"other"}) == {"other"}
