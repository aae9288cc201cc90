"""Writes train.jsonl, validation.jsonl and example.jsonl: requests for one to three calls. `python data/tool_calls/make.py`"""

import datetime
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

SEED = 31
HERE = Path(__file__).parent
Dice = random.Random
Asked = tuple[str, dict[str, Any]]  # a sentence that asks, and the arguments

CITIES = ("Lisbon", "Oslo", "Kyoto", "Quito", "Accra", "Hanoi", "Perth", "Turin", "Malmö", "Bern")
PEOPLE = ("Amira", "Bela", "Chen", "Dora", "Emeka", "Farah", "Goran", "Hanna", "Ivo", "Jun")
ROOMS = ("kitchen", "bedroom", "office", "living room", "hall")
CURRENCIES = {"EUR": "euros", "USD": "US dollars", "JPY": "yen", "GBP": "British pounds", "CHF": "Swiss francs"}
UNITS = {"km": "kilometres", "mi": "miles", "kg": "kilograms", "lb": "pounds", "l": "litres", "gal": "gallons"}
THINGS = ("eggs", "rice", "soap", "lemons", "batteries", "bread", "stamps", "apples", "tea", "paint")
MUSIC = ("slow jazz", "Bach", "Fela Kuti", "rain sounds", "Caetano Veloso", "film music")
PLACES = ("Old Harbour", "Museum of Salt", "North Gate", "Lake Station", "Hill Farm", "Glass Tower")
TABLES = ("Casa Verde", "The Anchor", "Sakura", "Chez Odile", "Blue Plate")
TEXTS = ("I will be ten minutes late", "The keys are under the mat", "See you on Friday", "Please call the plumber")
TODAY = datetime.date(2026, 3, 2)


def day(dice: Dice) -> tuple[str, str]:
    """In words, and as a date."""
    ahead = dice.randint(1, 40)
    date = TODAY + datetime.timedelta(days=ahead)
    told = dice.choice([f"on {date:%B} {date.day}", f"in {ahead} days" if ahead > 1 else "tomorrow"])
    return told, date.isoformat()


def clock(dice: Dice) -> tuple[str, str]:
    hour, minute = dice.randint(6, 22), dice.choice([0, 15, 30, 45])
    told = f"{(hour - 1) % 12 + 1}:{minute:02} {'a.m.' if hour < 12 else 'p.m.'}"
    return dice.choice([told, f"{hour:02}:{minute:02}"]), f"{hour:02}:{minute:02}"


def get_weather(d: Dice) -> Asked:
    city, (told, date), unit = d.choice(CITIES), day(d), d.choice(["", "fahrenheit"])
    return f"tell me the weather in {city} {told}{', in degrees Fahrenheit' if unit else ''}", {
        "city": city,
        "day": date,
        **({"unit": unit} if unit else {}),
    }


def convert_currency(d: Dice) -> Asked:
    one, two, amount = *d.sample(list(CURRENCIES), 2), d.choice([5, 12.5, 40, 99.95, 250, 1200])
    return f"tell me how much {amount} {CURRENCIES[one]} are in {CURRENCIES[two]}", {
        "amount": amount,
        "source": one,
        "target": two,
    }


def convert_units(d: Dice) -> Asked:
    one, two = d.choice([("km", "mi"), ("kg", "lb"), ("l", "gal")])
    one, two = d.choice([(one, two), (two, one)])
    value = d.choice([3, 7.5, 42, 160])
    return f"convert {value} {UNITS[one]} to {UNITS[two]}", {"value": value, "source": one, "target": two}


def set_timer(d: Dice) -> Asked:
    minutes, label = d.randint(2, 90), d.choice(["", "pasta", "laundry", "nap"])
    return f"start a timer of {minutes} minutes{f' called {label}' if label else ''}", {
        "minutes": minutes,
        **({"label": label} if label else {}),
    }


def set_alarm(d: Dice) -> Asked:
    (told, time), days = clock(d), d.choice([None, ["monday", "friday"], ["saturday", "sunday"]])
    return f"set an alarm for {told}{' every ' + ' and '.join(map(str.title, days)) if days else ''}", {
        "time": time,
        **({"days": days} if days else {}),
    }


