// Values that go by a name instead of their content: modules, their fields, the globals, and metatables.
#include "codec.h"

// MARK: - Writing

/// Compares two strings by their bytes. [-0, +0, -]
static int compare_bytes(lua_State *L, int a, int b) {
  size_t count_a, count_b;
  const char *bytes_a = lua_tolstring(L, a, &count_a);
  const char *bytes_b = lua_tolstring(L, b, &count_b);
  int order = memcmp(bytes_a, bytes_b, count_a < count_b ? count_a : count_b);
  return order != 0 ? order : count_a < count_b ? -1 : count_a > count_b;
}

/// Keeps how a value is found. Of several names the smallest stays, so that each process takes the same
/// one: a module comes before a field. Value and bytes are on top. [-2, +0, m]
static void name_value(lua_State *L, int names) {
  lua_pushvalue(L, -2);
  bool is_kept = lua_rawget(L, names) == LUA_TSTRING && compare_bytes(L, -1, -2) <= 0;
  lua_settop(L, -2);
  if (is_kept) lua_settop(L, -3);
  else lua_rawset(L, names);
}

static bool has_identity(lua_State *L, int index) {
  int type = lua_type(L, index);
  return type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TUSERDATA;
}

/// Pushes a tag with one or two strings at stack indices. [-0, +1, m]
static void push_name(lua_State *L, uint8_t tag, int module, int field) {
  luaL_Buffer buffer;
  luaL_buffinit(L, &buffer);
  luaL_addchar(&buffer, (char)tag);
  for (int i = 0; i < (tag == TAG_FIELD ? 2 : 1); i++) {
    size_t count;
    const char *bytes = lua_tolstring(L, i == 0 ? module : field, &count);
    size_t rest = count;
    for (; rest >= 0x80; rest >>= 7) luaL_addchar(&buffer, (char)(rest | 0x80));
    luaL_addchar(&buffer, (char)rest);
    luaL_addlstring(&buffer, bytes, count);
  }
  luaL_pushresult(&buffer);
}

/// Whether a field of a module goes by its name. Of the globals only functions of C are sure to be
/// there in another state, of userdata only the standard files. The value is on top. [-0, +0, -]
static bool is_named_field(lua_State *L, const char *module) {
  if (!has_identity(L, -1)) return false;
  if (strcmp(module, LUA_GNAME) == 0) return lua_iscfunction(L, -1);
  if (lua_type(L, -1) == LUA_TUSERDATA) return strcmp(module, LUA_IOLIBNAME) == 0;
  return true;
}

/// Pushes what has a name in the libraries, which are looked through once in a state: for the value the
/// bytes, for the name of each module met so far whether it is a library. [-0, +1, m]
static void push_libraries(flowlua_state *state, lua_State *L) {
  if (state->library_names != 0) {
    flowlua_push_reference(state, L, state->library_names);
    return;
  }
  lua_createtable(L, 0, 256);
  lua_pushvalue(L, -1);
  state->library_names = flowlua_reference(state, L);
  if (state->library_names == 0) flowlua_raise_memory(L);
}

/// Whether a library has a value under this name that is no function of C. [-0, +0, -]
static bool is_standard(const char *library, const char *field) {
  static const char *const constants[] = {"math.pi",         "math.huge",        "math.maxinteger",
                                          "math.mininteger", "utf8.charpattern", "flow.ops",
                                          "flowlua.ops"};
  size_t count = strlen(library);
  for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
    if (strncmp(constants[i], library, count) == 0 && constants[i][count] == '.'
        && strcmp(constants[i] + count + 1, field) == 0)
      return true;
  }
  return false;
}

/// Whether the function on top is of a script, not of a host that replaces one of a library, as `--check` does: only
/// those have names such as `=[check]`. [-0, +0, -]
static bool is_of_script(lua_State *L) {
  lua_Debug info;
  if (lua_iscfunction(L, -1)) return false;
  lua_pushvalue(L, -1);
  return lua_getinfo(L, ">S", &info) == 0 || strncmp(info.source, "=[", 2) != 0;
}

