"""From docstrings to prose: what each rule keeps and what it drops, on docstrings of
the forms in use."""

import textwrap

from cases import for_each
from expect import refusal

from course_lib.data.pydocs import prose_of
from course_lib.data.pydocs_blocks import paragraphs
from course_lib.data.pydocs_extract import docstrings, in_source, installed_folder
from course_lib.data.pydocs_prose import plain, prose


def cleaned(docstring):
    return prose_of(textwrap.dedent(docstring).strip())


# -- blocks: each case is a form that the documentation of a package uses
# ----------------------------------------------

BLOCKS = {
    "sections of parameters, returns and references (numpy.ndarray.sum)": (
        """
        Return the sum of the array elements over the given axis.

        Parameters
        ----------
        axis : None or int, optional
            The axis along which the sum is made.

        Returns
        -------
        total : ndarray
            An array with the axis removed.

        Notes
        -----
        Arithmetic is modular when using integer types.

        References
        ----------
        .. [1] Knuth, The Art of Computer Programming, is a book.
        """,
        [
            "Return the sum of the array elements over the given axis.",
            "Arithmetic is modular when using integer types.",
        ],
    ),
    "Google's sections (torch.nn.Dropout)": (
        """
        Zero some of the elements of the input at random.

        Args:
            p: probability of an element to be zeroed. The default is a half.
            inplace: If set to ``True``, will do this operation in-place.

        Shape:
            - Input: it can be of any shape at all.

        The outputs are scaled during training.

        Examples::

            >>> m = nn.Dropout(p=0.2)
        """,
        [
            "Zero some of the elements of the input at random.",
            "The outputs are scaled during training.",
        ],
    ),
    "fields of reStructuredText (docutils)": (
        """
        Run the reader and store the result on this object.

        :param source: The source that the reader is to read from.
            It may be a file.
        :return: The document that was read from the source.
        """,
        ["Run the reader and store the result on this object."],
    ),
    "prompts and their output, with prose between them (sympy)": (
        """
        The result is an exact rational number in every case.

        >>> Rational(1, 3)
        1/3
        It is printed as a fraction.

        Unlike floats, these numbers never lose any precision.
        """,
        [
            "The result is an exact rational number in every case.",
            "Unlike floats, these numbers never lose any precision.",
        ],
    ),
    "a literal block after two colons (subprocess)": (
        """
        The arguments are passed on to the shell as they are::

            This looks like prose but is the output of a program.

        A list of arguments is safer than a string.
        """,
        [
            "The arguments are passed on to the shell as they are:",
            "A list of arguments is safer than a string.",
        ],
    ),
    "notes are text, other directives are not (scipy)": (
        """
        .. versionadded:: 1.2.0
           This function was added in this version of it.

        .. warning::
            The sampling frequency must be greater than zero.

        .. math::

            The integral of the function is what it is.

        .. note:: This is an inline note about the filter.
        """,
        [
            "The sampling frequency must be greater than zero.",
            "This is an inline note about the filter.",
        ],
    ),
    "tables (pydoc topic, numpy.fft)": (
        """
        The options that are understood are shown in a table.

        ==========  =======================================
        Option      This is the meaning of the option.
        ==========  =======================================
        ``fast``    It makes the transform go faster.
        ==========  =======================================

        +----------+----------------------------------------+
        | Operator | This is the description of an operator. |
        +----------+----------------------------------------+

        After the table the text goes on as it did before.
        """,
        [
            "The options that are understood are shown in a table.",
            "After the table the text goes on as it did before.",
        ],
    ),
    "fences of Markdown (huggingface_hub)": (
        """
        Download a file from the hub to the local cache.

        ```python
        # This comment is not a paragraph of the documentation.
        hf_hub_download("gpt2", "config.json")
        ```

        The file is not downloaded again when it is there.
        """,
        [
            "Download a file from the hub to the local cache.",
            "The file is not downloaded again when it is there.",
        ],
    ),
    "a section that follows its paragraph without a blank line (torch.typename)": (
        """
        This function returns the name of the type of an object.
        Args:
            obj (Object): The object whose type is to be named.
        """,
        ["This function returns the name of the type of an object."],
    ),
    "items of a list are paragraphs, one by one (logging)": (
        """
        A handler does two things with every record that it gets:

        - It formats the record with the formatter that it has.
        - It writes the result
          to the stream that was given.
        """,
        [
            "A handler does two things with every record that it gets:",
            "It formats the record with the formatter that it has.",
            "It writes the result to the stream that was given.",
        ],
    ),
    "the term of a definition is a label, its definition is text (argparse)": (
        """
        store_true
            This stores the value true when the option is given.
        """,
        ["This stores the value true when the option is given."],
    ),
}


