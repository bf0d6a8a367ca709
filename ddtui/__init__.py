"""ddtui: a terminal console for tuning speculative decoding on a remote SGLang server, live, over SSH."""

__version__ = "0.1.0"
