"""Rollout lines as the samples that trainers read."""
