"""What a path really does: numbered packets both ways, figures, and a verdict."""
