"""The bench: speech recognisers side by side, each in a process of its own, on the same audio."""
