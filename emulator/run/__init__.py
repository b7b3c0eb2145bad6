"""One run, from an experiment to a finished run folder.

session.py      the order of events; what `fabriclab run` calls
warmup.py       teaches the switches all flows, measures what the emulation itself costs
supervising.py  watches the engine, samples queues, shows progress
sampling.py     queue samples and counted events
recording.py    the engine's rows
machine.py      how busy the machine is
progress.py     what people see meanwhile
"""
