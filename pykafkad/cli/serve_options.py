"""The options of `pykafkad serve`: a table, and what reads a command line by it.

A small loop reads valid command lines, because importing argparse would slow down every start. argparse, made from the
same table, prints help texts and explains invalid command lines (`serve_help.py`)."""

from __future__ import annotations

# (option, name of its value in help texts, empty for one without, whether it may be repeated, help)
OPTIONS = (
    (
        "--listen",
        "HOST:PORT",
        True,
        "accept clients at this address instead of those of the setting `listeners`; port 0 takes a free port, `:9092` "
        "listens on every address (repeatable)",
    ),
    (
        "--brokers",
        "N",
        False,
        "run so many brokers, and a controller, in this process: the first at the addresses of --listen, each of the "
        "others one port above the one before it (port 0: each at a free one), each in a folder of its own",
    ),
    (
        "--processes",
        "",
        False,
        "run each of --brokers, and each controller, in a process of its own, which ends with this one: they use all "
        "cores, and one that is killed leaves the others",
    ),
    (
        "--controllers",
        "N",
        False,
        "run so many controllers, of which one decides and another takes over when it ends (default: 1; 3 outlive the "
        "end of any one of them)",
    ),
    ("--rack", "NAME", True, "the rack of the first of --brokers, of the second … (repeatable; they begin anew)"),
    ("--data", "DIR", False, "keep the data in this directory (default: the setting log.dirs, else pykafkad-data)"),
    (
        "--memory",
        "SIZE",
        False,
        "keep all data in memory, at most so much (such as 512MB or 2GB); it is lost when the broker stops",
    ),
    (
        "--tls",
        "",
        False,
        "serve the addresses of --listen by TLS, with an authority and certificates made on the fly: tls-ca.pem in the "
        "data directory is what clients trust",
    ),
    (
        "--topic",
        "NAME[:PARTITIONS]",
        True,
        "create this topic, unless it exists, before the broker serves clients (repeatable)",
    ),
    (
        "--set",
        "NAME=VALUE",
        True,
        "set one of Kafka's broker settings; `pykafkad describe-config` lists them (repeatable)",
    ),
    (
        "--user",
        "NAME:PASSWORD[:MECHANISM]",
        True,
        "let this user log in by SASL, and nobody without a login: by PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, or by any "
        "of them; other users of the machine can see this command line (repeatable)",
    ),
    (
        "--oauth",
        "CLIENT:SECRET",
        True,
        "let this client log in by SASL OAUTHBEARER, and nobody without a login: with a token of an issuer made on the "
        "fly, whose token end point the readiness line names; for tests (repeatable)",
    ),
    (
        "--oauth-listen",
        "[HOST:]PORT",
        False,
        "serve the issuer of --oauth there (default: a free port of 127.0.0.1)",
    ),
    ("--oauth-lifetime", "SECONDS", False, "let tokens of --oauth live so long (default: 3600)"),
    (
        "--acl",
        "ENTRY",
        True,
        "let a user do something, as `pykafkad acls add` has it, such as 'alice read topic orders'; what no entry "
        "allows is denied, except to those of the setting super.users (repeatable)",
    ),
    (
        "--ready-file",
        "PATH",
        False,
        "write the broker's address to this file once it serves every API; before that and after the stop it is absent",
    ),
    (
        "--container",
        "",
        False,
        "take settings from variables as Kafka's container images do (KAFKA_NUM_PARTITIONS=3), keep the data in "
        "/var/lib/kafka/data, and print the lines that tests wait for in Kafka's log",
    ),
    (
        "--trace",
        "FILE",
        False,
        "record requests and answers, and write the last of them to this file when the broker stops: .pcap for "
        "Wireshark, .jsonl with all fields, .txt with a line for each",
    ),
    (
        "--control",
        "[HOST:]PORT",
        False,
        "serve the control API over HTTP there: topics, records, groups, reset, waits, faults, clock, trace, metrics "
        "for Prometheus; without a host at 127.0.0.1 alone; port 0 takes a free port; needs the extra `control`",
    ),
    (
        "--control-token",
        "TOKEN",
        False,
        "what requests to the control API carry (default: the variable PYKAFKAD_CONTROL_TOKEN, or one that is made and "
        "printed in the readiness line); other users of the machine can see this command line",
    ),
    (
        "--registry",
        "[HOST:]PORT",
        False,
        "serve a schema registry over HTTP there, with Confluent's REST interface; without a host at 127.0.0.1 alone; "
        "it needs no login, and ACLs do not count there: who reaches the port changes schemas; "
        "port 0 takes a free port; needs the extra `registry`",
    ),
    (
        "--audit",
        "FILE",
        False,
        "write a line to the end of this file for each request that the authorizer denies: .jsonl for JSON, any other "
        "name for text, - for standard error",
    ),
    (
        "--tenant",
        "NAME[=HOST:PORT]",
        True,
        "serve a cluster of this name beside others in this process, with everything of its own; without an address at "
        "a free port of 127.0.0.1; --topic, --user, --acl and --set then begin with NAME: (repeatable)",
    ),
    ("--tenant-config", "NAME=FILE", True, "settings of one tenant, before those that all share (repeatable)"),
    (
        "--act-as",
        "RELEASE",
        False,
        "be a Kafka of this release: 2.8, 3.4, 3.7, 3.9, 4.0, 4.1, 4.2 or 4.4 (default: 4.3); a directory keeps the "
        "release that it was begun with, until its features are raised",
    ),
    (
        "--log-level",
        "LEVEL",
        False,
        "debug, info, warning or error (default: info, or the variable PYKAFKAD_LOG_LEVEL)",
    ),
    ("--log-format", "FORMAT", False, "text, or json with an object in each line (default: text)"),
)


