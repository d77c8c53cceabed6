// The requests of http.lua in C, with as little around libcurl as they need: http_peer URL COUNT
// prints the microseconds of time and of CPU time of each of COUNT GETs, 64 at once.
//
// Each transfer and its memory are used again, which no program should do with libcurl 7.88: a
// server can make it free a line of the header twice.
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

enum { WIDTH = 64, SIZE = 1024 };

struct slot {
  CURL *easy;
  char *body;
  size_t size, room;
};

static CURLM *multi;
static int poller;
static long timeout = -1;

static size_t on_receive(char *bytes, size_t unit, size_t count, void *context) {
  struct slot *slot = context;
  size_t size = unit * count;
  if (slot->size + size > slot->room) {
    slot->room = 2 * (slot->size + size);
    slot->body = realloc(slot->body, slot->room);
    if (slot->body == NULL) abort();
  }
  memcpy(slot->body + slot->size, bytes, size);
  slot->size += size;
  return size;
}

static int on_timer(CURLM *handle, long milliseconds, void *context) {
  (void)handle, (void)context;
  timeout = milliseconds;
  return 0;
}

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *context, void *watched) {
  (void)easy, (void)context;
  if (what == CURL_POLL_REMOVE) {
    epoll_ctl(poller, EPOLL_CTL_DEL, socket, NULL);
    return 0;
  }
  struct epoll_event event = {.data.fd = socket};
  if (what & CURL_POLL_IN) event.events |= EPOLLIN;
  if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
  epoll_ctl(poller, watched == NULL ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event);
  curl_multi_assign(multi, socket, &poller);
  return 0;
}

// Takes what has ended; each slot sends another request while some are left.
static void take_ended(long *left, long *underway) {
  int queued;
  for (CURLMsg *message; (message = curl_multi_info_read(multi, &queued)) != NULL;) {
    CURL *easy = message->easy_handle;
    struct slot *slot = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &slot);
    if (message->data.result != CURLE_OK || slot == NULL || slot->size != SIZE) {
      fprintf(stderr, "a request failed: %s\n", curl_easy_strerror(message->data.result));
      exit(1);
    }
    slot->size = 0;
    curl_multi_remove_handle(multi, easy);
    if (*left > 0) {
      --*left;
      curl_multi_add_handle(multi, easy);
    } else {
      --*underway;
    }
  }
}

static void get(struct slot *slots, long width, long count) {
  long underway = width < count ? width : count, left = count - underway;
  for (long i = 0; i < underway; i++) curl_multi_add_handle(multi, slots[i].easy);
  while (underway > 0) {
    struct epoll_event events[WIDTH];
    int running, ready = epoll_wait(poller, events, WIDTH, (int)timeout);
    if (ready == 0) curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
    for (int i = 0; i < ready; i++) {
      int what = (events[i].events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0)
          | (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0)
          | (events[i].events & EPOLLERR ? CURL_CSELECT_ERR : 0);
      curl_multi_socket_action(multi, events[i].data.fd, what, &running);
    }
    take_ended(&left, &underway);
  }
}

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

int main(int count, char **words) {
  if (count != 3) return 2;
  const char *url = words[1];
  long requests = strtol(words[2], NULL, 10);
  struct slot slots[WIDTH] = {0};
  curl_global_init(CURL_GLOBAL_DEFAULT);
  poller = epoll_create1(EPOLL_CLOEXEC);
  multi = curl_multi_init();
  curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)WIDTH);
  for (int i = 0; i < WIDTH; i++) {
    CURL *easy = slots[i].easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &slots[i]);
    // Otherwise libcurl sets the action of a signal five times for each request.
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_receive);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &slots[i]);
  }
  // Loading what libcurl needs isn't part of a request.
  get(slots, 1, 1);
  double begun = now(CLOCK_MONOTONIC), used = now(CLOCK_PROCESS_CPUTIME_ID);
  get(slots, WIDTH, requests);
  used = now(CLOCK_PROCESS_CPUTIME_ID) - used;
  printf("%f %f\n", (now(CLOCK_MONOTONIC) - begun) / (double)requests, used / (double)requests);
}
