#include "CFlowSystem.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>

int flowsystem_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int flowsystem_wait_readable(int fd, int64_t timeout_ns) {
  return flowsystem_wait_readable_any(fd, -1, timeout_ns);
}

int flowsystem_wait_readable_any(int fd, int other, int64_t timeout_ns) {
  struct pollfd entries[] = {{.fd = fd, .events = POLLIN}, {.fd = other, .events = POLLIN}};
  struct timespec timeout = {0};
  if (timeout_ns >= 0) {
    timeout.tv_sec = (time_t)(timeout_ns / 1000000000);
    timeout.tv_nsec = (long)(timeout_ns % 1000000000);
  }
  int count = ppoll(entries, other < 0 ? 1 : 2, timeout_ns >= 0 ? &timeout : NULL, NULL);
  if (count < 0) return errno == EINTR ? 0 : -1;
  return count > 0;
}

size_t flowsystem_format_g(char *buffer, size_t size, int precision, double number) {
  int length = snprintf(buffer, size, "%.*g", precision, number);
  if (length < 0) return 0;
  return (size_t)length < size ? (size_t)length : size - 1;
}

void flowsystem_write(const void *bytes, size_t count, bool to_error) {
  FILE *stream = to_error ? stderr : stdout;
  flowsystem_hide_status();
  if (count > 0) fwrite(bytes, 1, count, stream);
  fflush(stream);
}
