"""Is the confidence what the evidence makes it, and the interval what statisticians say?"""

import pytest

from projectors.beliefs import posterior

# Quantiles at 5 % and 95 %, computed with scipy.special.betaincinv (1.17.1).
QUANTILES = [
    (1, 3, 0.016952, 0.631597),
    (2, 2, 0.135350, 0.864650),
    (0.5, 0.5, 0.006156, 0.993844),
    (3.5, 3.25, 0.219745, 0.810638),
    (7, 3, 0.450358, 0.902253),
    (27, 3, 0.798439, 0.971204),
    (57, 3, 0.897111, 0.985999),
    (1, 29, 0.001767, 0.098145),
    (27, 29, 0.373520, 0.591498),
    (1000, 3, 0.993730, 0.999183),
    (250_000, 3, 0.999975, 0.999997),
]


@pytest.mark.parametrize("a, b, lower, upper", QUANTILES)
def test_quantiles_are_those_of_a_known_library(a, b, lower, upper):
    """Our quantile agrees with scipy's to six digits, from flat to needle-sharp."""
    assert lower == pytest.approx(posterior.beta_quantile(0.05, a, b), abs=1e-6)
    assert upper == pytest.approx(posterior.beta_quantile(0.95, a, b), abs=1e-6)


def test_the_distribution_of_a_uniform_is_its_argument():
    """Beta(1, 1) is uniform; outside of the unit interval there is nothing, or all."""
    assert [0.0, 0.25, 0.75, 1.0] == pytest.approx(
        [posterior.beta_cdf(x, 1, 1) for x in (-1, 0.25, 0.75, 2)]
    )


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.62, 0.9, 0.95])
def test_one_report_leaves_us_as_sure_as_the_report(confidence):
    """The mass of a report lifts the prior to its own confidence, and no further."""
    mass = posterior.mass_of(confidence, "high")

    assert confidence == pytest.approx(posterior.confidence_of(mass, 0), abs=1e-4)


def test_no_report_is_certain():
    """Even an exact triple was typed by somebody."""
    assert posterior.mass_of(0.95, "high") == posterior.mass_of(1.0, "high")
    assert 0.95 == posterior.confidence_of(posterior.mass_of(1.0, "high"), 0)


def test_a_source_that_repeats_itself_convinces_less_each_time():
    """Half as much with every repetition, until it is nothing."""
    first, second = (posterior.mass_of(0.9, "high", repeats) for repeats in (0, 1))

    assert first == 2 * second
    assert 0 == posterior.mass_of(0.9, "high", 100)


def test_less_trusted_sources_weigh_half():
    """What a machine says about a person counts, but less."""
    assert posterior.mass_of(0.9, "high") == 2 * posterior.mass_of(0.9, "low")


def test_a_claim_nobody_made_is_below_the_floor():
    """So a belief that lost all its support is deleted, whatever else is set (001 §7.4)."""
    assert 0.25 == posterior.confidence_of(0, 0)


@pytest.mark.parametrize(
    "pro, con, stance",
    [
        (0.9, 0.0, "supported"),
        (0.0, 0.9, "contradicted"),
        (0.9, 0.9, "uncertain"),
        (0.5, 0.0, "uncertain"),
        (0.3, 0.0, "uncertain"),
        (0.9, 0.97, "contradicted"),
    ],
)
def test_stance_follows_the_evidence(pro, con, stance):
    """Supported above one half, contradicted below it, uncertain near it or without dissent."""
    masses = [posterior.mass_of(one, "high") for one in (pro, con)]

    assert stance == posterior.stance_of(posterior.confidence_of(*masses), *masses)


def test_the_interval_tightens_with_evidence():
    """More of the same mixture is the same confidence, more narrowly."""
    few = posterior.interval_of(10 * posterior.UNIT, 8 * posterior.UNIT)
    many = posterior.interval_of(1000 * posterior.UNIT, 800 * posterior.UNIT)

    assert few.lower < many.lower < many.upper < few.upper
    assert ("beta_posterior", 0.90) == (many.method, many.level)
