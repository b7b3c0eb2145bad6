"""The NIC engine: one process that sends and receives for every host of the fabric.

medium.py      what the engine needs of the network: send frames, take records (a protocol)
parameters.py  transport settings, frozen
transports/    what the two ends of a connection do: the seam              PURE
sender.py      the sending half of a reliable connection, go-back-N        PURE
receiver.py    the receiving half: order, acknowledgements, CNPs           PURE
connection.py  both halves, the path's delay, the frames                   PURE
pacing.py      which packets a host's NIC may put into its queue now       PURE
arrivals.py    what the network hands over, as runs of packets             PURE
lane.py        packets that have arrived and are not due yet               PURE
inbox.py       everything that has arrived and is not due yet              PURE
timers.py      retransmission timers                                       PURE
ordering.py    packets of one path, back in the order of its links         PURE
frames.py      templates of all frames that a run can send
stamping.py    the templates' rows, stamped in bulk                        PURE
outbox.py      the frames of one tick, collected and sent in one go        PURE
probes.py      unreliable latency probes                                   PURE
plan.py        what an engine runs, what it counts, whom it tells          PURE
engine.py      the tick loop that ties them together
"""