// A function of C counts by its name alone. All that package has says where things are, which is no code.
bool flowlua_is_added(flowlua_state *state, lua_State *L, const char *library, const char *field) {
  char name[64];
  int count;
  bool is_known;
  switch (lua_type(L, -1)) {
  case LUA_TLIGHTUSERDATA: return false;
  case LUA_TFUNCTION: return is_of_script(L);
  case LUA_TUSERDATA:
    if (strcmp(library, LUA_IOLIBNAME) == 0) return false;
    break;
  case LUA_TTABLE:
    // A part of the library, such as flow.http; most are known by now.
    push_libraries(state, L);
    lua_pushvalue(L, -2);
    is_known = lua_rawget(L, -2) == LUA_TSTRING;
    lua_settop(L, -3);
    if (is_known) return false;
    count = snprintf(name, sizeof name, "%s.%s", library, field);
    if (count > 0 && (size_t)count < sizeof name
        && state->callbacks.describe_module(state, name, (size_t)count, NULL)
            == FLOWLUA_MODULE_NAMED)
      return false;
    break;
  default: break;
  }
  return strcmp(library, LUA_LOADLIBNAME) != 0 && !is_standard(library, field);
}

/// Names a module, whose name and value are at an index and on top, and its fields. A field that a script
/// has added to a library isn't the library's. [-0, +0, m]
static void name_module(lua_State *L, int names, int module, bool is_library) {
  int value = module + 1, field = module + 2;
  lua_pushvalue(L, value);
  push_name(L, TAG_MODULE, module, 0);
  name_value(L, names);
  if (lua_type(L, value) != LUA_TTABLE) return;
  const char *text = lua_tolstring(L, module, NULL);
  lua_pushnil(L);
  while (lua_next(L, value)) {
    if (lua_type(L, field) == LUA_TSTRING && is_named_field(L, text)
        && !(is_library && flowlua_is_added(state_of(L), L, text, lua_tolstring(L, field, NULL)))) {
      lua_pushvalue(L, -1);
      push_name(L, TAG_FIELD, module, field);
      name_value(L, names);
    }
    lua_settop(L, field);
  }
}

/// Whether a module is a library; one that is new is named. Its name and value are at an index and on top.
/// [-0, +0, m]
static bool is_library(encoder *e, lua_State *L, int libraries, int module) {
  lua_pushvalue(L, module);
  bool is_known = lua_rawget(L, libraries) == LUA_TBOOLEAN;
  bool result = lua_toboolean(L, -1);
  lua_settop(L, module + 1);
  if (is_known) return result;
  size_t count;
  const char *name = lua_tolstring(L, module, &count);
  int32_t form = e->state->callbacks.describe_module(e->state, name, count, NULL);
  result = form == FLOWLUA_MODULE_NAMED;
  if (result) name_module(L, libraries, module, true);
  lua_pushvalue(L, module);
  lua_pushboolean(L, result);
  lua_rawset(L, libraries);
  lua_settop(L, module + 1);
  return result;
}

/// A table from everything that has a name, in package.loaded or as a field of a module there, to the
/// bytes that say it; in forms without the libraries. [-0, +1, m]
static void push_names(encoder *e, lua_State *L) {
  int names = lua_gettop(L) + 1, libraries = names + 1, loaded = names + 2, module = names + 3;
  lua_createtable(L, 0, e->is_form ? 0 : 256);
  if (e->is_form) push_libraries(e->state, L);
  else lua_pushnil(L);
  lua_pushstring(L, LUA_LOADED_TABLE);
  if (lua_rawget(L, LUA_REGISTRYINDEX) == LUA_TTABLE) {
    lua_pushnil(L);
    while (lua_next(L, loaded)) {
      bool is_named = lua_type(L, module) == LUA_TSTRING && has_identity(L, -1);
      if (is_named && !(e->is_form && is_library(e, L, libraries, module)))
        name_module(L, names, module, false);
      lua_settop(L, module);
    }
  }
  lua_settop(L, names);
}

bool flowlua_is_globals(encoder *e, lua_State *L) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
  bool result = lua_rawequal(L, -1, -2);
  lua_settop(L, -2);
  if (!result && e->state->guarded_globals != 0) {
    flowlua_push_reference(e->state, L, e->state->guarded_globals);
    result = lua_rawequal(L, -1, -2);
    lua_settop(L, -2);
  }
  return result;
}

/// The module's name in the bytes of a name. They are on top. [-0, +0, -]
static const char *module_in(lua_State *L, size_t *count) {
  const char *bytes = lua_tolstring(L, -1, NULL) + 1;
  int shift = 0;
  *count = 0;
  for (; (*bytes & 0x80) != 0; shift += 7) *count |= (size_t)(*bytes++ & 0x7F) << shift;
  *count |= (size_t)*bytes++ << shift;
  return bytes;
}

