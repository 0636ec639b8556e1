"""From the client's side: what a network does to Tenuto, and whom to ask for what."""
