// One transfer: its options, and its callbacks.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

void ccurl_easy_free(ccurl_easy *easy) {
  ccurl_library.curl_easy_cleanup(easy->handle);
  ccurl_library.curl_slist_free_all(easy->headers);
  if (easy->mime != NULL) ccurl_library.curl_mime_free(easy->mime);
  free(easy);
}

static size_t on_header(char *line, size_t size, size_t count, void *context) {
  ccurl_easy *easy = context;
  return easy->events->header(easy->context, line, size * count) ? size * count : 0;
}

static size_t on_receive(char *bytes, size_t size, size_t count, void *context) {
  ccurl_easy *easy = context;
  return easy->events->receive(easy->context, bytes, size * count);
}

static size_t on_send(char *buffer, size_t size, size_t count, void *context) {
  ccurl_easy *easy = context;
  return easy->events->send(easy->context, buffer, size * count);
}

static int on_seek(void *context, curl_off_t offset, int origin) {
  ccurl_easy *easy = context;
  if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  return easy->events->seek(easy->context, offset) ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_CANTSEEK;
}

static int on_moved(
    void *context, curl_off_t total, curl_off_t received, curl_off_t size, curl_off_t sent) {
  ccurl_easy *easy = context;
  easy->events->moved(easy->context, received, total, sent, size);
  return 0;
}

// The library's own sockets would be inherited by programs that the process starts.
static curl_socket_t on_open(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
  (void)purpose;
  ccurl_easy *easy = context;
  int made = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  // The last address counts.
  easy->lacks_descriptor = made < 0 && (errno == EMFILE || errno == ENFILE);
  return made < 0 ? CURL_SOCKET_BAD : made;
}

static int on_close(void *context, curl_socket_t socket) {
  ccurl_multi *multi = context;
  multi->events->closing(multi->context, socket);
  return close(socket);
}

ccurl_easy *ccurl_easy_make(
    ccurl_multi *multi, const ccurl_transfer_events *events, void *context) {
  ccurl_easy *easy = calloc(1, sizeof *easy);
  if (easy == NULL) return NULL;
  easy->multi = multi;
  easy->events = events;
  easy->context = context;
  easy->handle = ccurl_library.curl_easy_init();
  if (easy->handle == NULL) {
    free(easy);
    return NULL;
  }
  CURL *handle = easy->handle;
  CURLcode (*set)(CURL *, CURLoption, ...) = ccurl_library.curl_easy_setopt;
  set(handle, CURLOPT_PRIVATE, easy);
  set(handle, CURLOPT_ERRORBUFFER, easy->problem);
  // Signals are the program's own.
  set(handle, CURLOPT_NOSIGNAL, 1L);
  // Otherwise the end of a transfer waits for the thread that looks up its name.
  set(handle, CURLOPT_QUICK_EXIT, 1L);
  set(handle, CURLOPT_OPENSOCKETFUNCTION, on_open);
  set(handle, CURLOPT_OPENSOCKETDATA, easy);
  // A connection is kept after its transfer.
  set(handle, CURLOPT_CLOSESOCKETFUNCTION, on_close);
  set(handle, CURLOPT_CLOSESOCKETDATA, multi);
  set(handle, CURLOPT_HEADERFUNCTION, on_header);
  set(handle, CURLOPT_HEADERDATA, easy);
  set(handle, CURLOPT_WRITEFUNCTION, on_receive);
  set(handle, CURLOPT_WRITEDATA, easy);
  return easy;
}

void ccurl_follow_body(ccurl_easy *easy) {
  CURL *handle = easy->handle;
  CURLcode (*set)(CURL *, CURLoption, ...) = ccurl_library.curl_easy_setopt;
  set(handle, CURLOPT_READFUNCTION, on_send);
  set(handle, CURLOPT_READDATA, easy);
  set(handle, CURLOPT_SEEKFUNCTION, on_seek);
  set(handle, CURLOPT_SEEKDATA, easy);
  set(handle, CURLOPT_XFERINFOFUNCTION, on_moved);
  set(handle, CURLOPT_XFERINFODATA, easy);
  set(handle, CURLOPT_NOPROGRESS, 0L);
}

CURLcode ccurl_set_text(ccurl_easy *easy, CURLoption option, const void *text, size_t count) {
  char place[512];
  char *copy = count < sizeof place ? place : malloc(count + 1);
  if (copy == NULL) return CURLE_OUT_OF_MEMORY;
  if (count > 0) memcpy(copy, text, count);
  copy[count] = '\0';
  CURLcode code = CURLE_OUT_OF_MEMORY;
  if (strlen(copy) == count) code = ccurl_library.curl_easy_setopt(easy->handle, option, copy);
  if (copy != place) free(copy);
  return code;
}

