// What signals such as Ctrl-C ask of the code that runs. A handler only sets a bit and arms the hook on
// the running coroutine; whoever runs next, the hook or a loop that waits, takes the request.
#include "internal.h"

/// Safe in a signal handler on the owner thread.
static void request(void *context, uint8_t what) {
  flowlua_host *host = context;
  if (host == NULL || host->closing) return;
  atomic_fetch_or(&host->requests, what);
  lua_State *running = host->running;
  if (running != NULL) flowlua_arm_stop(running);
}

static void interrupt(void *host) { request(host, FLOWLUA_INTERRUPT); }
static void terminate(void *host) { request(host, FLOWLUA_TERMINATE); }

flowlua_request_function flowlua_interrupter(void) { return interrupt; }
flowlua_request_function flowlua_terminator(void) { return terminate; }

static bool is_interrupting(void *context) {
  const flowlua_host *host = context;
  return host != NULL && (atomic_load(&host->requests) & FLOWLUA_INTERRUPT) != 0;
}

flowlua_question_function flowlua_interruption_question(void) { return is_interrupting; }

bool flowlua_call_attention(flowlua_host *host) {
  atomic_fetch_or(&host->requests, FLOWLUA_ATTEND);
  return flowlua_signal_owner(host);
}

bool flowlua_has_request(const flowlua_host *host) {
  return atomic_load_explicit(&host->requests, memory_order_relaxed) != 0;
}

bool flowlua_has_requested(const flowlua_host *host, uint8_t what) {
  return (atomic_load_explicit(&host->requests, memory_order_relaxed) & what) != 0;
}

bool flowlua_take_request(flowlua_host *host, uint8_t what) {
  return flowlua_has_request(host)
      && (atomic_fetch_and(&host->requests, (uint8_t)~what) & what) != 0;
}

bool flowlua_runs_scheduled(const flowlua_host *host) {
  return atomic_load_explicit(&host->activity, memory_order_relaxed) != NULL;
}

/// Calls back with L as the running coroutine. [-0, +0, -]
static void call_back(lua_State *L, void (*callback)(flowlua_host *)) {
  flowlua_host *host = host_of(L);
  lua_State *previous = host->running;
  host->running = L;
  callback(host);
  host->running = previous;
  flowlua_current = host;
}

void flowlua_answer_requests(lua_State *L) {
  flowlua_host *host = host_of(L);
  if (flowlua_take_request(host, FLOWLUA_TERMINATE)) call_back(L, host->callbacks.terminate);
  if (flowlua_take_request(host, FLOWLUA_ATTEND)) call_back(L, host->callbacks.attend);
  // Nothing is raised in cleanups, of which a `__close` is one.
  if (!flowlua_has_request(host) || (flowlua_runs_scheduled(host) && flowlua_runs_close(L))) return;
  // As the stand-alone interpreter's hook, with the position of what called the interrupted function.
  if (flowlua_take_request(host, FLOWLUA_INTERRUPT)) {
    lua_State *previous = host->running;
    host->running = L;
    bool raises = host->callbacks.interrupt(host);
    host->running = previous;
    flowlua_current = host;
    if (raises) luaL_error(L, "interrupted!");
    atomic_fetch_or(&host->requests, FLOWLUA_INTERRUPT);
  }
}
