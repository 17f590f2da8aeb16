"""`pykafkad serve`: runs a broker in this process until a signal stops it.

Its options are a table (`serve_options.py`)."""

from __future__ import annotations

import os
import sys

from pykafkad import config
from pykafkad.cli import serve_options
from pykafkad.cli.serve_options import OPTIONS, Options
from pykafkad.errors import ConfigError, StartFailure, StorageFailure
from pykafkad.server import logs
from pykafkad.settings import sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cli.serve_beside import Beside
    from pykafkad.issuer.served import ServedIssuer as Issuer
    from pykafkad.server.start_acls import Creation

SUMMARY = "run a broker until it is stopped by SIGINT or SIGTERM"
DESCRIPTION = """Runs a broker that Kafka clients connect to. By default it listens on port 9092 and keeps its data in
./pykafkad-data. Without a property file, a new group starts at once (group.initial.rebalance.delay.ms=0); with one, the
first rebalance waits as long as Kafka's (3 s). A second SIGINT or SIGTERM stops the broker at once."""

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def main(arguments: list[str]) -> int:
    """Runs the broker and returns its exit code.

    2: an option or setting is invalid. 1: the broker cannot start now, such as when its port is taken.
    """
    options = serve_options.read(arguments)
    if options is None:
        from pykafkad.cli import serve_help

        return serve_help.explain(arguments, DESCRIPTION, OPTIONS)
    try:
        return _serve(options)
    except (StartFailure, StorageFailure) as error:
        print(f"pykafkad: {error}", file=sys.stderr)
        return 1
    except ConfigError as error:
        print(f"pykafkad: {error}", file=sys.stderr)
        return 2


def _serve(options: Options) -> int:
    set_level(options)
    if options.brokers is not None and options.tenant:
        raise ConfigError("--brokers: each --tenant is a cluster of one broker; several brokers are one cluster")
    if options.processes is not None:
        _check_processes(options)
    if options.container is not None and (options.tenant or options.processes is not None):
        raise ConfigError("--container: there is one process with one cluster in it, so no --tenant and --processes")
    if options.tenant or options.tenant_config:
        from pykafkad.cli import serve_tenants

        return serve_tenants.serve(options)
    made = Prepared(options)
    issuer = _issuer(options, made.properties)
    try:
        return _run(options, made, issuer)
    finally:
        if issuer is not None:
            issuer.close()
        made.remove_certificates()


def _check_processes(options: Options) -> None:
    """Raises ConfigError for what is beside the brokers in their process."""
    for name in ("control", "registry", "trace"):
        if getattr(options, name) is not None:
            raise ConfigError(
                f"--{name}: it is a part of the process of the brokers, and with --processes each has one of its own; "
                f"leave out --processes: all brokers are in one process then, which can have --{name}"
            )


def _run(options: Options, made: Prepared, issuer: Issuer | None) -> int:
    beside = _beside(options, made.properties)
    settings, topics = made.settings(), made.topics()
    brokers: list[config.Settings] = []
    controllers, identity = 1, None
    if options.asks_for_several():
        from pykafkad.cli import several_brokers

        brokers = several_brokers.read(options.brokers, options.rack, settings, made.properties)
        controllers = several_brokers.controllers(options.controllers)
        if controllers > 1 or options.processes is not None:
            identity = several_brokers.identity(brokers[0], "--controllers" if controllers > 1 else "--processes")
        if options.processes is not None:
            from pykafkad.cli import serve_processes

            made.tell(logs.logger("config"))
            words = made.ready_words(None if issuer is None else issuer.token_url)
            return serve_processes.serve(options, made, settings, brokers, controllers, identity, words)
    import gc

    # Modules are objects that live on: the collector would look at all of them again and again meanwhile.
    gc.disable()
    try:
        from pykafkad.server.run import run
    finally:
        gc.enable()

    ready_file = trace_file = None
    if options.ready_file or options.trace is not None:
        from pykafkad.cli import serve_files

        ready_file = serve_files.ready_file(options.ready_file)
        trace_file = serve_files.trace_file(options.trace)
    ready_lines: list[str] = []
    if options.container is not None:
        from pykafkad.cli import serve_container

        ready_lines = serve_container.ready_lines(brokers[0] if brokers else settings)
    if issuer is not None and beside is not None:
        issuer.follow(beside.clock)
    made.tell(logs.logger("config"))
    try:
        if beside is not None:
            beside.start(settings, topics)
        return run(
            settings,
            data_directories=settings.log_directories,
            topics=topics,
            ready_file=ready_file,
            ca_file=made.ca_file,
            token_url=None if issuer is None else issuer.token_url,
            users=made.users,
            acls=made.acls,
            trace_file=trace_file,
            control=beside,
            brokers=brokers,
            controllers=controllers,
            identity=identity,
            ready_lines=ready_lines,
        )
    except StartFailure:
        raise
    except ConfigError as error:
        raise made.with_origin(error) from None
    finally:
        if beside is not None:
            beside.close()