CURLcode ccurl_set_number(ccurl_easy *easy, CURLoption option, long number) {
  return ccurl_library.curl_easy_setopt(easy->handle, option, number);
}

CURLcode ccurl_set_size(ccurl_easy *easy, CURLoption option, int64_t size) {
  return ccurl_library.curl_easy_setopt(easy->handle, option, (curl_off_t)size);
}

CURLcode ccurl_set_body(ccurl_easy *easy, const void *bytes, size_t count) {
  CURLcode code = ccurl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, (int64_t)count);
  if (code != CURLE_OK) return code;
  const void *content = count > 0 ? bytes : "";
  return ccurl_library.curl_easy_setopt(easy->handle, CURLOPT_COPYPOSTFIELDS, content);
}

CURLcode ccurl_set_agent(ccurl_easy *easy) {
  return ccurl_library.curl_easy_setopt(easy->handle, CURLOPT_USERAGENT, CCURL_AGENT);
}

bool ccurl_ask_for_encodings(ccurl_easy *easy) {
  return ccurl_add_header(easy, ccurl_usual_lines[1].data);
}

CURLcode ccurl_set_usual_lines(ccurl_easy *easy) {
  return ccurl_library.curl_easy_setopt(easy->handle, CURLOPT_HTTPHEADER, ccurl_usual_lines);
}

bool ccurl_add_header(ccurl_easy *easy, const char *line) {
  struct curl_slist *longer = ccurl_library.curl_slist_append(easy->headers, line);
  if (longer == NULL) return false;
  easy->headers = longer;
  return ccurl_library.curl_easy_setopt(easy->handle, CURLOPT_HTTPHEADER, longer) == CURLE_OK;
}

bool ccurl_add_part(
    ccurl_easy *easy, const char *name, const char *path, const void *bytes, size_t count,
    const char *type, const char *filename) {
  if (easy->mime == NULL) easy->mime = ccurl_library.curl_mime_init(easy->handle);
  if (easy->mime == NULL) return false;
  curl_mimepart *part = ccurl_library.curl_mime_addpart(easy->mime);
  if (part == NULL || ccurl_library.curl_mime_name(part, name) != CURLE_OK) return false;
  CURLcode code = path != NULL ? ccurl_library.curl_mime_filedata(part, path)
                               : ccurl_library.curl_mime_data(part, count > 0 ? bytes : "", count);
  if (code != CURLE_OK) return false;
  if (type != NULL && ccurl_library.curl_mime_type(part, type) != CURLE_OK) return false;
  // The file's own name otherwise.
  if (filename != NULL && ccurl_library.curl_mime_filename(part, filename) != CURLE_OK)
    return false;
  return ccurl_library.curl_easy_setopt(easy->handle, CURLOPT_MIMEPOST, easy->mime) == CURLE_OK;
}

CURLcode ccurl_set_jar(ccurl_easy *easy, CURLSH *jar) {
  CURLcode code = ccurl_library.curl_easy_setopt(easy->handle, CURLOPT_SHARE, jar);
  if (code != CURLE_OK || jar == NULL) return code;
  // Cookies are handled at all once a file of them is named; this one has no name.
  return ccurl_library.curl_easy_setopt(easy->handle, CURLOPT_COOKIEFILE, "");
}

int64_t ccurl_number(ccurl_easy *easy, CURLINFO info) {
  long number = 0;
  ccurl_library.curl_easy_getinfo(easy->handle, info, &number);
  return number;
}

int64_t ccurl_size(ccurl_easy *easy, CURLINFO info) {
  curl_off_t size = 0;
  ccurl_library.curl_easy_getinfo(easy->handle, info, &size);
  return size;
}

const char *ccurl_problem(ccurl_easy *easy) { return easy->problem; }

bool ccurl_lacks_descriptor(ccurl_easy *easy) { return easy->lacks_descriptor; }

const char *ccurl_text(CURLcode code) { return ccurl_library.curl_easy_strerror(code); }

CURLcode ccurl_continue(ccurl_easy *easy) {
  return ccurl_library.curl_easy_pause(easy->handle, CURLPAUSE_CONT);
}

CURLSH *ccurl_jar_make(void) {
  CURLSH *jar = ccurl_library.curl_share_init();
  if (jar == NULL) return NULL;
  ccurl_library.curl_share_setopt(jar, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE);
  return jar;
}

void ccurl_jar_free(CURLSH *jar) { ccurl_library.curl_share_cleanup(jar); }
