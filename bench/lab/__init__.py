"""The loss lab's matrix: every way to send, over the same links, with a report."""
