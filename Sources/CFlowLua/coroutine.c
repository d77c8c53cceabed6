// The coroutines of the scheduler: making, starting and resuming them, and giving them back.

#include "internal.h"

enum {
  /// From so many on, coroutines are made by the batch, which spares most of them a protected call.
  MANY_COROUTINES = 64,
  COROUTINE_BATCH = 16,
  /// How many are kept for later. Each takes 1,000 bytes, which every cycle of the collector looks through:
  /// after 100,000 sleepers that was 97 MiB, and a collection took 20 ms.
  MOST_IDLE = 1024,
};
_Static_assert(COROUTINE_BATCH < LUA_MINSTACK, "a batch of coroutines fits onto the stack");

static int new_coroutines(lua_State *L, void *argument) {
  const int32_t *count = argument;
  for (int32_t i = 0; i < *count; i++) lua_newthread(L);
  return *count;
}

/// A structure without a coroutine.
static flowlua_coroutine *take_bare(flowlua_state *state) {
  flowlua_coroutine *coroutine = state->bare;
  if (coroutine != NULL) {
    state->bare = coroutine->next_free;
    return coroutine;
  }
  coroutine_block *block = state->made;
  if (block == NULL || block->used == COROUTINES_PER_BLOCK) {
    block = flowlua_zeroed_own(sizeof *block + COROUTINES_PER_BLOCK * sizeof(flowlua_coroutine));
    if (block == NULL) return NULL;
    block->next = state->made;
    state->made = block;
  }
  return &block->coroutines[block->used++];
}

static void give_bare(flowlua_state *state, flowlua_coroutine *coroutine) {
  flowlua_forget_failure(coroutine);
  coroutine->error_status = LUA_OK;
  coroutine->hook_version = 0;
  coroutine->L = NULL;
  coroutine->reference = 0;
  coroutine->next_free = state->bare;
  state->bare = coroutine;
}

static void keep_idle(flowlua_state *state, flowlua_coroutine *coroutine) {
  coroutine->next_free = state->idle;
  state->idle = coroutine;
  state->idle_count += 1;
}

/// Leaves the coroutine of a structure to the collector.
static void drop(flowlua_state *state, flowlua_coroutine *coroutine) {
  flowlua_unreference(state, coroutine->reference);
  give_bare(state, coroutine);
  state->coroutine_count -= 1;
}

/// Adds a new coroutine, which stands on top of the running one's stack, to the idle ones. [-1, +0, -]
static void add_idle(flowlua_state *state) {
  lua_State *co = lua_tothread(state->running, -1);
  flowlua_coroutine *coroutine = take_bare(state);
  if (coroutine == NULL) {
    flowlua_pop(state->running, 1);
    return;
  }
  coroutine->reference = flowlua_reference(state, state->running);
  if (coroutine->reference == 0) {
    give_bare(state, coroutine);
    return;
  }
  coroutine->L = co;
  keep_idle(state, coroutine);
  state->coroutine_count += 1;
}

/// Makes idle coroutines where there are none; false without memory.
static bool make_coroutines(flowlua_state *state, int32_t count) {
  int32_t status = flowlua_protect(state, new_coroutines, &count);
  if (status != LUA_OK) {
    flowlua_discard_error(state, status);
    return false;
  }
  for (int32_t i = 0; i < count; i++) add_idle(state);
  return state->idle != NULL;
}

flowlua_coroutine *flowlua_coroutine_take(flowlua_state *state) {
  if (state->idle == NULL) {
    bool is_made =
        state->coroutine_count >= MANY_COROUTINES && make_coroutines(state, COROUTINE_BATCH);
    if (!is_made && !make_coroutines(state, 1)) return NULL;
  }
  flowlua_coroutine *coroutine = state->idle;
  state->idle = coroutine->next_free;
  state->idle_count -= 1;
  // A new one inherits the hook of the running one, an idle one has the hook of its use before.
  if (flowlua_has_hook(coroutine->L)) {
    flowlua_clear_hook(coroutine->L);
    coroutine->hook_version = 0;
  }
  return coroutine;
}

lua_State *flowlua_coroutine_state(const flowlua_coroutine *coroutine) { return coroutine->L; }

uint32_t flowlua_coroutine_generation(const flowlua_coroutine *coroutine) {
  return coroutine->generation;
}

void flowlua_coroutine_keep_wait(flowlua_coroutine *coroutine, void *wait) {
  coroutine->wait = wait;
}

bool flowlua_coroutine_is_parked(const flowlua_coroutine *coroutine) {
  return coroutine->L != NULL && has_flag(coroutine->L, PARKED);
}

/// Releases the wait that a coroutine has kept.
static void drop_wait(flowlua_state *state, void *wait) {
  if (wait == NULL) return;
  state->callbacks.release(wait);
  flowlua_current = state;
}

