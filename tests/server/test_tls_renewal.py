"""New keys and trust while a broker runs: which changes are refused, and who gets what is new."""

import ssl

import pytest

from pykafkad import errors
from pykafkad.config import Settings
from pykafkad.errors import ConfigError, KafkaError
from pykafkad.metadata.configs import DELETE, SET
from pykafkad.metadata.image import TYPE_BROKER
from pykafkad.server.certificate_names import alternative_names
from pykafkad.server.listeners import Listener
from pykafkad.server.logs import Sink, process_logs
from pykafkad.server.tls_renewal import TlsRenewal
from pykafkad.wire import messages
from tests import certificates
from tests.server.echo import EchoNode, frame
from tests.server.tls_client import Client, client_context
from tests.simulation.world import World

PREFIX = "listener.name.tls."
LOCATION = f"{PREFIX}ssl.keystore.location"
KEY, CHAIN = f"{PREFIX}ssl.keystore.key", f"{PREFIX}ssl.keystore.certificate.chain"
TRUST = f"{PREFIX}ssl.truststore.certificates"


class Lines:
    """Keeps what is logged."""

    def __init__(self):
        self.lines = []

    def info(self, name, event, **fields):
        self.lines.append((event, str(fields.get("reason", ""))))

    error = warning = info


def settings(**more):
    return Settings.from_properties({name: (text, "test") for name, text in certificates.settings(**more).items()})


def store(certificate):
    return certificate.key_pem + certificate.pem


def inline(certificate):
    return {KEY: certificate.key_pem, CHAIN: certificate.pem}


def add(found, security_protocol="SSL"):
    """The renewal of one listener with these settings, its endpoint, and the lines that it logs."""
    logs = Lines()
    renewal = TlsRenewal(found, logs)
    return renewal, renewal.add(found, Listener("TLS", "localhost", 0, security_protocol=security_protocol)), logs.lines


