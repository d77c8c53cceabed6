// What Swift's Glibc module can't import or call: missing headers, macros and variadic functions.
#ifndef FLOWSYSTEM_H
#define FLOWSYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A close-on-exec, non-blocking eventfd, or -1 with errno set. <sys/eventfd.h> isn't in Glibc's
/// module map.
int flowsystem_eventfd(void);

/// Waits until `fd` is readable or `timeout_ns` nanoseconds have passed; a negative timeout waits
/// without end. Returns 1 when readable, 0 when time is up or a signal arrived, -1 on an error.
int flowsystem_wait_readable(int fd, int64_t timeout_ns);

/// The same for two descriptors, of which `other` may be -1.
int flowsystem_wait_readable_any(int fd, int other, int64_t timeout_ns);

/// Whether the calling thread is the one that the process began with.
bool flowsystem_is_main_thread(void);

/// The eventfd that becomes readable when Dispatch's main queue, which is where jobs of the main actor
/// go, has something to do; -1 when Dispatch isn't part of the process. On the main thread.
int flowsystem_main_queue_descriptor(void);

/// Does what the main queue has to do, if its descriptor is readable; returns whether it was. Calls
/// from within do nothing. On the main thread.
bool flowsystem_drain_main_queue(int descriptor);

/// Writes `number` as printf's "%.<precision>g" does; returns the length, less than `size`.
/// printf is variadic, which Swift doesn't import.
size_t flowsystem_format_g(char *buffer, size_t size, int precision, double number);

/// Writes to the C stream stdout or stderr, behind what stands in its buffer, and flushes it. Both
/// are macros for global variables, which Swift's concurrency checks refuse.
void flowsystem_write(const void *bytes, size_t count, bool to_error);

#endif