def send_message(d: Dice) -> Asked:
    to, text, channel = d.choice(PEOPLE), d.choice(TEXTS), d.choice(["sms", "email", ""])
    told = {"sms": "an SMS", "email": "an email", "": "a message"}[channel]
    return f'send {to} {told} that says "{text}"', {"to": to, "text": text, **({"channel": channel} if channel else {})}


def call_person(d: Dice) -> Asked:
    name, video = d.choice(PEOPLE), d.random() < 0.5
    return f"call {name}{' with video' if video else ''}", {"name": name, **({"video": True} if video else {})}


def add_to_list(d: Dice) -> Asked:
    items, name = d.sample(THINGS, d.randint(1, 3)), d.choice(["shopping", "camping"])
    return f"put {' and '.join(items)} on my {name} list", {"list_name": name, "items": items}


def play_music(d: Dice) -> Asked:
    query, room, shuffle = d.choice(MUSIC), d.choice([None, *ROOMS]), d.random() < 0.3
    told = f"{f' in the {room}' if room else ''}{', shuffled' if shuffle else ''}"
    return f"play {query}{told}", {
        "query": query,
        **({"room": room} if room else {}),
        **({"shuffle": True} if shuffle else {}),
    }


def set_lights(d: Dice) -> Asked:
    room, level, colour = d.choice(ROOMS), d.choice([0, 10, 40, 75, 100]), d.choice([None, "blue", "orange"])
    if level == 0:
        return f"turn off the lights in the {room}", {"room": room, "brightness": 0}
    return f"set the lights in the {room} to {level} per cent{f' in {colour}' if colour else ''}", {
        "room": room,
        "brightness": level,
        **({"colour": colour} if colour else {}),
    }


def find_route(d: Dice) -> Asked:
    start, end, by = *d.sample(PLACES, 2), d.choice(["train", "bike", "foot", ""])
    told = {"train": " by train", "bike": " by bike", "foot": " on foot", "": ""}[by]
    return f"find the way from {start} to {end}{told}", {"start": start, "end": end, **({"by": by} if by else {})}


def book_table(d: Dice) -> Asked:
    place, (told, date), (at, time), people = d.choice(TABLES), day(d), clock(d), d.randint(2, 9)
    return f"book a table for {people} at {place} {told} at {at}", {
        "restaurant": place,
        "day": date,
        "time": time,
        "people": people,
    }


TOOLS: tuple[Callable[[Dice], Asked], ...] = (
    *(get_weather, convert_currency, convert_units, set_timer, set_alarm, send_message),
    *(call_person, add_to_list, play_music, set_lights, find_route, book_table),
)


def row(number: int, dice: Dice) -> dict[str, Any]:
    count = 1 + number % 3
    wanted = dice.sample(TOOLS, count)
    if count == 3 and dice.random() < 0.4:
        wanted[2] = wanted[0]  # one tool twice, with other arguments
    asked = [each(dice) for each in wanted]
    while len({json.dumps(arguments) for _, arguments in asked}) < count:
        asked = [each(dice) for each in wanted]
    names = {each.__name__ for each in wanted}
    offer = names | {each.__name__ for each in dice.sample(TOOLS, 3 + number % 4)}
    told = ", ".join(sentence for sentence, _ in asked[:-1])
    told = f"{told} and {asked[-1][0]}" if told else asked[0][0]
    prompt = f"Today is Monday, {TODAY:%B} {TODAY.day}, {TODAY.year}. Please {told}. Make all calls at once."
    return {
        "task_id": f"tool_calls-{number:03}",
        "responses_create_params": {"input": prompt},
        "offer": sorted(offer),
        "expected": [
            {"name": each.__name__, "arguments": arguments} for each, (_, arguments) in zip(wanted, asked, strict=True)
        ],
    }


def main() -> None:
    dice = random.Random(SEED)
    rows = [json.dumps(row(number, dice), ensure_ascii=False) + "\n" for number in range(360)]
    HERE.joinpath("train.jsonl").write_text("".join(rows[:300]), encoding="utf-8")
    HERE.joinpath("validation.jsonl").write_text("".join(rows[300:]), encoding="utf-8")
    HERE.joinpath("example.jsonl").write_text("".join(rows[:12]), encoding="utf-8")


if __name__ == "__main__":
    main()
