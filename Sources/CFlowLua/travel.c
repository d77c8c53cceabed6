// Functions from one state into another: their code, and what their upvalues hold.
#include <stdio.h>
#include <stdlib.h>

#include "transfer.h"

const uint8_t flowlua_code_header[3] = {'F', 'C', 2};

/// How an upvalue of a function is written.
enum {
  CELL_NEW = 0,    // a variable of its own: then its value
  CELL_KNOWN = 1,  // the variable with this index
};

// MARK: - Names

/// Keeps how a value is found; the first name stays. Value and bytes are on top. [-2, +0, m]
static void name_value(lua_State *L, int names) {
  lua_pushvalue(L, -2);
  if (lua_rawget(L, names) == LUA_TNIL) {
    lua_settop(L, -2);
    lua_rawset(L, names);
  } else {
    lua_settop(L, -4);
  }
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

/// A table from everything that has a name, in package.loaded or as a field of a module there, to the
/// bytes that say it. [-0, +1, m]
static void push_names(lua_State *L) {
  lua_createtable(L, 0, 256);
  int names = lua_gettop(L);
  lua_pushstring(L, LUA_LOADED_TABLE);
  int loaded = names + 1;
  if (lua_rawget(L, LUA_REGISTRYINDEX) != LUA_TTABLE) {
    lua_settop(L, names);
    return;
  }
  lua_pushnil(L);
  while (lua_next(L, loaded)) {
    if (lua_type(L, -2) == LUA_TSTRING && has_identity(L, -1)) {
      lua_pushvalue(L, -1);
      push_name(L, TAG_MODULE, loaded + 1, 0);
      name_value(L, names);
    }
    lua_settop(L, loaded + 1);
  }
  lua_pushnil(L);
  while (lua_next(L, loaded)) {
    const char *module = lua_type(L, -2) == LUA_TSTRING ? lua_tolstring(L, -2, NULL) : NULL;
    if (module != NULL && lua_type(L, -1) == LUA_TTABLE) {
      lua_pushnil(L);
      while (lua_next(L, loaded + 2)) {
        if (lua_type(L, -2) == LUA_TSTRING && is_named_field(L, module)) {
          lua_pushvalue(L, -1);
          push_name(L, TAG_FIELD, loaded + 1, loaded + 3);
          name_value(L, names);
        }
        lua_settop(L, loaded + 3);
      }
    }
    lua_settop(L, loaded + 1);
  }
  lua_settop(L, names);
}

/// Whether the value on top is a table of globals. [-0, +0, -]
static bool is_globals(encoder *e, lua_State *L) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
  bool result = lua_rawequal(L, -1, -2);
  lua_settop(L, -2);
  if (!result && e->host->guarded_globals != 0) {
    flowlua_push_reference(e->host, L, e->host->guarded_globals);
    result = lua_rawequal(L, -1, -2);
    lua_settop(L, -2);
  }
  return result;
}

/// Writes the bytes of a name. They are on top. [-1, +0, m]
static void put_name(encoder *e, lua_State *L) {
  size_t count;
  const char *bytes = lua_tolstring(L, -1, &count);
  flowlua_put(L, e->out, bytes, count);
  lua_settop(L, -2);
}