@for_each("name", BLOCKS)
def test_running_text_is_kept_and_nothing_else(name):
    docstring, expected = BLOCKS[name]
    assert cleaned(docstring) == expected


def test_paragraphs_keep_their_order_and_are_joined_to_one_line():
    assert paragraphs("One\ntwo.\n\nThree\nfour.") == ["One two.", "Three four."]


# -- inline markup
# --------------------------------------------------------------------------------------

MARKUP = [
    ("Use :func:`~scipy.signal.lfilter` here.", "Use lfilter here."),
    ("Use :py:class:`numpy.ndarray` here.", "Use numpy.ndarray here."),
    ("See :ref:`the guide <guide-label>` first.", "See the guide first."),
    ("See the `manual <https://docs.python.org/3/>`_ first.", "See the manual first."),
    (
        "If ``axis`` is `None`, the **whole** array is *flattened*.",
        "If axis is None, the whole array is flattened.",
    ),
    (
        "This is due to Welch [1]_ and others [#note]_.",
        "This is due to Welch and others.",
    ),
    (
        "A [`~datasets.Dataset`] or a [link](https://example.org).",
        "A Dataset or a link.",
    ),
    (r"The angle :math:`\theta` is in radians.", "The angle theta is in radians."),
    (r"The parameter $\alpha$ is positive.", "The parameter alpha is positive."),
    ("Pass *args and **kwargs on.", "Pass *args and **kwargs on."),
    (
        "The class has a __dunder__ and a name_ here.",
        "The class has a __dunder__ and a name here.",
    ),
]


@for_each(("marked", "expected"), MARKUP)
def test_inline_markup_is_removed_and_what_it_marked_stays(marked, expected):
    assert plain(marked) == expected


# -- prose or not
# --------------------------------------------------------------------------------------

NOT_PROSE = [
    ("x : array_like, optional, default is None.", "the head of a parameter"),
    ("numpy, scipy, pandas, matplotlib, sympy, networkx, torch.", "a list of names"),
    ("for k in range(10): print(k) and that is it.", "code that begins in lower case"),
    (
        r"The density is :math:`\frac{1}{\sqrt{2\pi}} e^{-x^2/2}` for every x.",
        "a formula that is not letters",
    ),
    ("If a == b then the two of them are the same.", "an operator of code"),
    ("The template is filled by %(name)s in the text of it.", "a substitution"),
    ("TODO: this should be done in another way by someone.", "a note to oneself"),
    (
        "where N is the number of samples in the signal.",
        "the rest of a sentence whose formula is gone",
    ),
    ("Too short to tell.", "four words"),
    ("Abstract base class for array scalar types.", "a noun phrase: a label"),
    (
        "Benchmarker that uses Triton's benchmark suite.",
        "a noun phrase whose relative clause has the only verb",
    ),
    (
        "Exception raised when attempting to use an invalid index key.",
        "a phrase whose subordinate clause has it",
    ),
    ("A type that will accept any MongoDB DSN.", "a relative clause with an auxiliary"),
    (
        "Container for the artists of error bars (e.g. created by `.Axes.errorbar`).",
        "a label with an abbreviation",
    ),
    ("Helper function to parse the tokens of a format string.", "an infinitive"),
    (
        "Errors raised by the ONNX exporter. This is the base class for all errors.",
        "a label before a sentence",
    ),
    (
        "The magnitude of the torque produced by the actuator.",
        "a noun phrase that begins with an article",
    ),
    (
        (
            "For a more detailed example see"
            " :ref:`sphx_glr_auto_examples_impute_plot_missing_values.py`."
        ),
        "a file's label",
    ),
    (
        "The estimator is biased, as has been shown in [3]_.",
        "a sentence that needs its footnote",
    ),
    (
        "Corrects the covariance at the normal distribution, following [RVD]_.",
        "and another one",
    ),
    (
        "The weights of the basis elements are computed as",
        "a sentence that breaks off, not a summary",
    ),
]


