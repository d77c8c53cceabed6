// One Lua state with its host: making, memory, closing.
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "internal.h"

_Thread_local flowlua_host *flowlua_current;

flowlua_host *flowlua_make_current(flowlua_host *host) {
  flowlua_host *previous = flowlua_current;
  flowlua_current = host;
  return previous;
}

int32_t flowlua_enter(flowlua_host *host) {
  // Only the owner thread ever has the host as its current one.
  if (flowlua_current == host) return FLOWLUA_ENTERED;
  if (!flowlua_is_owner(host)) return FLOWLUA_FOREIGN_THREAD;
  if (host->main == NULL) return FLOWLUA_CLOSED;
  flowlua_current = host;
  return FLOWLUA_ENTERED;
}

/// Lua repeats an allocation that failed once it has collected; to the script it is the same one.
static bool is_to_fail(flowlua_host *host, const void *block, size_t size) {
  if (host->failed_size != 0) {
    bool again = host->failed_size == size && host->failed_block == block;
    host->failed_size = 0;
    if (again) return true;
  }
  if (host->failing_allocation == 0 || --host->failing_allocation != 0) return false;
  host->failed_block = block;
  host->failed_size = size;
  return true;
}

/// From this many bytes on, small blocks come from a pool: a small state would only touch more pages,
/// unless it makes and drops many (see `pooled_from`).
enum { POOLED_FROM = 1 << 20 };

static void *take_block(flowlua_host *host, size_t size) {
  if (size <= POOL_LARGEST && host->memory_used >= host->pooled_from) {
    if (!host->small.tried) flowlua_pool_open(&host->small);
    void *block = flowlua_pool_take(&host->small, size);
    if (block != NULL) return block;
  }
  return malloc(size);
}

static void give_block(flowlua_host *host, void *block) {
  if (flowlua_pool_has(&host->small, block)) flowlua_pool_give(&host->small, block);
  else free(block);
}

/// As realloc, of a block or of none.
static void *resize_block(flowlua_host *host, void *block, size_t held, size_t size) {
  if (block == NULL) return take_block(host, size);
  if (!flowlua_pool_has(&host->small, block)) return realloc(block, size);
  size_t present = flowlua_pool_size(block);
  if (size <= present && size + 16 > present) return block;
  void *moved = take_block(host, size);
  if (moved == NULL) return NULL;
  memcpy(moved, block, held < size ? held : size);
  flowlua_pool_give(&host->small, block);
  return moved;
}

/// What refuses an allocation; only asked where something may.
static bool is_refused(flowlua_host *host, const void *block, size_t held, size_t size) {
  if (is_to_fail(host, block, size)) {
    host->refused = true;
    return true;
  }
  if (host->silent_failures > 0) {
    host->silent_failures -= 1;
    return true;
  }
  size_t more = size - held;
  if (host->memory_limit == 0
      || (host->memory_used <= host->memory_limit
          && more <= host->memory_limit - host->memory_used))
    return false;
  host->refused = true;
  return true;
}

/// Whether an allocation may be refused although there is memory. One look, as most states have no
/// limit, and the time of plain Lua code depends on it.
static inline bool is_watchful(const flowlua_host *host) {
  return (host->memory_limit | host->failing_allocation | host->failed_size
          | (size_t)host->silent_failures) != 0;
}

/// Counts what the state holds. Shrinking never fails, as Lua requires.
static __attribute__((noinline)) void *resize_counted(
    flowlua_host *host, void *block, size_t held, size_t new_size) {
  if (new_size > held) {
    if (is_watchful(host) && is_refused(host, block, held, new_size)) return NULL;
    if (new_size - held + host->memory_used > host->looks_from
        && flowlua_takes_reserve(host, held, new_size)) {
      host->refused = true;
      return NULL;
    }
  }
  void *result = resize_block(host, block, held, new_size);
  if (result == NULL) {
    if (new_size <= held) return block;
    host->refused = true;
    return NULL;
  }
  host->memory_used += new_size - held;
  return result;
}

/// Lua's allocator. What is most frequent in states without a limit, blocks of malloc that come and go,
/// stands here, in as few instructions as Lua's own takes.
static void *allocate(void *context, void *block, size_t old_size, size_t new_size) {
  flowlua_host *host = context;
  if (new_size == 0) {
    if (block == NULL) return NULL;
    host->memory_used -= old_size;
    if (old_size == host->object_size) flowlua_object_freed(host, block);
    if (block == host->origin_function) host->origin_function = NULL;
    if (host->small.base == 0) free(block);
    else give_block(host, block);
    return NULL;
  }
  // Without a block the old size is a type tag.
  if (block != NULL) return resize_counted(host, block, old_size, new_size);
  size_t used = host->memory_used + new_size;
  if (used >= host->pooled_from || is_watchful(host))
    return resize_counted(host, NULL, 0, new_size);
  void *result = malloc(new_size);
  if (result != NULL) host->memory_used = used;
  return result;
}

/// What stands on the anchor, a batch of handles, and a few values in transit.
enum { ANCHOR_ROOM = 128 };

/// Everything of the set-up that can raise. The anchor is its result. [-1, +1, m]
static int set_up(lua_State *L) {
  flowlua_host *host = host_of(L);
  const flowlua_configuration *configuration = lua_touserdata(L, 1);
  if (configuration->ignores_environment) {
    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  }
  if (configuration->standard_libraries) {
    luaL_openlibs(L);
    flowlua_install_coroutine_library(L);
    flowlua_install_debug_library(L);
    flowlua_install_exit(L, configuration->refuses_exit);
  }
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
  host->anchor = anchor;
  if (configuration->generational) lua_gc(L, LUA_GCGEN, 0, 0);
  return 1;
}

