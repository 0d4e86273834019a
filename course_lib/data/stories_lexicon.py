"""The words of the `stories` data set: some 1,300 with those in its plots
(:mod:`course_lib.data.stories`).

Each story is at home in one of the `WORLDS`, by the sea or on a farm, with its people,
places and things. In a list of words the first are told most: the word of rank r is
drawn with a chance in proportion to 1/r (Zipf's law).
"""

from typing import NamedTuple


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(" ".join(phrase.split()) for phrase in text.split(","))


class World(NamedTuple):
    """Where a story is at home: who lives there, and what is there.

    Parameters
    ----------
    women, men
        First names.
    occupations
        What they do; "a" or "an" before each, as before things.
    places
        Where one can go; "the" before each.
    things
        What a person can carry.
    pairs
        The same, in the plural.
    foods
        What one can eat some of.
    animals
        Whom one can meet.
    hiding
        Where a thing may lie.
    """

    women: tuple[str, ...]
    men: tuple[str, ...]
    occupations: tuple[str, ...]
    places: tuple[str, ...]
    things: tuple[str, ...]
    pairs: tuple[str, ...]
    foods: tuple[str, ...]
    animals: tuple[str, ...]
    hiding: tuple[str, ...]


SEA = World(
    women=_words("Ada Marina"),
    men=_words("Omar Jonas"),
    occupations=_words(
        "sailor fisher captain diver guard swimmer merchant explorer painter lifeguard"
        " shipwright guide"
    ),
    places=_phrases("""
        harbour, beach, island, lighthouse, port, pier, boathouse, bay, coast, quay, shipyard, dock, cliff, lagoon,
        ferry, shore, aquarium, sandbank
    """),  # noqa: E501
    things=_words("""
        anchor net compass oar sail boat shell pearl flag telescope barrel bucket rope lantern bottle fishhook raft
        paddle chart trunk parasol kite towel hammock harpoon surfboard sextant foghorn
    """),  # noqa: E501
    pairs=_words("flippers binoculars sandals stilts"),
    foods=_words(
        "fish oysters prawns rice salt lemons seaweed coconut mussels lime salmon tuna"
    ),
    animals=_words(
        "seagull dolphin whale crab seal shark octopus lobster penguin walrus pelican"
        " eel turtle albatross"
    ),
    hiding=_phrases(
        "under the boat, between two stones, behind the rock, in the sand, inside a"
        " barrel, on the deck"
    ),
)
FARM = World(
    women=_words("Ruth Martha"),
    men=_words("Ben Gregor"),
    occupations=_words(
        "farmer shepherd beekeeper gardener cowherd miller drover butcher brewer reaper"
        " thatcher vet"
    ),
    places=_phrases("""
        farm, barn, mill, field, meadow, stable, orchard, village, pasture, dairy, well, vineyard, henhouse, windmill,
        greenhouse, garden, pond, prairie
    """),  # noqa: E501
    things=_words("""
        basket bucket bell rake spade shovel saddle broom sickle plough wheel sack jug churn whip scythe blanket pot
        ladder apron straw trough horseshoe beehive pitchfork fence lasso barrow
    """),  # noqa: E501
    pairs=_words("boots overalls shears reins"),
    foods=_words(
        "bread eggs cheese butter milk honey potatoes apples cabbage bacon oats pears"
        " pumpkin cream"
    ),
    animals=_words(
        "cow horse hen goat sheep pig dog donkey rooster goose duck cat lamb pony ox"
        " bull mule bee"
    ),
    hiding=_phrases(
        "in the hay, behind the fence, under the cart, beside the path, in the grass,"
        " on the roof"
    ),
)
FOREST = World(
    women=_words("Nora Astrid"),
    men=_words("Leo Rolf"),
    occupations=_words(
        "hunter ranger woodcutter botanist carpenter forester trapper tracker archer"
        " lumberjack hermit druid"
    ),
    places=_phrases("""
        forest, cabin, river, cave, camp, clearing, waterfall, swamp, hut, lake, bridge, spring, marsh, shelter,
        jungle, brook, hollow, thicket
    """),  # noqa: E501
    things=_words("""
        axe tent torch map knife bow arrow flask rucksack flute whistle feather backpack canoe trap branch cloak log
        spear drum nest hatchet match stump acorn hammock quiver walnut
    """),  # noqa: E501
    pairs=_words("moccasins gloves crutches leggings"),
    foods=_words(
        "berries mushrooms nuts hazelnuts chestnuts stew raspberries venison herbs"
        " trout mint strawberries"
    ),
    animals=_words(
        "deer fox owl bear wolf squirrel rabbit badger hedgehog frog beaver lynx raven"
        " boar woodpecker toad"
    ),
    hiding=_phrases("""
        among the leaves, behind the tree, under the moss, in the hollow of a tree, between the roots, in the ferns
    """),  # noqa: E501
)
MOUNTAIN = World(
    women=_words("Ingrid Vera"),
    men=_words("Otto Emil"),
    occupations=_words(
        "miner climber geologist blacksmith skier mason surveyor porter messenger"
        " goatherd jeweller prospector"
    ),
    places=_phrases("""
        mountain, mine, valley, castle, glacier, tower, canyon, quarry, monastery, chapel, volcano, hill, tunnel, dam,
        fort, summit, gorge, ridge
    """),  # noqa: E501
    things=_words("""
        hammer helmet pickaxe lamp sled crystal ring crown sword nugget chisel shield chain scarf coin gem goblet
        medal thermometer pendant horn necklace gauge key bracelet brick pan
    """),  # noqa: E501
    pairs=_words("skis mittens skates snowshoes"),
    foods=_words(
        "soup porridge dumplings ham noodles turnips lentils goulash sausages tea"
        " barley fondue"
    ),
    animals=_words(
        "eagle goat bat yak falcon ibex hawk marmot vulture reindeer crow hare chamois"
        " leopard panda moose"
    ),
    hiding=_phrases(
        "in the snow, under the ice, behind the wall, in a crack, beneath the stones,"
        " on the ledge"
    ),
)
MARKET = World(
    women=_words("Clara Rosa"),
    men=_words("Felix Marco"),
    occupations=_words(
        "baker tailor grocer waiter banker barber florist weaver chef cobbler"
        " pharmacist hatter clerk lawyer"
    ),
    places=_phrases("""
        market, bakery, square, shop, inn, cafe, fountain, bank, bazaar, restaurant, plaza, pharmacy, town hall, park,
        avenue, supermarket, laundry, corner
    """),  # noqa: E501
    things=_words("""
        cup hat purse plate dress bowl umbrella coat teapot vase carpet kettle shirt spoon mirror handbag candle dish
        ribbon suitcase quilt tray wallet jar necktie razor thimble saucer
    """),  # noqa: E501
    pairs=_words("shoes earrings scissors trousers slippers"),
    foods=_words(
        "cake biscuits chocolate jam salad pie cherries grapes oranges bananas pancakes"
        " sugar tomatoes melon"
    ),
    animals=_words(
        "pigeon mouse kitten sparrow puppy rat parrot poodle canary spider fly terrier"
        " wasp hamster swallow"
    ),
    hiding=_phrases(
        "under the bench, on the counter, in a drawer, behind the curtain, under the"
        " table, on a tray"
    ),
)
SCHOOL = World(
    women=_words("Lena Iris"),
    men=_words("Theo Isaac"),
    occupations=_words("""
        teacher student professor librarian scientist inventor writer astronomer chemist philosopher editor translator
        pupil historian
    """),  # noqa: E501
    places=_phrases("""
        school, library, university, museum, laboratory, college, observatory, campus, bookshop, office, playground,
        hall, gymnasium, planetarium, nursery, archive, dormitory, cafeteria
    """),  # noqa: E501
    things=_words("""
        book pen letter pencil notebook globe clock microscope dictionary diary poem ruler magnet crayon atlas calendar
        prism card satchel stamp newspaper eraser chalkboard lens puzzle manual abacus almanac
    """),  # noqa: E501
    pairs=_words("glasses compasses sneakers tweezers"),
    foods=_words(
        "sandwiches toast yoghurt raisins carrots popcorn pudding juice crackers"
        " walnuts beans jelly"
    ),
    animals=_words(
        "snail ant butterfly lizard ladybird beetle grasshopper cricket worm tortoise"
        " dragonfly moth gecko mole"
    ),
    hiding=_phrases(
        "on the shelf, under the desk, inside the cupboard, on the windowsill, behind"
        " the door, in a box"
    ),
)
WORKS = World(
    women=_words("Tessa Petra"),
    men=_words("Igor Karl"),
    occupations=_words("""
        mechanic driver engineer plumber electrician locksmith printer builder welder potter conductor watchmaker
        architect janitor
    """),  # noqa: E501
    places=_phrases("""
        factory, workshop, garage, railway, station, warehouse, airport, forge, crossing, depot, junction, bus stop,
        fire station, canal, cellar, hangar, sawmill, reservoir
    """),  # noqa: E501
    things=_words("""
        drill wrench bicycle engine radio screwdriver saw toolbox wheel battery pump pipe lock bulb spring watch camera
        cable motor ladder jack propeller typewriter keyboard valve funnel crane piston
    """),  # noqa: E501
    pairs=_words("pliers goggles headphones scales"),
    foods=_words(
        "pasta pizza onions curry mustard peas garlic vinegar pepper chips ketchup"
        " peanuts"
    ),
    animals=_words(
        "rooster crow magpie weasel ferret blackbird starling mosquito raccoon lark"
        " stork bulldog cockroach hound"
    ),
    hiding=_phrases(
        "under the carpet, behind the stove, beneath the stairs, in the gutter, on the"
        " workbench, under a crate"
    ),
)
STAGE = World(
    women=_words("Stella Daisy"),
    men=_words("Hugo Oskar"),
    occupations=_words("""
        actor dancer musician singer clown magician pianist poet violinist composer juggler acrobat sculptor puppeteer
    """),  # noqa: E501
    places=_phrases("""
        theatre, circus, palace, cinema, concert hall, gallery, arena, stadium, temple, studio, zoo, hotel, mansion,
        pavilion, balcony, cathedral, opera, ballroom
    """),  # noqa: E501
    things=_words("""
        violin mask guitar costume drum trumpet ball puppet fan piano harp balloon cello statue wig wand trophy
        fiddle tambourine accordion poster ticket bouquet clarinet portrait xylophone curtain tuba
    """),  # noqa: E501
    pairs=_words("castanets cymbals stockings dice"),
    foods=_words(
        "candy ice nougat almonds peaches truffles pineapple wafers dates figs marzipan"
        " caramel"
    ),
    animals=_words(
        "lion elephant tiger monkey zebra camel peacock giraffe flamingo swan snake"
        " gorilla ostrich kangaroo"
    ),
    hiding=_phrases("""
        behind the scenery, under the sofa, inside the closet, under a seat, behind the wardrobe, on the stage
    """),  # noqa: E501
)
WORLDS = (SEA, FARM, FOREST, MOUNTAIN, MARKET, SCHOOL, WORKS, STAGE)


