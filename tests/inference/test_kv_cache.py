"""The cache's slots, the mask over them, and the copies between hypotheses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.inference.kv_cache import KeyValueCache, attention_mask

SHAPE = (3, 2, 7, 4)  # hypotheses, heads, slots, width of a head


def filled(seed=0):
    cache = KeyValueCache(["past_key.0", "past_value.0"], SHAPE)
    rng = np.random.default_rng(seed)
    for buffer in cache.buffers.values():
        buffer[:] = rng.normal(size=SHAPE)
    return cache


@given(st.data(), st.integers(2, 448))
def test_mask_shows_the_filled_slots_and_the_current_token_only(data, capacity):
    position = data.draw(st.integers(0, capacity - 1))
    mask = attention_mask(position, capacity)
    assert mask.shape == (1, capacity)
    visible = set(np.flatnonzero(mask[0]).tolist())
    assert visible == {*range(position), capacity - 1}
    assert set(mask[0].tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize("position", [-1, 8, 9])
def test_mask_of_a_position_outside_the_capacity_raises(position):
    with pytest.raises(ValueError, match="outside a capacity of 8"):
        attention_mask(position, 8)


@given(st.permutations(range(SHAPE[2])))
def test_a_write_changes_its_own_slot_and_no_other(slots):
    cache = KeyValueCache(["past_key.0"], SHAPE)
    expected = np.zeros(SHAPE, np.float32)
    for number, slot in enumerate(slots, start=1):
        present = np.full((3, 2, 1, 4), number, np.float32)
        cache.write("past_key.0", slot, present)
        expected[:, :, slot] = number
        np.testing.assert_array_equal(cache.buffers["past_key.0"], expected)


@pytest.mark.parametrize("slot", [-1, 223, 224])
def test_fault_07_a_write_outside_the_slots_raises_instead_of_vanishing(slot):
    cache = KeyValueCache(["past_key.0"], (1, 2, 223, 4))
    with pytest.raises(IndexError, match="slots 0 to 222"):
        cache.write("past_key.0", slot, np.ones((1, 2, 1, 4), np.float32))
    assert not cache.buffers["past_key.0"].any()


@pytest.mark.parametrize("shape", [(1, 2, 1, 4), (3, 2, 4), (3, 2, 2, 4), (3, 1, 1, 4)])
def test_fault_06_a_token_of_another_shape_is_never_broadcast(shape):
    cache = KeyValueCache(["past_key.0"], SHAPE)
    with pytest.raises(ValueError, match=r"past_key\.0 takes a token of shape"):
        cache.write("past_key.0", 0, np.ones(shape, np.float32))


def test_clear_leaves_zeros_and_the_same_buffers():
    cache = filled()
    before = dict(cache.buffers)
    cache.clear()
    for name, buffer in cache.buffers.items():
        assert buffer is before[name]
        assert not buffer.any()


def test_fault_09_two_caches_share_no_memory():
    one, other = filled(1), KeyValueCache(["past_key.0", "past_value.0"], SHAPE)
    buffers = [*one.buffers.values(), *other.buffers.values()]
    for index, buffer in enumerate(buffers):
        assert not any(np.shares_memory(buffer, later) for later in buffers[index + 1 :])


def test_fault_09_a_child_does_not_change_its_parent():
    cache = filled()
    parent = cache.buffers["past_key.0"][0].copy()
    cache.reorder([0, 0, 0], 5)
    present = np.arange(3, dtype=np.float32)[:, None, None, None] * np.ones((1, 2, 1, 4), "f4")
    for name in cache.buffers:
        cache.write(name, 5, present)
    np.testing.assert_array_equal(cache.buffers["past_key.0"][0, :, :5], parent[:, :5])
    assert [cache.buffers["past_key.0"][row, 0, 5, 0] for row in range(3)] == [0, 1, 2]


@given(st.lists(st.integers(0, 2), min_size=3, max_size=3), st.integers(0, 7))
def test_reorder_is_a_gather_over_the_filled_slots(parents, length):
    cache, untouched = filled(), filled()
    cache.reorder(parents, length)
    for name, buffer in cache.buffers.items():
        before = untouched.buffers[name]
        np.testing.assert_array_equal(buffer[:, :, :length], before[parents][:, :, :length])
        np.testing.assert_array_equal(buffer[:, :, length:], before[:, :, length:])


@given(st.lists(st.integers(0, 2), min_size=3, max_size=3))
def test_fault_15_only_rows_with_another_parent_are_copied(parents):
    moved = filled().reorder(parents, 5)
    assert moved == sum(row != parent for row, parent in enumerate(parents))
    assert moved <= SHAPE[0]
