"""Is an environment fit to train on? Plays each row in many ways, good and bad, against a real resources server, and says what is wrong."""
