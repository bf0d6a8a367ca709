"""One file per screen, its stylesheet beside it."""
