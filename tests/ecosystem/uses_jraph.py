"""jraph: padded batches of graphs, a graph network trained to count, and a convolution."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import optax


def graph(rng, nodes, edges):
    return jraph.GraphsTuple(
        nodes=rng.normal(size=(nodes, 4)).astype(np.float32),
        edges=rng.normal(size=(edges, 2)).astype(np.float32),
        senders=rng.integers(0, nodes, edges), receivers=rng.integers(0, nodes, edges),
        n_node=np.array([nodes]), n_edge=np.array([edges]), globals=np.zeros((1, 1), np.float32))


def network(params, graphs):
    def update_edge(edges, senders, receivers, globals_):
        return jnp.tanh(jnp.concatenate([edges, senders, receivers], -1) @ params["edge"])

    def update_node(nodes, sent, received, globals_):
        return jnp.tanh(jnp.concatenate([nodes, received], -1) @ params["node"])

    def update_global(nodes, edges, globals_):
        return nodes @ params["global"]

    return jraph.GraphNetwork(update_edge, update_node, update_global)(graphs)


def main():
    rng = np.random.default_rng(0)
    graphs = jraph.batch([graph(rng, n, e) for n, e in ((3, 5), (4, 6), (2, 2))])
    graphs = jraph.pad_with_graphs(graphs, n_node=12, n_edge=16, n_graph=4)
    mask = jraph.get_graph_padding_mask(graphs)
    target = graphs.n_edge.astype(np.float32)[:, None]
    params = {name: jnp.asarray(rng.normal(size=shape), jnp.float32) / 3 for name, shape in
              (("edge", (10, 8)), ("node", (12, 8)), ("global", (8, 1)))}
    optimizer = optax.adam(3e-2)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        def loss(params):
            error = (network(params, graphs).globals - target) ** 2
            return jnp.sum(jnp.where(mask[:, None], error, 0.)) / mask.sum()
        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, value

    losses = []
    for _ in range(15):
        params, state, value = step(params, state)
        losses.append(value)
    convolved = jraph.GraphConvolution(lambda nodes: nodes[:, :2], add_self_edges=True)(graphs)
    return {"losses": losses[::3], "globals": network(params, graphs).globals,
            "convolved": convolved.nodes[:4],
            "softmax": jraph.segment_softmax(jnp.arange(6.), jnp.array([0, 0, 1, 1, 1, 2]), 3),
            "sizes": [len(g.nodes) for g in jraph.unbatch(jraph.unpad_with_graphs(graphs))]}
