"""Client quotas: how much each client may do, and how long one that did more is throttled.

They are Kafka's (KIP-13, KIP-124, KIP-219, KIP-599). The package knows no sockets, no requests and no clock: times come
in as milliseconds of any clock that does not go back. `Limits` finds the quota of a user and a client id. A
`RateSensor` measures bytes or processor time over windows, and a `TokenBucket` counts changes of topics. A
`ClientQuota` has the limits of one quota key, as `producer_byte_rate`, and the sensors of its clients. A broker without
quotas imports none of it.

A `ReplicationThrottle` limits what brokers copy from each other (KIP-73).

Start reading at `client_quota.py`.
"""
