"""Whisper checkpoints, the OpenVINO graphs built from them, correctors and bundles."""
