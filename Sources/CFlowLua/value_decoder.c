// Values, and functions with what they refer to, from bytes into a state.

#include "codec.h"
#include "layout.h"

static bool decode_table(flowlua_reader *r, lua_State *L) {
  uint32_t counts[2];
  if (remaining(r) < sizeof counts) return ends_early(r);
  memcpy(counts, r->bytes + r->offset, sizeof counts);
  r->offset += sizeof counts;
  size_t size = (size_t)counts[0] + 2 * (size_t)counts[1];
  if (!flowlua_announce(r, L, counts[0], counts[1], size)) return false;
  if (counts[0] > INT32_MAX || counts[1] > INT32_MAX) flowlua_raise_memory(L);
  lua_createtable(L, (int)counts[0], (int)counts[1]);
  flowlua_keep_announced(r, L);
  return true;
}

/// Pushes one value; of an object, what is there before its body has been read. [-0, +1, e]
static bool decode_value(flowlua_reader *r, lua_State *L);

static bool decode_secret(flowlua_reader *r, lua_State *L) {
  flowlua_state *state = r->state;
  if (remaining(r) == 0) return ends_early(r);
  uint8_t next = r->bytes[r->offset];
  if (next == TAG_NIL || next == TAG_SECRET) return decode_fail(r, "a secret has nothing in it");
  if (state->secret_type == 0) return decode_fail(r, "this state has no secrets");
  if (!decode_value(r, L)) return false;
  flowlua_value value = {0};
  size_t count;
  const char *bytes = flowlua_bytes(L, -1, &count);
  if (bytes != NULL) {
    // The string on the stack keeps its bytes alive.
    value = (flowlua_value){.kind = FLOWLUA_STRING, .integer = (int64_t)count, .pointer = bytes};
  } else if (!flowlua_read_scalar(L, -1, &value)) {
    lua_pushvalue(L, -1);
    value.kind = FLOWLUA_REFERENCE;
    value.integer = lua_type(L, -1);
    value.reference = flowlua_reference(state, L);
    if (value.reference == 0) flowlua_raise_memory(L);
  }
  if (!state->callbacks.wrap(state, &value))
    return decode_fail(r, "a secret can't be made of what is in it");
  r->held = value;
  flowlua_require_object(L, state, &r->held);
  lua_replace(L, -2);
  return true;
}

/// Pushes a number, most of what large lists have, if one comes next. [-0, +(0|1), -]
static inline bool decode_number(flowlua_reader *r, lua_State *L) {
  if (remaining(r) < 9) return false;
  const uint8_t *at = r->bytes + r->offset;
  if (*at == TAG_INTEGER) {
    lua_Integer integer;
    memcpy(&integer, at + 1, 8);
    lua_pushinteger(L, integer);
  } else if (*at == TAG_FLOAT) {
    lua_Number number;
    memcpy(&number, at + 1, 8);
    lua_pushnumber(L, number);
  } else {
    return false;
  }
  r->offset += 9;
  return true;
}

static bool decode_function(flowlua_reader *r, lua_State *L) {
  uint32_t length;
  if (r->size - r->offset < sizeof length) return decode_fail(r, "it ends too early");
  memcpy(&length, r->bytes + r->offset, sizeof length);
  r->offset += sizeof length;
  if (length > r->size - r->offset) return decode_fail(r, "it ends too early");
  const char *code = (const char *)r->bytes + r->offset;
  r->offset += length;
  // The name is that in the code.
  int status = luaL_loadbufferx(L, code, length, "=?", "b");
  if (status != LUA_OK) lua_error(L);
  if (!flowlua_announce(r, L, 0, 0, 1)) return false;
  flowlua_keep_announced(r, L);
  return true;
}