/// Writes the bytes of a name; in a form of code with the digest of the module. They are on top. false
/// when the module has no content of its own to compare, so that values in it go by theirs. [-1, +0, m]
static bool put_name(encoder *e, lua_State *L) {
  size_t count;
  uint8_t digest[FLOWLUA_MODULE_DIGEST];
  int32_t form = FLOWLUA_MODULE_NAMED;
  if (e->is_form) {
    const char *module = module_in(L, &count);
    form = e->state->callbacks.describe_module(e->state, module, count, digest);
    if (form == FLOWLUA_MODULE_FAILED) flowlua_raise_memory(L);
  }
  if (form != FLOWLUA_MODULE_UNKNOWN) {
    const char *bytes = lua_tolstring(L, -1, &count);
    flowlua_put(L, e->out, bytes, count);
    if (e->is_form) put_byte(L, e->out, (uint8_t)form);
    if (form == FLOWLUA_MODULE_DIGESTED) flowlua_put(L, e->out, digest, sizeof digest);
  }
  lua_settop(L, -2);
  return form != FLOWLUA_MODULE_UNKNOWN;
}

void flowlua_note_library(encoder *e, lua_State *L, int library, const char *name, size_t count) {
  int top = lua_gettop(L);
  if (lua_type(L, library) != LUA_TTABLE) return;
  if (lua_type(L, e->reached) == LUA_TNIL) {
    lua_createtable(L, 1, 1);
    lua_replace(L, e->reached);
  }
  lua_pushvalue(L, library);
  if (lua_rawget(L, e->reached) == LUA_TNIL) {
    lua_pushvalue(L, library);
    lua_rawseti(L, e->reached, (lua_Integer)lua_rawlen(L, e->reached) + 1);
    lua_pushvalue(L, library);
    lua_pushlstring(L, name, count);
    lua_rawset(L, e->reached);
  }
  lua_settop(L, top);
}

/// Notes a value that has a name, if it is a library. It and the bytes of its name are on top. [-0, +0, m]
static void note_reached(encoder *e, lua_State *L) {
  size_t count;
  if (*lua_tolstring(L, -1, NULL) != TAG_MODULE) return;
  const char *name = module_in(L, &count);
  flowlua_note_library(e, L, lua_gettop(L) - 1, name, count);
}

/// Whether the body of a function is being written. [-0, +0, -]
static bool is_in_function(const encoder *e) {
  return e->current < e->count && e->out->bytes[e->objects[e->current].named_at] == TAG_FUNCTION;
}

void flowlua_ensure_names(encoder *e, lua_State *L) {
  if (lua_type(L, e->names) != LUA_TNIL) return;
  push_names(e, L);
  lua_replace(L, e->names);
}

bool flowlua_encode_name(encoder *e, lua_State *L) {
  // Nearly every function has them, and for many that is all they refer to.
  if (flowlua_is_globals(e, L)) {
    put_byte(L, e->out, TAG_GLOBALS);
    if (e->is_form && !is_in_function(e)) e->reaches_globals = true;
    return true;
  }
  flowlua_ensure_names(e, L);
  if (e->is_form) {
    int value = lua_gettop(L);
    push_libraries(e->state, L);
    lua_pushvalue(L, value);
    if (lua_rawget(L, -2) == LUA_TSTRING) {
      lua_replace(L, -2);
      note_reached(e, L);
      return put_name(e, L);
    }
    lua_settop(L, value);
  }
  lua_pushvalue(L, -1);
  if (lua_rawget(L, e->names) == LUA_TSTRING) return put_name(e, L);
  lua_settop(L, -2);
  return false;
}

/// Pushes how the table at an index is found in package.loaded, if it is there: by itself, or as a field
/// of a module. Globals don't count, as a worker has none of a script's. [-0, +(0|1), m]
static bool push_place(lua_State *L, int table) {
  int top = lua_gettop(L);
  lua_pushstring(L, LUA_LOADED_TABLE);
  int loaded = top + 1, module = top + 2, field = top + 4;
  bool is_found = false;
  if (lua_rawget(L, LUA_REGISTRYINDEX) == LUA_TTABLE) lua_pushnil(L);
  else lua_settop(L, top);
  while (!is_found && lua_gettop(L) > top && lua_next(L, loaded)) {
    bool is_module = lua_type(L, module) == LUA_TSTRING && lua_type(L, -1) == LUA_TTABLE
        && strcmp(lua_tolstring(L, module, NULL), LUA_GNAME) != 0;
    if (is_module && lua_rawequal(L, -1, table)) {
      push_name(L, TAG_MODULE, module, 0);
      is_found = true;
    } else if (is_module) {
      lua_pushnil(L);
      while (lua_next(L, module + 1)) {
        if (lua_type(L, field) == LUA_TSTRING && lua_rawequal(L, -1, table)) {
          push_name(L, TAG_FIELD, module, field);
          is_found = true;
          break;
        }
        lua_settop(L, field);
      }
    }
    if (!is_found) lua_settop(L, module);
  }
  if (is_found) lua_replace(L, loaded);
  lua_settop(L, is_found ? loaded : top);
  return is_found;
}

