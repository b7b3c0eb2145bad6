"""What the virtual clock promises, tried on real guests; none of it needs root."""
