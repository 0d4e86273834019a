"""The plots of the `stories` data set.

A plot is a list of paragraphs; a paragraph is a list of steps in their order; a step is
a list of wordings, of which one is told; a wording is a list of sentences. In a
sentence, {A} is the hero, {B} the friend, {T} the thing, {H}, {P} and {Q} are places,
{X} is an animal, {job} and {job2} are occupations, {kin} is a relative. A person or
thing is a name at first, a pronoun where that is clear; {A.object}, {A.possessive} in
another case, {A.name} always the name, {T.bare} without article, {T.new} with the
indefinite one. {T:was|were} agrees with the thing. [a|b] is a choice. Other slots draw
a word; {time} draws a later time of day each time, {night} the last one.
"""

Wording = list[str]
Step = list[Wording]
Plot = list[list[Step]]

WHO: Step = [
    [
        "{A.name} was a [young|good|poor|rich|kind|clever|skilful|friendly] {job.bare}"
        " who lived near {H}."
    ],
    ["There once was {job.new} called {A.name}.", "{A} lived in a house by {H}."],
    ["On a {day} in {month}, {A.name} was at {H}.", "{A} worked there as {job.new}."],
    ["For {number} years {A.name} had worked as {job.new} at {H}."],
]
SKY: Step = [
    ["{time}, {weather}."],
    ["It was {day}, and {weather}."],
    ["{A} looked out of the window, and {weather}."],
    ["{A} was {mood} because {weather}."],
]
ANIMAL: Step = [
    [
        (
            "On the [road|path|way] {A} saw [a young|a big|a little|a wild|a tame]"
            " {X.bare}."
        ),
        "The {X.bare} looked {mood}.",
    ],
    [
        "[A big|A little|A lazy] {X.bare} was [sleeping|sitting|waiting|playing] beside"
        " {P}."
    ],
    ["Then {A} counted {number} birds above {P}."],
    ["{A} {moved} on {manner} and met nobody."],
]
MEAL: Step = [
    ["{time}, {A} ate some {food} with {food}."],
    ["{A} was hungry, so {A} bought {food} for {number} coins."],
    ["Nobody had eaten, so {A.name} and {B.name} shared some {food}."],
]
GO_TO_P: Step = [
    ["{time}, {A} {moved} to {P}."],
    ["So {A} {moved} {manner} to {P}."],
    ["{A} left {H} {time} and {moved} to {P}."],
]
GO_ON: Step = [
    ["{time}, {A} {moved} to {P}."],
    ["From there {A} {moved} {manner} to {P}."],
    ["At last {A} came to {P}."],
]
HAPPY_END: Step = [
    ["{night}, {A} fell asleep and dreamed of {T.name}."],
    ["{A.name} and {B.name} stayed friends for {number} years."],
    ['"What a day!" {A} {said}.', "Everybody laughed."],
    [
        "{time}, {A} {moved} home {manner}.",
        "{A} was [happy|content|tired|glad] and [calm|grateful|sleepy].",
    ],
]

