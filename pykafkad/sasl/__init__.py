"""Logins by SASL: the exchanges of PLAIN, SCRAM and OAUTHBEARER, who may log in, and what a login has come to.

The package knows no sockets, no requests and no time of its own. A mechanism's exchange takes a token of the client and
gives a `Step`. A `Login` chooses the exchange and says what became of it. An `Offer` is what the settings say about one
listener. A broker without a SASL listener imports none of it.

Start reading at `login.py`.
"""
