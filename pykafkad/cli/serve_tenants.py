"""`pykafkad serve --tenant NAME[=HOST:PORT]`: several clusters in one process, each with options of its own.

What one cluster is told, each tenant is told with its name in front: `--topic acme:orders:3`,
`--user acme:alice:secret`, `--acl 'acme:alice read topic orders'`. `--set acme:NAME=VALUE` is for one tenant,
`--set NAME=VALUE` for all; so are `--data` and `--memory`: a directory below that one, and so much memory, for each. A
tenant's options then go the way of those of a single cluster (`serve.Prepared`)."""

from __future__ import annotations

import gc
import os

from pykafkad.cli import serve_files
from pykafkad.cli.serve import Prepared
from pykafkad.cli.serve_options import Options
from pykafkad.clock import Clock
from pykafkad.disk import Disk
from pykafkad.errors import ConfigError, StartFailure, StorageFailure
from pykafkad.server import full_collections, run
from pykafkad.server.logs import LabelledSink, Logs, process_logs, shows_colours, standard_error
from pykafkad.server.tenants import Plan, Tenants, check_name
from pykafkad.settings import sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from pykafkad.cli.serve_beside import Beside

    Result = TypeVar("Result")

_PREFIXED = ("topic", "user", "acl")
"""Options that say which tenant they are about."""

_SHARED = ("memory", "tls", "properties", "control")
"""Options that hold for each tenant as they are."""

_INSTEAD = {
    "act_as": "set it for each tenant: --set NAME:pykafkad.act.as=RELEASE",
    "listen": "give each tenant its address: --tenant NAME=HOST:PORT",
    "trace": "it would show all tenants",
    "audit": "give each tenant a file: --set NAME:pykafkad.audit.file=FILE",
    "control_token": "the control API of each tenant has a token of its own, in the readiness line",
    "registry": "it keeps the schemas of one cluster",
    "brokers": "a tenant has one",
    "processes": "a tenant has one broker, in this process",
    "controllers": "a tenant has one",
    "rack": "set broker.rack: --set NAME:broker.rack=RACK",
    "oauth": "name an issuer in the settings of a tenant",
    "oauth_listen": "name an issuer in the settings of a tenant",
    "oauth_lifetime": "name an issuer in the settings of a tenant",
}
"""Options that tenants do not have, and what to say of them."""

_DATA = ("log.dirs", "log.dir")
_FREE_PORT = "127.0.0.1:0"


def serve(options: Options) -> int:
    """Serve all tenants until a signal; the exit code. Raises ConfigError, StorageFailure or StartFailure when one of
    them cannot start, with its name in the text."""
    ready_file = serve_files.ready_file(options.ready_file)
    made: dict[str, Prepared] = {}
    controls: dict[str, Beside] = {}
    tenants: Tenants | None = None
    try:
        for name, each in split(options).items():
            made[name] = _named(name, Prepared, each)
            if each.control is not None:
                from pykafkad.cli import serve_beside

                controls[name] = _named(name, serve_beside.Beside, each, made[name].properties)
        write, level = standard_error(), process_logs().level
        as_asked = {"is_json": options.log_format == "json", "is_coloured": shows_colours(2)}
        tenants = Tenants(lambda name: Logs(level, LabelledSink("tenant", name, write, **as_asked)), process_logs())
        run.obey_signals(lambda: tenants)
        Disk().allow_many_files()
        for name, prepared in made.items():
            _named(name, _add, tenants, name, prepared, controls.get(name))
            # Its directory is known to be ours: what an earlier process wrote when it was ready goes.
            run.forget_ready(ready_file)
        # What lives since the start lives for ever: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        addresses = [address for tenant in tenants.tenants() for address in tenant.listeners]
        ca_files = {name: each.ca_file for name, each in made.items()}
        run.tell_ready(addresses, ready_file, words(tenants, ca_files, controls))
        with full_collections.Short(Clock()):
            tenants.run()
        process_logs().info("server", "stopping", reason=tenants.stopping)
        run.forget_ready(ready_file)
        return 0
    finally:
        if tenants is not None:
            tenants.close()
        for control in controls.values():
            control.close()
        for prepared in made.values():
            prepared.remove_certificates()


def words(tenants: Tenants, ca_files: dict[str, str | None], controls: Mapping[str, Beside]) -> dict[str, str]:
    """What the readiness line tells: where each tenant is reached, what its clients trust, and its control API."""
    found = {}
    for tenant in tenants.tenants():
        found[f"tenant.{tenant.name}"] = ",".join(tenant.listeners)
        ca_file = ca_files.get(tenant.name)
        if ca_file is not None:
            found[f"tenant.{tenant.name}.ssl.ca.location"] = ca_file
        if tenant.name in controls:
            found |= {f"tenant.{tenant.name}.{word}": text for word, text in controls[tenant.name].words.items()}
    return found


