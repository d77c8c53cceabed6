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

// MARK: - Closing

/// lua_resetthread, with what its handlers do counted as running in the coroutine. On failure the
/// error is on its stack, else nothing is. [-?, +0|1, -]
int flowlua_close_coroutine(flowlua_host *host, lua_State *co) {
  lua_State *previous = host->running;
  host->running = co;
  if (is_stopping(host)) flowlua_arm_stop(co);
  int status = lua_resetthread(co);
  host->running = previous;
  flowlua_forget_hook(host, co);
  if (is_stopping(host)) flowlua_arm_stop(previous);
  return status;
}

/// How deep coroutines can be in each other: Lua allows 200 levels of C.
enum { MOST_CHAINED = 200 };

/// Closes a coroutine and, innermost first, those that it is parked for: together they were one
/// stack, whose cleanups all run. Errors of the cleanups are dropped. [-?, +0, -]
void flowlua_close_chain(flowlua_host *host, lua_State *co) {
  lua_State *chain[MOST_CHAINED];
  int count = 0;
  lua_State *each = co;
  while (each != NULL && count < MOST_CHAINED) {
    chain[count++] = each;
    each = has_flag(each, CHAINED) ? lua_tothread(each, -1) : NULL;
  }
  while (count > 0) {
    each = chain[--count];
    clear_flag(each, EXTRA_FLAGS);
    set_flag(each, CLOSING);
    flowlua_close_coroutine(host, each);
    clear_flag(each, CLOSING);
    lua_settop(each, 0);
  }
}

/// Closes a coroutine that the stop hook has made yield. [-?, +0, -]
void flowlua_close_stopped(flowlua_host *host, lua_State *co) {
  flowlua_coroutine *activity = atomic_load(&host->activity);
  bool is_enclosed = (atomic_load(&host->requests) & FLOWLUA_STOP) != 0;
  if (activity != NULL) flowlua_begin_grace(activity);
  if (is_enclosed) flowlua_stop_enclosed(host);
  flowlua_close_chain(host, co);
  if (activity != NULL) flowlua_end_grace(activity);
  if (is_enclosed) atomic_fetch_or(&host->requests, FLOWLUA_STOP);
}

// MARK: - Resumers that know nothing of waits

/// Pushes a text of the anchor onto a coroutine from outside. [-0, +1, -]
static void push_text(flowlua_host *host, lua_State *co, int text) {
  lua_pushvalue(host->anchor, text);
  lua_xmove(host->anchor, co, 1);
}

/// Waits where the running coroutine can't yield.
static void wait_in_place(flowlua_host *host, void *wait) {
  host->callbacks.pump(host, wait);
  // Others may have used another state meanwhile.
  flowlua_current = host;
}

static bool take_flag(lua_State *co, uintptr_t flag) {
  bool had = has_flag(co, flag);
  clear_flag(co, flag);
  return had;
}

/// Makes a parked coroutine ready for being resumed. [-(0|1), +0, -]
static void unpark(lua_State *co) {
  if (take_flag(co, CHAINED)) lua_settop(co, -2);
  clear_flag(co, PARKED);
}

