// Coroutines: how a wait travels through a script's own coroutines up to the scheduler, and the
// coroutines of the scheduler itself.
//
// An await yields nothing and marks its coroutine PARKED. Whoever resumed that coroutine sees the
// mark: our own coroutine.resume and coroutine.wrap yield in turn, so the whole chain is parked and
// the scheduler at its end takes the wait; where a resumer can't yield (the main chunk, a C
// function), the loop is pumped in place. A script never sees the yield.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

// MARK: - lua_resume

typedef int (*resume_function)(lua_State *, lua_State *, int, int *);

/// liblua's lua_resume, behind the one that this file exports.
static resume_function real_resume;

__attribute__((constructor)) static void find_real_resume(void) {
  if (real_resume == NULL) real_resume = (resume_function)dlsym(RTLD_NEXT, "lua_resume");
  if (real_resume == NULL) {
    fputs("flowlua: liblua5.4 has no lua_resume\n", stderr);
    abort();
  }
}

bool flowlua_resume_is_interposed(void) {
  // What liblua calls is what the dynamic linker finds first.
  return dlsym(RTLD_DEFAULT, "lua_resume") == (void *)lua_resume
      && (void *)real_resume != (void *)lua_resume;
}

int flowlua_resume_tracked(
    flowlua_host *host, lua_State *co, lua_State *from, int count, int *result_count) {
  lua_State *previous = host->running;
  host->running = co;
  if (is_stopping(host)) flowlua_arm_stop(co);
  int status = real_resume(co, from, count, result_count);
  host->running = previous;
  if (is_stopping(host)) flowlua_arm_stop(previous);
  return status;
}

int flowlua_close_coroutine(flowlua_host *host, lua_State *co) {
  lua_State *previous = host->running;
  host->running = co;
  int status = lua_resetthread(co);
  host->running = previous;
  return status;
}

/// Waits where the running coroutine can't yield.
static void wait_in_place(flowlua_host *host, void *wait) {
  host->callbacks.pump(host, wait);
}

static bool take_flag(lua_State *co, uintptr_t flag) {
  bool had = has_flag(co, flag);
  clear_flag(co, flag);
  return had;
}

/// Exported, so that it stands in for liblua's also where liblua and C modules resume. Only those
/// come here: they know nothing of waits and stops, so both end here.
__attribute__((visibility("default"), used)) int lua_resume(
    lua_State *co, lua_State *from, int count, int *result_count) {
  flowlua_host *host = flowlua_current_host();
  if (real_resume == NULL) find_real_resume();
  if (host == NULL || host_of(co) != host) return real_resume(co, from, count, result_count);
  if (has_flag(co, PARKED)) {
    // As lua_resume answers a coroutine that runs: the arguments give way to a message.
    lua_settop(co, -count - 1);
    lua_checkstack(co, 1);
    lua_pushliteral(co, "cannot resume non-suspended coroutine");
    *result_count = 1;
    return LUA_ERRRUN;
  }
  int status = flowlua_resume_tracked(host, co, from, count, result_count);
  while (status == LUA_YIELD && take_flag(co, PARKED)) {
    wait_in_place(host, host->parked_wait);
    status = flowlua_resume_tracked(host, co, from, 0, result_count);
  }
  if (status == LUA_YIELD && take_flag(co, STOPPED)) {
    flowlua_close_coroutine(host, co);
    lua_settop(co, 0);
    lua_pushliteral(co, "stopped");
    *result_count = 1;
    if (from != NULL) flowlua_arm_stop(from);
    return LUA_ERRRUN;
  }
  return status;
}

// MARK: - Waiting

int flowlua_begin_wait(lua_State *L, flowlua_host *host, void *wait) {
  if (lua_isyieldable(L)) {
    host->parked_wait = wait;
    set_flag(L, PARKED);
    return lua_yieldk(L, 0, (lua_KContext)wait, flowlua_wait_continuation);
  }
  wait_in_place(host, wait);
  return flowlua_wait_continuation(L, LUA_OK, (lua_KContext)wait);
}

