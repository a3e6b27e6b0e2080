"""Training a corrector on traces and reporting what it gains."""
