// The standard libraries of a state: all of them, or those that its host has chosen.
#include "CFlowSystem.h"
#include "paced.h"

// MARK: - Chunks of text only

/// Replaces the mode at an index by "t", and calls the standard function in the same frame. [-n, +n, e]
static int load_text(lua_State *L, int mode) {
  const char *wanted = luaL_optstring(L, mode, "t");
  flowlua_pace_reader(L, 1);
  if (strchr(wanted, 't') == NULL && strchr(wanted, 'b') != NULL) {
    lua_pushnil(L);
    lua_pushliteral(L, "bytecode isn't allowed by the host of the script");
    return 2;
  }
  if (lua_gettop(L) < mode) lua_settop(L, mode);
  lua_pushliteral(L, "t");
  lua_replace(L, mode);
  int results = lua_tocfunction(L, lua_upvalueindex(1))(L);
  const char *message = results == 2 && lua_isnil(L, -2) ? lua_tostring(L, -1) : NULL;
  if (message != NULL && strstr(message, "attempt to load a binary chunk") != NULL) {
    lua_pushliteral(L, "bytecode isn't allowed by the host of the script");
    lua_replace(L, -2);
  }
  return results;
}

static int load_text_chunk(lua_State *L) { return load_text(L, 3); }
static int load_text_file(lua_State *L) { return load_text(L, 2); }

static int continue_text_file(lua_State *L, int status, lua_KContext context) {
  (void)status, (void)context;
  return lua_gettop(L) - 1;
}

/// dofile, whose standard one knows no mode.
static int do_text_file(lua_State *L) {
  const char *path = luaL_optstring(L, 1, NULL);
  lua_settop(L, 1);
  if (luaL_loadfilex(L, path, "t") != LUA_OK) return lua_error(L);
  lua_callk(L, 0, LUA_MULTRET, 0, continue_text_file);
  return continue_text_file(L, 0, 0);
}

/// The searcher of modules written in Lua, whose standard one knows no mode either. Upvalues: the table
/// `package` and its function `searchpath`.
static int search_text_module(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_pushvalue(L, 1);
  lua_getfield(L, lua_upvalueindex(1), "path");
  if (lua_type(L, -1) != LUA_TSTRING) return luaL_error(L, "'package.path' must be a string");
  lua_call(L, 2, 2);
  // Where it has looked.
  if (lua_isnil(L, -2)) return 1;
  lua_settop(L, -2);
  const char *path = lua_tostring(L, -1);
  if (luaL_loadfilex(L, path, "t") != LUA_OK)
    return luaL_error(
        L, "error loading module '%s' from file '%s':\n\t%s", name, path, lua_tostring(L, -1));
  lua_insert(L, -2);
  return 2;
}

/// Replaces a field of the table on top by a function that has the present value as its upvalue.
static void wrap_field(lua_State *L, const char *name, lua_CFunction function) {
  if (lua_getfield(L, -1, name) == LUA_TFUNCTION && !flowlua_is_refused(L, -1)) {
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, name);
  } else {
    lua_settop(L, -2);
  }
}

static void refuse_bytecode(lua_State *L, uint32_t libraries) {
  if (libraries & FLOWLUA_LIBRARY_SAFE_BASE) {
    lua_pushglobaltable(L);
    wrap_field(L, "load", load_text_chunk);
    wrap_field(L, "loadfile", load_text_file);
    wrap_field(L, "dofile", do_text_file);
    lua_settop(L, -2);
  }
  if ((libraries & FLOWLUA_LIBRARY_LUA_MODULES) == 0) return;
  lua_getglobal(L, LUA_LOADLIBNAME);
  lua_getfield(L, -1, "searchers");
  lua_pushvalue(L, -2);
  lua_getfield(L, -1, "searchpath");
  lua_pushcclosure(L, search_text_module, 2);
  lua_rawseti(L, -2, 2);
  lua_settop(L, -3);
}

// MARK: - Modules

/// `require` of a state without `package`: what the host has preloaded, and the libraries.
static int require_provided(lua_State *L) {
  luaL_checkstring(L, 1);
  lua_settop(L, 1);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_pushvalue(L, 1);
  lua_gettable(L, 2);
  if (lua_toboolean(L, -1)) return 1;
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushvalue(L, 1);
  if (lua_gettable(L, -2) == LUA_TNIL)
    return luaL_error(
        L, "module '%s' not found: the host of the script allows no modules of files",
        lua_tostring(L, 1));
  lua_pushvalue(L, 1);
  lua_pushliteral(L, ":preload:");
  lua_call(L, 2, 1);
  if (lua_isnil(L, -1)) {
    lua_pushboolean(L, 1);
    lua_replace(L, -2);
  }
  lua_pushvalue(L, 1);
  lua_pushvalue(L, -2);
  lua_settable(L, 2);
  lua_pushliteral(L, ":preload:");
  return 2;
}

