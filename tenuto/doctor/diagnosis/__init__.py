"""From what was sent and came back to what it means; nothing in here waits or looks."""
