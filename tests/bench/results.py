"""From the figures of rounds to medians, ratios and verdicts."""

from __future__ import annotations

from .histogram import median

SUBJECT, REFERENCE = "pykafkad", "kafka"


def medians(rounds):
    """`{figure: median}` of a list of `{figure: number}`."""
    names = dict.fromkeys(name for figures in rounds for name in figures)
    return {name: median([figures.get(name) for figures in rounds]) for name in names}


def reference_of(figures):
    """The name of the broker that pykafkad is compared with: Kafka, or an earlier pykafkad."""
    return next((name for name in figures if name != SUBJECT), REFERENCE)


def ratios(figures):
    """`{figure: pykafkad / reference}` of `{broker: {figure: number}}`, where both are known and the reference's is
    not 0."""
    subject, reference = figures.get(SUBJECT, {}), figures.get(reference_of(figures), {})
    return {
        name: value / reference[name] for name, value in subject.items() if value is not None and reference.get(name)
    }


def judge(floor, figures, ratio):
    """A floor's outcome: its figure, relation, limit and `of`, the `value` reached (or None), and `met`.

    `met` is None when there is no value because one broker was not asked.
    """
    value = ratio.get(floor.figure) if floor.of == "ratio" else figures.get(SUBJECT, {}).get(floor.figure)
    met = None if value is None else value >= floor.limit if floor.relation == ">=" else value <= floor.limit
    return {**floor._asdict(), "value": value, "met": met}


def summarise(case, rounds, trouble=None, skipped=None):
    """One case as plain data: medians and ratios, every round, each floor's outcome, and what went wrong if it did."""
    figures = {broker: medians(of_broker) for broker, of_broker in rounds.items() if of_broker}
    ratio = ratios(figures)
    return {
        "name": case.name,
        "what": case.what,
        "figures": figures,
        "ratios": ratio,
        "floors": [judge(floor, figures, ratio) for floor in case.floors],
        "rounds": rounds,
        "error": trouble,
        "skipped": skipped,
    }


def failed(summary):
    """Whether the case broke, or missed a floor."""
    return summary["error"] is not None or any(floor["met"] is False for floor in summary["floors"])
