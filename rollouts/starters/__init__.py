"""What `trivium new` writes: for each kind an environment, its rows and its test, with `Demo` and `demo` in place of the name."""
