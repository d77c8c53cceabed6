// Functions of the standard libraries that a state doesn't have, and what replaces them: an error that names
// the function. The names are here; libraries.c puts the functions into a state.
#include "internal.h"

/// The functions that need more of a library than its safe part, or more than the library.
static const struct {
  const char *library;
  const char *name;
  uint32_t bit;
} needing[] = {
    {LUA_GNAME, "require", FLOWLUA_LIBRARY_SAFE_PACKAGE},
    {LUA_GNAME, "dofile", FLOWLUA_LIBRARY_BASE},
    {LUA_GNAME, "loadfile", FLOWLUA_LIBRARY_BASE},
    {LUA_STRLIBNAME, "dump", FLOWLUA_LIBRARY_STRING},
    {LUA_OSLIBNAME, "execute", FLOWLUA_LIBRARY_OS},
    {LUA_OSLIBNAME, "exit", FLOWLUA_LIBRARY_OS},
    {LUA_OSLIBNAME, "getenv", FLOWLUA_LIBRARY_OS},
    {LUA_OSLIBNAME, "remove", FLOWLUA_LIBRARY_OS},
    {LUA_OSLIBNAME, "rename", FLOWLUA_LIBRARY_OS},
    {LUA_OSLIBNAME, "setlocale", FLOWLUA_LIBRARY_OS},
    {LUA_OSLIBNAME, "tmpname", FLOWLUA_LIBRARY_OS},
    {LUA_LOADLIBNAME, "loadlib", FLOWLUA_LIBRARY_NATIVE_MODULES},
    {LUA_OSLIBNAME, "execute", FLOWLUA_LIBRARY_PROGRAMS},
    {LUA_IOLIBNAME, "popen", FLOWLUA_LIBRARY_PROGRAMS},
};

/// Where the functions of a library are.
static const struct {
  const char *library;
  uint32_t bit;
} homes[] = {
    {LUA_GNAME, FLOWLUA_LIBRARY_SAFE_BASE},     {LUA_LOADLIBNAME, FLOWLUA_LIBRARY_LUA_MODULES},
    {LUA_COLIBNAME, FLOWLUA_LIBRARY_COROUTINE}, {LUA_TABLIBNAME, FLOWLUA_LIBRARY_TABLE},
    {LUA_IOLIBNAME, FLOWLUA_LIBRARY_IO},        {"file", FLOWLUA_LIBRARY_IO},
    {LUA_OSLIBNAME, FLOWLUA_LIBRARY_SAFE_OS},   {LUA_STRLIBNAME, FLOWLUA_LIBRARY_SAFE_STRING},
    {LUA_MATHLIBNAME, FLOWLUA_LIBRARY_MATH},    {LUA_UTF8LIBNAME, FLOWLUA_LIBRARY_UTF8},
    {LUA_DBLIBNAME, FLOWLUA_LIBRARY_DEBUG},
};

enum {
  NEEDING = sizeof needing / sizeof *needing,
  HOMES = sizeof homes / sizeof *homes,
};

bool flowlua_has_function(uint32_t libraries, const char *library, const char *name) {
  bool has_library = false;
  for (int i = 0; i < HOMES; i++) {
    if (strcmp(homes[i].library, library) == 0) has_library = (libraries & homes[i].bit) != 0;
  }
  for (int i = 0; i < NEEDING; i++) {
    bool is_same = strcmp(needing[i].library, library) == 0 && strcmp(needing[i].name, name) == 0;
    if (is_same && (libraries & needing[i].bit) == 0) return false;
  }
  return has_library;
}

static int refuse(lua_State *L) {
  return luaL_error(
      L, "%s isn't allowed by the host of the script", lua_tostring(L, lua_upvalueindex(1)));
}

bool flowlua_is_refused(lua_State *L, int index) { return lua_tocfunction(L, index) == refuse; }

void flowlua_refuse(lua_State *L, const char *library, const char *name) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  // Scripts may have replaced the library, or may not have it.
  if (lua_getfield(L, -1, library) == LUA_TTABLE) {
    if (strcmp(library, LUA_GNAME) == 0) lua_pushstring(L, name);
    else lua_pushfstring(L, "%s.%s", library, name);
    lua_pushcclosure(L, refuse, 1);
    lua_setfield(L, -2, name);
  }
  lua_settop(L, -3);
}

void flowlua_refuse_missing(lua_State *L, uint32_t libraries) {
  for (int i = 0; i < NEEDING; i++) {
    if ((libraries & needing[i].bit) == 0) flowlua_refuse(L, needing[i].library, needing[i].name);
  }
}
