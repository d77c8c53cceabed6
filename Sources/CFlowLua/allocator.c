// Lua's allocator: it counts, refuses what a limit, a budget or a test asks for, and knows the pool of small
// blocks.
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
    if (!state->small.tried && (state->withheld & FLOWLUA_BLOCK_POOL) == 0) {
      flowlua_pool_open(&state->small);
      state->noted_sizes = UINT64_MAX;
    }
    void *block = flowlua_pool_take(&state->small, size);
    if (block != NULL) return block;
  }
  return __real_malloc(size);
}

/// Notes that a block is being freed, and frees it.
static __attribute__((noinline)) void give_block(flowlua_state *state, void *block, size_t size) {
  if (state->counted_count != 0) flowlua_uncount_block(state, block);
  if (size == state->object_size) flowlua_object_freed(state, block);
  if (block == state->origin_function) state->origin_function = NULL;
  if (flowlua_pool_has(&state->small, block)) flowlua_pool_give(&state->small, block);
  else free(block);
}

/// As realloc, of a block or of none.
static void *resize_block(flowlua_state *state, void *block, size_t held, size_t size) {
  if (block == NULL) return take_block(state, size);
  if (!flowlua_pool_has(&state->small, block)) return __real_realloc(block, size);
  size_t present = flowlua_pool_size(block);
  if (size <= present && size + 16 > present) return block;
  void *moved = take_block(state, size);
  if (moved == NULL) return NULL;
  memcpy(moved, block, held < size ? held : size);
  flowlua_pool_give(&state->small, block);
  return moved;
}

// MARK: - The limit

static bool shares_budget(const flowlua_state *state) {
  return state->budget != NULL && state->own_limit != 0;
}

/// The memory that the state holds, with the memory outside of it at the last look.
static size_t used_of(const flowlua_state *state) {
  return state->memory_used + state->memory_outside;
}

/// Whether so much more is within the limit.
static bool is_within(const flowlua_state *state, size_t more) {
  size_t used = used_of(state), limit = state->memory_limit + state->stop_room;
  return used <= limit && more <= limit - used;
}

/// The memory that the state could have with all the room that is left in its budget.
static size_t attainable(const flowlua_state *state) {
  if (!shares_budget(state)) return state->memory_limit;
  size_t room = flowlua_budget_room(state->budget);
  size_t most = room > SIZE_MAX - state->granted ? SIZE_MAX : room + state->granted;
  return most < state->own_limit ? most : state->own_limit;
}

/// The memory that the state could have, for a look outside: while less than half of the budget is left, a state
/// doesn't take room for what was released, as others may need that room.
static size_t attainable_loosely(const flowlua_state *state) {
  if (!shares_budget(state)) return state->memory_limit;
  size_t limit = flowlua_budget_limit(state->budget);
  bool is_scarce = limit != 0 && flowlua_budget_room(state->budget) < limit / 2;
  return is_scarce ? state->memory_limit : attainable(state);
}

/// Looks up what is outside of the state. It is exact if the state would be beyond its limit with so much more.
static void look_outside(flowlua_state *state, size_t more) {
  size_t room = attainable_loosely(state);
  room -= state->memory_used < room ? state->memory_used : room;
  room -= more < room ? more : room;
  state->memory_outside = state->callbacks.outside(state, room);
}

/// Called when `granted` or `own_limit` has changed in a state that shares a budget.
static void note_granted(flowlua_state *state) {
  size_t granted = state->granted;
  be_watchful(state);
  // 0 would be no limit.
  state->memory_limit = granted == 0 ? 1 : granted < state->own_limit ? granted : state->own_limit;
  state->returns_below = granted > BUDGET_KEPT ? granted - BUDGET_KEPT : 0;
}

/// Takes room for so much more from the budget.
static bool take_room(flowlua_state *state, size_t more) {
  if (!shares_budget(state)) return false;
  size_t used = used_of(state);
  if (used > state->own_limit || more > state->own_limit - used) return false;
  if (used + more <= state->granted) return true;
  size_t got = flowlua_take_room(state->budget, used + more - state->granted);
  if (got == 0) return false;
  state->granted += got;
  note_granted(state);
  return true;
}

