"""Rollouts inside a trainer's loop. What needs a trainer's packages imports them where it uses them."""