static bool decode_value(flowlua_reader *r, lua_State *L) {
  uint8_t tag;
  if (decode_number(r, L)) return true;
  if (!get_byte(r, &tag)) return false;
  switch (tag) {
  case TAG_NIL: lua_pushnil(L); return true;
  case TAG_FALSE: lua_pushboolean(L, 0); return true;
  case TAG_TRUE: lua_pushboolean(L, 1); return true;
  case TAG_INTEGER:
  case TAG_FLOAT: return ends_early(r);
  case TAG_STRING: {
    const char *bytes;
    size_t count;
    if (!flowlua_get_bytes(r, &bytes, &count)) return false;
    lua_pushlstring(L, bytes, count);
    return true;
  }
  case TAG_KNOWN: {
    uint64_t index;
    if (!flowlua_get_number(r, &index)) return false;
    if (index >= r->count) return decode_fail(r, "a table is named that isn't there");
    flowlua_push_announced(r, L, (uint32_t)index);
    return true;
  }
  case TAG_NULL: lua_pushlightuserdata(L, NULL); return true;
  case TAG_TABLE: return decode_table(r, L);
  case TAG_TABLE | TAG_ARRAY:
  case TAG_TABLE | TAG_OBJECT:
    if (!decode_table(r, L)) return false;
    flowlua_push_json_mark(L, r->state, tag == (TAG_TABLE | TAG_ARRAY));
    lua_setmetatable(L, -2);
    return true;
  case TAG_TYPED:
    // Its body is set without metamethods.
    return decode_table(r, L) && flowlua_decode_metatable(r, L);
  case TAG_SECRET: return decode_secret(r, L);
  default:
    if (r->is_code && tag == TAG_FUNCTION) return decode_function(r, L);
    if (r->is_code && tag <= TAG_GLOBALS) return flowlua_decode_named(r, L, tag);
    break;
  }
  r->offset -= 1;
  return decode_fail(r, "a tag isn't known");
}

static bool is_key(flowlua_reader *r, lua_State *L) {
  if (lua_type(L, -1) == LUA_TNIL) return decode_fail(r, "a key is nil");
  if (lua_type(L, -1) == LUA_TNUMBER && !lua_isinteger(L, -1)) {
    lua_Number number = lua_tonumberx(L, -1, NULL);
    if (number != number) return decode_fail(r, "a key is not a number");
  }
  return true;
}

/// Sets 1, 2, … of the new table on top to the numbers that come next, up to the first other value; how many they
/// are. [-0, +0, m]
static size_t decode_numbers(flowlua_reader *r, lua_State *L, size_t count) {
  list_slot *slots = count > 0 ? flowlua_slots_for(r->state, L, -1, count) : NULL;
  if (slots == NULL) return 0;
  if (count > remaining(r) / 9) count = remaining(r) / 9;
  const uint8_t *bytes = r->bytes + r->offset;
  size_t numbers = 0;
  for (; numbers < count && (*bytes == TAG_INTEGER || *bytes == TAG_FLOAT); numbers++, bytes += 9) {
    memcpy(&slots[numbers].value, bytes + 1, 8);
    slots[numbers].type = *bytes == TAG_INTEGER ? SLOT_INTEGER : SLOT_FLOAT;
  }
  r->offset += numbers * 9;
  return numbers;
}

/// Fills the table on top. [-0, +0, m]
static bool decode_body(flowlua_reader *r, lua_State *L, announced counts) {
  int table = lua_gettop(L);
  r->promised -= (size_t)counts.list + 2 * (size_t)counts.entries;
  // Mostly lists have nothing but numbers.
  size_t numbers = decode_numbers(r, L, counts.list);
  for (uint32_t i = (uint32_t)numbers + 1; i <= counts.list; i++) {
    if (!decode_number(r, L) && !decode_value(r, L)) return false;
    lua_rawseti(L, table, i);
  }
  for (uint32_t i = 0; i < counts.entries; i++) {
    if (!decode_value(r, L) || !is_key(r, L) || !decode_value(r, L)) return false;
    lua_rawset(L, table);
  }
  return true;
}

