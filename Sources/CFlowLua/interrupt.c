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

bool flowlua_has_request(const flowlua_host *host) {
  return atomic_load_explicit(&host->requests, memory_order_relaxed) != 0;
}

bool flowlua_take_request(flowlua_host *host, uint8_t what) {
  return flowlua_has_request(host)
      && (atomic_fetch_and(&host->requests, (uint8_t)~what) & what) != 0;
}

bool flowlua_runs_scheduled(const flowlua_host *host) {
  return atomic_load_explicit(&host->activity, memory_order_relaxed) != NULL;
}

void flowlua_answer_requests(lua_State *L) {
  flowlua_host *host = host_of(L);
  if (flowlua_take_request(host, FLOWLUA_TERMINATE)) {
    lua_State *previous = host->running;
    host->running = L;
    host->callbacks.terminate(host);
    host->running = previous;
    flowlua_current = host;
  }
  // As the stand-alone interpreter's hook, with the position of what called the interrupted function.
  if (flowlua_take_request(host, FLOWLUA_INTERRUPT)) luaL_error(L, "interrupted!");
}
