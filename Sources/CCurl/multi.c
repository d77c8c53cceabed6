// The transfers of one loop. The loop watches descriptors and the time for them.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *context, void *unused) {
  (void)easy, (void)unused;
  ccurl_multi *multi = context;
  bool reading = what == CURL_POLL_IN || what == CURL_POLL_INOUT;
  bool writing = what == CURL_POLL_OUT || what == CURL_POLL_INOUT;
  multi->events->watch(multi->context, socket, reading, writing);
  return 0;
}

static int on_timer(CURLM *handle, long milliseconds, void *context) {
  (void)handle;
  ccurl_multi *multi = context;
  multi->events->wake(multi->context, milliseconds);
  return 0;
}

// The library wakes itself by a pair of sockets that programs which the process starts would inherit.
// They get the lowest free numbers, which are those that a pair made now gets.
static CURLM *make_handle(void) {
  int pair[2];
  bool known = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0;
  if (known) {
    close(pair[0]);
    close(pair[1]);
  }
  CURLM *handle = ccurl_library.curl_multi_init();
  for (int i = 0; known && handle != NULL && i < 2; i++) {
    int domain = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(pair[i], SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX) {
      fcntl(pair[i], F_SETFD, FD_CLOEXEC);
    }
  }
  return handle;
}

ccurl_multi *ccurl_multi_make(
    const ccurl_loop_events *events, void *context, long connections, long kept) {
  ccurl_multi *multi = calloc(1, sizeof *multi);
  if (multi == NULL) return NULL;
  multi->handle = make_handle();
  if (multi->handle == NULL) {
    free(multi);
    return NULL;
  }
  multi->events = events;
  multi->context = context;
  CURLMcode (*set)(CURLM *, CURLMoption, ...) = ccurl_library.curl_multi_setopt;
  set(multi->handle, CURLMOPT_SOCKETFUNCTION, on_socket);
  set(multi->handle, CURLMOPT_SOCKETDATA, multi);
  set(multi->handle, CURLMOPT_TIMERFUNCTION, on_timer);
  set(multi->handle, CURLMOPT_TIMERDATA, multi);
  set(multi->handle, CURLMOPT_MAX_TOTAL_CONNECTIONS, connections);
  set(multi->handle, CURLMOPT_MAXCONNECTS, kept);
  return multi;
}

void ccurl_multi_free(ccurl_multi *multi) {
  ccurl_library.curl_multi_cleanup(multi->handle);
  free(multi);
}

bool ccurl_multi_add(ccurl_multi *multi, ccurl_easy *easy) {
  return ccurl_library.curl_multi_add_handle(multi->handle, easy->handle) == CURLM_OK;
}

void ccurl_multi_remove(ccurl_multi *multi, ccurl_easy *easy) {
  ccurl_library.curl_multi_remove_handle(multi->handle, easy->handle);
}

void ccurl_multi_ready(ccurl_multi *multi, int descriptor, bool reading, bool writing) {
  int running = 0;
  int events = (reading ? CURL_CSELECT_IN : 0) | (writing ? CURL_CSELECT_OUT : 0);
  ccurl_library.curl_multi_socket_action(multi->handle, descriptor, events, &running);
}

void ccurl_multi_time(ccurl_multi *multi) {
  int running = 0;
  ccurl_library.curl_multi_socket_action(multi->handle, CURL_SOCKET_TIMEOUT, 0, &running);
}

void *ccurl_multi_next(ccurl_multi *multi, CURLcode *code) {
  int left = 0;
  CURLMsg *message;
  while ((message = ccurl_library.curl_multi_info_read(multi->handle, &left)) != NULL) {
    if (message->msg != CURLMSG_DONE) continue;
    ccurl_easy *easy = NULL;
    *code = message->data.result;
    ccurl_library.curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &easy);
    if (easy != NULL) return easy->context;
  }
  return NULL;
}
