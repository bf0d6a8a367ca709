"""What is known of SGLang and its drafters. Pure, but for `engine.api`, the HTTP client."""