class Prepared:
    """What the options about one cluster come to. Raises ConfigError."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.properties = _properties(options)
        """The settings as texts, each with its origin. Who changes them does so before `settings`."""
        self._of_file = ""
        if options.listen:
            self._of_file = _leave_out_advertised(self.properties, options.properties)
            _listen(options.listen, self.properties, "PLAINTEXT" if options.tls is None else "SSL")
        self.ca_file = None if options.tls is None else _provide_certificates(options, self.properties)
        """The path of what clients trust, if that was made."""
        self.users: list[tuple[str, str, str]] = []
        if options.user:
            from pykafkad.cli import users as logins

            self.users = logins.parse(options.user)
            logins.apply(self.users, self.properties)
        self.acls: list[tuple[str, Creation]] = []
        if options.acl:
            from pykafkad.cli import start_acls

            self.acls = start_acls.parse(options.acl)
            start_acls.apply(self.properties)

    def settings(self) -> config.Settings:
        """The settings of the broker. Raises ConfigError."""
        self._settings = config.Settings.from_properties(self.properties)
        if self._settings.pykafkad_client_telemetry_enable:
            _check_telemetry(self.properties)
        return self._settings

    def ready_words(self, token_url: str | None) -> dict[str, str]:
        """What the readiness line tells clients."""
        told = {"ssl.ca.location": self.ca_file, "sasl.oauthbearer.token.endpoint.url": token_url}
        return {name: text for name, text in told.items() if text is not None}

    def topics(self) -> list[tuple[str, int]]:
        """Names and numbers of partitions. Raises ConfigError."""
        return _topics(self._options.topic, self._settings)

    def tell(self, log: logs.Logger) -> None:
        """The lines about settings that somebody may miss."""
        logs.tell_settings(
            log, [*filter(None, [self._of_file]), *self._settings.warnings], self._settings.without_effect
        )

    def with_origin(self, error: ConfigError) -> ConfigError:
        """Values that are invalid only together, such as those of listeners, are found by the code that uses them. Its
        message begins with the name of a setting, whose origin is added here."""
        _, origin = self.properties.get(str(error).partition(":")[0], ("", ""))
        return ConfigError(f"{origin}: {error}" if origin else str(error))

    def remove_certificates(self) -> None:
        """With the data in memory, nobody trusts them when the broker has ended."""
        if self.ca_file is not None and self._options.memory is not None:
            import shutil

            shutil.rmtree(os.path.dirname(self.ca_file), ignore_errors=True)


def _properties(options: Options) -> dict[str, tuple[str, str]]:
    command_line = {} if options.data is None else {"log.dirs": options.data}
    if options.memory is not None:
        if options.data is not None:
            raise ConfigError(
                f"--memory {options.memory}: nothing would be kept in --data {options.data}; give one of them"
            )
        command_line["pykafkad.memory.max.bytes"] = str(_size_bytes(options.memory))
    if options.act_as is not None:
        command_line["pykafkad.act.as"] = options.act_as
    if options.audit is not None:
        from pykafkad.cli import serve_files

        command_line["pykafkad.audit.file"] = serve_files.audit_file(options.audit)
    own_path = options.tenant_config[0] if options.tenant_config else None
    if options.container is None:
        return sources.gather(options.properties, os.environ, options.set, command_line, own_path)
    from pykafkad.cli import serve_container

    image = serve_container.read(os.environ)
    properties = sources.gather(options.properties, os.environ, options.set, command_line, own_path, image)
    return properties | serve_container.defaults([*properties, *(["listeners"] if options.listen else [])])


def _leave_out_advertised(properties: dict[str, tuple[str, str]], path: str | None) -> str:
    """`advertised.listeners` of a file belong to the file's listeners: the broker would be ready at an address that its
    own answers do not lead to. What is left out, as a sentence. Those of the environment and of `--set` stay."""
    name = "advertised.listeners"
    text, origin = properties.get(name, ("", ""))
    if not text.strip() or path is None or not origin.startswith(f"{path}:"):
        return ""
    del properties[name]
    return f"{origin}: {name}={text} is left out, since --listen says where clients reach the broker"


def _listen(texts: list[str], properties: dict[str, tuple[str, str]], protocol: str) -> None:
    """Turns `--listen` into settings, so that DescribeConfigs shows where the broker listens."""
    from pykafkad.server.listeners import as_settings, implied_protocols, parse_address

    addresses = [parse_address(text, "--listen") for text in texts]
    name = "listener.security.protocol.map"
    security = properties[name][0] if name in properties else config.ROWS[config.BROKER][name].default or ""
    found = {}
    if properties.get("process.roles", ("", ""))[0].strip() == "broker":
        # It reaches controllers elsewhere as it does without --listen.
        implied = implied_protocols({key: text for key, (text, _) in properties.items()})
        if implied:
            found[name] = security = ",".join([security, *implied])
    found |= as_settings(addresses, security, protocol)
    properties.update((key, (text, "--listen")) for key, text in found.items())


def _provide_certificates(options: Options, properties: dict[str, tuple[str, str]]) -> str:
    """Turns `--tls` into settings; the path of what clients trust."""
    from pykafkad.cli import certificates
    from pykafkad.server.listeners import parse_address

    if not options.listen:
        if "listeners" in properties:
            raise ConfigError(f"--tls: {properties['listeners'][1]} names listeners; say with --listen which get TLS")
        _listen([":9092"], properties, "SSL")
    folder = properties.get("log.dirs", ("", ""))[0].split(",")[0].strip()
    if options.memory is not None:
        import tempfile

        # Nothing is kept, and clients read the file all the same.
        folder = tempfile.mkdtemp(prefix="pykafkad-tls-")
    folder = os.path.abspath(folder or config.ROWS[config.BROKER]["log.dir"].default or "")
    hosts = [parse_address(text, "--listen")[0] for text in options.listen]
    for name, text in certificates.provide(folder, (host for host in hosts if host not in ("0.0.0.0", "::"))).items():
        properties.setdefault(name, (text, "--tls"))
    return os.path.join(folder, certificates.CA_FILE)


def _issuer(options: Options, properties: dict[str, tuple[str, str]]) -> Issuer | None:
    """What `--oauth` asks for, which is served from now on; None without it."""
    if not options.oauth:
        for name, given in (("--oauth-listen", options.oauth_listen), ("--oauth-lifetime", options.oauth_lifetime)):
            if given is not None:
                raise ConfigError(f"{name} {given}: there is no issuer of tokens without --oauth CLIENT:SECRET")
        return None
    from pykafkad.cli import oauth

    return oauth.serve(options.oauth, options.oauth_listen, options.oauth_lifetime, properties)


def _beside(options: Options, properties: dict[str, tuple[str, str]]) -> Beside | None:
    """The servers of `--control` and `--registry`. Raises `ConfigError`."""
    if options.control is None and options.registry is None and options.control_token is None:
        return None
    from pykafkad.cli import serve_beside

    return serve_beside.read(options, properties)


def _check_telemetry(properties: dict[str, tuple[str, str]]) -> None:
    """Checks that the packages that decode clients' metrics are installed. Without them the broker does not start."""
    from pykafkad.cli import extras

    name = "pykafkad.client.telemetry.enable"
    if sentence := extras.missing("opentelemetry.proto.metrics.v1.metrics_pb2"):
        raise ConfigError(f"{properties[name][1]}: {name}: {sentence}")


