"""The words of the `stories` data set: some 1,500 with those in its plots (:mod:`course_lib.data.stories`).

Chapter: wordpiece
"""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(" ".join(phrase.split()) for phrase in text.split(","))


WOMEN = _words("""
    Ada Agnes Alice Amina Anna Astrid Beatrice Bella Bertha Carla Cecilia Clara Dana Daisy Diana Edith Elena Ella Emma
    Esther Eva Fatima Fiona Flora Frida Gloria Greta Hana Hannah Helen Ida Ingrid Irene Iris Jane Josephine Julia
    Karin Kate Laura Leila Lena Linda Lucy Luisa Magda Maria Martha Maya Mina Mira Molly Nadia Nina Nora Olga Olivia
    Paula Petra Rita Rosa Ruth Sara Selma Sofia Stella Susan Tara Tessa Vera Viola Wanda Yasmin Zoe
""")
MEN = _words("""
    Aaron Abel Adam Albert Ali Amos Andre Anton Arthur Axel Basil Ben Boris Bruno Carl Cyril Daniel David Dario Edgar
    Elias Emil Eric Ernest Felix Frank Fred George Gregor Gustav Hamid Hans Harry Henry Hugo Igor Isaac Ivan Jacob
    James Jonas Joseph Karim Kurt Leo Louis Lukas Marco Martin Max Milan Nathan Noah Omar Oscar Oskar Otto Paul Peter
    Philip Ralph Rashid Robert Rolf Samir Samuel Simon Stefan Theo Thomas Tim Tobias Victor Walter Yusuf
""")
OCCUPATIONS = _words("""
    actor architect artist astronomer baker banker barber beekeeper blacksmith botanist builder butcher captain
    carpenter chemist clerk clown composer cook dancer dentist doctor driver editor electrician engineer explorer farmer
    fisher florist gardener geologist grocer guard guide hunter inventor janitor jeweller journalist judge
    lawyer librarian locksmith magician mason mechanic miner musician nurse optician painter pharmacist
    philosopher photographer pianist pilot plumber poet porter potter printer professor ranger reporter sailor scientist
    sculptor shepherd singer soldier student surgeon surveyor tailor teacher tourist translator violinist
    waiter watchmaker weaver writer zookeeper
""")
# What a person can carry; "a" or "an" before each.
THINGS = _words("""
    accordion album almanac anchor apron atlas axe backpack ball balloon banner barometer basin basket bell belt bicycle
    blanket book bottle bowl box bracelet brick broom brush bucket button cage calendar camera candle canvas cap
    card carpet cello chain chair chessboard chisel clarinet cloak clock coat coin comb compass cradle crayon crown cup
    cushion diary dictionary dish doll drawing drill drum easel envelope fan feather fiddle file fishhook flag flask
    flute fork frame funnel globe goblet guitar hammer handbag harmonica harp hat helmet hourglass jacket jar jewel jug
    kettle key keyboard kite knife ladder ladle lamp lantern lens letter lock locket loom magnet mandolin manual map
    marble mask mat mattress medal microscope mirror mixer mop mug napkin necklace needle net newspaper notebook oar
    oven paddle painting pan parasol parcel pedal pen pencil pendant photograph pillow pipe pitcher
    plate poem postcard poster pot prism pump puppet puzzle quilt racket radio rake raincoat razor recipe ribbon ring
    robe rope ruler saddle sail saucer saw scarf screwdriver sculpture shawl shield shirt shovel sickle skateboard
    skirt sled spade spear spoon stamp stapler statue stool suitcase sundial sweater sword table tambourine tape
    teapot telescope tent thermometer thimble ticket toolbox torch towel toy tray tripod trophy trumpet trunk typewriter
    umbrella uniform vase vest violin wallet watch wheel whistle wig wrench xylophone
""")
PAIRS = _words("""
    binoculars boots curtains dice earrings glasses gloves headphones mittens moccasins overalls pliers pyjamas
    sandals scales scissors shears shoes skates skis slippers sneakers socks stockings stilts sunglasses
    trousers tweezers
""")
SIZES_AND_AGES = _words("ancient big broad enormous heavy huge large light little long narrow new old short small tiny")
LOOKS = _words("""
    beautiful broken bright brown black blue clean colourful copper crooked dark dusty dirty elegant expensive famous
    fancy fragile golden green grey handmade iron leather lovely magnificent modest muddy orange painted patched pink
    plain polished precious pretty purple rare red rusty scratched shiny silver simple splendid steel strange striped
    stained sturdy torn ugly unusual violet white wonderful wooden worn yellow
""")
PLACES = _phrases("""
    airport, aquarium, arena, attic, avenue, bakery, balcony, bank, barn, bay, bazaar, beach, boathouse, bookshop,
    bridge, cabin, cafe, camp, campus, canal, canyon, castle, cathedral, cave, cellar, chapel, cinema, circus, city,
    cliff, clinic, coast, college, concert hall, corner, cottage, court, courtyard, dairy, dam, desert, dock, factory,
    farm, ferry, field, fire station, forest, forge, fort, fountain, gallery, garage, garden, gate, glacier, greenhouse,
    gymnasium, hall, harbour, hill, hospital, hotel, inn, island, jungle, junction, laboratory, lagoon, lake, laundry,
    library, lighthouse, mansion, market, marsh, meadow, mill, mine, monastery, monument, mountain, museum,
    nursery, oasis, observatory, office, orchard, palace, park, pasture, pavilion, pharmacy, pier, planetarium, plaza,
    playground, pond, port, post office, prairie, pyramid, quarry, quay, railway, reservoir, restaurant, river, ruin,
    school, shelter, shipyard, shop, shore, square, stable, stadium, studio, supermarket, swamp, temple, theatre,
    tower, town hall, tunnel, university, valley, village, vineyard, volcano, warehouse, waterfall, well, windmill,
    workshop, zoo
""")
HIDING_PLACES = _phrases("""
    under the bed, behind the curtain, in a drawer, on the shelf, behind the door, under the bench, inside the cupboard,
    on the windowsill, beneath the stairs, among the leaves, between two stones, near the fence, next to the stove,
    on the roof, under the sofa, inside the closet, in the gutter, beside the path, behind the wardrobe,
    in the hollow of a tree, on the counter, in the grass, under the carpet, at the bottom of the stairs
""")
RELATIVES = {
    "f": _words("mother sister aunt grandmother daughter niece wife"),
    "m": _words("father brother uncle grandfather son nephew husband"),
}
FOODS = _words("""
    almonds apples apricots asparagus bacon bananas beans beetroot berries biscuits bread broccoli butter cabbage cake
    carrots cauliflower celery cheese cherries chestnuts chicken chocolate cinnamon coconut cream cucumber curry
    dates dumplings eggs figs fish flour garlic ginger grapes ham hazelnuts honey jam lamb leeks lemons lentils
    lettuce melon milk mint mushrooms mustard noodles nuts oats olives onions oranges oysters pancakes parsley pasta
    peaches pears peas pepper pie pineapple plums porridge potatoes prawns pumpkin radishes raisins raspberries rice
    salad salmon salt sausages soup spinach stew strawberries sugar toast tomatoes trout turkey turnips vanilla vinegar
    walnuts yoghurt
""")
ANIMALS = _words("""
    alligator ant antelope badger bat bear beaver bee beetle bison blackbird buffalo bull butterfly camel canary
    cat chameleon cheetah cow crab crane cricket crocodile crow cuckoo deer dog dolphin donkey dove dragonfly duck eagle
    eel elephant falcon ferret flamingo fox frog gazelle giraffe goat goose gorilla grasshopper hamster
    hare hawk hedgehog heron horse hyena iguana jackal jaguar kangaroo kitten koala ladybird lark leopard lion lizard
    lobster lynx magpie mole monkey moose mosquito moth mouse mule nightingale octopus ostrich otter owl ox panda
    parrot peacock pelican penguin pheasant pig pigeon pony porcupine puppy rabbit raccoon rat raven reindeer rhinoceros
    robin rooster salamander seagull seal shark sheep snail snake sparrow spider squirrel stork swallow swan
    tiger toad tortoise vulture walrus wasp weasel whale wolf woodpecker worm yak zebra
""")
MOODS = _words("""
    afraid angry anxious bored calm careful cheerful content curious delighted excited exhausted glad grateful
    happy hopeful hungry impatient lonely nervous patient pleased proud quiet relaxed sad satisfied shy sleepy
    surprised thirsty tired upset worried
""")
WEATHER = _phrases("""
    the sun was shining, it was raining, the wind was blowing, it was snowing, the sky was cloudy, it was cold,
    it was warm, the fog was thick, the air was fresh, a storm was coming, it was freezing, the stars were out,
    it was drizzling, thunder was rolling, the snow was melting, the streets were icy, the heat was terrible
""")
MOVED = _words("""
    climbed crept cycled dashed drove flew hiked hobbled hopped hurried jogged marched paddled raced ran
    rode rowed rushed sailed skated skipped sneaked strolled travelled trotted walked wandered went
""")
MANNERS = _words("""
    alone bravely briskly carefully cheerfully eagerly gladly gracefully happily hastily joyfully lazily noisily
    patiently politely proudly quickly quietly sadly secretly silently slowly steadily swiftly warily
""")
SAID = _words("answered whispered shouted laughed replied sighed cried explained mumbled declared said")
DAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = _words("January February March April May June July August September October November December")
NUMBERS = _words("""
    two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety
""")
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
