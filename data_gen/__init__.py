"""Texts, voices, corpora and the traces that a corrector learns from."""
