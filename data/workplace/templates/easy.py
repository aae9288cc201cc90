"""One call with everything it needs in the question: for the smallest models, and for the first minutes of training."""

import company
from company import Dice
from office import Draft, Office, call, check, say_day, template, workday


@template("email_delete_email", easy=True)
def delete_email_by_id(office: Office, dice: Dice) -> Draft:
    key = dice.pick(office.emails)["email_id"]
    ask = dice.pick(("Delete the email with the id {}.", "Please delete email {}.", "Delete email {}."))
    return Draft(ask.format(key), [call("email_delete_email", email_id=key)])


@template("calendar_delete_event", easy=True)
def delete_event_by_id(office: Office, dice: Dice) -> Draft:
    key = dice.pick(office.events)["event_id"]
    ask = dice.pick(("Delete the calendar event with the id {}.", "Please cancel event {}.", "Delete event {}."))
    return Draft(ask.format(key), [call("calendar_delete_event", event_id=key)])


@template("project_management_update_task", easy=True)
def move_task_by_id(office: Office, dice: Dice) -> Draft:
    task, target = dice.pick(office.tasks), dice.pick(company.LISTS)
    check(task["list_name"] != target)
    ask = dice.pick(
        (
            "Set the list_name of task {} to {}.",
            "Change the list_name of task {} to {}.",
            "Update task {}: set list_name to {}.",
        )
    )
    return Draft(
        ask.format(task["task_id"], target),
        [call("project_management_update_task", task_id=task["task_id"], field="list_name", new_value=target)],
    )


@template("customer_relationship_manager_update_customer", easy=True)
def set_status_by_id(office: Office, dice: Dice) -> Draft:
    customer, status = dice.pick(office.customers), dice.pick(company.STATUSES)
    check(customer["status"] != status)
    ask = dice.pick(
        (
            "Set the status of customer {} to {}.",
            "Update customer {}: set status to {}.",
            "Change the status of customer {} to {}.",
        )
    )
    return Draft(
        ask.format(customer["customer_id"], status),
        [
            call(
                "customer_relationship_manager_update_customer",
                customer_id=customer["customer_id"],
                field="status",
                new_value=status,
            )
        ],
    )


@template("email_send_email", easy=True)
def send_to_address(office: Office, dice: Dice) -> Draft:
    to = company.address(dice.pick(company.STAFF))
    subject, body = dice.pick(NOTES)
    ask = dice.pick(
        (
            "Send an email to {to} with the subject '{subject}' and the body '{body}'.",
            "Write to {to}. Subject: '{subject}'. Body: '{body}'",
            "Please email {to}: the subject is '{subject}' and the text is '{body}'.",
        )
    )
    return Draft(
        ask.format(to=to, subject=subject, body=body),
        [call("email_send_email", recipient=to, subject=subject, body=body)],
    )


@template("project_management_update_task", easy=True)
def set_due_date_by_id(office: Office, dice: Dice) -> Draft:
    task, day = dice.pick(office.tasks), workday(dice)
    check(task["due_date"] != str(day))
    ask = dice.pick(
        (
            "Set the due date of task {} to {} ({}).",
            "Change the due_date of task {} to {}, that is {}.",
            "Update task {}: it is due on {} ({}).",
        )
    )
    return Draft(
        ask.format(task["task_id"], say_day(day), day),
        [call("project_management_update_task", task_id=task["task_id"], field="due_date", new_value=str(day))],
    )


NOTES = (
    ("Lunch", "Lunch is at noon."),
    ("Thanks", "Thank you for your help."),
    ("Keys", "The keys are at the front desk."),
    ("Friday", "See you on Friday."),
    ("Printer", "The printer works again."),
    ("Parcel", "Your parcel has arrived."),
    ("Parking", "The car park is closed today."),
    ("Welcome", "Welcome to the team!"),
)
