"""Which of the names and layers of a setting counts for one listener."""

import pytest

from pykafkad.config import Settings
from pykafkad.errors import ConfigError
from pykafkad.settings.of_listener import ListenerSettings

REAUTH = "connections.max.reauth.ms"


def settings(**values):
    return Settings.from_properties({name: (text, "test") for name, text in values.items()})


def test_the_closest_name_counts():
    found = settings(
        **{
            REAUTH: "1",
            f"listener.name.x.{REAUTH}": "2",
            f"listener.name.x.plain.{REAUTH}": "3",
            f"listener.name.y.plain.{REAUTH}": "4",
        }
    )
    of_x, of_z = ListenerSettings(found, "X"), ListenerSettings(found, "Z")
    assert (of_x.value(REAUTH, "PLAIN"), of_x.value(REAUTH, "SCRAM-SHA-256"), of_x.value(REAUTH)) == (3, 2, 2)
    assert of_x.name(REAUTH, "PLAIN") == f"listener.name.x.plain.{REAUTH}"
    assert (of_z.value(REAUTH), of_z.name(REAUTH)) == (1, REAUTH)
    assert of_x.is_own(REAUTH) and not of_z.is_own(REAUTH)


def test_live_values_count_before_those_of_the_file_under_the_same_name():
    found = settings(**{f"listener.name.x.{REAUTH}": "2", f"listener.name.x.plain.{REAUTH}": "3"})
    found.set_dynamic({f"listener.name.x.{REAUTH}": "5"}, {})
    of_x = ListenerSettings(found, "X")
    assert (of_x.value(REAUTH, "PLAIN"), of_x.value(REAUTH)) == (3, 5)
    found.set_dynamic({f"listener.name.x.{REAUTH}": "5"}, {f"listener.name.x.{REAUTH}": "6"})
    assert of_x.value(REAUTH) == 6
    # What the broker would have live, and what does not change.
    assert ListenerSettings(found, "X", live={}).value(REAUTH) == 5
    assert ListenerSettings(found, "X", live={f"listener.name.x.{REAUTH}": "7"}).value(REAUTH) == 7
    assert ListenerSettings(found, "X", fixed={REAUTH: 8}).value(REAUTH) == 8


def test_a_text_that_is_not_allowed_names_where_it_stands():
    found = settings(**{f"listener.name.x.plain.{REAUTH}": "soon"})
    with pytest.raises(ConfigError, match=f"^listener.name.x.plain.{REAUTH}: .*Not a number"):
        ListenerSettings(found, "X").value(REAUTH, "PLAIN")
    assert ListenerSettings(found, "X").value("ssl.keystore.location") is None
