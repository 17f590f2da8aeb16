"""Who a listener's broker is in Kerberos, by the settings of GSSAPI: the login module's principal and keytab."""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.sasl.kerberos import Gssapi
from pykafkad.sasl.kerberos_names import ShortNamer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pykafkad.sasl.kerberos import OpenAcceptor
    from pykafkad.sasl.listener_settings import ListenerSettings

GSSAPI = "GSSAPI"
LOGIN_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
SERVICE_NAME = "sasl.kerberos.service.name"
RULES = "sasl.kerberos.principal.to.local.rules"


def exchanges(
    read: ListenerSettings, options: Mapping[str, str] | None, open_acceptor: OpenAcceptor
) -> Callable[[], Gssapi]:
    """What makes an exchange. `options` are those of the login module. Raises ConfigError."""
    jaas, _ = read.given("sasl.jaas.config", GSSAPI)
    example = (
        f'{LOGIN_MODULE} required useKeyTab=true storeKey=true keyTab="/etc/kafka.keytab" principal="kafka/host@REALM";'
    )
    if options is None:
        default = "" if read.is_given("sasl.enabled.mechanisms") else ", the default of sasl.enabled.mechanisms"
        raise ConfigError(f"{jaas}: is not set, and {GSSAPI}{default}, needs it; set it to: {example}")
    service = read.value(SERVICE_NAME)
    of_module = options.get("serviceName", service)
    if of_module is None:
        raise ConfigError(f"{read.name(SERVICE_NAME)}: is not set, and {GSSAPI} needs it, as the option serviceName")
    if service not in (None, of_module):
        raise ConfigError(f"{jaas}: serviceName is another than {read.name(SERVICE_NAME)}={service}")
    if options.get("useKeyTab", "").lower() != "true":
        raise ConfigError(
            f"{jaas}: must have useKeyTab=true, as the keys of a broker are in a keytab, such as: {example}"
        )
    if not options.get("principal"):
        raise ConfigError(f"{jaas}: must have the option principal, such as: {example}")
    try:
        acceptor = open_acceptor(options.get("keyTab"), options["principal"])
    except ConfigError as error:
        raise ConfigError(f"{jaas}: {error}") from None
    try:
        names = ShortNamer(read.value(RULES), acceptor.default_realm)
    except ValueError as error:
        raise ConfigError(f"{read.name(RULES)}: {error}") from None
    return lambda: Gssapi(acceptor.context, names.name)
