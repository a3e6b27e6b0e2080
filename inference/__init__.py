"""Everything production needs: audio in, transcript out. OpenVINO and NumPy, no torch."""