/// Whether the value on top is the one of a reference. [-0, +0, -]
static bool is_referenced(encoder *e, lua_State *L, int32_t reference) {
  if (reference == 0) return false;
  flowlua_push_reference(e->state, L, reference);
  bool result = lua_rawequal(L, -1, -2);
  lua_settop(L, -2);
  return result;
}

bool flowlua_is_setting(encoder *e, lua_State *L) {
  if (!lua_getmetatable(L, -1)) return false;
  bool result = is_referenced(e, L, e->state->setting_metatable);
  lua_settop(L, -2);
  return result;
}

bool flowlua_encode_metatable(encoder *e, lua_State *L) {
  int metatable = lua_gettop(L);
  flowlua_require_room(L, 12, "a value");
  if (is_referenced(e, L, e->state->error_metatable)) {
    put_byte(L, e->out, TAG_ERROR);
    return true;
  }
  if (is_referenced(e, L, e->state->setting_metatable)) {
    put_byte(L, e->out, TAG_SETTING);
    return true;
  }
  // In code everything that has a name is known; globals don't count, as a worker has its own.
  if (e->is_code) return !flowlua_is_globals(e, L) && flowlua_encode_name(e, L);
  // The modules are looked through once for each metatable.
  if (lua_type(L, e->names) == LUA_TNIL) {
    lua_createtable(L, 0, 1);
    lua_replace(L, e->names);
  }
  lua_pushvalue(L, metatable);
  if (lua_rawget(L, e->names) != LUA_TSTRING) {
    lua_settop(L, metatable);
    if (!push_place(L, metatable)) return false;
    lua_pushvalue(L, metatable);
    lua_pushvalue(L, -2);
    lua_rawset(L, e->names);
  }
  return put_name(e, L);
}

// MARK: - Reading

/// Pushes what `require` returns for the name on top. [-1, +1, e]
static void require_module(lua_State *L) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_pushvalue(L, -2);
  if (lua_rawget(L, -2) == LUA_TNIL) {
    lua_settop(L, -3);
    lua_pushglobaltable(L);
    lua_getfield(L, -1, "require");
    lua_replace(L, -2);
    lua_insert(L, -2);
    lua_call(L, 1, 1);
  } else {
    lua_replace(L, -3);
    lua_settop(L, -2);
  }
}

bool flowlua_decode_named(flowlua_reader *r, lua_State *L, uint8_t tag) {
  const char *module, *field;
  size_t module_count, field_count;
  if (tag == TAG_GLOBALS) {
    if (r->state->guarded_globals != 0)
      flowlua_push_reference(r->state, L, r->state->guarded_globals);
    else lua_pushglobaltable(L);
    return true;
  }
  if (!flowlua_get_bytes(r, &module, &module_count)) return false;
  flowlua_require_room(L, LUA_MINSTACK, "a module");
  lua_pushlstring(L, module, module_count);
  require_module(L);
  if (tag == TAG_MODULE) return true;
  if (!flowlua_get_bytes(r, &field, &field_count)) return false;
  lua_pushlstring(L, field, field_count);
  lua_pushvalue(L, -1);
  if (lua_gettable(L, -3) == LUA_TNIL) {
    lua_pushlstring(L, module, module_count);
    luaL_error(L, "module '%s' has no '%s' in a worker", lua_tostring(L, -1), lua_tostring(L, -3));
  }
  lua_replace(L, -3);
  lua_settop(L, -2);
  return true;
}

bool flowlua_decode_metatable(flowlua_reader *r, lua_State *L) {
  uint8_t tag;
  int table = lua_gettop(L);
  if (!get_byte(r, &tag)) return false;
  if (tag == TAG_ERROR && r->state->error_metatable != 0) {
    flowlua_require_room(L, 2, "a value");
    flowlua_push_reference(r->state, L, r->state->error_metatable);
  } else if (tag == TAG_SETTING && r->state->setting_metatable != 0) {
    flowlua_require_room(L, 2, "a value");
    flowlua_push_reference(r->state, L, r->state->setting_metatable);
  } else if (tag == TAG_MODULE || tag == TAG_FIELD) {
    if (!flowlua_decode_named(r, L, tag)) return false;
  } else {
    return decode_fail(r, "a metatable isn't named");
  }
  if (lua_type(L, -1) != LUA_TTABLE) return decode_fail(r, "a metatable is no table");
  flowlua_strip_finalizer(L);
  lua_setmetatable(L, table);
  return true;
}