static bool decode_upvalues(flowlua_reader *r, lua_State *L, uint32_t index) {
  int function = lua_gettop(L);
  uint8_t count;
  r->promised -= 1;
  if (!get_byte(r, &count)) return false;
  for (int n = 1; n <= count; n++) {
    uint8_t kind;
    uint64_t cell;
    if (!get_byte(r, &kind)) return false;
    if (kind == CELL_KNOWN) {
      if (!flowlua_get_number(r, &cell)) return false;
      if (cell >= r->cell_count) return decode_fail(r, "a variable isn't there");
      flowlua_push_announced(r, L, r->cells[cell].function);
      lua_upvaluejoin(L, function, n, function + 1, r->cells[cell].number);
    } else {
      r->cells = flowlua_grown(L, r->cells, r->cell_count, &r->cell_capacity, sizeof *r->cells);
      r->cells[r->cell_count++] = (read_cell){index, n};
      if (!decode_value(r, L)) return false;
      if (lua_setupvalue(L, function, n) == NULL) return decode_fail(r, "an upvalue isn't there");
    }
    lua_settop(L, function);
  }
  return true;
}

static bool decode_bodies(flowlua_reader *r, lua_State *L) {
  int top = lua_gettop(L);
  for (uint32_t i = 0; i < r->count; i++) {
    flowlua_push_announced(r, L, i);
    bool done =
        lua_type(L, -1) == LUA_TTABLE ? decode_body(r, L, r->objects[i]) : decode_upvalues(r, L, i);
    if (!done) return false;
    lua_settop(L, top);
  }
  return true;
}

static bool decode_header(flowlua_reader *r) {
  const uint8_t *header = r->is_code ? flowlua_code_header : flowlua_value_header;
  if (remaining(r) < 3) return ends_early(r);
  const uint8_t *bytes = r->bytes + r->offset;
  if (memcmp(bytes, header, 2) != 0) return decode_fail(r, "these bytes aren't an encoded value");
  if (bytes[2] != header[2]) return decode_fail(r, "this version of the encoding isn't known");
  r->offset += 3;
  return true;
}

static bool decode_graph(flowlua_reader *r, lua_State *L) {
  int top = lua_gettop(L);
  flowlua_require_room(L, LUA_MINSTACK, "a value");
  lua_settop(L, top + 2);
  r->first = top + 1;
  r->others = top + 2;
  r->count = 0;
  r->promised = 0;
  if (!decode_header(r) || !decode_value(r, L)) return false;
  if (r->count > 0 && !decode_bodies(r, L)) return false;
  lua_replace(L, top + 1);
  lua_settop(L, top + 1);
  return true;
}

static int decode(lua_State *L) {
  flowlua_reader *r = lua_touserdata(L, 1);
  int count = (int)lua_tointegerx(L, 2, NULL);
  lua_settop(L, 0);
  flowlua_require_room(L, count, "values");
  for (int i = 0; i < count; i++) {
    if (!decode_graph(r, L)) return 0;
  }
  return count;
}

int32_t flowlua_decode_protected(flowlua_reader *r, lua_State *L, int32_t count) {
  int32_t status = flowlua_make_room(r->state, L, LUA_MINSTACK);
  if (status != LUA_OK) return status;
  lua_pushcfunction(L, decode);
  lua_pushlightuserdata(L, r);
  lua_pushinteger(L, count);
  status = lua_pcall(L, 2, LUA_MULTRET, 0);
  flowlua_reader_close(r);
  return status == LUA_OK && r->problem != NULL ? FLOWLUA_MALFORMED : status;
}

/// Pushes a value that needs no memory: no string, no table. [-0, +(0|1), -]
static bool decode_scalar(flowlua_state *state, lua_State *L, flowlua_reader *r) {
  size_t start = r->offset;
  if (decode_header(r) && remaining(r) > 0 && r->bytes[r->offset] <= TAG_FLOAT
      && flowlua_make_room(state, L, 1) == LUA_OK && decode_value(r, L))
    return true;
  r->offset = start;
  r->problem = NULL;
  return false;
}

int32_t flowlua_decode(
    flowlua_state *state, lua_State *L, const uint8_t *bytes, size_t size, int32_t count,
    size_t *used, const char **problem) {
  flowlua_reader r;
  flowlua_reader_open(&r, state, bytes, size, false);
  int32_t status = LUA_OK;
  if (count != 1 || !decode_scalar(state, L, &r)) status = flowlua_decode_protected(&r, L, count);
  *used = r.offset;
  *problem = r.problem;
  return status;
}
