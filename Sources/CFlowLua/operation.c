// Operations: the hot path, one call from Swift for each.
#include "internal.h"

int32_t flowlua_perform(
    flowlua_host *host, int32_t function, uint32_t slot, uint64_t generation,
    int32_t arguments, int32_t count, int64_t deadline, int64_t grace,
    flowlua_coroutine **coroutine, int32_t *result_count) {
  int32_t status = FLOWLUA_NO_ROOM;
  *coroutine = flowlua_start_operation(
      host, function, slot, generation, arguments, count, deadline, grace, &status,
      result_count);
  if (*coroutine == NULL) return FLOWLUA_NO_ROOM;
  if (status == FLOWLUA_FINISHED) {
    lua_State *L = flowlua_coroutine_state(*coroutine);
    if (*result_count == 0 || lua_type(L, -*result_count) != LUA_TUSERDATA) {
      flowlua_coroutine_release(
          host, *coroutine, flowlua_coroutine_generation(*coroutine), true);
      *coroutine = NULL;
      return FLOWLUA_DONE;
    }
  }
  return status;
}