void *flowlua_parked_wait(flowlua_host *host) { return host->parked_wait; }

// MARK: - The coroutine library

/// What resuming came to, apart from a count of results.
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
    status = flowlua_close_coroutine(host_of(L), co);
    lua_xmove(co, L, 1);
  }
  if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
    luaL_where(L, 1);
    lua_insert(L, -2);
    lua_concat(L, 2);
  }
  return lua_error(L);
}

/// Resumes `co` with the topmost `count` values of L, or goes on after a wait (count -1).
static int drive(lua_State *L, lua_State *co, int count, int kind) {
  flowlua_host *host = host_of(L);
  int results = 0;
  if (count >= 0) {
    if (!lua_checkstack(co, count)) {
      lua_pushliteral(L, "too many arguments to resume");
      return answer(L, co, RESUME_FAILED, kind);
    }
    if (has_flag(co, PARKED)) {
      lua_pushliteral(L, "cannot resume non-suspended coroutine");
      return answer(L, co, RESUME_FAILED, kind);
    }
    lua_xmove(L, co, count);
  } else {
    clear_flag(co, PARKED);
    count = 0;
  }
  int status = flowlua_resume_tracked(host, co, L, count, &results);
  while (status == LUA_YIELD && has_flag(co, PARKED)) {
    if (lua_isyieldable(L)) {
      set_flag(L, PARKED);
      return lua_yieldk(L, 0, (lua_KContext)kind, continue_parked);
    }
    wait_in_place(host, host->parked_wait);
    clear_flag(co, PARKED);
    status = flowlua_resume_tracked(host, co, L, 0, &results);
  }
  if (status == LUA_YIELD && take_flag(co, STOPPED)) {
    // A stop is no error that a script could catch: it goes upward, each coroutine closed.
    flowlua_close_coroutine(host, co);
    lua_settop(co, 0);
    if (lua_isyieldable(L)) {
      set_flag(L, STOPPED);
      return lua_yield(L, 0);
    }
    flowlua_arm_stop(L);
    return luaL_error(L, "stopped");
  }
  if (status != LUA_OK && status != LUA_YIELD) {
    lua_xmove(co, L, 1);
    return answer(L, co, RESUME_FAILED, kind);
  }
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
  return drive(L, lua_tothread(L, lua_upvalueindex(1)), lua_gettop(L), FOR_WRAP);
}

