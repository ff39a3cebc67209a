"""What do certain nouns and adjectives tell?  Kin, animals, jobs, feelings, states of things."""

from typing import Final

from projectors.text.stems import word_set

KIN: Final = word_set(
    """
    wife husband spouse partner girlfriend boyfriend fiance fiancee mother father mom mum dad
    mommy daddy parent sister brother sibling twin son daughter child kid baby grandmother
    grandfather grandma grandpa granny grandparent grandson granddaughter grandchild aunt uncle
    cousin niece nephew stepmother stepfather stepson stepdaughter friend colleague coworker
    boss manager neighbour neighbor roommate flatmate housemate teammate mentor teacher doctor
    therapist dentist coach assistant landlord client customer lawyer accountant supervisor
    babysitter nanny trainer classmate godmother godfather godson ex mother-in-law father-in-law
    brother-in-law sister-in-law best-friend cofounder co-founder
    """
)
"""Who one may have; the plural is read as one of them."""

KIN_NAMES: Final = {
    "mom": "mother",
    "mum": "mother",
    "mommy": "mother",
    "dad": "father",
    "daddy": "father",
    "kid": "child",
    "baby": "child",
    "grandma": "grandmother",
    "granny": "grandmother",
    "grandpa": "grandfather",
    "coworker": "colleague",
    "neighbor": "neighbour",
    "boss": "manager",
    "supervisor": "manager",
}
"""The one name of kin that has several."""

PETS: Final = word_set(
    """
    dog cat puppy kitten rabbit bunny hamster parrot budgie goldfish fish turtle tortoise snake
    lizard gecko guinea-pig ferret horse pony chicken duck hedgehog axolotl canary pet retriever
    labrador poodle dachshund terrier beagle bulldog husky collie corgi shepherd spaniel pug
    """
)

JOBS: Final = word_set(
    """
    accountant actor actress analyst architect artist attorney author baker banker barber
    barista bartender biologist bookkeeper boss builder butcher captain carpenter cashier ceo
    cfo chef chemist cleaner clerk coach coder comedian composer consultant contractor cook coo
    counselor counsellor cto curator dancer dentist designer developer director doctor driver
    economist editor electrician engineer entrepreneur farmer firefighter florist freelancer
    gardener geologist hairdresser head historian illustrator instructor intern interpreter
    investor janitor journalist judge lawyer lecturer lead librarian lifeguard locksmith manager
    mathematician mechanic midwife model musician nanny neurologist nurse officer optician
    painter paralegal paramedic pastor pharmacist photographer physicist physiotherapist pianist
    pilot plumber poet policeman politician postdoc president priest principal producer
    product-manager professor programmer psychiatrist psychologist publisher radiologist realtor
    receptionist recruiter reporter researcher sailor salesperson scientist scholar sculptor
    secretary singer soldier solicitor statistician streamer student supervisor surgeon surveyor
    tailor teacher technician therapist trader trainer translator treasurer tutor vet
    veterinarian waiter waitress welder writer zoologist apprentice chair chairman chairwoman
    founder cofounder co-founder owner vp trainee volunteer
    """
)

FEELINGS: Final = word_set(
    """
    afraid alone amazed angry annoyed anxious ashamed bored burnt-out calm cheerful comfortable
    confident confused content curious depressed desperate determined disappointed discouraged
    eager ecstatic embarrassed exhausted excited frightened frustrated furious glad grateful
    guilty happy heartbroken homesick hopeful hopeless hurt insecure inspired irritated jealous
    lonely lost mad melancholy miserable motivated nervous nostalgic optimistic overwhelmed
    overjoyed panicked pessimistic pleased proud puzzled relaxed relieved restless sad satisfied
    scared shocked sleepy sore stressed stuck stunned surprised tense thankful thrilled tired
    touched uncomfortable uneasy unhappy unsure upset weary worried
    """
)

