// Values, and functions with what they refer to, from a state into bytes.

#include "codec.h"
#include "layout.h"

static inline void put_bits(lua_State *L, flowlua_buffer *out, uint8_t tag, const void *bits) {
  uint8_t *at = space(L, out, 9);
  at[0] = tag;
  memcpy(at + 1, bits, 8);
  out->count += 9;
}

static void put_string(lua_State *L, flowlua_buffer *out, const char *bytes, size_t count) {
  uint8_t *at = space(L, out, count + 11);
  *at = TAG_STRING;
  size_t used = 1 + write_number(at + 1, count);
  memcpy(at + used, bytes, count);
  out->count += used + count;
}

bool flowlua_encode_function(encoder *e, lua_State *L, bool by_name) {
  uint32_t index;
  if (by_name && flowlua_encode_name(e, L)) return true;
  if (lua_iscfunction(L, -1))
    return e->is_form ? flowlua_encode_foreign(e, L) : flowlua_encode_fail(e, L);
  if (!flowlua_meet(e, L, &index)) {
    put_byte(L, e->out, TAG_KNOWN);
    flowlua_put_number(L, e->out, index);
    return true;
  }
  put_byte(L, e->out, TAG_FUNCTION);
  // Its length is only known afterwards: 4 bytes.
  uint32_t length = 0;
  size_t start = e->out->count;
  flowlua_put(L, e->out, &length, sizeof length);
  if (e->is_form) flowlua_put_code_form(e, L);
  else if (lua_dump(L, flowlua_write_code, e->out, 0) != 0) flowlua_raise_memory(L);
  size_t written = e->out->count - start - sizeof length;
  if (written > UINT32_MAX) flowlua_raise_memory(L);
  length = (uint32_t)written;
  memcpy(e->out->bytes + start, &length, sizeof length);
  return true;
}

static bool encode_table(encoder *e, lua_State *L) {
  uint32_t index;
  if (flowlua_push_viewed(L, -1)) {
    // A view goes as the copy of the table that it shows.
    bool done = encode_table(e, L);
    lua_settop(L, -2);
    return done;
  }
  if (e->is_code && flowlua_encode_name(e, L)) return true;
  if (e->is_form && flowlua_is_setting(e, L)) return flowlua_encode_foreign(e, L);
  if (!flowlua_meet(e, L, &index)) {
    put_byte(L, e->out, TAG_KNOWN);
    flowlua_put_number(L, e->out, index);
    return true;
  }
  uint8_t *at = space(L, e->out, 9);
  memset(at, 0, 9);
  at[0] = TAG_TABLE;
  e->out->count += 9;
  int32_t mark = flowlua_json_mark_of(e->state, L, -1);
  if (mark == FLOWLUA_JSON_UNMARKED) return true;
  uint8_t *tag = &e->out->bytes[e->out->count - 9];
  if (mark != FLOWLUA_JSON_OTHER) {
    *tag |= mark == FLOWLUA_JSON_ARRAY ? TAG_ARRAY : TAG_OBJECT;
    return true;
  }
  *tag = TAG_TYPED;
  // In a form it may have a metatable in turn, any number of them: it belongs to the body.
  if (e->is_form) return true;
  lua_getmetatable(L, -1);
  bool is_found = flowlua_encode_metatable(e, L);
  lua_settop(L, -2);
  return is_found || flowlua_encode_fail(e, L);
}

static bool encode_userdata(encoder *e, lua_State *L) {
  flowlua_state *state = e->state;
  if (e->is_code && flowlua_encode_name(e, L)) return true;
  void *object = state->secret_type == 0 ? NULL : flowlua_object(state, L, -1, state->secret_type);
  flowlua_value value = {0};
  if (object == NULL || !state->callbacks.unwrap(state, object, &value))
    return e->is_form ? flowlua_encode_host_object(e, L) : flowlua_encode_fail(e, L);
  put_byte(L, e->out, TAG_SECRET);
  e->out->has_secrets = true;
  if (value.kind == FLOWLUA_STRING) {
    // Without making it a string of Lua's.
    bool fits = flowlua_buffer_reserve(e->out, (size_t)value.integer + 11);
    if (fits) put_string(L, e->out, value.pointer, (size_t)value.integer);
    flowlua_dispose(state, &value);
    if (!fits) flowlua_raise_memory(L);
    return true;
  }
  flowlua_require_room(L, 8, "a value");
  flowlua_push_plain(L, state, &value);
  bool done = flowlua_encode_top(e, L);
  lua_settop(L, -2);
  return done;
}