def served(endpoint, name="localhost"):
    """The certificate that a new connection is shown, as DER; it asks for the host of that name."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = client_context()
    context.check_hostname = False
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    heard = ssl.MemoryBIO()
    server = endpoint.context.wrap_bio(heard, endpoint.outgoing, server_side=True)
    for _ in range(10):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
            heard.write(outgoing.read())
            incoming.write(endpoint.outgoing.read())
    return client.getpeercert(binary_form=True)


def refused(renewal, live):
    """Why live settings are refused."""
    with pytest.raises(KafkaError) as caught:
        renewal.check(live)
    assert caught.value.code == errors.INVALID_REQUEST
    return caught.value.text


def test_a_new_key_store_counts_from_the_next_connection():
    found = settings()
    renewal, endpoint, lines = add(found)
    assert served(endpoint) == certificates.server().der
    new = certificates.renewed()
    renewal.check(inline(new))
    renewal.renew()
    assert served(endpoint) == certificates.server().der and lines == []
    found.set_dynamic({}, inline(new))
    renewal.renew()
    assert served(endpoint) == new.der and lines == [("certificates-renewed", "")]
    renewal.renew()
    assert len(lines) == 1
    # Without the live values those of the file are back.
    found.set_dynamic({}, {})
    renewal.renew()
    assert served(endpoint) == certificates.server().der


def test_who_is_connected_keeps_what_it_has():
    node = EchoNode()
    node.open()
    found = settings()
    renewal, endpoint, _ = add(found)
    node.listen(tls=endpoint)
    try:
        old, shaking = Client(node).open(), Client(node)
        shaking.until(lambda: any(each.transport._tls is not None and not each.transport._is_open
                                  for each in node.connections))  # fmt: skip
        new = certificates.renewed()
        found.set_dynamic({}, inline(new))
        renewal.renew()
        assert old.ask(b"still here") == frame(b"still here")
        assert shaking.open().tls.getpeercert(binary_form=True) == certificates.server().der
        after = Client(node).open()
        assert after.tls.getpeercert(binary_form=True) == new.der
        assert after.ask(b"new here") == frame(b"new here")
        for client in (old, shaking, after):
            client.close()
    finally:
        node.close()


def test_a_mistake_of_ours_at_one_listener_does_not_keep_the_others_from_what_is_new(monkeypatch):
    found = settings()
    renewal, endpoint, lines = add(found)
    other = renewal.add(found, Listener("OTHER", "localhost", 0, security_protocol="SSL"))
    new = certificates.renewed()
    found.set_dynamic(
        {}, {**inline(new), **{name.replace(".tls.", ".other."): text for name, text in inline(new).items()}}
    )
    wrong = renewal._listeners[0]
    renew = type(wrong).renew
    monkeypatch.setattr(type(wrong), "renew", lambda self, now: {}["x"] if self is wrong else renew(self, now))
    renewal.renew()
    assert served(endpoint) == certificates.server().der and served(other) == new.der
    assert lines == [("certificates-not-renewed", "KeyError('x')"), ("certificates-renewed", "")]


def test_a_file_that_changes_is_read_again_with_the_next_change_of_settings(tmp_path):
    path = tmp_path / "store.pem"
    path.write_text(store(certificates.server()))
    found = Settings({**settings(ssl_keystore_location=str(path)).static})
    for name in ("ssl.keystore.key", "ssl.keystore.certificate.chain"):
        del found.static[name]
    found = Settings(found.static)
    renewal, endpoint, lines = add(found)
    new = certificates.renewed()
    path.write_text(store(new))
    renewal.check({LOCATION: str(path)})
    assert served(endpoint) == certificates.server().der
    renewal.renew()
    assert served(endpoint) == new.der
    # Nobody asks when a file is damaged: what was served goes on, with a line of the log for each try.
    for content, reason in (
        ("nothing", "there must be one"),
        (store(certificates.renewed("other")), "is for CN=other"),
    ):
        path.write_text(content)
        renewal.check({LOCATION: str(path)})
        renewal.renew()
        assert lines[-1][0] == "certificates-not-renewed" and reason in lines[-1][1]
        assert served(endpoint) == new.der
    path.unlink()
    renewal.renew()
    assert "cannot be read" in lines[-1][1] and served(endpoint) == new.der


def of_file(path, **more):
    """Settings of a listener whose key store is a file."""
    found = dict(settings(ssl_keystore_location=str(path), **more).static)
    for name in ("ssl.keystore.key", "ssl.keystore.certificate.chain"):
        del found[name]
    return Settings(found)


def test_files_are_looked_at(tmp_path):
    """One that has changed is taken when it has stayed as it is for an interval; one that is not fit is told once."""
    path = tmp_path / "store.pem"
    path.write_text(store(certificates.server()))
    renewal, endpoint, lines = add(of_file(path, pykafkad_ssl_files_check_interval_ms="7000"))
    for now in (0.0, 7.0, 14.0):
        assert now >= renewal.next_look
        renewal.look(now)
        assert renewal.next_look == now + 7
    assert lines == []
    new = certificates.renewed()
    path.write_text(store(new))
    renewal.look(21.0)
    assert served(endpoint) == certificates.server().der
    renewal.look(28.0)
    assert served(endpoint) == new.der and lines == [("certificates-renewed", "")]
    path.write_text("half of it")
    renewal.look(35.0)
    path.write_text("half of it, and more")
    renewal.look(42.0)
    assert len(lines) == 1
    for now in (49.0, 56.0, 63.0):
        renewal.look(now)
    assert [event for event, _ in lines] == ["certificates-renewed", "certificates-not-renewed"]
    path.unlink()
    for now in (70.0, 77.0, 84.0):
        renewal.look(now)
    assert "cannot be read" in lines[-1][1] and len(lines) == 3 and served(endpoint) == new.der
    path.write_text(store(certificates.server()))
    for now in (91.0, 98.0):
        renewal.look(now)
    assert served(endpoint) == certificates.server().der


def named(tmp_path):
    """Settings with two more certificates, and these."""
    others = [
        certificates.renewed(hosts=hosts) for hosts in (("a.example.com", "localhost"), ("*.Example.com", "b.org"))
    ]
    paths = [tmp_path / f"{index}.pem" for index in range(len(others))]
    for path, other in zip(paths, others, strict=True):
        path.write_text(store(other))
    return settings(pykafkad_ssl_sni_keystores=",".join(map(str, paths))), paths, others


def test_a_client_is_shown_the_certificate_of_the_name_that_it_asks_for(tmp_path):
    """A name of its own before a star, which stands for one part; without such a name the listener's."""
    found, _, (first, second) = named(tmp_path)
    _, endpoint, _ = add(found)
    own = certificates.server()
    for name, shown in (
        ("a.example.com", first), ("A.EXAMPLE.COM", first), ("localhost", first), ("x.example.com", second),
        ("b.org", second), ("c.org", own), ("x.y.example.com", own), ("example.com", own), (None, own),
        ("127.0.0.1", own),
    ):  # fmt: skip
        assert served(endpoint, name) == shown.der, name


