"""Beamless as a server: OpenAI's audio interface, live streams, and a page to try it."""
