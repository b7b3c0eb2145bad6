"""The controller: routing and switch settings of a run, a process of its own.

`core` and `policies` are pure: events in, messages out. `app` is the thin Ryu application around
them, `sdn` the one import of the framework, `wire` the OpenFlow encoding, `agent_client` and `rpc`
the channel to the agent that owns what OpenFlow has no words for.
"""
