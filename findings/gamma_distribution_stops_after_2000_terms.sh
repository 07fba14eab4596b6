#!/usr/bin/env bash
# Version:   scipy 1.17.1 (numpy 2.4.6).
# Behaviour: from about 4.5 standard deviations below its mean, the distribution function of a gamma
#            distribution with a large shape is too small, and so are those of chi-square and Poisson:
#            the power series is left after 2,000 terms, however many it needs. Closer to the mean
#            another formula has 15 digits.
# Expected:  The same digits on both sides of the border, or a warning that a series did not converge.
#            4.6 deviations below the mean the probability is near the normal distribution's 2.1e-6.
# Seen:      for a shape of 1e7 4 % too little, of 1e8 38 %, of 1e9 74 %, without a warning. 4.4
#            deviations below the mean the results are right to 14 digits.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  numpy==2.4.6 scipy==1.17.1
cd "$work"
"$work/venv/bin/python" -I -W error - <<'PYTHON'
from math import exp, fsum, log1p

from scipy import special, stats


def series(a, below):
    """P(a, a - below): all terms of the series, whose ratios are (a - below) / (a + n)."""
    x, terms, term, n = a - below, [1.0], 1.0, 0
    while term > 1e-18:
        n += 1
        term *= x / (a + n)
        terms.append(term)
    # x^a e^-x / Γ(a + 1) with Stirling's series, so that nothing of the size of a cancels.
    rate = a * log1p(-below / a) + below
    return fsum(terms) * exp(rate - 1 / (12 * a)) / (2 * 3.141592653589793 * a) ** 0.5


for shape, missing in ((1e7, 0.04), (1e8, 0.38), (1e9, 0.74)):
    for deviations in (4.4, 4.6):
        below = float(round(deviations * shape ** 0.5))
        right, found = series(shape, below), special.gammainc(shape, shape - below)
        print(f"{shape:.0e} {deviations} scipy {found:.4e} series {right:.4e}")
        assert abs(1 - found / right - missing * (deviations > 4.5)) < 0.01
        assert stats.gamma.cdf(shape - below, shape) == found
        assert stats.chi2.cdf(2 * (shape - below), 2 * shape) == found
        assert abs(right / special.ndtr(-deviations) - 1) < 0.02
PYTHON
echo "as described"
