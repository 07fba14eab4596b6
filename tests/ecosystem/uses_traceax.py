"""traceax: traces of linear operators by random products, and their gradients."""

import jax
import jax.numpy as jnp
import lineax
import traceax


def main():
    key = jax.random.key(0)
    root = jax.random.normal(key, (12, 12))

    def estimate(root, estimator):
        operator = lineax.MatrixLinearOperator(root @ root.T / 12, lineax.positive_semidefinite_tag)
        return estimator.estimate(jax.random.key(1), operator, 6)[0]

    estimators = {
        "hutchinson": traceax.HutchinsonEstimator(), "x_trace": traceax.XTraceEstimator(),
        "hutch_pp": traceax.HutchPlusPlusEstimator(), "x_nys": traceax.XNysTraceEstimator()}
    normal = traceax.HutchinsonEstimator(traceax.NormalSampler())
    return {name: estimate(root, value) for name, value in estimators.items()} | {
        "normal": jax.jit(lambda a: estimate(a, normal))(root),
        "gradient": jax.grad(lambda a: estimate(a, estimators["hutchinson"]))(root)[::4, ::4],
        "exact": jnp.trace(root @ root.T) / 12}
