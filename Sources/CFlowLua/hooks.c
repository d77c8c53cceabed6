// The hook of a coroutine has one owner, this file. It lends it to scripts (debug.sethook), takes it
// while something is asked for, and gives it back. What a script sets on the main coroutine, as tools
// for coverage and debugging do, holds for the scheduler's coroutines, too.
#include <stdlib.h>
#include <string.h>

#include "internal.h"

// MARK: - The stop hook

/// Whether a function is one of this target's that scripts don't call: an error in it wouldn't reach them.
static bool is_internal(lua_State *L, lua_Debug *frame) {
  lua_getinfo(L, "f", frame);
  lua_CFunction function = lua_tocfunction(L, -1);
  lua_settop(L, -2);
  return function != NULL
      && (function == flowlua_run_protected || function == flowlua_push_heavy_body
          || function == flowlua_run_body);
}

/// Gives a coroutine the hook that the stop hook has taken the place of.
static void restore_hook(flowlua_host *host, lua_State *L) {
  for (int i = 0; i < SAVED_HOOKS; i++) {
    saved_hook *saved = &host->saved_hooks[i];
    if (saved->L != L) continue;
    lua_sethook(L, saved->function, saved->mask, saved->count);
    saved->L = NULL;
    return;
  }
  lua_sethook(L, NULL, 0, 0);
}

/// Argument: where the traceback goes. The function that was stopped is its caller. [-1, +0, m]
static int make_stop_traceback(lua_State *L) {
  char **place = lua_touserdata(L, 1);
  luaL_traceback(L, L, NULL, 1);
  *place = strdup(lua_tostring(L, -1));
  return 0;
}

/// Notes where the coroutine that is to stop is, unless that is known, and whether it is in a `__close`.
/// Called from the hook, as long as its stack stands; without memory for it nothing is noted. [-0, +0, -]
static void note_stop(flowlua_host *host, lua_State *L, bool is_closing) {
  flowlua_coroutine *coroutine = atomic_load_explicit(&host->activity, memory_order_relaxed);
  if (coroutine == NULL) return;
  if (coroutine->failure == NULL) coroutine->failure = calloc(1, sizeof(failure_record));
  if (coroutine->failure == NULL) return;
  if (is_closing) coroutine->failure->has_cut_close = true;
  if (coroutine->failure->traceback != NULL) return;
  lua_pushcfunction(L, make_stop_traceback);
  lua_pushlightuserdata(L, &coroutine->failure->traceback);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK) lua_settop(L, -2);
}

static void stop_hook(lua_State *L, lua_Debug *frame) {
  flowlua_host *host = host_of(L);
  // As in the stand-alone interpreter, a C function is interrupted when it returns, or calls another.
  bool is_in_code = frame->event == LUA_HOOKCOUNT || frame->event == LUA_HOOKLINE;
  if (!is_asked_to_stop(host)) {
    if (!is_in_code && is_internal(L, frame)) return;
    // For a signal, or a stale one: what it was meant for is over.
    restore_hook(host, L);
    flowlua_answer_requests(L);
    return;
  }
  // Only there it may yield.
  if (!is_in_code) return;
  bool is_closing = flowlua_is_activity_stopped(host) && flowlua_runs_close(L);
  if (is_closing && flowlua_spares_close(host)) {
    restore_hook(host, L);
    flowlua_answer_requests(L);
    return;
  }
  lua_sethook(L, NULL, 0, 0);
  note_stop(host, L, is_closing);
  if (lua_isyieldable(L)) {
    set_flag(L, STOPPED);
    lua_yield(L, 0);
    return;
  }
  flowlua_arm_stop(L);
  flowlua_raise_memory(L);
}