/// Takes room for what is held outside already, as far as there is any, so that nobody else uses it.
static void take_rest(flowlua_state *state) {
  size_t used = used_of(state);
  if (!shares_budget(state) || used <= state->granted) return;
  state->granted += flowlua_take_rest(state->budget, used - state->granted);
  note_granted(state);
}

/// Returns room that isn't used.
static void return_room(flowlua_state *state) {
  size_t kept = used_of(state) + BUDGET_STEP;
  if (!shares_budget(state) || state->granted <= kept) return;
  flowlua_give_room(state->budget, state->granted - kept);
  state->granted = kept;
  if (state->settled > kept) state->settled = kept;
  if (state->settled_idle > kept) state->settled_idle = kept;
  note_granted(state);
}

/// Takes the room for stops back once it isn't needed.
static void end_stop(flowlua_state *state) {
  size_t used = used_of(state), limit = attainable(state);
  if (used < limit && limit - used > state->stop_room) state->stop_room = 0;
}

/// Whether the state may hold so much more, with the memory that is outside of it now: looked up as rarely as a
/// look can change the result, or the state has grown a lot.
static bool fits(flowlua_state *state, size_t more) {
  if (state->memory_limit == 0) return true;
  if (used_of(state) < state->returns_below) return_room(state);
  if (state->stop_room != 0) end_stop(state);
  if (is_within(state, more) && more < POOLED_FROM) return true;
  if (!state->closing) look_outside(state, more);
  return is_within(state, more) || take_room(state, more);
}

/// The reason to refuse an allocation; only asked for where one may exist.
static bool is_refused(flowlua_state *state, const void *block, size_t held, size_t size) {
  if (is_to_fail(state, block, size)) {
    state->refused = true;
    return true;
  }
  if (state->silent_failures > 0) {
    state->silent_failures -= 1;
    return true;
  }
  bool is_allowed = state->account == NULL || flowlua_account_allows(state, size - held);
  if (is_allowed && fits(state, size - held)) return false;
  if (state->account != NULL) flowlua_note_refusal(state->account, !is_allowed);
  state->refused = true;
  return true;
}

/// Whether an allocation may be refused although there is memory.
static bool is_watchful(const flowlua_state *state) {
  return (state->memory_limit | state->failing_allocation | state->failed_size
          | (size_t)state->silent_failures)
      != 0
      || state->account != NULL;
}

