"""Explicit Runge–Kutta methods with an estimate of the error, as SciPy's solve_ivp names them.

Sources: Bogacki & Shampine, "A 3(2) pair of Runge–Kutta formulas" (1989); Dormand & Prince (1980)
for RK45; Hairer, Nørsett & Wanner, "Solving Ordinary Differential Equations I" (1993), II.5 and
II.6, for DOP853: a method of order 8 whose error is estimated by formulas of orders 5 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ...base.typing import Array, ArrayLike
from ...numpy.elementary import hypot
from ...numpy.joining import stack
from ...numpy.selection import where
from .dormand_prince import (
    ERROR, NODES, STAGES, Fun, Weights, combined, interp_fit_dopri, mean_error_ratio,
    optimal_step_size, stages_of,
)
from .steps import Attempt, Equation, Progress, finite

# (y0, y1, stages, h): the polynomial of a step.
Fit: TypeAlias = Callable[[Array, Array, list[Array], ArrayLike], Array]


@dataclass(frozen=True, eq=False)
class Pair:
    """A tableau; its rows up to `last` lead to the end of the step, the others help the polynomial.
    """

    order: int
    degree: int
    last: int
    nodes: Weights
    rows: Sequence[Weights]
    errors: Sequence[Weights]   # of the estimate, and of a rougher one
    fit: Fit

    def attempt(self, eq: Equation, p: Progress, h: Array, rtol: float, atol: ArrayLike) -> Attempt:
        """One step."""
        points, k = stages_of(self.nodes, self.rows, eq.fun, p.y, p.f, p.t, h)
        y = points[self.last - 1]
        ratio, *rougher = (mean_error_ratio(h * combined(weights, k[:len(weights)]), rtol, atol,
                                            p.y, y) for weights in self.errors)
        if rougher:
            both = hypot(ratio, 0.1 * rougher[0])
            ratio = where(both == 0, 0, ratio * ratio / where(both == 0, 1, both))
        ratio = finite(ratio)
        dt = optimal_step_size(p.dt, ratio, order=self.order + 1)
        return Attempt(y, k[self.last], self.fit(p.y, y, k, h), ratio, dt, len(self.rows))

    def redo(self, fun: Fun, y: Array, t: Array, h: Array, polynomial: Array
             ) -> tuple[Array, Array]:
        """The state after a step and its polynomial."""
        points, k = stages_of(self.nodes, self.rows, fun, y, fun(y, t), t, h)
        return points[self.last - 1], self.fit(y, points[self.last - 1], k, h)


def _weighted(weights: np.ndarray) -> Fit:
    """Polynomials whose coefficients, highest power first, are sums [degree, stages] of stages."""
    return lambda y0, y1, k, h: stack([*(h * combined(row, k) for row in weights), y0])


RK23 = Pair(
    2, 3, 3, (1 / 2, 3 / 4, 1), ((1 / 2,), (0, 3 / 4), (2 / 9, 1 / 3, 4 / 9)),
    ((5 / 72, -1 / 12, -1 / 9, 1 / 8),),
    # Hermite's cubic.
    _weighted(np.array([(5 / 9, -2 / 3, -8 / 9, 1), (-4 / 3, 1, 4 / 3, -1), (1, 0, 0, 0)])))

RK45 = Pair(4, 4, 6, NODES.tolist(), STAGES, (ERROR,), interp_fit_dopri)

# DOP853: the numbers of Hairer's program, to 16 digits.
_NODES = (0.05260015195876773, 0.0789002279381516, 0.1183503419072274, 0.2816496580927726, 1 / 3,
          1 / 4, 4 / 13, 0.6512820512820513, 3 / 5, 6 / 7, 1, 1, 1 / 10, 1 / 5, 7 / 9)
_ROWS = [
    (0.05260015195876773,),
    (0.0197250569845379, 0.0591751709536137),
    (0.02958758547680685, 0, 0.08876275643042054),
    (0.2413651341592667, 0, -0.8845494793282861, 0.924834003261792),
    (0.037037037037037035, 0, 0, 0.17082860872947386, 0.12546768756682242),
    (0.037109375, 0, 0, 0.17025221101954405, 0.06021653898045596, -0.017578125),
    (0.03709200011850479, 0, 0, 0.17038392571223998, 0.10726203044637328, -0.015319437748624402,
     0.008273789163814023),
    (0.6241109587160757, 0, 0, -3.3608926294469414, -0.868219346841726, 27.59209969944671,
     20.154067550477894, -43.48988418106996),
    (0.47766253643826434, 0, 0, -2.4881146199716677, -0.590290826836843, 21.230051448181193,
     15.279233632882423, -33.28821096898486, -0.020331201708508627),
    (-0.9371424300859873, 0, 0, 5.186372428844064, 1.0914373489967295, -8.149787010746927,
     -18.52006565999696, 22.739487099350505, 2.4936055526796523, -3.0467644718982196),
    (2.273310147516538, 0, 0, -10.53449546673725, -2.0008720582248625, -17.9589318631188,
     27.94888452941996, -2.8589982771350235, -8.87285693353063, 12.360567175794303,
     0.6433927460157636),
    (0.054293734116568765, 0, 0, 0, 0, 4.450312892752409, 1.8915178993145003, -5.801203960010585,
     0.3111643669578199, -0.1521609496625161, 0.20136540080403034, 0.04471061572777259),
    (0.056167502283047954, 0, 0, 0, 0, 0, 0.25350021021662483, -0.2462390374708025,
     -0.12419142326381637, 0.15329179827876568, 0.00820105229563469, 0.007567897660545699,
     -0.008298),
    (0.03183464816350214, 0, 0, 0, 0, 0.028300909672366776, 0.053541988307438566,
     -0.05492374857139099, 0, 0, -0.00010834732869724932, 0.0003825710908356584,
     -0.00034046500868740456, 0.1413124436746325),
    (-0.42889630158379194, 0, 0, 0, 0, -4.697621415361164, 7.683421196062599, 4.06898981839711,
     0.3567271874552811, 0, 0, 0, -0.0013990241651590145, 2.9475147891527724, -9.15095847217987),
]
_FIFTH = (0.01312004499419488, 0, 0, 0, 0, -1.2251564463762044, -0.4957589496572502,
          1.6643771824549864, -0.35032884874997366, 0.3341791187130175, 0.08192320648511571,
          -0.022355307863886294)
_THIRD = np.array(_ROWS[11]) - np.array([
    0.2440944881889764, 0, 0, 0, 0, 0, 0, 0, 0.7338466882816118, 0, 0, 0.022058823529411766])
_DENSE = [
    (-8.428938276109013, 0, 0, 0, 0, 0.5667149535193777, -3.0689499459498917, 2.38466765651207,
     2.117034582445028, -0.871391583777973, 2.2404374302607883, 0.6315787787694688,
     -0.08899033645133331, 18.148505520854727, -9.194632392478356, -4.436036387594894),
    (10.427508642579134, 0, 0, 0, 0, 242.28349177525817, 165.20045171727028, -374.5467547226902,
     -22.113666853125306, 7.733432668472264, -30.674084731089398, -9.332130526430229,
     15.697238121770845, -31.139403219565178, -9.35292435884448, 35.81684148639408),
    (19.985053242002433, 0, 0, 0, 0, -387.0373087493518, -189.17813819516758, 527.8081592054236,
     -11.57390253995963, 6.8812326946963, -1.0006050966910838, 0.7777137798053443,
     -2.778205752353508, -60.19669523126412, 84.32040550667716, 11.99229113618279),
    (-25.69393346270375, 0, 0, 0, 0, -154.18974869023643, -231.5293791760455, 357.6391179106141,
     93.40532418362432, -37.45832313645163, 104.0996495089623, 29.8402934266605, -43.53345659001114,
     96.32455395918828, -39.17726167561544, -149.72683625798564),
]


def _polynomial() -> np.ndarray:
    """Weights of the powers s**7 ... s of y0 + s (F0 + (1 - s) (F1 + s (F2 + (1 - s) (F3 + ...)))).
    """
    end = np.array([*_ROWS[11], 0, 0, 0, 0])
    first, last = np.eye(16)[0], np.eye(16)[12]
    nested = [end, first - end, 2 * end - first - last, *map(np.array, _DENSE)]
    powers = np.zeros((8, 16))          # ascending
    for i, weights in enumerate(reversed(nested)):
        powers[0] += weights
        shifted = np.roll(powers, 1, 0)
        powers = shifted if i % 2 == 0 else powers - shifted
    return powers[:0:-1]


DOP853 = Pair(7, 7, 12, _NODES, _ROWS, (_FIFTH, _THIRD), _weighted(_polynomial()))
