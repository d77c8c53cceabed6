// Lua's allocator: it counts, refuses what a limit or a test asks for, and knows the pool of small blocks.
#include <stdlib.h>

#include "internal.h"

/// Lua repeats an allocation that failed once it has collected; to the script it is the same one.
static bool is_to_fail(flowlua_state *state, const void *block, size_t size) {
  if (state->failed_size != 0) {
    bool again = state->failed_size == size && state->failed_block == block;
    state->failed_size = 0;
    if (again) return true;
  }
  if (state->failing_allocation == 0 || --state->failing_allocation != 0) return false;
  state->failed_block = block;
  state->failed_size = size;
  return true;
}

static void *take_block(flowlua_state *state, size_t size) {
  if (size <= POOL_LARGEST && state->memory_used >= state->pooled_from) {
    if (!state->small.tried && (state->withheld & FLOWLUA_BLOCK_POOL) == 0)
      flowlua_pool_open(&state->small);
    void *block = flowlua_pool_take(&state->small, size);
    if (block != NULL) return block;
  }
  return malloc(size);
}

static void give_block(flowlua_state *state, void *block) {
  if (flowlua_pool_has(&state->small, block)) flowlua_pool_give(&state->small, block);
  else free(block);
}

/// As realloc, of a block or of none.
static void *resize_block(flowlua_state *state, void *block, size_t held, size_t size) {
  if (block == NULL) return take_block(state, size);
  if (!flowlua_pool_has(&state->small, block)) return realloc(block, size);
  size_t present = flowlua_pool_size(block);
  if (size <= present && size + 16 > present) return block;
  void *moved = take_block(state, size);
  if (moved == NULL) return NULL;
  memcpy(moved, block, held < size ? held : size);
  flowlua_pool_give(&state->small, block);
  return moved;
}

/// Whether so much more is within the limit.
static bool is_within(const flowlua_state *state, size_t more) {
  size_t used = state->memory_used + state->memory_outside;
  return used <= state->memory_limit && more <= state->memory_limit - used;
}

/// Looks up what is outside of the state. It is exact if the state would be beyond its limit with so much more.
static void look_outside(flowlua_state *state, size_t more) {
  size_t room = state->memory_limit;
  room -= state->memory_used < room ? state->memory_used : room;
  room -= more < room ? more : room;
  state->memory_outside = state->callbacks.outside(state, room);
}

/// The same with what is outside of the state now: looked up as rarely as a look can change the result, or
/// the state has grown a lot.
static bool fits(flowlua_state *state, size_t more) {
  if (state->memory_limit == 0) return true;
  if (is_within(state, more) && more < POOLED_FROM) return true;
  if (!state->closing) look_outside(state, more);
  return is_within(state, more);
}

/// What refuses an allocation; only asked where something may.
static bool is_refused(flowlua_state *state, const void *block, size_t held, size_t size) {
  if (is_to_fail(state, block, size)) {
    state->refused = true;
    return true;
  }
  if (state->silent_failures > 0) {
    state->silent_failures -= 1;
    return true;
  }
  if (fits(state, size - held)) return false;
  state->refused = true;
  return true;
}

/// Whether an allocation may be refused although there is memory. One look, as most states have no
/// limit, and the time of plain Lua code depends on it.
static inline bool is_watchful(const flowlua_state *state) {
  return (state->memory_limit | state->failing_allocation | state->failed_size
          | (size_t)state->silent_failures)
      != 0;
}

/// Counts what the state holds. Shrinking never fails, as Lua requires.
static __attribute__((noinline)) void *resize_counted(
    flowlua_state *state, void *block, size_t held, size_t new_size) {
  if (new_size > held) {
    if (is_watchful(state) && is_refused(state, block, held, new_size)) return NULL;
    if (new_size - held + state->memory_used > state->looks_from
        && flowlua_takes_reserve(state, held, new_size)) {
      state->refused = true;
      return NULL;
    }
  }
  void *result = resize_block(state, block, held, new_size);
  if (result == NULL) {
    if (new_size <= held) return block;
    state->refused = true;
    return NULL;
  }
  state->memory_used += new_size - held;
  return result;
}

/// What is most frequent in states without a limit, blocks of malloc that come and go,
/// stands here, in as few instructions as Lua's own takes.
void *flowlua_allocate(void *context, void *block, size_t old_size, size_t new_size) {
  flowlua_state *state = context;
  if (new_size == 0) {
    if (block == NULL) return NULL;
    state->memory_used -= old_size;
    if (old_size == state->object_size) flowlua_object_freed(state, block);
    if (block == state->origin_function) state->origin_function = NULL;
    if (state->small.base == 0) free(block);
    else give_block(state, block);
    return NULL;
  }
  // Without a block the old size is a type tag.
  if (block != NULL) return resize_counted(state, block, old_size, new_size);
  size_t used = state->memory_used + new_size;
  if (used >= state->pooled_from || is_watchful(state))
    return resize_counted(state, NULL, 0, new_size);
  void *result = malloc(new_size);
  if (result != NULL) state->memory_used = used;
  return result;
}

void flowlua_set_memory_limit(flowlua_state *state, size_t bytes) { state->memory_limit = bytes; }

bool flowlua_exceeds_memory(flowlua_state *state) {
  if (state->memory_limit == 0) return false;
  look_outside(state, 0);
  return !is_within(state, 0);
}

void flowlua_note_outside_collected(flowlua_state *state) {
  if (state->memory_limit == 0 || state->closing) return;
  state->memory_outside = state->callbacks.outside(state, 0);
  state->outside_collected = state->memory_outside;
}

/// Whether what is outside has taken half of the room, as it was looked up last.
static bool has_taken_half(flowlua_state *state) {
  if (state->outside_collected > state->memory_outside)
    state->outside_collected = state->memory_outside;
  size_t grown = state->memory_outside - state->outside_collected;
  size_t used = state->memory_used + state->outside_collected;
  size_t room = used < state->memory_limit ? state->memory_limit - used : 0;
  return grown >= OUTSIDE_STEP && grown > room / 2;
}

bool flowlua_needs_collection(flowlua_state *state) {
  if (state->memory_limit == 0 || state->closing || !has_taken_half(state)) return false;
  // Perhaps some of it was released since.
  state->memory_outside = state->callbacks.outside(state, 0);
  return has_taken_half(state);
}

void flowlua_note_outside(flowlua_state *state) {
  if (!flowlua_exceeds_memory(state) || atomic_load(&state->activity) == NULL) return;
  state->is_beyond = true;
  flowlua_arm_stop(state->running);
}

uint64_t flowlua_fail_allocation(flowlua_state *state, uint64_t n) {
  uint64_t left = state->failing_allocation;
  state->failing_allocation = n;
  state->failed_size = 0;
  return left;
}