static void choose_secret(flowlua_host *host) {
  uint64_t secret;
  if (getrandom(&secret, sizeof secret, GRND_NONBLOCK) != (ssize_t)sizeof secret) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    secret = (uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15u ^ (uint64_t)(uintptr_t)host;
  }
  // The low bits take the type's number.
  host->secret = secret & ~(uint64_t)0xFFFF;
}

flowlua_host *flowlua_open(
    const flowlua_configuration *configuration, const flowlua_callbacks *callbacks) {
  flowlua_host *host = NULL;
  if (!flowlua_reserve_exists()) return NULL;
  if (posix_memalign((void **)&host, 64, sizeof *host) != 0) return NULL;
  memset(host, 0, sizeof *host);
  host->callbacks = *callbacks;
  host->owner = pthread_self();
  host->reference_capacity = 64;
  host->free_held = NONE_HELD;
  host->dead_held = NONE_HELD;
  host->pooled_from = POOLED_FROM;
  host->looks_from = POOLED_FROM;
  host->free_references = malloc(sizeof(int32_t) * 64);
  host->type_capacity = 16;
  host->types = malloc(sizeof(object_type) * 17);
  if (host->free_references == NULL || host->types == NULL) goto failed;
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
  int status = lua_pcall(host->main, 1, 1, 0);
  if (status != LUA_OK) {
    host->closing = true;
    lua_close(host->main);
    flowlua_pool_close(&host->small);
    flowlua_make_current(previous);
    goto failed;
  }
  lua_gc(host->main, LUA_GCRESTART);
  flowlua_make_current(previous != NULL ? previous : host);
  return host;
failed:
  free(host->free_references);
  free(host->shares);
  free(host->types);
  free(host);
  return NULL;
}

void flowlua_close(flowlua_host *host) {
  flowlua_host *previous = flowlua_make_current(host);
  flowlua_forget_host(host);
  host->closing = true;
  host->small.is_closing = true;
  host->memory_limit = 0;
  host->failing_allocation = 0;
  host->running = host->main;
  atomic_store(&host->activity, NULL);
  lua_close(host->main);
  flowlua_pool_close(&host->small);
  flowlua_make_current(previous != host ? previous : NULL);
  host->main = NULL;
  host->running = NULL;
}

void flowlua_drop_leftovers(flowlua_host *host) {
  for (coroutine_block *block = host->made; block != NULL; block = block->next) {
    for (uint32_t i = 0; i < block->used; i++) {
      void *wait = block->coroutines[i].wait;
      block->coroutines[i].wait = NULL;
      if (wait != NULL) host->callbacks.release(wait);
    }
  }
  flowlua_release_held(host);
}

int32_t flowlua_make_room(flowlua_host *host, lua_State *L, int32_t count) {
  host->refused = false;
  if (lua_checkstack(L, count)) return LUA_OK;
  return host->refused ? FLOWLUA_NO_MEMORY : FLOWLUA_NO_ROOM;
}

void flowlua_require_room(lua_State *L, int32_t count, const char *purpose) {
  int32_t room = flowlua_make_room(host_of(L), L, count);
  if (room == FLOWLUA_NO_MEMORY) flowlua_raise_memory(L);
  if (room != LUA_OK) luaL_error(L, "stack overflow (%s)", purpose);
}

bool flowlua_is_busy(const flowlua_host *host) {
  lua_Debug frame;
  return host->running != host->main || lua_getstack(host->main, 0, &frame) != 0;
}

void flowlua_free(flowlua_host *host) {
  for (coroutine_block *block = host->made; block != NULL;) {
    coroutine_block *next = block->next;
    for (uint32_t i = 0; i < block->used; i++) {
      flowlua_coroutine *each = &block->coroutines[i];
      if (each->wait != NULL) host->callbacks.release(each->wait);
      flowlua_forget_failure(each);
      free(each->watch);
    }
    free(block);
    block = next;
  }
  flowlua_release_held(host);
  free(host->held);
  free(host->buckets);
  free(host->sources);
  free(host->free_references);
  free(host->shares);
  free(host->types);
  free(host);
}

/// os.exit, which closes the state itself when asked to: from then on no stop may come.
static int os_exit(lua_State *L) {
  if (lua_toboolean(L, 2)) {
    flowlua_host *host = host_of(L);
    flowlua_forget_host(host);
    atomic_store(&host->activity, NULL);
    host->running = host->main;
    host->closing = true;
    host->small.is_closing = true;
    host->memory_limit = 0;
  }
  // Called as the function itself, so that its messages name this one.
  return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

/// os.exit of a state that isn't the process's own.
static int refuse_exit(lua_State *L) {
  return luaL_error(L, "os.exit can't be called in a worker");
}

void flowlua_install_exit(lua_State *L, bool refuses) {
  lua_getglobal(L, LUA_OSLIBNAME);
  lua_getfield(L, -1, "exit");
  lua_pushcclosure(L, refuses ? refuse_exit : os_exit, 1);
  lua_setfield(L, -2, "exit");
  lua_settop(L, -2);
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
uint64_t flowlua_fail_allocation(flowlua_host *host, uint64_t n) {
  uint64_t left = host->failing_allocation;
  host->failing_allocation = n;
  host->failed_size = 0;
  return left;
}
