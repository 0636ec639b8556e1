"""Ways to put packets through a path: each says which profiles it can apply, and what it hides."""
