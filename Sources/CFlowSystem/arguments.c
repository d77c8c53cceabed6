// The command line of the process. Swift's CommandLine reads /proc/self/cmdline, which a chroot or
// a small container may lack.
#include "CFlowSystem.h"

static int argument_count;
static char **arguments;

/// The C library also passes these to constructors.
__attribute__((constructor)) static void keep_arguments(int count, char **list) {
  argument_count = count;
  arguments = list;
}

char *const *flowsystem_arguments(int *count) {
  *count = argument_count;
  return arguments;
}