@for_each(("text", "why"), NOT_PROSE)
def test_what_is_not_prose_is_dropped(text, why):
    assert prose(text) is None


PROSE = [
    "A tree is a connected graph without a cycle.",
    "Return a copy of the array.",
    '"Wide" means that every variable has a column of its own.',
    "``axis`` and ``dtype`` are ignored when an output array is given.",
    "scipy.signal has functions for the design of filters.",
    "A header that is too long is cut.",
    "If a synchronous function is passed, the cached one is called.",
    "Attributes which are not arrays are left unchanged.",
    "Some artists are not supported by this function. See legend_guide for details.",
    "A lexer instance outputs the tokens (e.g. Name or Text) in order.",
    "The algorithm of W. Kahan is used.",
]


@for_each("text", PROSE)
def test_what_is_prose_is_kept_in_plain_text(text):
    assert prose(text) == plain(text)


def test_only_a_summary_line_may_lack_its_full_stop():
    text = "Converts an expression to a string of C code for the compiler"
    assert prose(text, summary=True) == text
    assert prose(text) is None


# -- where docstrings are
# --------------------------------------------------------------------------------------


def test_docstrings_come_in_the_order_of_the_source_and_know_their_owner():
    source = b'''
"""Top."""
if True:
    def early():
        """Early."""
        def hidden():
            """Nobody sees this."""
class Late:
    """Late."""
    async def method(self):
        """Method."""
try:
    x = 1
except ImportError:
    def fallback():
        """Fallback."""
'''
    assert list(in_source(source)) == [
        ("", "Top."),
        ("early", "Early."),
        ("Late", "Late."),
        ("Late.method", "Method."),
        ("fallback", "Fallback."),
    ]


ATTACHED = [
    (b"add_docstr(torch.abs, r'''Computes it.''')", ("abs", "Computes it.")),
    (b"add_docstr(torch.add, '''Adds {x}.'''.format(**args))", ("add", "Adds {x}.")),
    (
        b"add_docstr_all('abs', 'See :func:`torch.abs`')",
        ("abs", "See :func:`torch.abs`"),
    ),
    (
        b"add_newdoc('numpy._core.multiarray', 'ndarray', ('sum', 'Sums.'))",
        ("sum", "Sums."),
    ),
    (b"add_newdoc('numpy', 'ufunc', [('at', 'Does it.')])", ("at", "Does it.")),
    (
        b"add_newdoc('gamma', '''The gamma function.''')",
        ("gamma", "The gamma function."),
    ),
]


@for_each(("source", "expected"), ATTACHED)
def test_docstrings_that_python_files_attach_to_compiled_functions_are_read(
    source, expected
):
    assert list(in_source(source)) == [expected]


def test_reading_source_runs_none_of_it(tmp_path):
    assert list(in_source(b'"""Says so."""\nraise SystemExit')) == [("", "Says so.")]


def test_the_topics_of_pydoc_belong_to_the_standard_library_and_tests_do_not():
    modules = {part.module for part in docstrings("python")}
    assert {"pydoc_data.topics", "json.decoder", "asyncio.events"} <= modules
    assert not any(
        part in module.split(".")
        for module in modules
        for part in ("test", "tests", "tkinter", "idlelib")
    )


def test_a_package_that_is_missing_is_named_with_the_remedy():
    with refusal(
        r"documentation of no_such_package.*pip install no_such_package",
        ModuleNotFoundError,
    ):
        installed_folder("no_such_package")
