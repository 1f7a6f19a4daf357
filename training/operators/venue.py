"""Invented records of venues, as JSON with hours, nested flags, nulls and reviews."""

from __future__ import annotations

from random import Random

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FIRST = (
    "Blue",
    "Golden",
    "Old",
    "Corner",
    "River",
    "Sunset",
    "Lucky",
    "Green",
    "Silver",
    "Harbor",
    "Maple",
    "Red",
    "Garden",
    "Little",
    "Royal",
    "Copper",
    "Union",
    "Cedar",
    "Mission",
    "Lola's",
    "Rosa's",
    "Sam's",
    "Kim's",
    "Nico's",
)
_LAST = (
    "Kitchen",
    "Grill",
    "Bistro",
    "Cafe",
    "Pizza",
    "Diner",
    "Tavern",
    "Bakery",
    "Noodle House",
    "Taqueria",
    "Bar",
    "Salon",
    "Gym",
    "Bookshop",
    "Hotel",
    "Dental",
    "Auto Repair",
    "Nail Spa",
    "Steakhouse",
    "Tea Room",
    "Juice Bar",
)
CITIES = (
    ("Santa Clara", "CA"),
    ("Portland", "OR"),
    ("Austin", "TX"),
    ("Boise", "ID"),
    ("Tampa", "FL"),
    ("Reno", "NV"),
    ("Nashville", "TN"),
    ("Tucson", "AZ"),
    ("Denver", "CO"),
    ("Goleta", "CA"),
    ("Madison", "WI"),
    ("Albany", "NY"),
    ("Santa Barbara", "CA"),
    ("Philadelphia", "PA"),
    ("New Orleans", "LA"),
    ("Indianapolis", "IN"),
)
STATES = {
    "CA": "California",
    "OR": "Oregon",
    "TX": "Texas",
    "ID": "Idaho",
    "FL": "Florida",
    "NV": "Nevada",
    "TN": "Tennessee",
    "AZ": "Arizona",
    "CO": "Colorado",
    "WI": "Wisconsin",
    "NY": "New York",
    "PA": "Pennsylvania",
    "LA": "Louisiana",
    "IN": "Indiana",
}
_STREETS = (
    "State St",
    "Main St",
    "Oak Ave",
    "Hollister Ave",
    "2nd St",
    "Mission Blvd",
    "Elm St",
    "Lake Rd",
    "Pearl St",
)
CATEGORIES = (
    "Pizza",
    "Mexican",
    "Seafood",
    "Burgers",
    "Coffee & Tea",
    "Bakeries",
    "Sushi Bars",
    "Thai",
    "Breakfast & Brunch",
    "Sandwiches",
    "Salad",
    "Vegan",
    "Barbeque",
    "Steakhouses",
    "Nightlife",
    "Cocktail Bars",
    "Italian",
    "Indian",
    "Ice Cream & Frozen Yogurt",
    "Hair Salons",
    "Gyms",
    "Juice Bars & Smoothies",
    "Desserts",
    "Chinese",
)
FLAGS = {
    "OutdoorSeating": ("outdoor seating", "offers", "does not offer"),
    "RestaurantsTakeOut": ("takeout", "offers", "does not offer"),
    "RestaurantsDelivery": ("delivery", "provides", "does not provide"),
    "RestaurantsReservations": ("reservations", "accepts", "does not take"),
    "RestaurantsGoodForGroups": ("groups", "is suitable for", "is not suitable for"),
    "GoodForKids": ("children", "is a good place for", "is not suitable for"),
    "WheelchairAccessible": ("wheelchair access", "has", "has no"),
    "HappyHour": ("a happy hour", "has", "does not have"),
    "BikeParking": ("bike parking", "has", "has no"),
    "BusinessAcceptsCreditCards": ("credit cards", "accepts", "does not accept"),
    "DogsAllowed": ("dogs", "allows", "does not allow"),
    "HasTV": ("a television", "has", "does not have"),
    "Caters": ("catering", "offers", "does not offer"),
}
PARKING = ("garage", "street", "validated", "lot", "valet")
AMBIENCE = ("romantic", "intimate", "touristy", "hipster", "divey", "classy", "trendy", "upscale", "casual")
REVIEWS = (
    ("We waited almost forty minutes before anyone took our order.", "complained about a long wait before ordering"),
    ("The staff were so friendly and made us feel at home.", "praised the friendly staff"),
    ("My soup arrived cold and the waiter did not care.", "complained that the soup was cold"),
    ("Best carrot cake I have had in years!", "praised the carrot cake"),
    ("Way overpriced for such tiny portions.", "found the portions too small for the price"),
    ("They got our order wrong twice.", "said that their order was wrong twice"),
    (
        "The patio is lovely and they even brought water for our dog.",
        "enjoyed the patio and the welcome for their dog",
    ),
    ("Super clean and well organized.", "said that the place is clean"),
    ("The bathroom was filthy.", "complained about a dirty bathroom"),
    ("Loved the live jazz on Friday night.", "enjoyed the live jazz"),
    ("Our server Megan was amazing, she checked on us all evening.", "praised the server Megan"),
    ("The garlic bread is a must try.", "recommended the garlic bread"),
    ("Parking is a nightmare here.", "mentioned that parking is difficult"),
    ("They refused my gift card even though it was still valid.", "reported that a valid gift card was refused"),
    ("Great prices and huge portions, we will be back.", "liked the large portions and the low prices"),
    ("The music was so loud that we could not talk.", "complained about the loud music"),
    ("I asked for gluten free and they had plenty of choices.", "appreciated the gluten-free choices"),
    ("The chicken was dry and the fries were soggy.", "criticized the dry chicken and soggy fries"),
    ("Quick service during the lunch rush.", "noted the quick service at lunch"),
    ("The owner came out to apologize and gave us a free dessert.", "received a free dessert with an apology"),
    ("I found a hair in my salad.", "reported finding a hair in the salad"),
    ("The tacos are fresh and full of flavor.", "praised the fresh tacos"),
)


