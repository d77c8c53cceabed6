// One Lua state with its host: making, memory, closing.
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "internal.h"

/// The host whose code runs on this thread; the signal handler and lua_resume look here.
static _Thread_local flowlua_host *current_host;

flowlua_host *flowlua_current_host(void) { return current_host; }

flowlua_host *flowlua_make_current(flowlua_host *host) {
  flowlua_host *previous = current_host;
  current_host = host;
  return previous;
}

/// Counts what the state holds. Shrinking never fails, as Lua requires.
static void *allocate(void *context, void *block, size_t old_size, size_t new_size) {
  flowlua_host *host = context;
  // Without a block the old size is a type tag.
  size_t held = block != NULL ? old_size : 0;
  if (new_size == 0) {
    host->memory_used -= held;
    free(block);
    return NULL;
  }
  if (new_size > held) {
    if (host->failing_allocation != 0 && --host->failing_allocation == 0) {
      // Lua collects and tries once more, which is the next request.
      host->silent_failures = 1;
      return NULL;
    }
    if (host->silent_failures > 0) {
      host->silent_failures -= 1;
      return NULL;
    }
    size_t more = new_size - held;
    if (host->memory_limit != 0
        && (host->memory_used > host->memory_limit
            || more > host->memory_limit - host->memory_used))
      return NULL;
  }
  void *result = realloc(block, new_size);
  if (result == NULL) return new_size <= held ? block : NULL;
  host->memory_used = host->memory_used - held + new_size;
  return result;
}

/// Everything of the set-up that can raise.
static int set_up(lua_State *L) {
  flowlua_host *host = host_of(L);
  const flowlua_configuration *configuration = lua_touserdata(L, 1);
  if (configuration->standard_libraries) {
    luaL_openlibs(L);
    flowlua_install_coroutine_library(L);
    flowlua_install_debug_library(L);
  }
  lua_State *anchor = lua_newthread(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, host);
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
  host->anchor = anchor;
  luaL_checkstack(anchor, 96, "no room for handles");
  return 0;
}

static bool choose_secret(flowlua_host *host) {
  uint64_t secret;
  if (getrandom(&secret, sizeof secret, GRND_NONBLOCK) != (ssize_t)sizeof secret) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    secret = (uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15u ^ (uint64_t)(uintptr_t)host;
  }
  // The low bits take the type's number.
  host->secret = secret & ~(uint64_t)0xFFFF;
  return true;
}

flowlua_host *flowlua_open(
    const flowlua_configuration *configuration, const flowlua_callbacks *callbacks) {
  flowlua_host *host = NULL;
  if (posix_memalign((void **)&host, 64, sizeof *host) != 0) return NULL;
  memset(host, 0, sizeof *host);
  host->callbacks = *callbacks;
  host->owner = pthread_self();
  host->reference_capacity = 64;
  host->free_references = malloc(sizeof(int32_t) * 64);
  host->type_capacity = 16;
  host->type_metatables = malloc(sizeof(int32_t) * 17);
  if (host->free_references == NULL || host->type_metatables == NULL) goto failed;
  for (int32_t i = 0; i < 64; i++) host->free_references[i] = 64 - i;
  host->free_count = 64;
  choose_secret(host);
  // luaL_newstate sets the panic and warning functions, which lua_newstate alone would not;
  // its allocator is realloc and free, so ours may take over its blocks.
  host->main = luaL_newstate();
  if (host->main == NULL) goto failed;
  EXTRA(host->main) = (uintptr_t)host;
  host->running = host->main;
  host->memory_used = (size_t)lua_gc(host->main, LUA_GCCOUNT) * 1024
      + (size_t)lua_gc(host->main, LUA_GCCOUNTB);
  host->memory_limit = configuration->memory_limit;
  host->failing_allocation = configuration->failing_allocation;
  lua_setallocf(host->main, allocate, host);
  flowlua_host *previous = flowlua_make_current(host);
  // With an empty stack there is room, and neither push allocates.
  lua_gc(host->main, LUA_GCSTOP);
  lua_pushcfunction(host->main, set_up);
  lua_pushlightuserdata(host->main, (void *)configuration);
  int status = lua_pcall(host->main, 1, 0, 0);
  if (status != LUA_OK) {
    host->closing = true;
    lua_close(host->main);
    flowlua_make_current(previous);
    goto failed;
  }
  lua_gc(host->main, LUA_GCRESTART);
  if (configuration->generational) lua_gc(host->main, LUA_GCGEN, 0, 0);
  flowlua_make_current(previous != NULL ? previous : host);
  return host;
failed:
  free(host->free_references);
  free(host->type_metatables);
  free(host);
  return NULL;
}

void flowlua_close(flowlua_host *host) {
  flowlua_host *previous = flowlua_make_current(host);
  flowlua_forget_host(host);
  host->closing = true;
  host->memory_limit = 0;
  host->failing_allocation = 0;
  lua_close(host->main);
  flowlua_make_current(previous != host ? previous : NULL);
  host->main = NULL;
  host->running = NULL;
}

void flowlua_free(flowlua_host *host) {
  for (flowlua_coroutine *each = host->pool; each != NULL;) {
    flowlua_coroutine *next = each->next_free;
    free(each);
    each = next;
  }
  free(host->free_references);
  free(host->type_metatables);
  free(host);
}

void flowlua_set_context(flowlua_host *host, void *context) { host->context = context; }
void *flowlua_context(const flowlua_host *host) { return host->context; }
lua_State *flowlua_main(const flowlua_host *host) { return host->main; }
lua_State *flowlua_running(const flowlua_host *host) { return host->running; }
bool flowlua_is_owner(const flowlua_host *host) {
  return pthread_equal(host->owner, pthread_self()) != 0;
}
bool flowlua_is_closing(const flowlua_host *host) { return host->closing; }
size_t flowlua_memory_used(const flowlua_host *host) { return host->memory_used; }
void flowlua_set_memory_limit(flowlua_host *host, size_t bytes) { host->memory_limit = bytes; }
void flowlua_fail_allocation(flowlua_host *host, uint64_t n) { host->failing_allocation = n; }