/// Counts what the state holds. Shrinking never fails, as Lua requires.
static __attribute__((noinline)) void *resize_counted(
    flowlua_state *state, void *block, size_t held, size_t new_size) {
  if (new_size > held) {
    if (!is_watchful(state)) state->plain_below = state->pooled_from;
    else if (is_refused(state, block, held, new_size)) return NULL;
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
  if (state->account != NULL || state->counted_count != 0)
    flowlua_count_resized(state, block, held, result, new_size);
  return result;
}

/// The next userdata. One whose owner never writes to it must not be taken for one of ours when it is freed.
static __attribute__((noinline)) void *new_userdata(flowlua_state *state, size_t size) {
  void *memory = flowlua_allocate(state, NULL, 0, size);
  if (memory != NULL && size == state->object_size) object_in(state, memory)->magic = 0;
  return memory;
}

/// The most frequent case of states without a limit, blocks of malloc that come and go, is handled here, with one
/// compare each: the time of plain Lua code depends on it.
void *flowlua_allocate(void *context, void *block, size_t old_size, size_t new_size) {
  flowlua_state *state = context;
  if (new_size == 0) {
    if (block == NULL) return NULL;
    state->memory_used -= old_size;
    if ((state->noted_sizes & size_bit(old_size)) == 0) free(block);
    else give_block(state, block, old_size);
    return NULL;
  }
  if (block != NULL) return resize_counted(state, block, old_size, new_size);
  // Without a block the old size is a type tag.
  if (old_size == LUA_TUSERDATA) return new_userdata(state, new_size);
  size_t used = state->memory_used + new_size;
  if (used >= state->plain_below) return resize_counted(state, NULL, 0, new_size);
  void *result = __real_malloc(new_size);
  if (result != NULL) state->memory_used = used;
  return result;
}

/// Takes room for what the state holds by now, and is granted nothing else yet.
static void take_present(flowlua_state *state) {
  state->granted = used_of(state);
  state->settled = state->granted;
  state->settled_idle = state->granted;
  flowlua_take_anyway(state->budget, state->granted);
  note_granted(state);
}

static void give_all(flowlua_state *state) {
  if (state->granted != 0) flowlua_give_room(state->budget, state->granted);
  state->granted = 0;
  state->returns_below = 0;
}

void flowlua_set_memory_limit(flowlua_state *state, size_t bytes) {
  bool has_shared = shares_budget(state);
  be_watchful(state);
  state->own_limit = bytes;
  if (state->budget == NULL || bytes == 0) {
    state->memory_limit = bytes;
    give_all(state);
  } else if (has_shared) {
    note_granted(state);
  } else {
    state->memory_limit = bytes;
    state->memory_outside = state->callbacks.outside(state, 0);
    take_present(state);
  }
}

void flowlua_share_budget(flowlua_state *state, flowlua_budget *budget) {
  if (state->budget != NULL) return;
  flowlua_retain_budget(budget);
  state->budget = budget;
  if (state->own_limit == 0) return;
  if (state->context != NULL) state->memory_outside = state->callbacks.outside(state, 0);
  take_present(state);
}

void flowlua_leave_budget(flowlua_state *state) {
  if (state->budget == NULL) return;
  give_all(state);
  flowlua_release_budget(state->budget);
  state->budget = NULL;
}

bool flowlua_needs_settling(const flowlua_state *state, bool is_idle) {
  if (!shares_budget(state) || state->memory_limit == 0) return false;
  if (state->granted > BUDGET_KEPT
      && flowlua_budget_refusals(state->budget) != state->seen_refusals)
    return true;
  // As much as makes a collection worth its time, and is felt by others.
  size_t before = is_idle ? state->settled_idle : state->settled;
  size_t step = flowlua_budget_limit(state->budget) / 16;
  if (step < BUDGET_KEPT / 2) step = BUDGET_KEPT / 2;
  if (step < before / 4) step = before / 4;
  return state->granted > before && state->granted - before > step;
}

void flowlua_settle(flowlua_state *state, bool is_idle, bool collected) {
  if (!shares_budget(state) || state->memory_limit == 0) return;
  // A collection has looked outside.
  if (!collected && state->memory_outside > BUDGET_STEP)
    state->memory_outside = state->callbacks.outside(state, 0);
  return_room(state);
  if (!collected) return;
  state->seen_refusals = flowlua_budget_refusals(state->budget);
  state->settled = state->granted;
  if (is_idle) state->settled_idle = state->granted;
}

bool flowlua_exceeds_memory(flowlua_state *state) {
  if (state->memory_limit == 0) return false;
  look_outside(state, 0);
  if (is_within(state, 0) || take_room(state, 0)) return false;
  take_rest(state);
  return true;
}

/// The error of each stop takes memory, and what the stopped code had is free only after a collection. At the
/// limit Lua would collect everything for each of them; with more room for some time it does so for thousands
/// together, and has less each time.
void flowlua_begin_stop(flowlua_state *state) {
  if (state->memory_limit == 0 || state->stop_room != 0) return;
  size_t used = used_of(state), limit = attainable(state), room = limit / 8;
  if (used >= limit || limit - used < room / 2) state->stop_room = room;
}

void flowlua_note_outside_collected(flowlua_state *state) {
  if (state->memory_limit == 0 || state->closing) return;
  state->memory_outside = state->callbacks.outside(state, 0);
  state->outside_collected = state->memory_outside;
  if (used_of(state) < state->returns_below) return_room(state);
}

/// Whether what is outside has taken half of the room, as it was looked up last.
static bool has_taken_half(flowlua_state *state) {
  if (state->outside_collected > state->memory_outside)
    state->outside_collected = state->memory_outside;
  size_t grown = state->memory_outside - state->outside_collected;
  size_t used = state->memory_used + state->outside_collected;
  size_t limit = attainable(state);
  size_t room = used < limit ? limit - used : 0;
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
  be_watchful(state);
  state->failing_allocation = n;
  state->failed_size = 0;
  return left;
}
