"""A Kerberos realm of the tests' own: MIT's KDC in a temporary folder, on ports of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from compat_tests.brokers.broker import free_port

REALM = "TEST.PYKAFKAD"
SERVICE = f"kafka/localhost@{REALM}"
START_SECONDS = 60.0
STOP_SECONDS = 20.0
PASSWORD = "master-key-of-the-tests"

# Java asks by UDP unless it is told not to; names are taken as they are, without asking the system for others.
_CONFIGURATION = """\
[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
default_ccache_name = FILE:{directory}/tickets

[realms]
{realm} = {{
  kdc = 127.0.0.1:{port}
}}

[domain_realm]
localhost = {realm}
"""
_KDC_CONFIGURATION = """\
[kdcdefaults]
kdc_listen = 127.0.0.1:{port}
kdc_tcp_listen = 127.0.0.1:{port}

[realms]
{realm} = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
  acl_file = {directory}/acl
  max_life = 1h
  supported_enctypes = aes256-cts:normal aes128-cts:normal
}}
"""


def program(name: str) -> str | None:
    """Where a program of the KDC is; None if it is not installed."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


class Kdc:
    """A realm with its KDC: `start`, `add` principals, `close`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.configuration = directory / "krb5.conf"
        port = self._port = free_port()
        texts = {"realm": REALM, "directory": directory, "port": port}
        self.configuration.write_text(_CONFIGURATION.format(**texts))
        (directory / "kdc.conf").write_text(_KDC_CONFIGURATION.format(**texts))
        (directory / "acl").write_text("")
        self.environment = {
            "KRB5_CONFIG": str(self.configuration),
            "KRB5RCACHENAME": f"file2:{directory}/replays",
        }
        """What the programs and the clients of the realm need."""
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Make the database and serve it."""
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", PASSWORD)
        kdc = program("krb5kdc")
        assert kdc is not None
        with open(self.directory / "kdc.log", "wb") as log:
            self._process = subprocess.Popen(
                [kdc, "-n", "-r", REALM], env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((self.directory / "kdc.log").read_text()) from None
                time.sleep(0.02)

    def add(self, principal: str, keytab: Path) -> None:
        """A new principal, whose key is in the keytab from now on."""
        self._run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}")
        self._run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {keytab} {principal}")

    def close(self) -> None:
        """Stop it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(STOP_SECONDS)

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.environment, "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf")}

    def _run(self, name: str, *arguments: str) -> None:
        path = program(name)
        assert path is not None
        done = subprocess.run(
            [path, *arguments],
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
        )
        assert done.returncode == 0, done.stderr
