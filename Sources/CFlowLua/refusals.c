// Functions of the standard libraries that a state doesn't have, and what replaces them: an error that names
// the function. The names are here; libraries.c puts the functions into a state.
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

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

// Functions of the standard libraries in a process that is in a sandbox, where the C library's own don't work: it
// makes temporary files in /tmp, and reports each failure of popen as one of memory.

/// io.popen of a process that can't start programs. Upvalue: the function that scripts had, which may be any one of C with
/// upvalues of its own. [-n, +n, e]
static int popen_denied(lua_State *L) {
  // Below all: the argument for the message.
  if (lua_isnone(L, 1)) lua_pushnil(L);
  else lua_pushvalue(L, 1);
  lua_insert(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 2);
  lua_call(L, lua_gettop(L) - 2, LUA_MULTRET);
  int results = lua_gettop(L) - 1;
  if (results != 3 || lua_tointeger(L, -1) != ENOMEM) return results;
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", lua_tostring(L, 1), strerror(EACCES));
  lua_pushinteger(L, EACCES);
  return 3;
}

/// Makes a file in the folder that is the upvalue, and pushes its path; returns its descriptor, or -1 with errno set.
/// [-0, +1, m]
static int make_temporary(lua_State *L) {
  luaL_Buffer path;
  luaL_buffinit(L, &path);
  lua_pushvalue(L, lua_upvalueindex(1));
  luaL_addvalue(&path);
  luaL_addstring(&path, "/lua_XXXXXX");
  luaL_addchar(&path, '\0');
  int fd = mkstemp(luaL_buffaddr(&path));
  int problem = errno;
  luaL_buffsub(&path, 1);
  luaL_pushresult(&path);
  errno = problem;
  return fd;
}

/// os.tmpname. [-n, +1, v]
static int os_tmpname(lua_State *L) {
  int fd = make_temporary(L);
  if (fd < 0) return luaL_error(L, "unable to generate a unique filename");
  close(fd);
  return 1;
}

static int close_file(lua_State *L) {
  luaL_Stream *stream = luaL_checkudata(L, 1, LUA_FILEHANDLE);
  return luaL_fileresult(L, fclose(stream->f) == 0, NULL);
}

/// io.tmpfile. [-n, +n, m]
static int io_tmpfile(lua_State *L) {
  luaL_Stream *stream = lua_newuserdatauv(L, sizeof *stream, 0);
  stream->closef = NULL;
  luaL_setmetatable(L, LUA_FILEHANDLE);
  int fd = make_temporary(L);
  if (fd < 0) return luaL_fileresult(L, 0, NULL);
  unlink(lua_tostring(L, -1));
  lua_settop(L, -2);
  stream->f = fdopen(fd, "w+");
  if (stream->f == NULL) {
    int problem = errno;
    close(fd);
    errno = problem;
    return luaL_fileresult(L, 0, NULL);
  }
  stream->closef = close_file;
  return 1;
}

/// The settings of the sandbox that a state has to know.
typedef struct {
  bool denies_programs;
  const char *folder;
} confinement;

/// Finds a function of C in a library of the standard ones, if scripts have it, without a call of their code. On
/// success the library and the function are on top. [-0, +0|2, m]
static bool find(lua_State *L, const char *library, const char *name) {
  int top = lua_gettop(L);
  lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_pushstring(L, library);
  if (lua_rawget(L, -2) == LUA_TTABLE) {
    lua_replace(L, -2);
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    if (lua_tocfunction(L, -1) != NULL && !flowlua_is_refused(L, -1)) return true;
  }
  lua_settop(L, top);
  return false;
}

/// Sets a function of the library on top, whose upvalue is above it. [-2, +0, m]
static void set(lua_State *L, const char *name, lua_CFunction function) {
  lua_pushcclosure(L, function, 1);
  lua_pushstring(L, name);
  lua_insert(L, -2);
  lua_rawset(L, -3);
  lua_settop(L, -2);
}

/// Replaces a function by one that makes files in a folder, if scripts have it. [-0, +0, m]
static void replace(
    lua_State *L, const char *library, const char *name, lua_CFunction function,
    const char *folder) {
  if (!find(L, library, name)) return;
  lua_settop(L, -2);
  lua_pushstring(L, folder);
  set(L, name, function);
}

static int confine(lua_State *L, void *argument) {
  const confinement *what = argument;
  if (what->denies_programs && find(L, LUA_IOLIBNAME, "popen")) {
    if (lua_tocfunction(L, -1) != popen_denied) set(L, "popen", popen_denied);
  }
  if (what->folder != NULL) {
    replace(L, LUA_OSLIBNAME, "tmpname", os_tmpname, what->folder);
    replace(L, LUA_IOLIBNAME, "tmpfile", io_tmpfile, what->folder);
  }
  return 0;
}

int32_t flowlua_confine(flowlua_state *state, bool denies_programs, const char *folder) {
  confinement what = {denies_programs, folder};
  return flowlua_protect(state, confine, &what);
}
