"""What puts a profile between two programs: each driver another way."""