/// Safe in a signal handler.
void flowlua_arm_stop(lua_State *L) {
  lua_Hook present = lua_gethook(L);
  if (present == stop_hook) return;
  flowlua_host *host = host_of(L);
  if (present != NULL) {
    saved_hook *place = &host->saved_hooks[0];
    for (int i = 0; i < SAVED_HOOKS; i++) {
      saved_hook *saved = &host->saved_hooks[i];
      if (saved->L == NULL || saved->L == L) {
        place = saved;
        break;
      }
    }
    place->function = present;
    place->mask = lua_gethookmask(L);
    place->count = lua_gethookcount(L);
    place->L = L;
  }
  lua_sethook(L, stop_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

void flowlua_forget_hook(flowlua_host *host, lua_State *L) {
  for (int i = 0; i < SAVED_HOOKS; i++) {
    if (host->saved_hooks[i].L == L) host->saved_hooks[i].L = NULL;
  }
}

// MARK: - The hook of the main coroutine

/// Takes note of what debug.sethook has set on the main coroutine; the function stands at `index`.
static void note_main_hook(lua_State *L, flowlua_host *host, int index) {
  if (host->main_hook != 0) flowlua_unreference(host, host->main_hook);
  host->main_hook = 0;
  host->hook_version = 0;
  if (lua_gethook(host->main) == NULL) return;
  lua_pushvalue(L, index);
  host->main_hook = flowlua_reference(host, L);
  if (host->main_hook == 0) return;
  host->main_hook_mask = lua_gethookmask(host->main);
  host->main_hook_count = lua_gethookcount(host->main);
  host->last_hook_version += 1;
  if (host->last_hook_version == OWN_HOOK || host->last_hook_version == 0)
    host->last_hook_version = 1;
  host->hook_version = host->last_hook_version;
}

/// debug.sethook, which can't take the stop hook away.
static int debug_sethook(lua_State *L) {
  lua_State *target = lua_isthread(L, 1) ? lua_tothread(L, 1) : L;
  int function = lua_isthread(L, 1) ? 2 : 1;
  // Called as the function itself, so that its messages name this one.
  int results = lua_tocfunction(L, lua_upvalueindex(1))(L);
  flowlua_host *host = host_of(L);
  flowlua_forget_hook(host, target);
  flowlua_coroutine *activity = atomic_load_explicit(&host->activity, memory_order_relaxed);
  if (target == host->main) note_main_hook(L, host, function);
  else if (activity != NULL && activity->L == target) activity->hook_version = OWN_HOOK;
  if (is_stopping(host)) flowlua_arm_stop(host->running);
  return results;
}

/// Sets the hook of the main coroutine on another one, by debug.sethook itself, which keeps the function.
static int inherit_hook(lua_State *L, void *argument) {
  const flowlua_host *host = host_of(L);
  lua_State *co = argument;
  if (host->set_hook == NULL || !lua_checkstack(co, 1)) return 0;
  lua_pushcfunction(L, host->set_hook);
  lua_pushthread(co);
  lua_xmove(co, L, 1);
  if (host->main_hook == 0) {
    lua_call(L, 1, 0);
    return 0;
  }
  flowlua_push_reference(host_of(L), L, host->main_hook);
  char mask[4];
  int length = 0;
  if (host->main_hook_mask & LUA_MASKCALL) mask[length++] = 'c';
  if (host->main_hook_mask & LUA_MASKRET) mask[length++] = 'r';
  if (host->main_hook_mask & LUA_MASKLINE) mask[length++] = 'l';
  lua_pushlstring(L, mask, (size_t)length);
  lua_pushinteger(L, host->main_hook_count);
  lua_call(L, 4, 0);
  return 0;
}

void flowlua_inherit_hook(flowlua_host *host, flowlua_coroutine *coroutine) {
  // What its own code has set stays until it ends.
  if (coroutine->hook_version == OWN_HOOK && has_flag(coroutine->L, PARKED)) return;
  coroutine->hook_version = host->hook_version;
  if (host->main_hook == 0 && lua_gethook(coroutine->L) == NULL) return;
  flowlua_forget_hook(host, coroutine->L);
  int32_t status = flowlua_protect(host, inherit_hook, coroutine->L);
  // Without memory it runs without.
  if (status != LUA_OK) flowlua_discard_error(host, status);
}

void flowlua_install_debug_library(lua_State *L) {
  lua_getglobal(L, LUA_DBLIBNAME);
  lua_getfield(L, -1, "sethook");
  host_of(L)->set_hook = lua_tocfunction(L, -1);
  lua_pushcclosure(L, debug_sethook, 1);
  lua_setfield(L, -2, "sethook");
  lua_settop(L, -2);
}
