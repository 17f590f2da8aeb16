"""`pykafkad client-config`: prints the lines that lead a client to a broker, to paste into a file or a program."""

from __future__ import annotations

import json
import os

from pykafkad.cli import client_options
from pykafkad.cli.client_options import JAVA_ALLOWED, Access, Tokens, Trust
from pykafkad.cli.output import Failure
from pykafkad.sasl.offer import GSSAPI, OAUTHBEARER, WITH_PASSWORD

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

SUMMARY = "print the lines that lead a client to a broker: addresses, TLS and a login"
CLIENTS = ("java", "librdkafka", "kafka-python", "aiokafka", "kafkajs", "franz-go", "spark")
_DEFAULT = "localhost:9092"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad client-config`."""
    parser.add_argument(
        "--for", dest="client", required=True, choices=CLIENTS, help="the client that the lines are for"
    )
    parser.add_argument(
        "-b", "--bootstrap", "--bootstrap-server", metavar="HOST:PORT", default=None,
        help=f"the broker's address (default: the variable PYKAFKAD_BOOTSTRAP, else {_DEFAULT})",
    )  # fmt: skip
    parser.add_argument("--tls", metavar="FILE", help="encrypt, and trust this authority, such as shop/tls-ca.pem")
    parser.add_argument("--user", metavar="NAME", help="log in as this user")
    parser.add_argument("--password", metavar="TEXT", help="with this password")
    parser.add_argument(
        "--mechanism",
        type=str.upper,
        choices=(*WITH_PASSWORD, OAUTHBEARER, GSSAPI),
        help="by this SASL mechanism (default: OAUTHBEARER with --token-url, else SCRAM-SHA-512)",
    )
    parser.add_argument(
        "--token-url",
        metavar="URL",
        help="get tokens there: --user is a client of their issuer and --password its secret; the readiness line of "
        "`pykafkad serve --oauth` names it",
    )
    parser.add_argument(
        "--keytab",
        metavar="FILE",
        help=f"with --mechanism {GSSAPI}: the key of --user, a principal of Kerberos, is there (default: its ticket is "
        "in the usual cache)",
    )


def run(options: argparse.Namespace) -> int:
    """Prints the lines."""
    is_kerberos = options.mechanism == GSSAPI
    if is_kerberos and (options.user is None or options.password is not None):
        raise Failure(f"--mechanism {GSSAPI} needs --user, a principal of Kerberos, and no --password", 2)
    if options.keytab is not None and not is_kerberos:
        raise Failure(f"--keytab needs --mechanism {GSSAPI}", 2)
    if not is_kerberos and (options.user is None) != (options.password is None):
        raise Failure("--user and --password go together", 2)
    for name in ("bootstrap", "tls", "user", "password", "token_url", "keytab"):
        if any(not sign.isprintable() for sign in getattr(options, name) or ""):
            raise Failure(f"--{name.replace('_', '-')}: must be printable", 2)
    mechanism = options.mechanism or ("SCRAM-SHA-512" if options.token_url is None else OAUTHBEARER)
    if (mechanism == OAUTHBEARER) != (options.token_url is not None):
        raise Failure(f"--mechanism {OAUTHBEARER} and --token-url go together", 2)
    if options.token_url is not None and options.user is None:
        raise Failure("--token-url needs --user and --password, the client and its secret", 2)
    access = Access(
        options.tls,
        options.user,
        options.password,
        None if options.user is None else mechanism,
        options.token_url,
        options.keytab,
    )
    bootstrap = options.bootstrap or os.environ.get("PYKAFKAD_BOOTSTRAP") or _DEFAULT
    try:
        found = list(lines(options.client, bootstrap, access))
    except ValueError as error:
        raise Failure(str(error), 2) from None
    for line in found:
        print(line)
    return 0


def lines(client: str, bootstrap: str, access: Access) -> Iterator[str]:
    """The lines for one of `CLIENTS`."""
    if client == "franz-go":
        if access.mechanism == GSSAPI:
            raise ValueError(f"franz-go: its options for {GSSAPI} are not known here")
        yield from _franz_go(bootstrap, access)
        return
    found = client_options.of(client, access)
    if access.token_url is not None and client in ("java", "spark"):
        yield f"{'#' if client == 'java' else '//'} an option for Java: -D{JAVA_ALLOWED}={access.token_url}"
    if access.keytab is not None and client in ("kafka-python", "aiokafka"):
        yield f"# a variable of the environment: KRB5_CLIENT_KTNAME={access.keytab}"
    if client in ("java", "librdkafka"):
        escape = _property if client == "java" else str
        for name, value in {"bootstrap.servers": bootstrap, **found}.items():
            yield f"{name}={escape(str(value))}"
    elif client == "spark":
        for name, value in {"kafka.bootstrap.servers": bootstrap, **found}.items():
            yield f".option({_text(name)}, {_text(value)})"
    elif client == "kafkajs":
        yield f"brokers: [{', '.join(map(_text, bootstrap.split(',')))}],"
        for name, value in found.items():
            if isinstance(value, Trust):
                value = f'{{ ca: [require("fs").readFileSync({_text(value.ca_file)}, "utf-8")] }}'
            elif isinstance(value, dict):
                value = "{ " + ", ".join(f"{key}: {_javascript(each)}" for key, each in value.items()) + " }"
            yield f"{name}: {value},"
    else:
        for name, value in {"bootstrap_servers": bootstrap, **found}.items():
            if isinstance(value, Trust):
                yield f"{name}=ssl.create_default_context(cafile={_text(value.ca_file)}),  # import ssl"
            elif isinstance(value, Tokens):
                yield "# from pykafkad.testing import token_providers"
                yield f"{name}=token_providers.{client.replace('-', '_')}({', '.join(map(_text, value))}),"
            else:
                yield f"{name}={_text(value)},"


def _franz_go(bootstrap: str, access: Access) -> Iterator[str]:
    """Options of kgo.NewClient; what TLS and a login need besides stands in comments."""
    yield f"kgo.SeedBrokers({', '.join(map(_text, bootstrap.split(',')))}),"
    if access.ca_file is not None:
        yield "// authority := x509.NewCertPool()"
        yield f"// pem, err := os.ReadFile({_text(access.ca_file)})"
        yield "// authority.AppendCertsFromPEM(pem)"
        yield "kgo.DialTLSConfig(&tls.Config{RootCAs: authority}),"
    if access.token_url is not None:
        yield "// import github.com/twmb/franz-go/pkg/sasl/oauth and golang.org/x/oauth2/clientcredentials"
        yield "kgo.SASL(oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {"
        names = zip(
            ("ClientID", "ClientSecret", "TokenURL"), (access.user, access.password, access.token_url), strict=True
        )
        fields = ", ".join(f"{name}: {_text(value)}" for name, value in names)
        yield f"\tissuer := clientcredentials.Config{{{fields}}}"
        yield "\ttoken, err := issuer.Token(ctx)"
        yield "\tif err != nil {"
        yield "\t\treturn oauth.Auth{}, err"
        yield "\t}"
        yield "\treturn oauth.Auth{Token: token.AccessToken}, nil"
        yield "})),"
    elif access.user is not None:
        package = "plain" if access.mechanism == "PLAIN" else "scram"
        method = {"SCRAM-SHA-256": "AsSha256Mechanism", "SCRAM-SHA-512": "AsSha512Mechanism"}.get(
            access.mechanism, "AsMechanism"
        )
        yield f"// import github.com/twmb/franz-go/pkg/sasl/{package}"
        yield (f"kgo.SASL({package}.Auth{{User: {_text(access.user)}, Pass: {_text(access.password)}}}.{method}()),")


def _javascript(value: object) -> str:
    """A value as JavaScript has it: of `Tokens` a function that gets one."""
    if not isinstance(value, Tokens):
        return _text(value)
    client, secret = (
        f"client_{name}: {_text(text)}" for name, text in (("id", value.client), ("secret", value.secret))
    )
    form = f'new URLSearchParams({{ grant_type: "client_credentials", {client}, {secret} }})'
    asked = f'fetch({_text(value.url)}, {{ method: "POST", body: {form} }})'
    return f"async () => ({{ value: (await (await {asked}).json()).access_token }})"


def _text(value: object) -> str:
    """A text in quotes, as Python, JavaScript, Go and Scala write it."""
    return json.dumps(value, ensure_ascii=False)


def _property(value: str) -> str:
    """A value as Java's properties files have it, in ASCII."""
    escaped = value.replace("\\", "\\\\")
    return "".join(each if each.isascii() else _unicode(each) for each in escaped)


def _unicode(sign: str) -> str:
    data = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[index : index + 2].hex()}" for index in range(0, len(data), 2))
