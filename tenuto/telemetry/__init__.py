"""What happened, as values (events, pure), and where it goes (log, metrics)."""
