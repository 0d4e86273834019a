"""The reading list: for each chapter what to read next and why, in the order in which
it is worth the time."""

from collections.abc import Mapping

#: Chapter -> entries in Markdown. Those of a chapter that the book does not have yet
#: are left out.
READING: Mapping[int, tuple[str, ...]] = {
    1: (
        (
            "{cite:t}`sutskever2014`: the encoder-decoder at its plainest. See how far"
            " one vector goes, and the trick of reading the source backwards."
        ),
        (
            "{cite:t}`bahdanau2015`: the first attention for translation. Look at its"
            " figures of alignments and of quality against length, which chapter 1"
            " remakes."
        ),
        (
            "{cite:t}`luong2015`: the same idea with simpler scores, compared side by"
            " side, and scored against hand-made alignments."
        ),
        (
            "{cite:t}`koehn2017`: what neural translation was bad at when it took over."
            " A model of how to report weaknesses."
        ),
    ),
    2: (
        (
            "{cite:t}`vaswani2017`: section 3.2 and table 1 are the chapter; read the"
            " rest with chapter 3."
        ),
        (
            "{cite:t}`dao2022`: why the same arithmetic in another order needs less"
            " memory and less time. For those who ask what a kernel is."
        ),
        (
            "{cite:t}`voita2019` and {cite:t}`michel2019`: how many heads a trained"
            " model needs. Two ways to ask, and nearly one answer."
        ),
    ),
    3: (
        (
            "{cite:t}`vaswani2017`: short enough to be read in an evening. Table 3 is"
            " the one to study: one change at a time."
        ),
        (
            "{cite:t}`alammar2018`: the same in pictures, for whoever wants to see"
            " shapes move."
        ),
        (
            "{cite:t}`xiong2020`: where the norm should stand, with a reason and with"
            " measurements."
        ),
        (
            "{cite:t}`ba2016` and {cite:t}`he2016`: the two parts without which deep"
            " stacks do not train."
        ),
    ),
    4: (
        (
            "{cite:t}`sennrich2016`: byte pairs for rare words. The clearest case for"
            " pieces, with ten lines of code that work."
        ),
        (
            "{cite:t}`schuster2012`: where WordPiece comes from, and what its score was"
            " meant to be."
        ),
        (
            "{cite:t}`bostrom2020`: a doubt whether merging is the right idea for"
            " pre-training at all."
        ),
    ),
    5: (
        (
            "{cite:t}`devlin2019`: section 3, with figures 1 to 3. Check each number"
            " against chapter 5."
        ),
        (
            "{cite:t}`phuong2022`: all Transformers as pseudocode. Good for whoever"
            " distrusts pictures."
        ),
        (
            "{cite:t}`turc2019`: what small BERTs are good for, and where the sizes"
            " from tiny to medium come from."
        ),
    ),
    6: (
        (
            "{cite:t}`devlin2019`: section 5 and the appendices, which hold the answers"
            ' to most questions of "why".'
        ),
        (
            "{cite:t}`liu2019`: the same model, trained with more care. The best lesson"
            " there is in changing one thing at a time."
        ),
        (
            "{cite:t}`wettig2023`: should you mask 15%? A sweep that nobody had made"
            " for five years."
        ),
        "{cite:t}`izsak2021`: what a group without a data centre can do in a day.",
        (
            "{cite:t}`rogers2020`: what 150 studies found inside BERT, and where they"
            " disagree."
        ),
    ),
    7: (
        (
            "{cite:t}`mikolov2013b`: negative sampling, and why frequent words are"
            " thinned out."
        ),
        (
            "{cite:t}`peters2018`: ELMo. Table 5 and the section on layers ask which"
            " layer knows what."
        ),
        (
            "{cite:t}`radford2018`: GPT, the other half of the idea: one model, little"
            " tasks on top."
        ),
        (
            "{cite:t}`ethayarajh2019`: how contextual such vectors are, and how narrow"
            " the cone in which they lie."
        ),
    ),
    8: (
        "{cite:t}`howard2018`: fine-tuning before BERT, with rates by layer.",
        (
            "{cite:t}`mosbach2021`: why fine-tuning sometimes fails, and that it takes"
            " more steps, not more luck."
        ),
        (
            "{cite:t}`rajpurkar2018`: questions without an answer. A lesson in how a"
            " data set shapes what a model can be asked."
        ),
        "{cite:t}`guo2017`: when a model says 90%, is it right nine times of ten?",
    ),
    9: (
        (
            "{cite:t}`reimers2019`: siamese BERT. Tables 1, 2 and 5 are what chapter 9"
            " is held against."
        ),
        (
            "{cite:t}`henderson2017`: the answers of the batch as wrong answers, in a"
            " system that really answered mail."
        ),
        "{cite:t}`ethayarajh2019`: why a cosine of raw states means little.",
        (
            "{cite:t}`thakur2021`: search on data that nobody trained on. A cure for"
            " too much trust in vectors."
        ),
        "{cite:t}`nogueira2019`: find cheaply, then read the first few closely.",
    ),
    10: (
        "{cite:t}`liu2019`: RoBERTa again, now as a lesson in what was left undone.",
        (
            "{cite:t}`sanh2019` and {cite:t}`lan2020`: two ways to a smaller model, by"
            " a teacher and by sharing."
        ),
        (
            "{cite:t}`khattab2020`: late interaction, between one vector and reading"
            " both texts."
        ),
        (
            "{cite:t}`raffel2020`: everything as text, and a comparison of choices at a"
            " size where they show."
        ),
        (
            "{cite:t}`brown2020` and {cite:t}`min2022`: what examples in a prompt do,"
            " and what in them matters."
        ),
    ),
}