def _hours(random: Random) -> dict[str, str] | None:
    if random.random() < 0.08:
        return None
    opening, closing = random.randint(6, 12), random.randint(14, 23)
    days = list(DAYS) if random.random() < 0.6 else list(DAYS[random.choice([0, 1]) : random.choice([5, 6])])
    out = {
        day: f"{opening}:{random.choice([0, 0, 0, 30]) if random.random() < 0.1 else 0}-{closing}:0" for day in days
    }
    for day in random.sample(days, min(len(days), random.choice([0, 1, 2]))):
        out[day] = f"{random.randint(7, 12)}:0-{random.randint(14, 23)}:{random.choice([0, 30])}"
    return out


def make_venue(random: Random) -> dict[str, object]:
    """One record; attributes are true, false, null or left out."""
    city, state = random.choice(CITIES)
    flags = {
        key: random.choice([True, True, False, False, None])
        for key in random.sample(list(FLAGS), random.randint(4, 9))
    }
    attributes: dict[str, object] = dict(flags)
    attributes["WiFi"] = random.choice(["free", "no", "paid", None])
    attributes["BusinessParking"] = {key: random.random() < 0.3 for key in PARKING} if random.random() < 0.8 else None
    good = random.sample(AMBIENCE, random.choice([1, 1, 2]))
    attributes["Ambience"] = {key: key in good for key in AMBIENCE} if random.random() < 0.7 else None
    reviews = [
        {
            "review_stars": float(random.randint(1, 5)),
            "review_date": f"20{random.randint(18, 24)}-{random.randint(1, 12):02d}-{random.randint(1, 28):02d}",
            "review_text": " ".join(text for text, _ in random.sample(REVIEWS, random.randint(1, 3))),
        }
        for _ in range(random.randint(1, 3))
    ]
    return {
        "name": f"{random.choice(_FIRST)} {random.choice(_LAST)}",
        "address": f"{random.randint(10, 9900)} {random.choice(_STREETS)}",
        "city": city,
        "state": state,
        "categories": ", ".join(random.sample(CATEGORIES, random.randint(1, 4))),
        "hours": _hours(random),
        "attributes": attributes,
        "business_stars": random.choice([2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0]),
        "review_info": reviews,
    }
