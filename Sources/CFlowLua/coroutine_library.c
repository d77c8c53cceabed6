// The functions of `coroutine` that scripts call: they pass waits and stops upward.
#include "internal.h"

/// Results of resuming, apart from a count of values.
enum { RESUME_FAILED = -1 };
/// How the continuation of a parked resumer knows its kind.
enum { FOR_RESUME = 0, FOR_WRAP = 1 };

static int continue_parked(lua_State *L, int status, lua_KContext kind);

/// The answer of coroutine.resume or of a wrapped function.
static int answer(lua_State *L, lua_State *co, int results, int kind) {
  if (kind == FOR_RESUME) {
    lua_pushboolean(L, results != RESUME_FAILED);
    if (results == RESUME_FAILED) results = 1;
    lua_insert(L, -(results + 1));
    return results + 1;
  }
  if (results != RESUME_FAILED) return results;
  int status = lua_status(co);
  if (status != LUA_OK && status != LUA_YIELD) {
    set_flag(co, CLOSING);
    status = flowlua_close_coroutine(state_of(L), co);
    clear_flag(co, CLOSING);
    lua_xmove(co, L, 1);
  }
  if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
    luaL_where(L, 1);
    lua_insert(L, -2);
    lua_concat(L, 2);
  }
  return lua_error(L);
}

/// Resumes `co` with the topmost `count` values of L, or continues it after a wait (count -1).
/// [-count, +results, v]
static int drive(lua_State *L, lua_State *co, int count, int kind) {
  flowlua_state *state = state_of(L);
  int results = 0;
  // Most switches hand no values over: the calls for them would be a tenth of the time.
  if (count >= 0) {
    if (count > 0 && !lua_checkstack(co, count)) {
      lua_pushliteral(L, "too many arguments to resume");
      return answer(L, co, RESUME_FAILED, kind);
    }
    if (has_flag(co, PARKED)) {
      lua_pushliteral(L, "cannot resume non-suspended coroutine");
      return answer(L, co, RESUME_FAILED, kind);
    }
    if (count > 0) lua_xmove(L, co, count);
  } else {
    flowlua_unpark(co);
    count = 0;
  }
  int status = flowlua_resume_tracked(state, co, L, count, &results);
  while (status == LUA_YIELD && has_flag(co, PARKED)) {
    if (lua_isyieldable(L)) {
      // The inner coroutine is the yielded value, so that the code that closes this one can
      // close that one first.
      lua_pushvalue(L, kind == FOR_WRAP ? lua_upvalueindex(1) : 1);
      set_flag(L, PARKED | CHAINED);
      return lua_yieldk(L, 1, (lua_KContext)kind, continue_parked);
    }
    flowlua_wait_in_place(state, state->parked_wait);
    flowlua_unpark(co);
    status = flowlua_resume_tracked(state, co, L, 0, &results);
  }
  if (status == LUA_YIELD && flowlua_take_flag(co, STOPPED)) {
    // A stop is no error that a script could catch: it goes upward, each coroutine closed.
    flowlua_close_stopped(state, co);
    if (lua_isyieldable(L)) {
      set_flag(L, STOPPED);
      return lua_yield(L, 0);
    }
    flowlua_arm_stop(L);
    flowlua_raise_memory(L);
  }
  if (status != LUA_OK && status != LUA_YIELD) {
    lua_xmove(co, L, 1);
    return answer(L, co, RESUME_FAILED, kind);
  }
  if (results == 0) return answer(L, co, 0, kind);
  if (!lua_checkstack(L, results + 1)) {
    lua_settop(co, -results - 1);
    lua_pushliteral(L, "too many results to resume");
    return answer(L, co, RESUME_FAILED, kind);
  }
  lua_xmove(co, L, results);
  return answer(L, co, results, kind);
}

static lua_State *coroutine_argument(lua_State *L) {
  lua_State *co = lua_tothread(L, 1);
  luaL_argexpected(L, co, 1, "thread");
  return co;
}

static int coroutine_resume(lua_State *L) {
  lua_State *co = coroutine_argument(L);
  return drive(L, co, lua_gettop(L) - 1, FOR_RESUME);
}

static int call_wrapped(lua_State *L) {
  // debug.setupvalue may have put anything there.
  lua_State *co = lua_tothread(L, lua_upvalueindex(1));
  luaL_argexpected(L, co, 1, "thread");
  return drive(L, co, lua_gettop(L), FOR_WRAP);
}

static int continue_parked(lua_State *L, int status, lua_KContext kind) {
  (void)status;
  lua_State *co = lua_tothread(L, kind == FOR_WRAP ? lua_upvalueindex(1) : 1);
  luaL_argexpected(L, co, 1, "thread");
  return drive(L, co, -1, (int)kind);
}

static int coroutine_wrap(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_State *co = lua_newthread(L);
  lua_pushvalue(L, 1);
  lua_xmove(L, co, 1);
  lua_pushcclosure(L, call_wrapped, 1);
  return 1;
}

/// Calls the function of the standard library that this one replaces, as if it were that one: its
/// messages name the caller's line.
static int call_standard(lua_State *L) { return lua_tocfunction(L, lua_upvalueindex(1))(L); }

static int coroutine_status(lua_State *L) {
  if (has_flag(coroutine_argument(L), PARKED)) {
    lua_pushliteral(L, "normal");
    return 1;
  }
  return call_standard(L);
}