def test_certificates_of_other_names_are_renewed_too(tmp_path):
    """With the files' other changes; one that is not fit is not taken."""
    found, paths, (_, second) = named(tmp_path)
    renewal, endpoint, lines = add(found)
    new = certificates.renewed(hosts=("b.org",))
    paths[1].write_text(store(new))
    for now in (0.0, 10.0):
        renewal.look(now)
    assert served(endpoint, "b.org") == new.der and served(endpoint, "x.example.com") == certificates.server().der
    paths[1].write_text(second.pem)
    for now in (20.0, 30.0):
        renewal.look(now)
    assert served(endpoint, "b.org") == new.der
    assert f"there must be one -----BEGIN PRIVATE KEY----- in it, not no private key (in {paths[1]})" in lines[-1][1]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read: No such file or directory"),
        ("nothing", "not no private key"),
        (store(certificates.authority()), "its certificate has no alternative name of a host"),
    ],
)
def test_key_stores_of_other_names_that_cannot_be(tmp_path, content, sentence):
    """With the setting and the file."""
    path = tmp_path / "other.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=rf"^pykafkad\.ssl\.sni\.keystores: .*{sentence}") as caught:
        add(settings(pykafkad_ssl_sni_keystores=str(path)))
    assert str(path) in str(caught.value)


def test_nobody_looks_at_files_where_the_interval_is_0(tmp_path):
    path = tmp_path / "store.pem"
    path.write_text(store(certificates.server()))
    renewal, *_ = add(of_file(path, pykafkad_ssl_files_check_interval_ms="0"))
    assert renewal.next_look == float("inf")


@pytest.mark.parametrize("live, sentence", [
    ({KEY: "nothing", CHAIN: "nothing"}, f"{KEY}: there must be one -----BEGIN PRIVATE KEY-----"),
    ({CHAIN: certificates.client().pem}, f"{KEY}|ssl.keystore.key: the private key is not that of the first"),
    ({LOCATION: "/nowhere"}, f"{LOCATION}: give either this, or ssl.keystore.key"),
    (inline(certificates.renewed("other")), f"{CHAIN}: the certificate is for CN=other, and the listener serves as CN"),
    (inline(certificates.renewed(hosts=("elsewhere",))), rf"{CHAIN}: .* lacks alternative names .* \(localhost\)"),
    ({f"{PREFIX}ssl.keystore.type": "JKS"}, "ssl.keystore.type: keys and certificates stand in settings as PEM only"),
    ({TRUST: "nothing"}, f"{TRUST}: there is no certificate in it"),
])  # fmt: skip
def test_what_cannot_be_served_is_refused(live, sentence):
    """With Kafka's error, and nothing changes."""
    renewal, endpoint, _ = add(settings())
    text = refused(renewal, live)
    assert text.startswith("Invalid dynamic configuration: ")
    with pytest.raises(AssertionError, match=sentence):
        raise AssertionError(text)
    assert served(endpoint) == certificates.server().der


def test_other_names_are_allowed_by_a_setting_of_the_start():
    other, elsewhere = certificates.renewed("other"), certificates.renewed(hosts=("elsewhere",))
    allowed = {f"{PREFIX}ssl.allow.dn.changes": "true", f"{PREFIX}ssl.allow.san.changes": "true"}
    renewal, *_ = add(settings(ssl_allow_dn_changes="true"))
    renewal.check(inline(other))
    assert "lacks alternative names" in refused(renewal, inline(elsewhere))
    renewal, *_ = add(settings(ssl_allow_san_changes="true"))
    renewal.check(inline(elsewhere))
    assert "is for CN=other" in refused(renewal, inline(other))
    renewal, *_ = add(settings())
    assert "is for CN=other" in refused(renewal, {**inline(other), **allowed})
    # More names are no loss, and Java compares a subject whatever its case.
    renewal.check(inline(certificates.renewed(hosts=("localhost", "more"))))
    renewal.check(inline(certificates.renewed("LocalHost")))