static int continue_parked(lua_State *L, int status, lua_KContext kind) {
  (void)status;
  lua_State *co =
      kind == FOR_WRAP ? lua_tothread(L, lua_upvalueindex(1)) : lua_tothread(L, 1);
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

/// Calls the function of the standard library that this one stands in for.
static int call_standard(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

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
  if (co == L || lua_status(co) == LUA_OK) {
    // Running and normal ones are refused below; a dead one has nothing to close.
    return call_standard(L);
  }
  // What the handlers of a suspended one do counts as running in it.
  int status = flowlua_close_coroutine(host_of(L), co);
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
  lua_getglobal(L, LUA_COLIBNAME);
  luaL_setfuncs(L, replaced, 0);
  for (const luaL_Reg *each = extended; each->name != NULL; each++) {
    lua_getfield(L, -1, each->name);
    lua_pushcclosure(L, each->func, 1);
    lua_setfield(L, -2, each->name);
  }
  lua_settop(L, -2);
}

// MARK: - The scheduler's coroutines

static int new_coroutine(lua_State *L, void *argument) {
  flowlua_coroutine *made = argument;
  luaL_checkstack(L, 2, NULL);
  made->L = lua_newthread(L);
  return 1;
}

flowlua_coroutine *flowlua_coroutine_take(flowlua_host *host) {
  flowlua_coroutine *coroutine = host->pool;
  if (coroutine != NULL) {
    host->pool = coroutine->next_free;
    // A script may have got hold of it while it was idle.
    if (lua_gethook(coroutine->L) != NULL) lua_sethook(coroutine->L, NULL, 0, 0);
    return coroutine;
  }
  coroutine = calloc(1, sizeof *coroutine);
  if (coroutine == NULL) return NULL;
  coroutine->host = host;
  int32_t status = flowlua_protect(host, new_coroutine, coroutine);
  if (status == LUA_OK) coroutine->reference = flowlua_reference(host, host->running);
  else flowlua_discard_error(host, status);
  if (status != LUA_OK || coroutine->reference == 0) {
    free(coroutine);
    return NULL;
  }
  return coroutine;
}

lua_State *flowlua_coroutine_state(const flowlua_coroutine *coroutine) { return coroutine->L; }

static int32_t close_stopped(flowlua_host *host, flowlua_coroutine *coroutine) {
  // Its cleanups run under a deadline of their own.
  int64_t grace = coroutine->grace;
  flowlua_unwatch(coroutine);
  atomic_store(&coroutine->stop, 0);
  flowlua_coroutine *previous = host->activity;
  host->activity = coroutine;
  if (grace > 0) flowlua_watch(host, coroutine, -grace, grace);
  flowlua_close_coroutine(host, coroutine->L);
  flowlua_unwatch(coroutine);
  atomic_store(&coroutine->stop, 0);
  host->activity = previous;
  return FLOWLUA_STOPPED;
}

int32_t flowlua_coroutine_run(
    flowlua_host *host, flowlua_coroutine *coroutine, int32_t count, int32_t *result_count) {
  lua_State *co = coroutine->L;
  flowlua_coroutine *previous = host->activity;
  clear_flag(co, PARKED);
  host->activity = coroutine;
  int status = flowlua_resume_tracked(host, co, host->running, count, result_count);
  host->activity = previous;
  // What ran meanwhile may have been asked to stop.
  if (is_stopping(host)) flowlua_arm_stop(host->running);
  if (atomic_load_explicit(&coroutine->stop, memory_order_relaxed) != 0) {
    // Asked to stop: it ends so, whatever its code made of it.
    clear_flag(co, STOPPED);
    return close_stopped(host, coroutine);
  }
  if (status == LUA_OK) return FLOWLUA_FINISHED;
  if (status != LUA_YIELD) return FLOWLUA_FAILED;
  return has_flag(co, PARKED) ? FLOWLUA_PARKED : FLOWLUA_YIELDED;
}

void flowlua_coroutine_release(
    flowlua_host *host, flowlua_coroutine *coroutine, bool finished) {
  if (coroutine->watched) flowlua_unwatch(coroutine);
  if (host->main == NULL) {
    // The coroutine went with its state.
    free(coroutine);
    return;
  }
  if (finished && !has_flag(coroutine->L, EXTRA_FLAGS) && lua_status(coroutine->L) == LUA_OK) {
    lua_settop(coroutine->L, 0);
    coroutine->next_free = host->pool;
    host->pool = coroutine;
    return;
  }
  clear_flag(coroutine->L, EXTRA_FLAGS);
  if (!host->closing) {
    flowlua_close_coroutine(host, coroutine->L);
    flowlua_unreference(host, coroutine->reference);
  }
  free(coroutine);
}

flowlua_coroutine *flowlua_start_operation(
    flowlua_host *host, int32_t function, uint32_t slot, uint64_t generation,
    int32_t arguments, int32_t count, int32_t *status, int32_t *result_count) {
  flowlua_coroutine *coroutine = flowlua_coroutine_take(host);
  if (coroutine == NULL) return NULL;
  lua_State *co = coroutine->L;
  if (!lua_checkstack(co, count + 8)
      || (flowlua_push_reference(host, co, function),
          !flowlua_push_handle(host, co, host->handle_type, slot, generation))) {
    lua_settop(co, 0);
    flowlua_coroutine_release(host, coroutine, true);
    return NULL;
  }
  if (count > 0) {
    flowlua_push_reference(host, co, arguments);
    for (int32_t i = 1; i <= count; i++) lua_rawgeti(co, 3, i);
    lua_remove(co, 3);
  }
  *status = flowlua_coroutine_run(host, coroutine, count + 1, result_count);
  return coroutine;
}