bool flowlua_encode_name(encoder *e, lua_State *L) {
  // Nearly every function has them, and for many that is all they refer to.
  if (is_globals(e, L)) {
    flowlua_put_byte(L, e->out, TAG_GLOBALS);
    return true;
  }
  if (lua_type(L, e->names) == LUA_TNIL) {
    push_names(L);
    lua_replace(L, e->names);
  }
  lua_pushvalue(L, -1);
  bool is_named = lua_rawget(L, e->names) == LUA_TSTRING;
  if (is_named) put_name(e, L);
  else lua_settop(L, -2);
  return is_named;
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

bool flowlua_encode_metatable(encoder *e, lua_State *L) {
  int metatable = lua_gettop(L);
  flowlua_require_room(L, 12, "a value");
  if (e->host->error_metatable != 0) {
    flowlua_push_reference(e->host, L, e->host->error_metatable);
    bool is_error = lua_rawequal(L, -1, metatable);
    lua_settop(L, metatable);
    if (is_error) {
      flowlua_put_byte(L, e->out, TAG_ERROR);
      return true;
    }
  }
  // In code everything that has a name is known; globals don't count, as a worker has its own.
  if (e->is_code) return !is_globals(e, L) && flowlua_encode_name(e, L);
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
  put_name(e, L);
  return true;
}

// MARK: - Writing functions

static int write_code(lua_State *L, const void *bytes, size_t count, void *buffer) {
  (void)L;
  return flowlua_buffer_append(buffer, bytes, count) ? 0 : 1;
}

bool flowlua_encode_function(encoder *e, lua_State *L, bool by_name) {
  uint32_t index;
  if (by_name && flowlua_encode_name(e, L)) return true;
  if (lua_iscfunction(L, -1)) return flowlua_refuse(e, L);
  if (!flowlua_meet(e, L, &index)) {
    flowlua_put_byte(L, e->out, TAG_KNOWN);
    flowlua_put_number(L, e->out, index);
    return true;
  }
  flowlua_put_byte(L, e->out, TAG_FUNCTION);
  // Its length is only known afterwards: 4 bytes.
  uint32_t length = 0;
  size_t start = e->out->count;
  flowlua_put(L, e->out, &length, sizeof length);
  if (lua_dump(L, write_code, e->out, 0) != 0) flowlua_raise_memory(L);
  size_t written = e->out->count - start - sizeof length;
  if (written > UINT32_MAX) flowlua_raise_memory(L);
  length = (uint32_t)written;
  memcpy(e->out->bytes + start, &length, sizeof length);
  return true;
}

/// Room for one element more, doubled by malloc. [-0, +0, m]
static void *grown(lua_State *L, void *list, uint32_t count, uint32_t *capacity, size_t size) {
  if (count < *capacity) return list;
  uint32_t larger = *capacity == 0 ? 8 : *capacity * 2;
  void *result = larger > UINT32_MAX / 64 ? NULL : realloc(list, size * larger);
  if (result == NULL) flowlua_raise_memory(L);
  *capacity = larger;
  return result;
}

/// The index of the variable with this identity; `cell_count` if it is new.
static uint32_t find_cell(const encoder *e, const void *identity) {
  uint32_t i = 0;
  while (i < e->cell_count && e->cells[i] != identity) i++;
  return i;
}

bool flowlua_encode_upvalues(encoder *e, lua_State *L) {
  int function = lua_gettop(L);
  size_t count_at = e->out->count;
  flowlua_put_byte(L, e->out, 0);
  // The name is empty when debug information was stripped.
  for (int n = 1; lua_getupvalue(L, function, n) != NULL; n++) {
    e->upvalues =
        grown(L, e->upvalues, e->upvalue_count, &e->upvalue_capacity, sizeof *e->upvalues);
    e->upvalues[e->upvalue_count++] = (met_upvalue){e->out->count, e->current, n};
    const void *identity = lua_upvalueid(L, function, n);
    uint32_t cell = find_cell(e, identity);
    if (cell < e->cell_count) {
      flowlua_put_byte(L, e->out, CELL_KNOWN);
      flowlua_put_number(L, e->out, cell);
    } else {
      e->cells = grown(L, e->cells, e->cell_count, &e->cell_capacity, sizeof *e->cells);
      e->cells[e->cell_count++] = identity;
      flowlua_put_byte(L, e->out, CELL_NEW);
      if (!flowlua_encode_top(e, L)) return false;
    }
    e->out->bytes[count_at] = (uint8_t)n;
    lua_settop(L, function);
  }
  return true;
}

/// The upvalue of a function in whose bytes an offset lies. The function is on top. [-0, +0, v]
void flowlua_name_upvalue(encoder *e, lua_State *L, uint32_t function, size_t offset) {
  flowlua_refusal *refusal = e->refusal;
  int number = 0;
  for (uint32_t i = 0; i < e->upvalue_count; i++) {
    if (e->upvalues[i].function == function && e->upvalues[i].offset <= offset)
      number = e->upvalues[i].number;
  }
  if (number != 0) {
    const char *name = lua_getupvalue(L, -1, number);
    if (name != NULL) {
      snprintf(refusal->upvalue, sizeof refusal->upvalue, "%s", *name == '\0' ? "?" : name);
      lua_settop(L, -2);
    }
  }
  lua_Debug info;
  lua_pushvalue(L, -1);
  // With ">S" it takes the function and allocates nothing.
  lua_getinfo(L, ">S", &info);
  if (info.linedefined > 0) {
    snprintf(
        refusal->function, sizeof refusal->function, "%s:%d", info.short_src, info.linedefined);
  } else {
    snprintf(refusal->function, sizeof refusal->function, "%s", info.short_src);
  }
}

typedef struct packing {
  encoder e;
  int32_t function;
  const uint8_t *before;  // what was packed, to compare with; NULL when packing
  size_t before_count;
  bool is_changed;
} packing;

/// Says which upvalue the first difference is in. [-0, +0, m]
static void name_change(packing *what, lua_State *L) {
  encoder *e = &what->e;
  size_t shorter = what->before_count < e->out->count ? what->before_count : e->out->count;
  size_t offset = 0;
  while (offset < shorter && what->before[offset] == e->out->bytes[offset]) offset++;
  what->is_changed = true;
  if (e->count == 0) return;
  // Up to there both are the same, and so is what leads there. How large a table is stands where it
  // was first named.
  uint32_t object = e->count - 1;
  while (object > 0 && e->objects[object].body > offset) object -= 1;
  while (object != NO_OBJECT) {
    flowlua_push_met(e, L, object);
    if (lua_type(L, -1) == LUA_TFUNCTION) {
      flowlua_name_upvalue(e, L, object, offset);
      return;
    }
    lua_settop(L, -2);
    offset = e->objects[object].named_at;
    object = e->objects[object].parent;
  }
}

static int pack(lua_State *L) {
  packing *what = lua_touserdata(L, 1);
  encoder *e = &what->e;
  lua_settop(L, 0);
  flowlua_require_room(L, LUA_MINSTACK + FLOWLUA_PILE, "a function");
  lua_pushnil(L);
  lua_createtable(L, 0, 0);
  lua_pushnil(L);
  e->root = 1;
  e->queue = 2;
  e->names = 3;
  flowlua_put(L, e->out, flowlua_code_header, sizeof flowlua_code_header);
  flowlua_push_reference(e->host, L, what->function);
  // One that had no name has none now.
  const size_t root = sizeof flowlua_code_header;
  bool had_code = what->before_count > root && what->before[root] == TAG_FUNCTION;
  bool done = had_code ? flowlua_encode_function(e, L, false) : flowlua_encode_top(e, L);
  lua_settop(L, 3);
  done = done && flowlua_encode_bodies(e, L);
  if (what->before == NULL || !done) return 0;
  if (e->out->count != what->before_count
      || memcmp(e->out->bytes, what->before, what->before_count) != 0)
    name_change(what, L);
  return 0;
}

static int32_t pack_protected(packing *what) {
  flowlua_host *host = what->e.host;
  lua_State *L = host->running;
  what->e.is_code = true;
  int32_t status = flowlua_make_room(host, L, LUA_MINSTACK);
  if (status == LUA_OK) {
    lua_pushcfunction(L, pack);
    lua_pushlightuserdata(L, what);
    status = lua_pcall(L, 1, 0, 0);
  }
  flowlua_encoder_close(&what->e);
  return status;
}

int32_t flowlua_pack(
    flowlua_host *host, int32_t function, flowlua_buffer *buffer, flowlua_refusal *refusal) {
  packing what = {.function = function};
  size_t start = buffer->count;
  flowlua_encoder_open(&what.e, host, buffer, refusal);
  int32_t status = pack_protected(&what);
  if (status == LUA_OK && what.e.is_refused) status = FLOWLUA_REFUSED;
  if (status != LUA_OK) buffer->count = start;
  return status;
}

int32_t flowlua_find_change(
    flowlua_host *host, int32_t function, const uint8_t *bytes, size_t size,
    flowlua_refusal *change) {
  packing what = {.function = function, .before = bytes, .before_count = size};
  flowlua_buffer now = {NULL, 0, 0};
  *change = (flowlua_refusal){.type = LUA_TNONE};
  flowlua_encoder_open(&what.e, host, &now, change);
  int32_t status = pack_protected(&what);
  flowlua_buffer_free(&now);
  // What can't go any more has changed as well.
  if (status == LUA_OK && (what.is_changed || what.e.is_refused)) return FLOWLUA_REFUSED;
  return status;
}

// MARK: - Reading functions

bool flowlua_decode_function(flowlua_reader *r, lua_State *L) {
  uint32_t length;
  if (r->size - r->offset < sizeof length) return flowlua_decode_fail(r, "it ends too early");
  memcpy(&length, r->bytes + r->offset, sizeof length);
  r->offset += sizeof length;
  if (length > r->size - r->offset) return flowlua_decode_fail(r, "it ends too early");
  const char *code = (const char *)r->bytes + r->offset;
  r->offset += length;
  // The name is that in the code.
  int status = luaL_loadbufferx(L, code, length, "=?", "b");
  if (status != LUA_OK) lua_error(L);
  if (!flowlua_announce(r, L, 0, 0, 1)) return false;
  flowlua_keep_announced(r, L);
  return true;
}

bool flowlua_decode_upvalues(flowlua_reader *r, lua_State *L, uint32_t index) {
  int function = lua_gettop(L);
  uint8_t count;
  r->promised -= 1;
  if (!flowlua_get_byte(r, &count)) return false;
  for (int n = 1; n <= count; n++) {
    uint8_t kind;
    uint64_t cell;
    if (!flowlua_get_byte(r, &kind)) return false;
    if (kind == CELL_KNOWN) {
      if (!flowlua_get_number(r, &cell)) return false;
      if (cell >= r->cell_count) return flowlua_decode_fail(r, "a variable isn't there");
      flowlua_push_announced(r, L, r->cells[cell].function);
      lua_upvaluejoin(L, function, n, function + 1, r->cells[cell].number);
    } else {
      r->cells = grown(L, r->cells, r->cell_count, &r->cell_capacity, sizeof *r->cells);
      r->cells[r->cell_count++] = (read_cell){index, n};
      if (!flowlua_decode_value(r, L)) return false;
      if (lua_setupvalue(L, function, n) == NULL)
        return flowlua_decode_fail(r, "an upvalue isn't there");
    }
    lua_settop(L, function);
  }
  return true;
}

/// Pushes what `require` answers for the name on top. [-1, +1, e]
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
    if (r->host->guarded_globals != 0)
      flowlua_push_reference(r->host, L, r->host->guarded_globals);
    else
      lua_pushglobaltable(L);
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
  if (!flowlua_get_byte(r, &tag)) return false;
  if (tag == TAG_ERROR && r->host->error_metatable != 0) {
    flowlua_require_room(L, 2, "a value");
    flowlua_push_reference(r->host, L, r->host->error_metatable);
  } else if (tag == TAG_MODULE || tag == TAG_FIELD) {
    if (!flowlua_decode_named(r, L, tag)) return false;
  } else {
    return flowlua_decode_fail(r, "a metatable isn't named");
  }
  if (lua_type(L, -1) != LUA_TTABLE) return flowlua_decode_fail(r, "a metatable is no table");
  lua_setmetatable(L, table);
  return true;
}

int32_t flowlua_unpack(
    flowlua_host *host, const uint8_t *bytes, size_t size, const char **problem) {
  flowlua_reader r;
  flowlua_reader_open(&r, host, bytes, size, true);
  int32_t status = flowlua_decode_protected(&r, host->running, 1);
  *problem = r.problem;
  return status;
}
