// Makes a state with CFlowLua from a shared library. Where liblua calls its own lua_resume, because it is
// linked statically or comes first, waits and stops would be lost: no state may be made there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CFlowLua.h"

int main(void) {
  flowlua_configuration configuration = {.libraries = FLOWLUA_ALL_LIBRARIES};
  flowlua_callbacks callbacks = {0};
  const char *problem = NULL;
  flowlua_state *state = flowlua_open(&configuration, &callbacks, &problem);
  if (state != NULL) {
    puts("a state was made");
    return EXIT_SUCCESS;
  }
  if (problem == NULL || strstr(problem, "link the shared liblua5.4") == NULL) {
    printf("the problem isn't named: %s\n", problem != NULL ? problem : "none");
    return EXIT_FAILURE;
  }
  puts("refused");
  return EXIT_SUCCESS;
}
