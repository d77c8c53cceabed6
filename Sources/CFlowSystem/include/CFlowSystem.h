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

/// A close-on-exec epoll descriptor, or -1 with errno set. <sys/epoll.h> isn't in Glibc's module map.
int flowsystem_epoll_create(void);

/// Watches `fd`, for as long as it can be read from (or written to); its events carry `tag`. Returns
/// 0 or an errno.
int flowsystem_epoll_add(int epoll, int fd, bool writing, uint64_t tag);

/// Ends watching `fd`, which must still be open.
void flowsystem_epoll_remove(int epoll, int fd);

/// Takes the tags of at most `capacity`, and at most 64, descriptors that are ready, without waiting.
/// Returns how many there are.
int flowsystem_epoll_take(int epoll, uint64_t *tags, int capacity);

/// Writes `number` as printf's "%.<precision>g" does; returns the length, less than `size`.
/// printf is variadic, which Swift doesn't import.
size_t flowsystem_format_g(char *buffer, size_t size, int precision, double number);

/// Writes to the C stream stdout or stderr, behind what stands in its buffer, and flushes it. Both
/// are macros for global variables, which Swift's concurrency checks refuse.
void flowsystem_write(const void *bytes, size_t count, bool to_error);

#endif
