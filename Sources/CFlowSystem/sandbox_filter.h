// The filter of system calls of a sandbox, which complements Landlock.
#ifndef FLOWSYSTEM_SANDBOX_FILTER_H
#define FLOWSYSTEM_SANDBOX_FILTER_H

#include <stdbool.h>

/// Installs the filter for the calling thread. `version` is the one of Landlock's interface: the filter restricts
/// what the kernel's Landlock doesn't restrict yet. Returns 0 or an errno.
int flowsystem_filter_calls(bool allows_network, bool allows_programs, int version);

#endif
