"""jaxoplanet: transits with limb darkening, Kepler's equation, a surface of spherical harmonics."""

import jax
import jax.numpy as jnp
from jaxoplanet.core import kepler
from jaxoplanet.light_curves import limb_dark_light_curve
from jaxoplanet.orbits import TransitOrbit
from jaxoplanet.orbits.keplerian import Central, System


def main():
    times = jnp.linspace(-0.15, 0.15, 21)

    def flux(params):
        orbit = TransitOrbit(period=3.5, duration=params["duration"], time_transit=0.01,
                             impact_param=params["impact"], radius_ratio=params["ratio"])
        return limb_dark_light_curve(orbit, params["limb"])(times)

    params = {"duration": 0.12, "impact": 0.3, "ratio": 0.1, "limb": jnp.array([0.3, 0.2])}
    system = System(Central(mass=1.1, radius=1.0)).add_body(
        period=4.0, radius=0.1, eccentricity=0.2, omega_peri=0.5, inclination=1.55,
        time_transit=0.0)
    body = system.bodies[0]
    return {"flux": jax.jit(flux)(params), "by parameters": jax.jacfwd(flux)(params),
            "anomalies": list(jax.vmap(kepler, in_axes=(0, None))(jnp.linspace(0, 6, 7), 0.3)),
            "by eccentricity": jax.grad(lambda e: kepler(1.0, e)[0])(0.3),
            "positions": [p.magnitude if hasattr(p, "magnitude") else p
                          for p in body.relative_position(times[:3])],
            "bodies": limb_dark_light_curve(system, 0.1, 0.3)(times)}