bool flowlua_encode_top(encoder *e, lua_State *L) {
  flowlua_buffer *out = e->out;
  switch (lua_type(L, -1)) {
  case LUA_TNIL: put_byte(L, out, TAG_NIL); return true;
  case LUA_TBOOLEAN: put_byte(L, out, lua_toboolean(L, -1) ? TAG_TRUE : TAG_FALSE); return true;
  case LUA_TNUMBER:
    if (lua_isinteger(L, -1)) {
      lua_Integer integer = lua_tointegerx(L, -1, NULL);
      put_bits(L, out, TAG_INTEGER, &integer);
    } else {
      lua_Number number = lua_tonumberx(L, -1, NULL);
      put_bits(L, out, TAG_FLOAT, &number);
    }
    return true;
  case LUA_TSTRING: {
    size_t count;
    const char *bytes = lua_tolstring(L, -1, &count);
    put_string(L, out, bytes, count);
    return true;
  }
  case LUA_TTABLE: return encode_table(e, L);
  case LUA_TFUNCTION:
    return e->is_code ? flowlua_encode_function(e, L, true) : flowlua_encode_fail(e, L);
  case LUA_TUSERDATA: return encode_userdata(e, L);
  case LUA_TLIGHTUSERDATA:
    if (lua_touserdata(L, -1) != NULL) break;
    put_byte(L, out, TAG_NULL);
    return true;
  default: break;
  }
  return e->is_form ? flowlua_encode_foreign(e, L) : flowlua_encode_fail(e, L);
}

/// The values of 1, 2, … up to the first hole; -1 when one is refused. They are read a pile at a time,
/// as most of the time goes into calls. [-0, +0, m]
static int64_t encode_list(encoder *e, lua_State *L, int table) {
  lua_Integer length = (lua_Integer)lua_rawlen(L, table);
  lua_Integer done = 0;
  if (length > UINT32_MAX) flowlua_raise_memory(L);
  while (done < length) {
    int count = length - done > FLOWLUA_PILE ? FLOWLUA_PILE : (int)(length - done);
    int top = lua_gettop(L);
    bool only_numbers = true;
    for (int i = 1; i <= count; i++) {
      int type = lua_rawgeti(L, table, done + i);
      if (type != LUA_TNUMBER) {
        only_numbers = false;
        if (type == LUA_TNIL) {
          length = done + i - 1;
          count = i - 1;
        }
      }
    }
    if (only_numbers) {
      part_start start = begin_part(e);
      uint8_t *at = space(L, e->out, (size_t)count * 9);
      for (int i = 1; i <= count; i++, at += 9) {
        if (lua_isinteger(L, top + i)) {
          lua_Integer integer = lua_tointegerx(L, top + i, NULL);
          at[0] = TAG_INTEGER;
          memcpy(at + 1, &integer, 8);
        } else {
          lua_Number number = lua_tonumberx(L, top + i, NULL);
          at[0] = TAG_FLOAT;
          memcpy(at + 1, &number, 8);
        }
      }
      e->out->count += (size_t)count * 9;
      if (e->parts != NULL) flowlua_list_part(e, L, FLOWLUA_PART_CONTENT, "", 0, start);
    } else {
      for (int i = 1; i <= count; i++) {
        part_start start = begin_part(e);
        lua_pushvalue(L, top + i);
        if (!flowlua_encode_top(e, L)) return -1;
        lua_settop(L, -2);
        if (e->parts != NULL) {
          lua_pushinteger(L, done + i);
          flowlua_list_field(e, L, lua_gettop(L), start);
          lua_settop(L, -2);
        }
      }
    }
    lua_settop(L, top);
    done += count;
  }
  return done;
}

static int64_t count_keys(lua_State *L, int table) {
  int64_t count = 0;
  lua_pushnil(L);
  while (lua_next(L, table)) {
    count += 1;
    lua_settop(L, -2);
  }
  return count;
}

