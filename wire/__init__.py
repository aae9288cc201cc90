"""What two processes of the platform must agree on. This package imports nothing of ours."""