def test_a_trust_store_can_be_replaced_and_removed_but_not_added():
    found = settings(ssl_client_auth="required")
    renewal, endpoint, _ = add(found)
    live = {TRUST: certificates.authority("Others").pem}
    renewal.check(live)
    found.set_dynamic({}, live)
    renewal.renew()
    (trusted,) = endpoint.context.get_ca_certs()
    assert (("commonName", "Others authority"),) in trusted["subject"]
    found = settings(ssl_client_auth="required")
    del found.static["ssl.truststore.certificates"]
    renewal, *_ = add(Settings(found.static))
    assert "began without a trust store" in refused(renewal, live)


def test_what_is_fixed_stays_as_it_was_when_the_listener_was_bound():
    found = settings()
    renewal, endpoint, _ = add(found)
    live = {
        "ssl.client.auth": "required",
        f"{PREFIX}ssl.enabled.protocols": "TLSv1.2",
        **inline(certificates.renewed()),
    }
    found.set_dynamic({}, live)
    renewal.renew()
    assert endpoint.context.verify_mode == ssl.CERT_NONE
    assert endpoint.context.maximum_version == ssl.TLSVersion.TLSv1_3


def test_a_live_client_authentication_of_a_listener_with_sasl_counts_for_nobody_that_is_served():
    found = settings()
    renewal, endpoint, _ = add(found, "SASL_SSL")
    found.set_dynamic({}, {f"{PREFIX}ssl.client.auth": "required", **inline(certificates.renewed())})
    renewal.renew()
    assert endpoint.context.verify_mode == ssl.CERT_NONE


def test_who_asks_all_clients_for_certificates_is_told_where_that_does_not_count():
    """A warning, as in Kafka."""
    for protocol, more, count in (("SASL_SSL", {}, 1), ("SSL", {}, 0), ("SASL_SSL", {"ssl_client_auth": "none"}, 0),
                                  ("SASL_SSL", {"listener_name_tls_ssl_client_auth": "required"}, 0)):  # fmt: skip
        *_, lines = add(settings(**{"ssl_client_auth": "required", **more}), protocol)
        assert [event for event, _ in lines] == ["client-certificates-not-asked-for"] * count


def test_alternative_names_of_certificates():
    names = alternative_names(certificates.renewed(hosts=("a", "b")).der)
    assert names == {(0x82, b"a"), (0x82, b"b"), (0x87, bytes((127, 0, 0, 1)))}
    assert alternative_names(certificates.authority().der) == frozenset()
    whole = certificates.server().der
    for end in range(len(whole)):
        with pytest.raises(ValueError):
            alternative_names(whole[:end])


# --- a whole broker --------------------------------------------------------------------------------------------------


@pytest.fixture
def world(tmp_path):
    return tls_world(tmp_path)


def tls_world(path, **more):
    return World(
        path,
        listening=[
            Listener("PLAINTEXT", "localhost", 9092),
            Listener("TLS", "localhost", 9093, security_protocol="SSL"),
        ],
        **{
            name.replace(".", "_"): text
            for name, text in {**certificates.settings(), **more}.items()
            if text is not None
        },
    )


def endpoint_of(world):
    (endpoint,) = world.broker.socket_server._tls.values()
    return endpoint


def alter(world, *operations, validate_only=False, name="1"):
    """Code and text of an IncrementalAlterConfigs of the broker's settings."""
    request = messages.IncrementalAlterConfigsRequest
    configs = [
        request.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in operations
    ]
    resource = request.AlterConfigsResource(resource_type=TYPE_BROKER, resource_name=name, configs=configs)
    answer = world.connect().ask(request(resources=[resource], validate_only=validate_only), 1)
    return answer.responses[0].error_code, answer.responses[0].error_message


def sets(live):
    return [(name, SET, text) for name, text in live.items()]


