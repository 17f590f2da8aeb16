"""What compare, record and replay have in common: addresses, a program that is run, differences that are told."""

from __future__ import annotations

import os
import sys

from pykafkad.cli.output import print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.cli.programs import Ended
    from pykafkad.differential.comparison import Difference
    from pykafkad.differential.tee import Tee

MOST_PLACES = 20
"""Of one answer so many differences are told."""


def broker_address(text: str) -> tuple[str, int]:
    """HOST:PORT, as an argparse type."""
    return _address(text, 1)


def listen_address(text: str) -> tuple[str, int]:
    """HOST:PORT to listen at, as an argparse type; port 0 is one that is free."""
    return _address(text, 0)


def _address(text: str, least_port: int) -> tuple[str, int]:
    import argparse

    from pykafkad.differential import links

    try:
        host, port = links.address(text)
        if port < least_port:
            raise ValueError(f"{text!r}: port 0 is none to connect to")
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None
    return host, port


def bootstrap(host: str, port: int) -> str:
    """As clients take it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def run_program(program: list[str], tee: Tee) -> Ended:
    """How a program has ended. It finds the address in its environment, and in place of {bootstrap} in its words."""
    from pykafkad.cli import programs

    address = bootstrap(*tee.reached_here)
    words = [each.replace("{bootstrap}", address) for each in program]
    # How to log in at the broker is nothing for a program: between it and us is neither TLS nor a login.
    kept = {name: value for name, value in os.environ.items() if name != "PYKAFKAD_CLIENT_CONFIG"}
    return programs.run(words, {**kept, "PYKAFKAD_BOOTSTRAP": address})


def wait_for_end(tee: Tee, verb: str) -> Ended:
    """Tell where clients connect, and wait for Ctrl-C or SIGTERM."""
    import signal

    from pykafkad.cli.programs import Ended

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    others = "" if tee.reached_here == (tee.host, tee.port) else ", and this machine's other addresses,"
    print(f"pykafkad {verb} what clients ask {bootstrap(*tee.reached_here)}{others}; Ctrl-C ends it", flush=True)
    try:
        tee.wait()
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
    return Ended(0, False)


def tell(found: Iterable[Difference], names: tuple[str, str], requests: int, different: int, as_json: bool) -> None:
    """Each answer that differs, the first one first, and how many there were."""
    for each in found:
        tell_one(each, names, as_json)
    if not as_json:
        print(f"{different} of {requests} requests were answered in different ways")


def tell_one(each: Difference, names: tuple[str, str], as_json: bool) -> None:
    """One answer that differs."""
    if as_json:
        places = [{"path": place.path, names[0]: place.first, names[1]: place.second} for place in each.places]
        print_json({"request": each.number, "client_id": each.client_id, "api": each.api, "version": each.version,
                    "differences": places})  # fmt: skip
        return
    lines = each.lines(names)
    for line in lines[:MOST_PLACES]:
        print(line)
    if len(lines) > MOST_PLACES:
        print(f"… and {len(lines) - MOST_PLACES} more in this answer")
    sys.stdout.flush()