PLOTS: dict[str, Plot] = {
    "lost": [
        [
            WHO,
            [
                ["{A.possessive} favourite thing {T:was|were} {T.name}."],
                ["{A} owned {T.new}."],
            ],
            [
                ["{A} never went anywhere without {T.object}."],
                ["{T} {T:was|were} a gift from {A.possessive} {kin.bare}."],
            ],
        ],
        [
            SKY,
            [
                ["{A} could not find {T.object}."],
                ["{T} {T:was|were} gone."],
                ["{A} noticed that {T.name} {T:was|were} missing."],
            ],
            [
                ['"Where {T:is|are} my {T.bare}?" {A} {said}.'],
                [
                    "{A} was [sad|worried|nervous|upset|anxious|angry] and began to"
                    " search."
                ],
            ],
            [
                ["First {A} looked {hiding}, but {T} {T:was|were} not there."],
                ["{A} searched {hiding} and {hiding}."],
            ],
            GO_TO_P,
            ANIMAL,
        ],
        [
            [
                ["At {P}, {A} met {B.name}, {job2.new}."],
                ["{job2.new} called {B.name} was waiting at {P}."],
            ],
            [
                ['"I have seen your {T.bare}," {B} {said}.'],
                ['"{T:Is this|Are these} yours?" {B} asked.'],
            ],
            [
                ["{B} had found {T.object} {hiding}."],
                ["{T} had been {hiding} all the time."],
            ],
            [
                ["{A} thanked {B.object} and took {T.object} home."],
                ["{A} hugged {B.object} and gave {B.object} some {food}."],
            ],
            HAPPY_END,
        ],
    ],
    "gift": [
        [
            WHO,
            [
                ["{A.possessive} best friend was {B.name}."],
                ["{B.name}, {job2.new}, was {A.possessive} neighbour."],
            ],
            [
                ["{B.possessive} birthday was on {day}."],
                ["{day} was {B.possessive} birthday."],
            ],
        ],
        [
            SKY,
            [
                ["{A} wanted to buy a present for {B.object}."],
                ["{A} needed a present for {B.object}."],
            ],
            GO_TO_P,
            [
                ["In a shop there {A} saw {T.new}."],
                ["At {P} somebody was selling {T.new}."],
            ],
            [
                [
                    '"How much {T:is|are} the {T.bare}?" {A.name} asked.',
                    '"Only {number} coins," {said} the seller.',
                ]
            ],
            [
                ["{A} paid and wrapped {T.object} in paper."],
                ["{A} counted the money and bought {T.object}."],
            ],
        ],
        [
            [
                ["{time}, {A} {moved} to {B.possessive} house."],
                ["{time}, {A} visited {B.object}."],
            ],
            [
                ["{B.name} opened the parcel and found {T.name}."],
                ["{A} gave {B.object} {T.name}."],
            ],
            [
                ['"{T:It is|They are} [wonderful|perfect|beautiful]!" {B} {said}.'],
                ["{B} liked {T.object} very much."],
            ],
            MEAL,
            HAPPY_END,
        ],
    ],
    "repair": [
        [
            WHO,
            [
                ["In {A.possessive} room there was {T.new}."],
                ["{A.possessive} {kin.bare} had left {A.object} {T.new}."],
            ],
            SKY,
        ],
        [
            [
                ["Suddenly {T.name} fell and broke."],
                ["{A} dropped {T.name} by accident.", "{T} broke."],
            ],
            [
                ["{A} tried to mend {T.object} with glue, but failed."],
                ["{A} could not mend {T.object} alone."],
            ],
            [
                [
                    '"{B.name} can help me," {A.name} {said}.',
                    "{B} was {job2.new} at {P}.",
                ]
            ],
            GO_TO_P,
            ANIMAL,
        ],
        [
            [
                ["{B.name} was busy, but welcomed {A.object} {manner}."],
                ["{A} found {B.name} in the workshop at {P}."],
            ],
            [
                ["{B} looked at {T.object} {manner}."],
                ["{B} took {T.object} and put on {B.possessive} glasses."],
            ],
            [["The work took {number} minutes."], ["The work cost {number} coins."]],
            [
                ["{time}, {T.name} {T:was|were} as good as new."],
                ["At last {B} had repaired {T.object}."],
            ],
            MEAL,
            HAPPY_END,
        ],
    ],
    "journey": [
        [
            WHO,
            [["{A.possessive} {kin.bare} {B.name} lived far away, near {P}."]],
            [
                ["One day a letter from {B.object} arrived."],
                ["{B} was {mood} and asked {A.object} to come."],
            ],
            [
                ['"Please bring the {T.bare}," {B} had written.'],
                ["{B} wanted to see {T.name} again."],
            ],
        ],
        [
            [
                ["{A} packed {T.name}, some {food} and some {food}."],
                ["{A} put {T.name} into a bag with some {food}."],
            ],
            SKY,
            [["{A} left {H} and {moved} to {Q}."], ["From {H} {A} {moved} to {Q}."]],
            [
                ["At {Q} {A} rested for {number} minutes."],
                ["Near {Q} {A} lost the way and asked a stranger."],
            ],
            GO_ON,
            ANIMAL,
        ],
        [
            [["{B.name} was standing at the door."], ["At {P} {A} saw {B.name}."]],
            [
                [
                    '"Did you bring the {T.bare}?" {B} asked.',
                    '"Here {T:it is|they are}," {A.name} {said}.',
                ]
            ],
            MEAL,
            [
                ["{B} told {A.object} how {T.name} had come to the family."],
                ["{B} put {T.name} on the table, and both smiled."],
            ],
            HAPPY_END,
        ],
    ],
    "trade": [
        [
            WHO,
            [
                ["{A} had {T.new} but no [money|food|bread]."],
                ["All that {A} owned was {T.new}."],
            ],
            SKY,
        ],
        [
            [
                ["{A} decided to sell {T.object}."],
                ['"I must sell the {T.bare}," {A.name} {said}.'],
            ],
            GO_TO_P,
            ANIMAL,
            [
                ["At {P}, {B.name} asked for the price."],
                ["{job2.new} called {B.name} stopped and looked at {T.object}."],
            ],
            [
                ['"I offer you {number} coins for {T.object}," {B.name} {said}.'],
                ["{B} offered a basket of {food} for {T.object}."],
            ],
        ],
        [
            [
                ["{A} thought about it {manner} and agreed."],
                ["{A} was {mood}, but agreed."],
            ],
            [
                ["{B} took {T.name} and {moved} away."],
                ["So {T.name} went to {B.object}."],
            ],
            [
                ["With the money {A} bought {food}, {food} and {food}."],
                ["{A} carried everything home to {H}."],
            ],
            [
                ["{time}, {A} missed {T.name}."],
                ["Later {A} heard that {T.name} {T:was|were} in a museum."],
            ],
            HAPPY_END,
        ],
    ],
    "rescue": [
        [
            WHO,
            [
                ["{A} and {B.name} were [friends|neighbours|partners]."],
                ["{A} often met {B.name}, {job2.new}."],
            ],
            SKY,
        ],
        [
            [
                ["{time}, {B.name} {moved} to {P} with {T.new}."],
                ["{B.name} took {T.new} and {moved} to {P}."],
            ],
            [
                ["Hours passed, and {B} did not come back."],
                ["{B} had promised to return soon."],
            ],
            [
                ["{A.name} became worried and {moved} after {B.object}."],
                ["{A.name} called {B.object}, but nobody answered."],
            ],
            ANIMAL,
            [
                ["Near {P} {A.name} found {T.name} {hiding}."],
                ["Then {A.name} saw {T.name} {hiding}."],
            ],
        ],
        [
            [
                ["{B.name} had hurt {B.possessive} [leg|foot|arm|knee|ankle]."],
                ["{B.name} was lying beside {P} and could not walk."],
            ],
            [
                ['"I am so glad to see you," {B} {said}.'],
                ["{A.name} helped {B.object} to stand up."],
            ],
            [
                ["{A} carried {T.name} and {B} leaned on a stick."],
                ["Together they {moved} to {Q}."],
            ],
            MEAL,
            HAPPY_END,
        ],
    ],
}