static int coroutine_close(lua_State *L) {
  lua_State *co = coroutine_argument(L);
  if (has_flag(co, PARKED)) return luaL_error(L, "cannot close a normal coroutine");
  // Running and normal ones are refused by the standard function; one that hasn't begun, or is over,
  // has nothing to clean up.
  if (co == L || lua_status(co) == LUA_OK) return call_standard(L);
  if (!flowlua_can_close(state_of(L))) return luaL_error(L, "C stack overflow");
  // The handlers of a suspended one run within it.
  int status = flowlua_close_coroutine(state_of(L), co);
  lua_pushboolean(L, status == LUA_OK);
  if (status == LUA_OK) return 1;
  lua_xmove(co, L, 1);
  return 2;
}

void flowlua_install_coroutine_library(lua_State *L) {
  static const luaL_Reg replaced[] = {
      {"resume", coroutine_resume}, {"wrap", coroutine_wrap}, {NULL, NULL}};
  static const luaL_Reg extended[] = {
      {"status", coroutine_status}, {"close", coroutine_close}, {NULL, NULL}};
  flowlua_state *state = state_of(L);
  lua_getglobal(L, "pcall");
  lua_getglobal(L, "xpcall");
  state->pcall = lua_tocfunction(L, -2);
  state->xpcall = lua_tocfunction(L, -1);
  lua_settop(L, -3);
  lua_getglobal(L, LUA_COLIBNAME);
  luaL_setfuncs(L, replaced, 0);
  for (const luaL_Reg *each = extended; each->name != NULL; each++) {
    lua_getfield(L, -1, each->name);
    lua_pushcclosure(L, each->func, 1);
    lua_setfield(L, -2, each->name);
  }
  lua_settop(L, -2);
}

// MARK: - Coroutines that Swift resumes

static int make_thread(lua_State *L, void *argument) {
  lua_State *co = lua_newthread(L);
  flowlua_push_reference(state_of(L), L, *(int32_t *)argument);
  lua_xmove(L, co, 1);
  return 1;
}

int32_t flowlua_make_thread(flowlua_state *state, int32_t function) {
  return flowlua_protect(state, make_thread, &function);
}

typedef struct resume_argument {
  int32_t thread;
  const flowlua_value *arguments;
  int32_t count;
  bool has_yielded;
  int32_t result_count;
} resume_argument;

static int resume_thread(lua_State *L, void *argument) {
  resume_argument *what = argument;
  flowlua_state *state = state_of(L);
  flowlua_require_room(L, what->count + 8, "too many arguments");
  flowlua_push_reference(state, L, what->thread);
  lua_State *co = lua_tothread(L, 1);
  for (int32_t i = 0; i < what->count; i++) flowlua_push_plain(L, state, &what->arguments[i]);
  // A wait can't be passed on through Swift: below lua_pcall nothing can yield, so it is in place.
  int results = drive(L, co, what->count, FOR_RESUME);
  if (!lua_toboolean(L, -results)) return lua_error(L);
  what->has_yielded = lua_status(co) == LUA_YIELD;
  what->result_count = results - 1;
  return results - 1;
}

int32_t flowlua_resume_thread(
    flowlua_state *state, int32_t thread, const flowlua_value *arguments, int32_t count,
    bool *has_yielded, int32_t *result_count) {
  resume_argument what = {.thread = thread, .arguments = arguments, .count = count};
  int32_t status = flowlua_protect(state, resume_thread, &what);
  *has_yielded = what.has_yielded;
  *result_count = what.result_count;
  return status;
}

int32_t flowlua_thread_status(flowlua_state *state, int32_t thread) {
  lua_State *L = state->running;
  if (flowlua_make_room(state, L, 1) != LUA_OK) return FLOWLUA_THREAD_DEAD;
  flowlua_push_reference(state, L, thread);
  lua_State *co = lua_tothread(L, -1);
  lua_settop(L, -2);
  lua_Debug frame;
  if (co == L) return FLOWLUA_THREAD_RUNNING;
  if (has_flag(co, PARKED)) return FLOWLUA_THREAD_NORMAL;
  if (lua_status(co) == LUA_YIELD) return FLOWLUA_THREAD_SUSPENDED;
  if (lua_status(co) != LUA_OK) return FLOWLUA_THREAD_DEAD;
  if (lua_getstack(co, 0, &frame)) return FLOWLUA_THREAD_NORMAL;
  return lua_gettop(co) == 0 ? FLOWLUA_THREAD_DEAD : FLOWLUA_THREAD_SUSPENDED;
}

static int close_thread(lua_State *L, void *argument) {
  flowlua_state *state = state_of(L);
  flowlua_push_reference(state, L, *(int32_t *)argument);
  lua_State *co = lua_tothread(L, 1);
  int32_t status = flowlua_thread_status(state, *(int32_t *)argument);
  if (status == FLOWLUA_THREAD_RUNNING) return luaL_error(L, "cannot close a running coroutine");
  if (status == FLOWLUA_THREAD_NORMAL) return luaL_error(L, "cannot close a normal coroutine");
  if (!flowlua_can_close(state)) return luaL_error(L, "C stack overflow");
  if (flowlua_close_coroutine(state, co) == LUA_OK) return 0;
  lua_xmove(co, L, 1);
  return lua_error(L);
}

int32_t flowlua_close_thread(flowlua_state *state, int32_t thread) {
  return flowlua_protect(state, close_thread, &thread);
}
