"""The virtual clock: an experiment inside a guest kernel whose time jumps from event to event.

recipe.py    what the guest's kernel is made of
kernel.py    finds the kernel that was built
machine.py   starts a guest, listens to it, ends it
guest.py     process 1 of the guest
console.py   what the two say to each other
launch.py    runs an experiment in a guest as if it ran here
"""
