// One state: making and closing it.
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "internal.h"

/// The references on the anchor, a batch of handles, and a few values in transit.
enum { ANCHOR_ROOM = 128 };

/// The argument of the set-up, and the reason for which the state is of no use.
typedef struct set_up_argument {
  const flowlua_configuration *configuration;
  const char *problem;
} set_up_argument;

/// Everything of the set-up that can raise. The anchor is its result. [-1, +1, m]
static int set_up(lua_State *L) {
  flowlua_state *state = state_of(L);
  set_up_argument *argument = lua_touserdata(L, 1);
  const flowlua_configuration *configuration = argument->configuration;
  if ((state->withheld & FLOWLUA_INTERPOSED_RESUME) != 0 || !flowlua_resume_is_ours(L)) {
    argument->problem = "flowlua's lua_resume isn't the one that this process uses: "
                        "the program has to link the shared liblua5.4, and flowlua before it";
    return luaL_error(L, "%s", argument->problem);
  }
  if (configuration->ignores_environment) {
    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  }
  flowlua_open_libraries(L, configuration);
  lua_State *anchor = lua_newthread(L);
  // No matter how full it gets: luaL_checkstack would raise on the anchor.
  if (!lua_checkstack(anchor, ANCHOR_ROOM)) return luaL_error(L, "not enough memory");
  // The array part in place: setting 1…64 never allocates.
  lua_createtable(L, 64, 0);
  lua_xmove(L, anchor, 1);
  lua_createtable(L, 0, 16);
  lua_xmove(L, anchor, 1);
  lua_createtable(L, 0, 0);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "v");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_xmove(L, anchor, 1);
  lua_pushliteral(L, "__name");
  lua_xmove(L, anchor, 1);
  lua_pushnil(L);
  lua_xmove(L, anchor, 1);
  lua_pushliteral(L, "stopped");
  lua_xmove(L, anchor, 1);
  lua_pushliteral(L, "cannot resume non-suspended coroutine");
  lua_xmove(L, anchor, 1);
  lua_createtable(L, 0, 0);
  lua_xmove(L, anchor, 1);
  flowlua_prepare_objects(L);
  lua_xmove(L, anchor, 1);
  state->anchor = anchor;
  if (configuration->generational) lua_gc(L, LUA_GCGEN, 0, 0);
  return 1;
}

static void choose_magic_base(flowlua_state *state) {
  uint64_t secret;
  if (getrandom(&secret, sizeof secret, GRND_NONBLOCK) != (ssize_t)sizeof secret) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    secret = (uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15u ^ (uint64_t)(uintptr_t)state;
  }
  // The low bits take the type's number.
  state->magic_base = secret & ~(uint64_t)0xFFFF;
}

flowlua_state *flowlua_open(
    const flowlua_configuration *configuration, const flowlua_callbacks *callbacks,
    const char **problem) {
  flowlua_state *state = NULL;
  *problem = NULL;
  if (!flowlua_reserve_exists()) return NULL;
  state = flowlua_aligned_own(64, (sizeof *state + 63) & ~(size_t)63);
  if (state == NULL) return NULL;
  memset(state, 0, sizeof *state);
  state->callbacks = *callbacks;
  state->owner = pthread_self();
  state->reference_capacity = 64;
  state->free_held = NONE_HELD;
  state->dead_held = NONE_HELD;
  state->pooled_from = POOLED_FROM;
  state->looks_from = POOLED_FROM;
  state->free_references = flowlua_resize_own(NULL, sizeof(int32_t) * 64);
  state->type_capacity = 16;
  state->types = flowlua_resize_own(NULL, sizeof(object_type) * 17);
  if (state->free_references == NULL || state->types == NULL) goto failed;
  for (int32_t i = 0; i < 64; i++) state->free_references[i] = 64 - i;
  state->free_count = 64;
  choose_magic_base(state);
  // luaL_newstate sets the panic and warning functions, which lua_newstate alone would not;
  // its allocator is realloc and free, so ours may take over its blocks.
  state->main = luaL_newstate();
  if (state->main == NULL) goto failed;
  EXTRA(state->main) = (uintptr_t)state;
  state->running = state->main;
  state->stop_hook = flowlua_stop_hook;
  flowlua_clear_hook(state->main);
  state->memory_used =
      (size_t)lua_gc(state->main, LUA_GCCOUNT) * 1024 + (size_t)lua_gc(state->main, LUA_GCCOUNTB);
  state->own_limit = configuration->memory_limit;
  state->memory_limit = configuration->memory_limit;
  if (configuration->budget != NULL) flowlua_share_budget(state, configuration->budget);
  state->failing_allocation = configuration->failing_allocation;
  state->withheld = configuration->withheld;
  lua_setallocf(state->main, flowlua_allocate, state);
  flowlua_state *previous = flowlua_make_current(state);
  // With an empty stack there is room, and neither push allocates.
  lua_gc(state->main, LUA_GCSTOP);
  lua_pushcfunction(state->main, set_up);
  set_up_argument argument = {configuration, NULL};
  lua_pushlightuserdata(state->main, &argument);
  int status = lua_pcall(state->main, 1, 1, 0);
  if (status != LUA_OK) {
    state->closing = true;
    lua_close(state->main);
    flowlua_pool_close(&state->small);
    flowlua_make_current(previous);
    *problem = argument.problem;
    goto failed;
  }
  lua_gc(state->main, LUA_GCRESTART);
  flowlua_make_current(previous != NULL ? previous : state);
  return state;
failed:
  flowlua_leave_budget(state);
  free(state->free_references);
  free(state->shares);
  free(state->types);
  free(state);
  return NULL;
}

void flowlua_close(flowlua_state *state) {
  flowlua_state *previous = flowlua_make_current(state);
  flowlua_forget_state(state);
  state->closing = true;
  state->small.is_closing = true;
  state->memory_limit = 0;
  state->account = NULL;
  state->failing_allocation = 0;
  state->running = state->main;
  atomic_store(&state->activity, NULL);
  lua_close(state->main);
  flowlua_pool_close(&state->small);
  flowlua_leave_budget(state);
  flowlua_make_current(previous != state ? previous : NULL);
  state->main = NULL;
  state->running = NULL;
}

void flowlua_drop_leftovers(flowlua_state *state) {
  for (coroutine_block *block = state->made; block != NULL; block = block->next) {
    for (uint32_t i = 0; i < block->used; i++) {
      void *wait = block->coroutines[i].wait;
      block->coroutines[i].wait = NULL;
      if (wait != NULL) state->callbacks.release(wait);
    }
  }
  flowlua_release_held(state);
}

void flowlua_free(flowlua_state *state) {
  for (coroutine_block *block = state->made; block != NULL;) {
    coroutine_block *next = block->next;
    for (uint32_t i = 0; i < block->used; i++) {
      flowlua_coroutine *each = &block->coroutines[i];
      if (each->wait != NULL) state->callbacks.release(each->wait);
      flowlua_forget_failure(each);
      free(each->watch);
    }
    free(block);
    block = next;
  }
  flowlua_release_held(state);
  free(state->counted);
  free(state->warnings);
  free(state->held);
  free(state->buckets);
  free(state->sources);
  free(state->free_references);
  free(state->shares);
  free(state->types);
  free(state);
}