def test_admins_renew_certificates(world):
    new = certificates.renewed()
    assert alter(world, *sets(inline(new)), validate_only=True) == (0, None)
    assert served(endpoint_of(world)) == certificates.server().der
    assert alter(world, *sets(inline(new))) == (0, None)
    assert served(endpoint_of(world)) == new.der
    code, text = alter(world, *sets(inline(certificates.renewed("other"))))
    assert code == errors.INVALID_REQUEST and "is for CN=other" in text
    assert alter(world, (KEY, DELETE, None)) == (
        errors.INVALID_REQUEST,
        "Invalid dynamic configuration: ssl.keystore.key: the private key is not that of the first certificate",
    )
    assert served(endpoint_of(world)) == new.der
    assert alter(world, (KEY, DELETE, None), (CHAIN, DELETE, None)) == (0, None)
    assert served(endpoint_of(world)) == certificates.server().der
    assert alter(world, *sets(inline(new)), name="")[0] == errors.INVALID_REQUEST
    assert alter(world, ("ssl.keystore.location", SET, "/x"))[0] == errors.INVALID_REQUEST


def test_a_broker_looks_at_its_files(tmp_path):
    """By the clock: nobody asks for it."""
    path, data = tmp_path / "store.pem", tmp_path / "data"
    path.write_text(store(certificates.server()))
    data.mkdir()
    none = dict.fromkeys(("ssl.keystore.key", "ssl.keystore.certificate.chain"))
    world = tls_world(data, **{"ssl.keystore.location": str(path), **none})
    new = certificates.renewed()
    path.write_text(store(new))
    world.advance(9)
    assert served(endpoint_of(world)) == certificates.server().der
    for _ in range(30):
        world.advance(1)
    assert served(endpoint_of(world)) == new.der
    world.stop()


def test_the_legacy_api_replaces_the_stores_too(world):
    def replace(live):
        request = messages.AlterConfigsRequest
        configs = [request.AlterableConfig(name=name, value=text) for name, text in live.items()]
        resource = request.AlterConfigsResource(resource_type=TYPE_BROKER, resource_name="1", configs=configs)
        return world.connect().ask(request(resources=[resource]), 2).responses[0].error_code

    new = certificates.renewed()
    assert replace(inline(new)) == 0
    assert served(endpoint_of(world)) == new.der
    assert replace({CHAIN: new.pem}) == errors.INVALID_REQUEST
    assert replace({}) == 0
    assert served(endpoint_of(world)) == certificates.server().der


def test_live_settings_count_from_the_first_connection_after_a_start(tmp_path):
    first = tls_world(tmp_path)
    new = certificates.renewed()
    assert alter(first, *sets(inline(new))) == (0, None)
    first.stop()
    again = tls_world(tmp_path)
    assert served(endpoint_of(again)) == new.der
    again.stop()


def test_live_settings_that_cannot_be_any_more_do_not_keep_the_broker_from_its_start(tmp_path, monkeypatch):
    """A file that they name is gone: what the properties say is served, and a line says so."""
    lines = []
    monkeypatch.setattr(process_logs(), "sink", Sink(lambda data: lines.append(data) or len(data)))
    paths = [tmp_path / name for name in ("first.pem", "second.pem")]
    new = certificates.renewed()
    for path, certificate in zip(paths, (certificates.server(), new), strict=True):
        path.write_text(store(certificate))
    more = {"ssl.keystore.location": str(paths[0]), "ssl.keystore.key": None, "ssl.keystore.certificate.chain": None}
    data = tmp_path / "data"
    data.mkdir()
    first = tls_world(data, **more)
    assert alter(first, (LOCATION, SET, str(paths[1]))) == (0, None)
    assert served(endpoint_of(first)) == new.der
    first.stop()
    paths[1].unlink()
    again = tls_world(data, **more)
    assert served(endpoint_of(again)) == certificates.server().der
    assert [line for line in lines if b"live-settings-ignored listener=TLS" in line]
    # The file is back: any change of the broker's settings brings it into use.
    paths[1].write_text(store(new))
    assert alter(again, ("log.retention.ms", SET, "5000")) == (0, None)
    assert served(endpoint_of(again)) == new.der
    again.stop()