CONDITIONS: Final = word_set(
    """
    adhd allergy allergies anemia anxiety arthritis asthma autism blood-pressure bronchitis
    cancer cavity celiac cold concussion covid depression diabetes dyslexia eczema epilepsy
    fever flu fracture headache headaches hypertension infection injury insomnia intolerance
    lupus migraine migraines pneumonia ptsd pressure rash sciatica scoliosis stroke tinnitus
    toothache ulcer vertigo sick ill pregnant injured diabetic asthmatic colourblind colorblind
    dyslexic deaf blind autistic unwell intolerant
    """
)

DIETS: Final = word_set("vegetarian vegan pescatarian gluten-free halal kosher flexitarian keto")

MARITAL: Final = word_set("married single divorced engaged widowed separated")

NATIONALITIES: Final = word_set(
    """
    american british english irish scottish welsh canadian australian french german italian
    spanish portuguese dutch belgian swiss austrian swedish norwegian danish finnish icelandic
    polish czech slovak hungarian romanian bulgarian greek turkish russian ukrainian serbian
    croatian bosnian albanian slovenian estonian latvian lithuanian mexican brazilian
    argentinian chilean peruvian colombian venezuelan cuban dominican haitian jamaican egyptian
    moroccan tunisian algerian nigerian ghanaian kenyan ethiopian ugandan tanzanian senegalese
    indian pakistani bangladeshi nepali chinese japanese korean vietnamese thai filipino
    indonesian malaysian singaporean iranian iraqi israeli lebanese syrian jordanian saudi
    afghan jewish catalan basque
    """
)

STATUSES: Final = word_set(
    """
    active approved archived available blocked broken cancelled canceled closed complete
    completed confirmed dead deferred delayed deployed done down due expired failed finished
    fixed frozen inactive late live lost merged offline on-hold online open out outdated overdue
    paid paused pending planned postponed published ready rejected released removed resolved
    running scheduled shipped sold-out signed stalled started stopped stuck suspended
    unavailable unblocked up won operational healthy unhealthy degraded green red yellow
    """
)
"""States of deals, projects and machines: one at a time."""

ATTRIBUTES: Final = {
    "name": "name",
    "full name": "name",
    "first name": "first_name",
    "last name": "last_name",
    "surname": "last_name",
    "nickname": "nickname",
    "age": "age",
    "birthday": "birthday",
    "birth date": "birthday",
    "date of birth": "birthday",
    "email": "email",
    "e-mail": "email",
    "email address": "email",
    "phone": "phone",
    "phone number": "phone",
    "number": "phone",
    "mobile": "phone",
    "mobile number": "phone",
    "address": "address",
    "website": "website",
    "job": "works_as",
    "profession": "works_as",
    "occupation": "works_as",
    "job title": "works_as",
    "title": "works_as",
    "role": "works_as",
    "employer": "works_at",
    "hobby": "hobby",
    "hobbies": "hobby",
    "passion": "likes",
    "goal": "goal",
    "dream": "goal",
    "mother tongue": "native_language",
    "native language": "native_language",
    "first language": "native_language",
    "nationality": "nationality",
    "pronouns": "pronouns",
    "hometown": "from",
    "home town": "from",
    "home": "lives_in",
    "height": "height",
    "weight": "weight",
    "blood type": "blood_type",
    "star sign": "star_sign",
    "timezone": "timezone",
    "time zone": "timezone",
    "major": "studies",
    "deadline": "deadline",
    "budget": "budget",
    "username": "username",
    "handle": "username",
}
"""What somebody's … is -> the predicate of that somebody."""

EVENT_NOUNS: Final = word_set(
    """
    conference workshop concert wedding party meeting class course festival fair seminar webinar
    meetup parade ceremony funeral lecture talk gig exhibition retreat convention game match
    race tournament rally event show premiere graduation interview support-group
    """
)
EMPTY_OBJECTS: Final = word_set(
    """
    question questions idea ideas clue point problem issue chance moment sense fun time blast
    look minute second feeling thought doubt choice way lot bit hand say reason care luck note
    word words thing things favor favour opportunity plan plans one ones lots trouble turn part
    kind stuff something anything nothing everything shot go try access day week difference
    impact progress mind heads good great better attention advantage guts story stories news
    surprise well ok okay fine alright sure best hard more less much fast blast experience moment
    """
)
"""What one has, takes, gives or makes without there being anything to remember."""
