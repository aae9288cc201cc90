"""Tasks in the customer relationship manager."""

from datetime import date, timedelta

import company
from company import CUSTOMER_FIRST, CUSTOMER_LAST, PRODUCTS, SALES, STATUSES, Dice, Row
from office import TODAY, Draft, Office, call, check, few, of, others, past_day, say_day, template, workday

OPEN = ("Lead", "Qualified", "Proposal")


@template("customer_relationship_manager")
def add_customer(office: Office, dice: Dice) -> Draft:
    name, who = new_name(office, dice), dice.pick(SALES)
    status, product, day = dice.pick(OPEN), dice.pick(PRODUCTS), workday(dice, date(2023, 12, 4))
    ask = dice.pick(
        (
            "Add {name} to the CRM with the status {status}. {who} looks after them, they are interested in '{product}', "
            "follow up by {day}.",
            "New customer: {name}, status {status}, product interest '{product}', assigned to {who}, follow-up by {day}.",
            "Please enter {name} ({status}, wants '{product}') as a customer of {who}'s; the follow-up is due by {day}.",
        )
    )
    query = ask.format(name=name, status=status, who=who, product=product, day=say_day(day))
    details = {"customer_name": name, "assigned_to_email": company.address(who), "status": status}
    extra = {"product_interest": product, "follow_up_by": str(day)}
    return Draft(query, [call("customer_relationship_manager_add_customer", **details, **extra)])


@template("customer_relationship_manager")
def set_status(office: Office, dice: Dice) -> Draft:
    customer, status = dice.pick(office.customers), dice.pick(STATUSES)
    check(customer["status"] != status)
    ask = dice.pick(
        (
            "Change the status of {name} to {status}.",
            "{name} is {status} now, please note that in the CRM.",
            "Set {name} to {status}.",
        )
    )
    return Draft(ask.format(name=customer["customer_name"], status=status), [_update(customer, "status", status)])


@template("customer_relationship_manager")
def delete_customer(office: Office, dice: Dice) -> Draft:
    customer = dice.pick(office.customers)
    ask = dice.pick(
        (
            "Delete {name} from the CRM.",
            "{name} wants to be forgotten: remove the customer record.",
            "We no longer need the entry of {name} among our customers, delete it.",
        )
    )
    return Draft(ask.format(name=customer["customer_name"]), [_delete(customer)])


@template("customer_relationship_manager")
def schedule_follow_up(office: Office, dice: Dice) -> Draft:
    customer, day = dice.pick(office.customers), workday(dice)
    note = dice.pick(NOTES)
    check(customer["follow_up_by"] != str(day))
    ask = dice.pick(
        (
            "Set the follow-up date of {name} to {day} and replace the notes by '{note}'",
            "{name} should hear from us by {day}. The notes should just say '{note}'",
            "Update {name}: follow-up by {day}, notes '{note}'",
        )
    )
    query = ask.format(name=customer["customer_name"], day=say_day(day), note=note)
    return Draft(query, [_update(customer, "follow_up_by", str(day)), _update(customer, "notes", note)])


@template("customer_relationship_manager")
def correct_contact(office: Office, dice: Dice) -> Draft:
    customer, number = dice.pick(office.customers), f"555-{dice.between(2000, 9999)}"
    ask = dice.pick(
        (
            "The phone number of {name} has changed to {number}.",
            "Please correct {name}'s phone number to {number}.",
            "{name} can be reached at {number} now, update the phone number.",
        )
    )
    return Draft(
        ask.format(name=customer["customer_name"], number=number), [_update(customer, "customer_phone", number)]
    )


@template("customer_relationship_manager")
def hand_over_customers(office: Office, dice: Dice) -> Draft:
    old, status, product = dice.pick(SALES), dice.pick(STATUSES), dice.pick(PRODUCTS)
    new = others(dice, old, among=SALES)
    customers = few(office.customers_of(old, status=status, product_interest=product), most=5, least=2)
    ask = dice.pick(
        (
            "Hand {old}'s customers with the status {status} who are interested in '{product}' over to {new}.",
            "{new} takes all customers of {old}'s that are {status} and want '{product}'. Reassign them.",
            "Assign to {new}: every customer of {old} with status {status} and product interest '{product}'.",
        )
    )
    query = ask.format(old=old, new=new, status=status, product=product)
    return Draft(query, [_update(each, "assigned_to_email", company.address(new)) for each in customers])


