"""The cases, one file for each or for a family of them; `emulator.physics.registry` lists them."""
