"""The panels the screens are made of."""