/// Exported, so that it stands in for liblua's also where liblua and C modules resume. Only those
/// come here: they know nothing of waits and stops, so both end here.
__attribute__((visibility("default"), used)) int lua_resume(
    lua_State *co, lua_State *from, int count, int *result_count) {
  flowlua_host *host = flowlua_current;
  if (real_resume == NULL) find_real_resume();
  if (host == NULL || host_of(co) != host) return real_resume(co, from, count, result_count);
  if (has_flag(co, PARKED)) {
    // As lua_resume answers a coroutine that runs: the arguments give way to a message.
    lua_settop(co, -count - 1);
    *result_count = 0;
    if (lua_checkstack(co, 1)) {
      push_text(host, co, ANCHOR_NOT_SUSPENDED);
      *result_count = 1;
    }
    return LUA_ERRRUN;
  }
  int status = flowlua_resume_tracked(host, co, from, count, result_count);
  while (status == LUA_YIELD && has_flag(co, PARKED)) {
    wait_in_place(host, host->parked_wait);
    unpark(co);
    status = flowlua_resume_tracked(host, co, from, 0, result_count);
  }
  if (status == LUA_YIELD && take_flag(co, STOPPED)) {
    flowlua_close_stopped(host, co);
    push_text(host, co, ANCHOR_STOPPED);
    *result_count = 1;
    flowlua_arm_stop(host->running);
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
    set_flag(co, CLOSING);
    status = flowlua_close_coroutine(host_of(L), co);
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

/// Resumes `co` with the topmost `count` values of L, or goes on after a wait (count -1).
/// [-count, +results, v]
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
    unpark(co);
    count = 0;
  }
  int status = flowlua_resume_tracked(host, co, L, count, &results);
  while (status == LUA_YIELD && has_flag(co, PARKED)) {
    if (lua_isyieldable(L)) {
      // The inner coroutine goes along as the yielded value, so that whoever closes this one can
      // close that one first.
      lua_pushvalue(L, kind == FOR_WRAP ? lua_upvalueindex(1) : 1);
      set_flag(L, PARKED | CHAINED);
      return lua_yieldk(L, 1, (lua_KContext)kind, continue_parked);
    }
    wait_in_place(host, host->parked_wait);
    unpark(co);
    status = flowlua_resume_tracked(host, co, L, 0, &results);
  }
  if (status == LUA_YIELD && take_flag(co, STOPPED)) {
    // A stop is no error that a script could catch: it goes upward, each coroutine closed.
    flowlua_close_stopped(host, co);
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

/// Calls the function of the standard library that this one stands in for, as if it were that one:
/// its messages name the caller's line.
static int call_standard(lua_State *L) {
  return lua_tocfunction(L, lua_upvalueindex(1))(L);
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
  // Running and normal ones are refused by the standard function; one that hasn't begun, or is over,
  // has nothing to clean up.
  if (co == L || lua_status(co) == LUA_OK) return call_standard(L);
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
  flowlua_host *host = host_of(L);
  lua_getglobal(L, "pcall");
  lua_getglobal(L, "xpcall");
  host->pcall = lua_tocfunction(L, -2);
  host->xpcall = lua_tocfunction(L, -1);
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

// MARK: - The scheduler's coroutines

enum {
  /// From so many on, coroutines are made by the batch, which spares most of them a protected call.
  MANY_COROUTINES = 64,
  COROUTINE_BATCH = 16,
};
_Static_assert(COROUTINE_BATCH < LUA_MINSTACK, "a batch of coroutines fits onto the stack");

static int new_coroutines(lua_State *L, void *argument) {
  const int32_t *count = argument;
  for (int32_t i = 0; i < *count; i++) lua_newthread(L);
  return *count;
}

/// A structure without a coroutine.
static flowlua_coroutine *take_bare(flowlua_host *host) {
  flowlua_coroutine *coroutine = host->bare;
  if (coroutine != NULL) {
    host->bare = coroutine->next_free;
    return coroutine;
  }
  coroutine_block *block = host->made;
  if (block == NULL || block->used == COROUTINES_PER_BLOCK) {
    block = calloc(
        1, sizeof *block + COROUTINES_PER_BLOCK * sizeof(flowlua_coroutine));
    if (block == NULL) return NULL;
    block->next = host->made;
    host->made = block;
  }
  return &block->coroutines[block->used++];
}

void flowlua_forget_failure(flowlua_coroutine *coroutine) {
  if (coroutine->failure == NULL) return;
  free(coroutine->failure->traceback);
  free(coroutine->failure);
  coroutine->failure = NULL;
}

static void give_bare(flowlua_host *host, flowlua_coroutine *coroutine) {
  flowlua_forget_failure(coroutine);
  coroutine->error_status = LUA_OK;
  coroutine->L = NULL;
  coroutine->reference = 0;
  coroutine->next_free = host->bare;
  host->bare = coroutine;
}

/// Puts a new coroutine, which stands on top of the running one's stack, into the pool. [-1, +0, -]
static void add_to_pool(flowlua_host *host) {
  lua_State *co = lua_tothread(host->running, -1);
  flowlua_coroutine *coroutine = take_bare(host);
  if (coroutine == NULL) {
    flowlua_pop(host->running, 1);
    return;
  }
  coroutine->reference = flowlua_reference(host, host->running);
  if (coroutine->reference == 0) {
    give_bare(host, coroutine);
    return;
  }
  coroutine->L = co;
  coroutine->next_free = host->pool;
  host->pool = coroutine;
  host->coroutine_count += 1;
}

/// Fills the pool, which is empty; false without memory.
static bool make_coroutines(flowlua_host *host, int32_t count) {
  int32_t status = flowlua_protect(host, new_coroutines, &count);
  if (status != LUA_OK) {
    flowlua_discard_error(host, status);
    return false;
  }
  for (int32_t i = 0; i < count; i++) add_to_pool(host);
  return host->pool != NULL;
}

flowlua_coroutine *flowlua_coroutine_take(flowlua_host *host) {
  if (host->pool == NULL) {
    bool is_made =
        host->coroutine_count >= MANY_COROUTINES && make_coroutines(host, COROUTINE_BATCH);
    if (!is_made && !make_coroutines(host, 1)) return NULL;
  }
  flowlua_coroutine *coroutine = host->pool;
  host->pool = coroutine->next_free;
  // A new one inherits the hook of the running one, an idle one has that of its use before.
  if (lua_gethook(coroutine->L) != NULL) {
    lua_sethook(coroutine->L, NULL, 0, 0);
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

/// Lets go of the wait that a coroutine has kept.
static void drop_wait(flowlua_host *host, void *wait) {
  if (wait == NULL) return;
  host->callbacks.release(wait);
  flowlua_current = host;
}

static flowlua_coroutine *set_activity(flowlua_host *host, flowlua_coroutine *activity) {
  flowlua_coroutine *previous =
      atomic_load_explicit(&host->activity, memory_order_relaxed);
  atomic_store_explicit(&host->activity, activity, memory_order_relaxed);
  return previous;
}

/// Closes a coroutine of the scheduler with all it is parked for; if it is watched, its cleanups
/// have to end within the grace.
static void close_scheduled(flowlua_host *host, flowlua_coroutine *coroutine) {
  flowlua_coroutine *previous = set_activity(host, coroutine);
  if (is_watched(coroutine)) flowlua_begin_grace(coroutine);
  flowlua_close_chain(host, coroutine->L);
  flowlua_unwatch(coroutine);
  set_activity(host, previous);
}

/// The message handler of scheduled coroutines. It leaves the error as it is.
static int note_failure(lua_State *L) {
  flowlua_host *host = host_of(L);
  flowlua_coroutine *coroutine = atomic_load_explicit(&host->activity, memory_order_relaxed);
  if (coroutine == NULL || coroutine->L != L) return 1;
  if (coroutine->failure == NULL) coroutine->failure = calloc(1, sizeof(failure_record));
  // Without memory for them, an error has neither position nor traceback.
  if (coroutine->failure == NULL) return 1;
  flowlua_where(L, 1, coroutine->failure->position, FLOWLUA_POSITION);
  luaL_traceback(L, L, NULL, 1);
  free(coroutine->failure->traceback);
  coroutine->failure->traceback = strdup(lua_tostring(L, -1));
  lua_settop(L, 1);
  return 1;
}

static int finish_body(lua_State *L, int status, lua_KContext context) {
  (void)context;
  if (status == LUA_OK || status == LUA_YIELD) return lua_gettop(L) - 1;
  flowlua_host *host = host_of(L);
  flowlua_coroutine *coroutine = atomic_load_explicit(&host->activity, memory_order_relaxed);
  if (coroutine != NULL && coroutine->L == L) coroutine->error_status = (uint8_t)status;
  return lua_error(L);
}

/// Arguments: the message handler, the function and its own arguments.
int flowlua_run_body(lua_State *L) {
  int status = lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 1, 0, finish_body);
  return finish_body(L, status, 0);
}

lua_CFunction flowlua_body_function(void) { return flowlua_run_body; }

void flowlua_coroutine_push_body(flowlua_coroutine *coroutine) {
  lua_pushcfunction(coroutine->L, flowlua_run_body);
  lua_pushcfunction(coroutine->L, note_failure);
}

const char *flowlua_coroutine_traceback(const flowlua_coroutine *coroutine) {
  return coroutine->failure != NULL ? coroutine->failure->traceback : NULL;
}

bool flowlua_coroutine_has_cut_close(const flowlua_coroutine *coroutine) {
  return coroutine->failure != NULL && coroutine->failure->has_cut_close;
}

const char *flowlua_coroutine_position(const flowlua_coroutine *coroutine) {
  return coroutine->failure != NULL ? coroutine->failure->position : "";
}

int32_t flowlua_coroutine_error_status(const flowlua_coroutine *coroutine) {
  return coroutine->error_status;
}

int32_t flowlua_coroutine_run(
    flowlua_host *host, flowlua_coroutine *coroutine, int32_t count, int32_t *result_count) {
  lua_State *co = coroutine->L;
  lua_State *from = host->running;
  void *wait = coroutine->wait;
  coroutine->wait = NULL;
  if (coroutine->hook_version != host->hook_version) flowlua_inherit_hook(host, coroutine);
  if (has_flag(co, PARKED)) unpark(co);
  flowlua_coroutine *previous = set_activity(host, coroutine);
  host->running = co;
  if (is_stopping(host)) flowlua_arm_stop(co);
  int status = real_resume(co, from, count, result_count);
  host->running = from;
  set_activity(host, previous);
  drop_wait(host, wait);
  bool is_asked = atomic_load_explicit(&coroutine->stop, memory_order_relaxed) != 0;
  // Where it couldn't yield, it has failed.
  if (!is_asked && status != LUA_OK
      && (status == LUA_YIELD ? has_flag(co, STOPPED) : is_asked_to_stop(host))) {
    flowlua_stop_enclosed(host);
    is_asked = true;
  }
  if (is_asked) {
    // Asked to stop: it ends so, whatever its code made of it.
    close_scheduled(host, coroutine);
    status = FLOWLUA_STOPPED;
  } else if (status == LUA_OK) {
    status = FLOWLUA_FINISHED;
  } else if (status != LUA_YIELD) {
    status = FLOWLUA_FAILED;
  } else {
    status = has_flag(co, PARKED) ? FLOWLUA_PARKED : FLOWLUA_YIELDED;
  }
  // What called this may have been asked to stop meanwhile.
  if (is_stopping(host)) flowlua_arm_stop(from);
  return status;
}

/// Whether it, or what it has called, is executing: it has a frame, but is neither suspended nor dead.
static bool is_active(lua_State *co) {
  lua_Debug frame;
  return lua_status(co) == LUA_OK && lua_getstack(co, 0, &frame) != 0;
}

/// Puts a coroutine that has just finished, and that nobody else has seen, back into the pool.
void flowlua_recycle(flowlua_host *host, flowlua_coroutine *coroutine) {
  if (is_watched(coroutine)) flowlua_unwatch(coroutine);
  coroutine->generation += 1;
  coroutine->handle_generation = 0;
  lua_settop(coroutine->L, 0);
  coroutine->next_free = host->pool;
  host->pool = coroutine;
}

int32_t flowlua_coroutine_release(
    flowlua_host *host, flowlua_coroutine *coroutine, uint32_t generation, bool finished) {
  if (generation != coroutine->generation) return FLOWLUA_STALE;
  lua_State *co = coroutine->L;
  if (is_active(co)) return FLOWLUA_ACTIVE;
  void *wait = coroutine->wait;
  coroutine->wait = NULL;
  if (finished && !has_flag(co, EXTRA_FLAGS) && lua_status(co) == LUA_OK) {
    flowlua_recycle(host, coroutine);
  } else {
    coroutine->generation += 1;
    close_scheduled(host, coroutine);
    flowlua_unreference(host, coroutine->reference);
    give_bare(host, coroutine);
    host->coroutine_count -= 1;
  }
  drop_wait(host, wait);
  return FLOWLUA_RELEASED;
}
