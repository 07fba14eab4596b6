"""jumanji: a game and a puzzle, scanned and mapped over, with steps that reset themselves."""

import jax
import jax.numpy as jnp
import jumanji
from jumanji.environments import Game2048, GraphColoring, Snake
from jumanji.wrappers import AutoResetWrapper, VmapAutoResetWrapper


def played(env, key, steps):
    def step(state, key):
        mask = state[1].observation.action_mask
        logits = jnp.where(mask.reshape(-1), 0.0, -jnp.inf)
        state = env.step(state[0], jax.random.categorical(key, logits))
        return state, (state[1].reward, state[1].step_type)

    start, moves = jax.random.split(key)
    return jax.jit(lambda: jax.lax.scan(step, env.reset(start), jax.random.split(moves, steps)))()


def main():
    keys = jax.random.split(jax.random.key(0), 4)
    (state, last), (rewards, kinds) = played(AutoResetWrapper(Snake(4, 4)), keys[0], 60)
    (board, _), (scores, _) = played(Game2048(), keys[1], 30)
    (colours, _), (points, _) = played(GraphColoring(), keys[2], 20)
    many = VmapAutoResetWrapper(jumanji.make("Maze-v0"))
    states, step = jax.jit(many.reset)(jax.random.split(keys[3], 3))
    _, after = jax.jit(many.step)(states, step.observation.action_mask.argmax(-1))
    return {"rewards": rewards, "kinds": kinds, "first": bool(jumanji.types.StepType.FIRST == 0),
            "body": state.body, "grid": last.observation.grid, "board": board.board,
            "scores": scores, "colours": colours.colors, "points": points,
            "positions": [after.observation.agent_position.row,
                          after.observation.agent_position.col],
            "walls": after.observation.walls.sum((1, 2)), "spec": str(Snake(4, 4).action_spec)}
