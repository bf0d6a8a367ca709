"""Layers to verdicts; knobs to plan, apply, verify, roll back."""
