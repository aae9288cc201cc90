"""Is the reward signal any good? Figures over rollout lines, for people, programs and browsers."""