def _size_bytes(text: str) -> int:
    """The number of bytes of `--memory`: a number, optionally followed by KB, MB or GB."""
    number = text.upper().removesuffix("B")
    unit = _UNITS.get(number[-1:], 1)
    digits = number[:-1] if unit > 1 else number
    if not (digits.isdecimal() and int(digits) > 0):
        raise ConfigError(f"--memory {text}: must be a size above 0 such as 512MB or 2GB")
    return int(digits) * unit


def set_level(options: Options) -> None:
    """Has the process's log write what the options ask for. Raises ConfigError."""
    level = options.log_level or os.environ.get("PYKAFKAD_LOG_LEVEL") or "info"
    try:
        logs.configure(level)
    except ValueError:
        raise ConfigError(f"--log-level {level}: must be one of {', '.join(logs.LEVELS)}") from None
    if options.log_format not in (None, "text", "json"):
        raise ConfigError(f"--log-format {options.log_format}: must be text or json")
    if options.log_format == "json":
        from pykafkad.server.json_log import JsonSink

        logs.configure(level, JsonSink())


def _topics(texts: list[str], settings: config.Settings) -> list[tuple[str, int]]:
    topics = [_topic(text, settings) for text in texts]
    names = [name for name, _ in topics]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"--topic {name}: given twice; once is enough")
    return topics


def _topic(text: str, settings: config.Settings) -> tuple[str, int]:
    """`name` or `name:partitions` of `--topic`."""
    name, colon, count = text.partition(":")
    if colon and not (count.isdecimal() and 0 < int(count) <= 1_000_000):
        raise ConfigError(f"--topic {text}: must be NAME or NAME:PARTITIONS with 1 to 1000000 partitions")
    return name, int(count) if colon else settings.num_partitions