@template("customer_relationship_manager")
def delete_lost(office: Office, dice: Dice) -> Draft:
    who, day = dice.pick(SALES), past_day(dice, 20, 60)
    lost = office.customers_of(who, status="Lost")
    customers = few([row for row in lost if row["last_contact_date"] < str(day)], most=6, least=2)
    ask = dice.pick(
        (
            "Delete {who}'s lost customers with whom the last contact was before {day}.",
            "All customers of {who} with the status Lost and no contact since {day} (that is, last contact before that "
            "day) can be deleted.",
            "Remove from the CRM whoever is Lost, assigned to {who} and was last contacted earlier than {day}.",
        )
    )
    return Draft(ask.format(who=who, day=say_day(day)), [_delete(each) for each in customers])


@template("customer_relationship_manager")
def promote_leads(office: Office, dice: Dice) -> Draft:
    who, day = dice.pick(SALES), past_day(dice, 8, 30)
    leads = office.customers_of(who, status="Lead")
    customers = few([row for row in leads if row["last_contact_date"] >= str(day)], most=6, least=2)
    ask = dice.pick(
        (
            "Every Lead of {who}'s that we had contact with on {day} or later becomes Qualified.",
            "Set {who}'s leads whose last contact was on or after {day} to Qualified.",
            "Promote to Qualified: customers of {who} with status Lead and a last contact no earlier than {day}.",
        )
    )
    return Draft(ask.format(who=who, day=say_day(day)), [_update(each, "status", "Qualified") for each in customers])


@template("customer_relationship_manager", conditional=True)
def lose_if_silent(office: Office, dice: Dice, holds: bool) -> Draft:
    customer, limit = dice.pick(office.customers), dice.pick((14, 21, 30, 45, 60))
    age = (TODAY - date.fromisoformat(customer["last_contact_date"])).days
    check(customer["status"] != "Lost" and abs(age - limit) >= 2 and (age > limit) == holds)
    ask = dice.pick(
        (
            "If our last contact with {name} was more than {limit} days ago, set them to Lost. Otherwise leave them alone.",
            "Have we been out of touch with {name} for over {limit} days? Then mark them as Lost.",
            "Mark {name} as Lost, but only if nobody has contacted them in the last {limit} days.",
        )
    )
    query = ask.format(name=customer["customer_name"], limit=limit)
    return Draft(query, [_update(customer, "status", "Lost")] if holds else [])


@template("customer_relationship_manager", conditional=True)
def reassign_if_owned_by(office: Office, dice: Dice, holds: bool) -> Draft:
    customer, old = dice.pick(office.customers), dice.pick(SALES)
    owner = of(customer, "assigned_to_email")
    new = others(dice, old, owner, among=SALES)
    check((owner == old) == holds)
    ask = dice.pick(
        (
            "If {name} is assigned to {old}, reassign them to {new}; if somebody else looks after them, do nothing.",
            "Does {old} look after {name}? In that case {new} should do so from now on.",
            "Make {new} responsible for {name} provided that {old} is responsible at present.",
        )
    )
    query = ask.format(name=customer["customer_name"], old=old, new=new)
    return Draft(query, [_update(customer, "assigned_to_email", company.address(new))] if holds else [])


@template("customer_relationship_manager", conditional=True)
def follow_up_if_open(office: Office, dice: Dice, holds: bool) -> Draft:
    customer, day = dice.pick(office.customers), workday(dice, TODAY + timedelta(days=4))
    check(customer["follow_up_by"] != str(day) and (customer["status"] in OPEN) == holds)
    ask = dice.pick(
        (
            "Unless {name} is already Won or Lost, set their follow-up date to {day}.",
            "If {name} is neither Won nor Lost yet, they should hear from us by {day}: change the follow-up date.",
            "Look up {name}. Status Lead, Qualified or Proposal? Then the follow-up is by {day}; with any other status "
            "nothing changes.",
        )
    )
    query = ask.format(name=customer["customer_name"], day=say_day(day))
    return Draft(query, [_update(customer, "follow_up_by", str(day))] if holds else [])


NOTES = (
    "Send the new price list.",
    "Ask for a reference.",
    "Discuss the renewal.",
    "Offer a training day.",
    "Waiting for the signature.",
    "Invite to the webinar.",
    "Contract under review.",
)


def new_name(office: Office, dice: Dice) -> str:
    """A name that no customer has."""
    taken = {row["customer_name"] for row in office.customers}
    return dice.pick(
        [f"{first} {last}" for first in CUSTOMER_FIRST for last in CUSTOMER_LAST if f"{first} {last}" not in taken]
    )


def _update(customer: Row, field: str, value: str) -> dict[str, str]:
    return call(
        "customer_relationship_manager_update_customer",
        customer_id=customer["customer_id"],
        field=field,
        new_value=value,
    )


def _delete(customer: Row) -> dict[str, str]:
    return call("customer_relationship_manager_delete_customer", customer_id=customer["customer_id"])