/// Writes key and value, which are on top. [-0, +0, m]
static bool encode_entry(encoder *e, lua_State *L) {
  lua_pushvalue(L, -2);
  if (!flowlua_encode_top(e, L)) return false;
  lua_settop(L, -2);
  part_start start = begin_part(e);
  if (!flowlua_encode_top(e, L)) return false;
  if (e->parts != NULL) flowlua_list_field(e, L, lua_gettop(L) - 1, start);
  return true;
}

static int64_t encode_entries(encoder *e, lua_State *L, int table, int64_t listed) {
  int64_t count = 0;
  if (listed > 0 && count_keys(L, table) == listed) return 0;
  if (e->is_code) {
    int64_t total = flowlua_push_sorted_keys(L, table, listed);
    int keys = lua_gettop(L);
    for (int64_t i = 0; i < total; i++) {
      lua_rawgeti(L, keys, i);
      if (e->is_form && !flowlua_is_sortable(L, -1)) {
        lua_settop(L, keys);
        if (!flowlua_encode_unordered(e, L, table, keys, i, total)) return -1;
        break;
      }
      lua_pushvalue(L, -1);
      lua_rawget(L, table);
      if (!encode_entry(e, L)) return -1;
      lua_settop(L, keys);
    }
    lua_settop(L, keys - 1);
    return total;
  }
  lua_pushnil(L);
  while (lua_next(L, table)) {
    if (!flowlua_is_listed(L, -2, listed)) {
      if (!encode_entry(e, L)) return -1;
      if (++count > UINT32_MAX) flowlua_raise_memory(L);
    }
    lua_settop(L, -2);
  }
  return count;
}

/// Writes numbers, 9 bytes each.
static void write_slots(uint8_t *at, const list_slot *slots, size_t count) {
  for (size_t i = 0; i < count; i++, at += 9) {
    at[0] = slots[i].type == SLOT_INTEGER ? TAG_INTEGER : TAG_FLOAT;
    memcpy(at + 1, &slots[i].value, 8);
  }
}

/// Writes the table on top: list values and entries. [-0, +0, m]
static bool encode_body(encoder *e, lua_State *L) {
  int table = lua_gettop(L);
  if (e->is_form && e->out->bytes[e->objects[e->current].named_at] == TAG_TYPED) {
    lua_getmetatable(L, table);
    part_start start = begin_part(e);
    if (!flowlua_encode_metatable(e, L) && !flowlua_encode_top(e, L)) return false;
    if (e->parts != NULL) flowlua_list_part(e, L, FLOWLUA_PART_CONTENT, "", 0, start);
    lua_settop(L, table);
  }
  int64_t listed, entries = 0;
  size_t numbers;
  const list_slot *slots = flowlua_list_slots(e->state, L, table, &numbers);
  if (slots != NULL) {
    part_start start = begin_part(e);
    write_slots(space(L, e->out, numbers * 9), slots, numbers);
    e->out->count += numbers * 9;
    if (e->parts != NULL) flowlua_list_part(e, L, FLOWLUA_PART_CONTENT, "", 0, start);
    listed = (int64_t)numbers;
  } else {
    listed = encode_list(e, L, table);
    if (listed < 0) return false;
    entries = encode_entries(e, L, table, listed);
    if (entries < 0) return false;
  }
  uint32_t counts[2] = {(uint32_t)listed, (uint32_t)entries};
  memcpy(e->out->bytes + e->objects[e->current].named_at + 1, counts, sizeof counts);
  return true;
}

static bool encode_upvalues(encoder *e, lua_State *L) {
  int function = lua_gettop(L);
  size_t count_at = e->out->count;
  put_byte(L, e->out, 0);
  // The name is empty when debug information was stripped.
  const char *name;
  for (int n = 1; (name = lua_getupvalue(L, function, n)) != NULL; n++) {
    e->upvalues =
        flowlua_grown(L, e->upvalues, e->upvalue_count, &e->upvalue_capacity, sizeof *e->upvalues);
    e->upvalues[e->upvalue_count++] = (met_upvalue){e->out->count, e->current, n};
    uint32_t cell;
    if (!flowlua_meet_cell(e, L, lua_upvalueid(L, function, n), &cell)) {
      put_byte(L, e->out, CELL_KNOWN);
      flowlua_put_number(L, e->out, cell);
    } else {
      put_byte(L, e->out, CELL_NEW);
      part_start start = begin_part(e);
      if (!flowlua_encode_top(e, L)) return false;
      if (e->parts != NULL) flowlua_list_part(e, L, FLOWLUA_PART_LOCAL, name, strlen(name), start);
    }
    e->out->bytes[count_at] = (uint8_t)n;
    lua_settop(L, function);
  }
  return !e->is_form || flowlua_encode_used_globals(e, L);
}

