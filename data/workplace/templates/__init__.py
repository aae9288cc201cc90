"""Every template, in a fixed order: what is drawn for one never depends on another."""

from office import Template

from templates import analytics, calendar, customers, easy, email, mixed, projects

MODULES = (easy, email, calendar, analytics, projects, customers, mixed)
ALL = [each for module in MODULES for each in vars(module).values() if isinstance(each, Template)]
