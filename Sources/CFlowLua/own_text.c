// The text that a value of a script gives itself, where the host needs one: in a log line, in a message. Its
// `__tostring` runs as a coroutine of its own for a limited time, because the host may ask after the code that could
// be stopped has ended.
#include <time.h>

#include "internal.h"

static const int64_t millisecond = 1000000, second = 1000000000;

enum {
  /// How many milliseconds a text may take, without its waits. Each that was cut halves them for the next one, so that many
  /// of them don't keep the host.
  LONGEST = 1000,
  MOST_HALVED = 6,
  /// How many it may take if a signal has requested something before; see also hooks.c.
  HURRIED = 1,
};

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * second + time.tv_nsec;
}

/// How many nanoseconds a text may take of those that are left to it, from now on.
static int64_t time_limit(flowlua_state *state, int64_t left) {
  bool is_awaited = flowlua_has_requested(state, FLOWLUA_INTERRUPT | FLOWLUA_TERMINATE);
  int64_t most = is_awaited ? HURRIED * millisecond : left;
  return most < left ? most : left > 0 ? left : 1;
}

/// Runs a coroutine that makes a text; returns its status, and how many results it has.
static int32_t run(flowlua_state *state, flowlua_coroutine *text, int32_t *result_count) {
  flowlua_coroutine *outer = state->own_text;
  // The message handler, the function and the value.
  int32_t count = 3;
  int64_t left = (LONGEST >> state->cut_texts) * millisecond;
  while (true) {
    if (!flowlua_watch(state, text, -time_limit(state, left), 0)) return FLOWLUA_STOPPED;
    flowlua_mark_call(state, text);
    int64_t began = now();
    // A stop of the code that needs the text stops this, too, and a stop of this all that it has called.
    flowlua_coroutine *enclosing = flowlua_begin_enclosure(state);
    flowlua_begin_enclosure_of(state, text);
    state->own_text = text;
    int32_t status = flowlua_coroutine_run(state, text, count, result_count);
    flowlua_end_enclosure_of(state, text);
    if (enclosing != NULL) flowlua_end_enclosure(state, enclosing);
    if (status == FLOWLUA_PARKED) {
      // The time that it waits doesn't count.
      left -= now() - began;
      flowlua_unwatch(text);
      flowlua_wait_in_place(state, state->parked_wait);
    }
    state->own_text = outer;
    if (status != FLOWLUA_PARKED) return status;
    count = 0;
  }
}

/// Calls the `__tostring` on top with the value below it. [-2, +1, m]
static int32_t call(lua_State *L) {
  flowlua_state *state = state_of(L);
  flowlua_coroutine *text = flowlua_coroutine_take(state);
  if (text == NULL) flowlua_raise_memory(L);
  flowlua_coroutine_push_body(text);
  lua_insert(L, -2);
  lua_xmove(L, text->L, 2);
  int32_t count = 0;
  int32_t status = run(state, text, &count);
  bool has_finished = status == FLOWLUA_FINISHED;
  if (has_finished) state->refuses_text_waits = false;
  if (has_finished && count > 0) lua_settop(text->L, lua_gettop(text->L) - count + 1);
  bool has_value = (has_finished && count > 0) || status == FLOWLUA_FAILED;
  if (has_value) lua_xmove(text->L, L, 1);
  if (status == FLOWLUA_STOPPED && !is_stopping(state) && state->cut_texts < MOST_HALVED)
    state->cut_texts += 1;
  else if (has_finished && state->cut_texts > 0) state->cut_texts -= 1;
  // Before anything that may raise an error.
  flowlua_coroutine_release(state, text, text->generation, has_finished);
  if (!has_value && has_finished) lua_pushnil(L);
  else if (status == FLOWLUA_YIELDED) lua_pushliteral(L, "attempt to yield across the host's call");
  else if (!has_value) lua_pushliteral(L, "it took too long");
  return has_finished ? LUA_OK : LUA_ERRRUN;
}

static int to_text(lua_State *L) {
  luaL_tolstring(L, 1, NULL);
  return 1;
}

int32_t flowlua_own_text(lua_State *L) {
  flowlua_require_room(L, 4, "too deep");
  if (luaL_getmetafield(L, -1, "__tostring") == LUA_TNIL) {
    lua_pushcfunction(L, to_text);
    lua_insert(L, -2);
    return lua_pcall(L, 1, 1, 0);
  }
  int32_t status = call(L);
  if (status == LUA_OK && !lua_isstring(L, -1)) {
    lua_settop(L, -2);
    lua_pushliteral(L, "'__tostring' must return a string");
    return LUA_ERRRUN;
  }
  if (status == LUA_OK) lua_tolstring(L, -1, NULL);
  return status;
}

static int push_own_text(lua_State *L, void *value) {
  flowlua_push_plain(L, state_of(L), value);
  return flowlua_own_text(L) == LUA_OK ? 1 : lua_error(L);
}

int32_t flowlua_text(flowlua_state *state, const flowlua_value *value) {
  return flowlua_protect(state, push_own_text, (void *)value);
}