class Options:
    """The parsed command line: `properties` (a path or None) and one attribute per option of `OPTIONS`.

    The attribute of a repeatable option is a list, that of one without a value is empty if it was given.
    """

    brokers: str | None
    processes: str | None
    container: str | None
    controllers: str | None
    data: str | None
    tls: str | None
    memory: str | None
    ready_file: str | None
    trace: str | None
    audit: str | None
    log_level: str | None
    log_format: str | None
    act_as: str | None
    control: str | None
    control_token: str | None
    registry: str | None
    oauth_listen: str | None
    oauth_lifetime: str | None
    oauth: list[str]
    listen: list[str]
    rack: list[str]
    topic: list[str]
    user: list[str]
    acl: list[str]
    set: list[str]
    tenant: list[str]
    tenant_config: list[str]

    def __init__(self) -> None:
        self.properties: str | None = None
        for option, _, repeated, _ in OPTIONS:
            setattr(self, _attribute(option), [] if repeated else None)

    def asks_for_several(self) -> bool:
        """Whether there is an option about several brokers."""
        return self.rack != [] or (self.brokers, self.processes, self.controllers) != (None, None, None)


def _attribute(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def read(arguments: list[str]) -> Options | None:
    """Reads `--option value` and `--option=value` without argparse.

    Returns None when the command line is invalid or asks for help: argparse then prints the text.
    """
    options = Options()
    repeated = {option: many for option, _, many, _ in OPTIONS}
    without_value = {option for option, metavar, _, _ in OPTIONS if not metavar}
    words = iter(arguments)
    for word in words:
        option, equals, value = word.partition("=")
        if word in without_value:
            setattr(options, _attribute(option), "")
        elif option in repeated and option not in without_value:
            if not equals:
                value = next(words, "--")
                if value.startswith("--"):
                    return None
            if repeated[option]:
                getattr(options, _attribute(option)).append(value)
            else:
                setattr(options, _attribute(option), value)
        elif word.startswith("-") or options.properties is not None:
            return None
        else:
            options.properties = word
    return options