/// Opens `package` without C libraries. The searchers of those are the last two.
static void limit_package(lua_State *L) {
  lua_getglobal(L, LUA_LOADLIBNAME);
  lua_pushliteral(L, "");
  lua_setfield(L, -2, "cpath");
  lua_getfield(L, -1, "searchers");
  for (lua_Integer i = (lua_Integer)lua_rawlen(L, -1); i > 2; i--) {
    lua_pushnil(L);
    lua_rawseti(L, -2, i);
  }
  lua_settop(L, -3);
}

// MARK: - C libraries

/// A searcher of C libraries, or package.loadlib. The function that it returns will initialize the library, and
/// with it OpenSSL, which threads of this process use at the exit, too. [-n, +n, e]
static int load_native(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  flowsystem_keep_crypto();
  return lua_gettop(L);
}

/// Wraps package.loadlib, and the last two searchers.
static void watch_native(lua_State *L) {
  lua_getglobal(L, LUA_LOADLIBNAME);
  lua_getfield(L, -1, "loadlib");
  lua_pushcclosure(L, load_native, 1);
  lua_setfield(L, -2, "loadlib");
  lua_getfield(L, -1, "searchers");
  for (lua_Integer i = 3; i <= 4; i++) {
    lua_rawgeti(L, -1, i);
    lua_pushcclosure(L, load_native, 1);
    lua_rawseti(L, -2, i);
  }
  lua_settop(L, -3);
}

// MARK: - The end of the process