def _all(kind: str) -> tuple[str, ...]:
    """The words of a kind in all worlds, each once."""
    return tuple(
        dict.fromkeys(word for world in WORLDS for word in getattr(world, kind))
    )


WOMEN, MEN, OCCUPATIONS, PLACES = (
    _all("women"),
    _all("men"),
    _all("occupations"),
    _all("places"),
)
THINGS, PAIRS, FOODS, ANIMALS = (
    _all("things"),
    _all("pairs"),
    _all("foods"),
    _all("animals"),
)
HIDING_PLACES = _all("hiding")
SIZES_AND_AGES = _words(
    "old little new big small heavy long tiny large huge short ancient light narrow"
    " broad enormous"
)
LOOKS = _words("""
    red blue green black white golden brown silver yellow wooden broken beautiful grey dirty bright dark rusty pink
    purple pretty orange strange plain precious worn clean violet striped torn rare simple painted crooked dusty lovely
    famous expensive handmade copper steel iron leather shiny scratched polished patched elegant fancy fragile muddy
    stained ugly unusual sturdy splendid modest colourful magnificent wonderful
""")  # noqa: E501
RELATIVES = {
    "f": _words("mother sister aunt grandmother daughter niece wife"),
    "m": _words("father brother uncle grandfather son nephew husband"),
}
MOODS = _words("""
    happy sad tired hungry proud calm angry excited worried thirsty nervous glad surprised curious lonely afraid sleepy
    cheerful quiet bored upset patient relaxed pleased hopeful grateful shy anxious content exhausted impatient
    delighted satisfied careful
""")  # noqa: E501
WEATHER = _phrases("""
    the sun was shining, it was raining, the wind was blowing, it was snowing, the sky was cloudy, it was cold,
    it was warm, the fog was thick, the air was fresh, a storm was coming, it was freezing, the stars were out,
    it was drizzling, thunder was rolling, the snow was melting, the streets were icy, the heat was terrible
""")  # noqa: E501
MOVED = _words("""
    went walked ran rode hurried drove wandered climbed hiked sailed rushed jogged cycled crept strolled travelled
    marched raced dashed flew hopped hobbled paddled rowed skipped skated sneaked trotted
""")  # noqa: E501
MANNERS = _words("""
    quickly slowly quietly happily carefully alone silently proudly eagerly sadly patiently cheerfully secretly gladly
    politely bravely lazily calmly noisily steadily swiftly briskly hastily joyfully gracefully warily
""")  # noqa: E501
SAID = _words(
    "said answered cried replied whispered explained shouted laughed sighed mumbled"
    " declared"
)
DAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = _words(
    "January February March April May June July August September October November"
    " December"
)
NUMBERS = _words("""
    two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety
""")  # noqa: E501
# Times of one day, in their order: a story goes through them and never back.
TIMES = (
    _phrases("at dawn, at sunrise, early in the morning, before breakfast"),
    _phrases("in the morning, after breakfast, later that morning"),
    _phrases("at noon, at midday, around lunchtime"),
    _phrases("in the afternoon, after lunch, later that day"),
    _phrases("towards evening, at sunset, before supper"),
    _phrases("in the evening, after supper, at dusk"),
    _phrases("at night, at midnight, before bedtime"),
)