static flowlua_coroutine *set_activity(flowlua_state *state, flowlua_coroutine *activity) {
  flowlua_coroutine *previous = atomic_load_explicit(&state->activity, memory_order_relaxed);
  atomic_store_explicit(&state->activity, activity, memory_order_relaxed);
  return previous;
}

/// Closes a coroutine of the scheduler with all it is parked for; if it is watched, its cleanups
/// have to end within the grace.
static void close_scheduled(flowlua_state *state, flowlua_coroutine *coroutine) {
  flowlua_coroutine *previous = set_activity(state, coroutine);
  if (is_watched(coroutine)) flowlua_begin_grace(coroutine);
  flowlua_close_chain(state, coroutine->L);
  flowlua_unwatch(coroutine);
  set_activity(state, previous);
}

int32_t flowlua_coroutine_run(
    flowlua_state *state, flowlua_coroutine *coroutine, int32_t count, int32_t *result_count) {
  lua_State *co = coroutine->L;
  lua_State *from = state->running;
  void *wait = coroutine->wait;
  coroutine->wait = NULL;
  if (coroutine->hook_version != state->hook_version) flowlua_inherit_hook(state, coroutine);
  if (has_flag(co, PARKED)) flowlua_unpark(co);
  flowlua_coroutine *previous = set_activity(state, coroutine);
  state->running = co;
  if (state->counts) flowlua_begin_counting(state, co);
  if (is_stopping(state)) flowlua_arm_stop(co);
  int status = flowlua_real_resume(co, from, count, result_count);
  state->running = from;
  if (state->counts) flowlua_continue_counting(state, from);
  set_activity(state, previous);
  drop_wait(state, wait);
  bool is_asked = atomic_load_explicit(&coroutine->stop, memory_order_relaxed) != 0;
  if (is_asked && status == LUA_YIELD && has_flag(co, PARKED)
      && flowlua_coroutine_is_closing(coroutine)) {
    // It was asked after an error had ended what was to stop, on the way to a `__close`, which now waits.
    flowlua_begin_grace(coroutine);
    is_asked = atomic_load_explicit(&coroutine->stop, memory_order_relaxed) != 0;
  }
  // Where it couldn't yield, it has failed.
  if (!is_asked && status != LUA_OK
      && (status == LUA_YIELD ? has_flag(co, STOPPED) : is_asked_to_stop(state))) {
    flowlua_stop_enclosed(state);
    is_asked = true;
  }
  if (is_asked) {
    // Asked to stop: it ends so, whatever its code made of it.
    close_scheduled(state, coroutine);
    status = FLOWLUA_STOPPED;
  } else if (status == LUA_OK) {
    status = FLOWLUA_FINISHED;
  } else if (status != LUA_YIELD) {
    status = FLOWLUA_FAILED;
  } else {
    status = has_flag(co, PARKED) ? FLOWLUA_PARKED : FLOWLUA_YIELDED;
  }
  if (state->owes_termination && !flowlua_runs_scheduled(state)) flowlua_repay_termination(state);
  // The coroutine that called this may have been stopped meanwhile.
  if (is_stopping(state)) flowlua_arm_stop(from);
  return status;
}

/// Whether it, or a function that it has called, is executing: a frame is there, and it is neither suspended nor
/// dead.
static bool is_active(lua_State *co) {
  lua_Debug frame;
  return lua_status(co) == LUA_OK && lua_getstack(co, 0, &frame) != 0;
}

/// Puts a coroutine that has just finished, and that nobody else has seen, back among the idle ones, unless there
/// are many.
void flowlua_recycle(flowlua_state *state, flowlua_coroutine *coroutine) {
  if (is_watched(coroutine)) flowlua_unwatch(coroutine);
  coroutine->generation += 1;
  coroutine->handle_generation = 0;
  lua_settop(coroutine->L, 0);
  if (state->idle_count < MOST_IDLE) keep_idle(state, coroutine);
  else drop(state, coroutine);
}

int32_t flowlua_coroutine_release(
    flowlua_state *state, flowlua_coroutine *coroutine, uint32_t generation, bool finished) {
  if (generation != coroutine->generation) return FLOWLUA_STALE;
  lua_State *co = coroutine->L;
  if (is_active(co)) return FLOWLUA_ACTIVE;
  void *wait = coroutine->wait;
  coroutine->wait = NULL;
  if (finished && !has_flag(co, EXTRA_FLAGS) && lua_status(co) == LUA_OK) {
    flowlua_recycle(state, coroutine);
  } else {
    coroutine->generation += 1;
    close_scheduled(state, coroutine);
    drop(state, coroutine);
  }
  drop_wait(state, wait);
  return FLOWLUA_RELEASED;
}
