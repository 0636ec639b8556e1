"""The command line: thin shells around the packages that do the work."""
