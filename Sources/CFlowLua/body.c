// The function through which scheduled coroutines run their own, and its notes of their errors.
#include <stdlib.h>

#include "internal.h"

void flowlua_forget_failure(flowlua_coroutine *coroutine) {
  if (coroutine->failure == NULL) return;
  free(coroutine->failure->traceback);
  free(coroutine->failure);
  coroutine->failure = NULL;
}

/// The message handler of scheduled coroutines. It leaves the error as it is.
static int note_failure(lua_State *L) {
  flowlua_state *state = state_of(L);
  flowlua_coroutine *coroutine = atomic_load_explicit(&state->activity, memory_order_relaxed);
  if (coroutine == NULL || coroutine->L != L) return 1;
  if (coroutine->failure == NULL) coroutine->failure = flowlua_zeroed_own(sizeof(failure_record));
  // Without memory for them, an error has neither position nor traceback.
  if (coroutine->failure == NULL) return 1;
  flowlua_where(L, 1, coroutine->failure->position, FLOWLUA_POSITION);
  flowlua_push_traceback(L, L, NULL, 1);
  free(coroutine->failure->traceback);
  coroutine->failure->traceback = flowlua_copy_own(lua_tostring(L, -1));
  lua_settop(L, 1);
  return 1;
}

static int finish_body(lua_State *L, int status, lua_KContext context) {
  (void)context;
  if (status == LUA_OK || status == LUA_YIELD) return lua_gettop(L) - 1;
  flowlua_state *state = state_of(L);
  flowlua_coroutine *coroutine = atomic_load_explicit(&state->activity, memory_order_relaxed);
  if (coroutine != NULL && coroutine->L == L) coroutine->error_status = (uint8_t)status;
  return lua_error(L);
}

/// Arguments: the message handler, the function and its own arguments.
int flowlua_run_body(lua_State *L) {
  int status = lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 1, 0, finish_body);
  return finish_body(L, status, 0);
}

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

// Whether code runs on behalf of a `__close`, and what a coroutine waits in.
//
// A `__close` that is called at the end of a block or function has a name of its own in the debug
// information. One that is called because of an error hasn't: its caller is pcall, xpcall or the body
// of a scheduled coroutine, as it is of the function that was called in the first place. They differ in
// where they stand: the function at a known place of its caller's stack, a `__close` above that.

/// How many values a protecting function has on its stack below the function that it calls; -1 for
/// all others.
static int values_below_callee(lua_CFunction function, const flowlua_state *state) {
  if (function == NULL) return -1;
  if (function == state->pcall) return 1;   // true
  if (function == state->xpcall) return 3;  // the handler, true, the function
  return function == flowlua_run_body ? 1 : -1;
}

/// How many values a function with variable arguments leaves below itself: Lua copies it above them.
static int values_left_below(lua_State *L, int level) {
  lua_Debug frame;
  if (lua_getstack(L, level, &frame) == 0) return 0;
  lua_getinfo(L, "uf", &frame);
  bool is_shifted = frame.isvararg && !lua_iscfunction(L, -1);
  lua_settop(L, -2);
  if (!is_shifted) return 0;
  int extra = 0;
  while (lua_getlocal(L, &frame, -(extra + 1)) != NULL) {
    lua_settop(L, -2);
    extra++;
  }
  return 1 + frame.nparams + extra;
}

/// Whether a frame is a `__close`, or the one that has called it.
static bool is_close(lua_State *L, const flowlua_state *state, int level, lua_Debug *frame) {
  lua_getinfo(L, "nf", frame);
  lua_CFunction function = lua_tocfunction(L, -1);
  lua_settop(L, -2);
  if (frame->name != NULL && strcmp(frame->namewhat, "metamethod") == 0
      && strcmp(frame->name, "close") == 0)
    return true;
  int below = level > 0 ? values_below_callee(function, state) : -1;
  if (below < 0) return false;
  below += values_left_below(L, level - 1);
  if (lua_getlocal(L, frame, below + 1) == NULL) return false;
  lua_settop(L, -2);
  return true;
}

/// The number of frames, by binary search: each lua_getstack takes a step for each frame above.
static int frame_count(lua_State *L) {
  lua_Debug frame;
  int low = 0, high = 1;
  while (lua_getstack(L, high, &frame) != 0) {
    low = high;
    high *= 2;
  }
  while (low + 1 < high) {
    int middle = low + (high - low) / 2;
    if (lua_getstack(L, middle, &frame) != 0) low = middle;
    else high = middle;
  }
  return high;
}

/// How many frames are looked at of a stack that is deeper than both together: from its top and from its
/// bottom. All of 200,000 would take a minute.
enum { INNERMOST_FRAMES = 1000, OUTERMOST_FRAMES = 50 };

static bool is_closing(lua_State *L, const flowlua_state *state) {
  if (has_flag(L, CLOSING)) return true;
  if (!lua_checkstack(L, 1)) return false;
  lua_Debug frame;
  int level = 0;
  for (; level < INNERMOST_FRAMES; level++) {
    if (lua_getstack(L, level, &frame) == 0) return false;
    if (is_close(L, state, level, &frame)) return true;
  }
  int count = frame_count(L);
  if (count - OUTERMOST_FRAMES > level) level = count - OUTERMOST_FRAMES;
  for (; lua_getstack(L, level, &frame) != 0; level++)
    if (is_close(L, state, level, &frame)) return true;
  return false;
}

bool flowlua_runs_close(lua_State *L) {
  const flowlua_state *state = state_of(L);
  if (is_closing(L, state)) return true;
  flowlua_coroutine *activity = atomic_load(&state->activity);
  return activity != NULL && activity->L != NULL && activity->L != L
      && is_closing(activity->L, state);
}

bool flowlua_state_runs_close(const flowlua_state *state) {
  return flowlua_runs_close(state->running);
}

/// The coroutine that a parked one waits for, if it does.
static lua_State *inner(lua_State *co) {
  return has_flag(co, CHAINED) ? lua_tothread(co, -1) : NULL;
}

bool flowlua_coroutine_is_closing(const flowlua_coroutine *coroutine) {
  for (lua_State *each = coroutine->L; each != NULL; each = inner(each))
    if (is_closing(each, state_of(each))) return true;
  return false;
}

lua_State *flowlua_coroutine_innermost(const flowlua_coroutine *coroutine) {
  lua_State *co = coroutine->L;
  for (lua_State *next = inner(co); next != NULL; next = inner(co)) co = next;
  return co;
}