/// os.exit, which closes the state itself when asked to: from then on no stop may come.
static int os_exit(lua_State *L) {
  flowlua_state *state = state_of(L);
  // While its values can still be used.
  state->callbacks.leave(state);
  if (lua_toboolean(L, 2)) {
    flowlua_forget_state(state);
    atomic_store(&state->activity, NULL);
    state->running = state->main;
    state->closing = true;
    state->small.is_closing = true;
    state->memory_limit = 0;
  }
  // Called as the function itself, so that its messages name this one.
  return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

/// os.exit of a worker's state.
static int refuse_exit(lua_State *L) {
  return luaL_error(L, "os.exit can't be called in a worker");
}

/// os.setlocale of a worker's state: only a question.
static int ask_locale(lua_State *L) {
  if (!lua_isnoneornil(L, 1))
    return luaL_error(
        L, "os.setlocale can't set a locale in a worker: all threads of the process have the same");
  return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

/// Replaces a function of `os` by one that has it as its upvalue. [-0, +0, m]
static void replace_os(lua_State *L, const char *name, lua_CFunction function) {
  lua_getglobal(L, LUA_OSLIBNAME);
  lua_getfield(L, -1, name);
  lua_pushcclosure(L, function, 1);
  lua_setfield(L, -2, name);
  lua_settop(L, -2);
}

static void install_exit(lua_State *L, uint8_t exits) {
  const bool is_worker = exits == FLOWLUA_EXIT_OF_WORKER;
  if (exits == FLOWLUA_EXIT_REFUSED) flowlua_refuse(L, LUA_OSLIBNAME, "exit");
  else replace_os(L, "exit", is_worker ? refuse_exit : os_exit);
  if (is_worker) replace_os(L, "setlocale", ask_locale);
}

// MARK: - Lines

/// Lua's own print, equal in each state of the process.
static _Atomic(lua_CFunction) standard_print;

/// print, with stdout for itself: otherwise parts of the lines of several threads are mixed. A metamethod may raise; then
/// the standard function has printed what stands before it. [-n, +0, e]
static int print_line(lua_State *L) {
  const int count = lua_gettop(L);
  bool has_string = false, has_metamethod = !lua_checkstack(L, count + LUA_MINSTACK);
  for (int i = 1; i <= count && !has_metamethod; i++) {
    // All strings have the same metatable.
    if (lua_type(L, i) == LUA_TSTRING) {
      if (has_string) continue;
      has_string = true;
    }
    has_metamethod = luaL_getmetafield(L, i, "__tostring") != LUA_TNIL;
  }
  if (has_metamethod) {
    lua_settop(L, count);
    return atomic_load(&standard_print)(L);
  }
  for (int i = 1; i <= count; i++) luaL_tolstring(L, i, NULL);
  // From here on nothing raises an error.
  flockfile(stdout);
  for (int i = 1; i <= count; i++) {
    if (i > 1) putc_unlocked('\t', stdout);
    size_t length;
    const char *text = lua_tolstring(L, count + i, &length);
    fwrite_unlocked(text, 1, length, stdout);
  }
  putc_unlocked('\n', stdout);
  fflush_unlocked(stdout);
  funlockfile(stdout);
  return 0;
}

static void install_print(lua_State *L) {
  if (lua_getglobal(L, "print") == LUA_TFUNCTION) {
    atomic_store(&standard_print, lua_tocfunction(L, -1));
    lua_pushcfunction(L, print_line);
    lua_setglobal(L, "print");
  }
  lua_settop(L, -2);
}

// MARK: - Opening

static const struct {
  const char *name;
  lua_CFunction open;
  uint32_t bit;
} openers[] = {
    {LUA_GNAME, luaopen_base, FLOWLUA_LIBRARY_SAFE_BASE},
    {LUA_LOADLIBNAME, luaopen_package, FLOWLUA_LIBRARY_LUA_MODULES},
    {LUA_COLIBNAME, luaopen_coroutine, FLOWLUA_LIBRARY_COROUTINE},
    {LUA_TABLIBNAME, luaopen_table, FLOWLUA_LIBRARY_TABLE},
    {LUA_IOLIBNAME, luaopen_io, FLOWLUA_LIBRARY_IO},
    {LUA_OSLIBNAME, luaopen_os, FLOWLUA_LIBRARY_SAFE_OS},
    {LUA_STRLIBNAME, luaopen_string, FLOWLUA_LIBRARY_SAFE_STRING},
    {LUA_MATHLIBNAME, luaopen_math, FLOWLUA_LIBRARY_MATH},
    {LUA_UTF8LIBNAME, luaopen_utf8, FLOWLUA_LIBRARY_UTF8},
    {LUA_DBLIBNAME, luaopen_debug, FLOWLUA_LIBRARY_DEBUG},
};

static void open_chosen(lua_State *L, uint32_t libraries) {
  for (size_t i = 0; i < sizeof openers / sizeof *openers; i++) {
    if ((libraries & openers[i].bit) == 0) continue;
    luaL_requiref(L, openers[i].name, openers[i].open, 1);
    lua_settop(L, -2);
  }
  if ((libraries & FLOWLUA_LIBRARY_LUA_MODULES) == 0 && libraries & FLOWLUA_LIBRARY_SAFE_PACKAGE) {
    lua_pushcfunction(L, require_provided);
    lua_setglobal(L, "require");
  }
  if (libraries & FLOWLUA_LIBRARY_LUA_MODULES && (libraries & FLOWLUA_LIBRARY_NATIVE_MODULES) == 0)
    limit_package(L);
}

void flowlua_open_libraries(lua_State *L, const flowlua_configuration *configuration) {
  uint32_t libraries = configuration->libraries;
  if ((libraries & FLOWLUA_ALL_LIBRARIES) == FLOWLUA_ALL_LIBRARIES) luaL_openlibs(L);
  else open_chosen(L, libraries);
  install_print(L);
  if (libraries & FLOWLUA_LIBRARY_COROUTINE) flowlua_install_coroutine_library(L);
  const uint32_t native = FLOWLUA_LIBRARY_LUA_MODULES | FLOWLUA_LIBRARY_NATIVE_MODULES;
  if ((libraries & native) == native) watch_native(L);
  if (libraries & FLOWLUA_LIBRARY_DEBUG) flowlua_install_debug_library(L);
  if (libraries & FLOWLUA_LIBRARY_SAFE_OS) install_exit(L, configuration->exits);
  // Scripts that may not even write bytecode aren't trusted.
  if ((libraries & FLOWLUA_LIBRARY_STRING) == 0) flowlua_install_paced(L, libraries);
  flowlua_refuse_missing(L, libraries);
  if (!configuration->loads_bytecode) refuse_bytecode(L, libraries);
  if (configuration->refuses_finalizers) flowlua_refuse_finalizers(L);
}
