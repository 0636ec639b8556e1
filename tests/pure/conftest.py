"""Every property test draws the same examples in every run, and prints how to draw them."""

from hypothesis import settings

settings.register_profile(
    "pure", database=None, deadline=None, derandomize=True, max_examples=100, print_blob=True
)
settings.load_profile("pure")