def split(options: Options) -> dict[str, Options]:
    """The options of each tenant. Raises ConfigError."""
    for name, instead in _INSTEAD.items():
        if getattr(options, name) not in (None, []):
            raise ConfigError(f"--{name.replace('_', '-')}: not together with --tenant; {instead}")
    if options.control is not None and options.control.rpartition(":")[2] != "0":
        raise ConfigError(
            f"--control {options.control}: must be 0 or HOST:0 with --tenant; each tenant has a control API of its "
            "own, at a port that is free"
        )
    found: dict[str, Options] = {}
    addresses: dict[str, str] = {}
    for text in options.tenant:
        name, _, addresses[name] = text.partition("=")
        if check_name(name) in found:
            raise ConfigError(f"--tenant {text}: there are two tenants {name}")
        each = found[name] = Options()
        for attribute in _SHARED:
            setattr(each, attribute, getattr(options, attribute))
    for text in options.tenant_config:
        name, _, path = text.partition("=")
        if name not in found or not path:
            raise ConfigError(f"--tenant-config {text}: must be NAME=FILE with the name of a --tenant")
        if found[name].tenant_config:
            raise ConfigError(f"--tenant-config {text}: the tenant {name} has one")
        found[name].tenant_config = [path]
    _hand_out(options, found)
    for name, each in found.items():
        own = _own_settings(each)
        if addresses[name] or "listeners" not in own:
            each.listen = [addresses[name] or _FREE_PORT]
        if own.keys().isdisjoint(_DATA):
            _place(name, each, options)
        elif options.data is not None:
            raise ConfigError(f"--data {options.data}: tenant {name}: its settings say where its data is")
        each.set = [*_shared_pairs(options, found), *each.set]
    return found


def _hand_out(options: Options, found: dict[str, Options]) -> None:
    """Give each tenant what is told it."""
    for attribute in _PREFIXED:
        for text in getattr(options, attribute):
            name, colon, rest = text.partition(":")
            if not colon or name not in found:
                # The rest may be a password.
                raise ConfigError(f"--{attribute} {name}…: must begin with the name of a tenant and a colon")
            getattr(found[name], attribute).append(rest)
    for text in options.set:
        name, colon, rest = text.partition(":")
        if colon and name in found:
            found[name].set.append(rest)


def _shared_pairs(options: Options, found: dict[str, Options]) -> list[str]:
    return [text for text in options.set if text.partition(":")[0] not in found]


def _own_settings(each: Options) -> dict[str, tuple[str, str]]:
    """What a tenant does not share with the others."""
    own = sources.from_file(each.tenant_config[0]) if each.tenant_config else {}
    return own | sources.from_pairs(each.set)


def _place(name: str, each: Options, options: Options) -> None:
    """Its data is in a directory of its name, below each that is for all."""
    if options.memory is not None and options.data is None:
        return
    shared = sources.gather(options.properties, os.environ, (), {})
    texts = [options.data] if options.data else [shared[key][0] for key in _DATA if key in shared] or ["pykafkad-data"]
    each.data = ",".join(os.path.join(path.strip(), name) for path in texts[0].split(",") if path.strip())


def _add(tenants: Tenants, name: str, prepared: Prepared, control: Beside | None) -> None:
    settings = prepared.settings()
    topics = prepared.topics()
    followed: dict[str, Any] = {}
    if control is not None:
        followed = {"clock": control.clock, "began": control.began, "ended": control.ended}
        control.start(settings, topics)
    plan = Plan(name, settings, topics=topics, users=prepared.users, acls=prepared.acls, **followed)
    try:
        tenant = tenants.add(plan)
    except StartFailure:
        raise
    except ConfigError as error:
        raise prepared.with_origin(error) from None
    prepared.tell(tenant.logs.logger("config"))


def _named(name: str, call: Callable[..., Result], *arguments: Any) -> Result:
    """What `call` returns; an error that it raises names the tenant."""
    try:
        return call(*arguments)
    except StartFailure as error:
        raise StartFailure(f"tenant {name}: {error}") from None
    except ConfigError as error:
        raise ConfigError(f"tenant {name}: {error}") from None
    except StorageFailure as failure:
        raise StartFailure(f"tenant {name}: {failure}") from None
