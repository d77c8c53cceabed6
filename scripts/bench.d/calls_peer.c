// The nanoseconds, of time and of CPU time, of a call of a Lua function by lua_pcall, and of a Lua function's call of one
// in C:
//
//   calls_peer call|callback COUNT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <lua.h>

#include <lauxlib.h>
#include <lualib.h>

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int add(lua_State *L) {
  lua_pushinteger(L, luaL_checkinteger(L, 1) + luaL_checkinteger(L, 2));
  return 1;
}

int main(int count, char **words) {
  long calls = count == 3 ? atol(words[2]) : 0;
  if (calls <= 0) return 2;
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_gc(L, LUA_GCGEN, 0, 0);
  lua_register(L, "add", add);
  double begun, used, sum = 0;
  if (strcmp(words[1], "callback") == 0) {
    luaL_loadstring(L, "local n = ... local add, x = add, 0 for i = 1, n do x = add(x, i) end");
    lua_pushinteger(L, calls);
    begun = now(CLOCK_MONOTONIC);
    used = now(CLOCK_PROCESS_CPUTIME_ID);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK) return 1;
  } else {
    if (luaL_dostring(L, "return function(a, b) return a + b end") != LUA_OK) return 1;
    int function = luaL_ref(L, LUA_REGISTRYINDEX);
    begun = now(CLOCK_MONOTONIC);
    used = now(CLOCK_PROCESS_CPUTIME_ID);
    for (long i = 0; i < calls; i++) {
      lua_rawgeti(L, LUA_REGISTRYINDEX, function);
      lua_pushinteger(L, i);
      lua_pushinteger(L, 1);
      if (lua_pcall(L, 2, 1, 0) != LUA_OK) return 1;
      sum += (double)lua_tointeger(L, -1);
      lua_pop(L, 1);
    }
  }
  used = now(CLOCK_PROCESS_CPUTIME_ID) - used;
  double taken = now(CLOCK_MONOTONIC) - begun;
  if (sum < 0) return 1;
  printf("%.2f %.2f\n", taken / (double)calls, used / (double)calls);
  lua_close(L);
  return 0;
}