static bool encode_object_body(encoder *e, lua_State *L) {
  switch (lua_type(L, -1)) {
  case LUA_TTABLE: return encode_body(e, L);
  case LUA_TUSERDATA: return flowlua_encode_host_body(e, L);
  default: return encode_upvalues(e, L);
  }
}

bool flowlua_encode_bodies(encoder *e, lua_State *L) {
  int top = lua_gettop(L);
  if (e->current == NO_OBJECT) e->current = 0;
  for (; e->current < e->count; e->current++) {
    e->objects[e->current].body = e->out->count;
    flowlua_push_met(e, L, e->current);
    if (!encode_object_body(e, L)) return false;
    lua_settop(L, top);
  }
  return true;
}

/// The value at 1. [-1, +0, m]
static int encode(lua_State *L) {
  encoder *e = lua_touserdata(L, 2);
  lua_settop(L, 1);
  flowlua_require_room(L, FLOWLUA_PILE + 20, "a value");
  lua_createtable(L, 0, 0);
  lua_pushnil(L);
  e->root = 1;
  e->queue = 2;
  e->names = 3;
  lua_pushvalue(L, 1);
  if (flowlua_encode_top(e, L)) {
    lua_settop(L, 3);
    flowlua_encode_bodies(e, L);
  }
  return 0;
}

void flowlua_set_secret_type(flowlua_state *state, int32_t type) { state->secret_type = type; }

/// Writes what is neither table nor object: nothing of that can raise. false for anything else, also
/// when memory ran out.
static bool encode_scalar(lua_State *L, int index, flowlua_buffer *out) {
  size_t count = 0;
  const char *bytes = NULL;
  int type = lua_type(L, index);
  if (type == LUA_TSTRING) bytes = lua_tolstring(L, index, &count);
  else if (type != LUA_TNUMBER && type != LUA_TBOOLEAN && type != LUA_TNIL) return false;
  if (!flowlua_buffer_reserve(out, sizeof flowlua_value_header + 11 + count)) return false;
  memcpy(out->bytes + out->count, flowlua_value_header, sizeof flowlua_value_header);
  out->count += sizeof flowlua_value_header;
  if (bytes != NULL) {
    put_string(L, out, bytes, count);
  } else if (type == LUA_TNUMBER && lua_isinteger(L, index)) {
    lua_Integer integer = lua_tointegerx(L, index, NULL);
    put_bits(L, out, TAG_INTEGER, &integer);
  } else if (type == LUA_TNUMBER) {
    lua_Number number = lua_tonumberx(L, index, NULL);
    put_bits(L, out, TAG_FLOAT, &number);
  } else {
    bool is_true = lua_toboolean(L, index);
    put_byte(L, out, type == LUA_TNIL ? TAG_NIL : is_true ? TAG_TRUE : TAG_FALSE);
  }
  return true;
}

int32_t flowlua_encode(
    flowlua_state *state, lua_State *L, int32_t index, flowlua_buffer *buffer,
    flowlua_encode_error *error) {
  if (encode_scalar(L, index, buffer)) return LUA_OK;
  index = lua_absindex(L, index);
  int32_t room = flowlua_make_room(state, L, LUA_MINSTACK);
  if (room != LUA_OK) return room;
  size_t start = buffer->count;
  if (!flowlua_buffer_append(buffer, flowlua_value_header, sizeof flowlua_value_header))
    return FLOWLUA_NO_MEMORY;
  encoder e;
  flowlua_encoder_open(&e, state, buffer, error);
  lua_pushcfunction(L, encode);
  lua_pushvalue(L, index);
  lua_pushlightuserdata(L, &e);
  int32_t status = lua_pcall(L, 2, 0, 0);
  flowlua_encoder_close(&e);
  if (status == LUA_OK && e.has_failed) status = FLOWLUA_NOT_ENCODED;
  if (status != LUA_OK) buffer->count = start;
  return status;
}
