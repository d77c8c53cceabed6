// Opening the library: no program that makes no request pays for it.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "CFlowSystem.h"
#include "internal.h"

struct ccurl_library ccurl_library;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char problem[256];
/// Whether the library was opened, or is known not to be there.
static atomic_bool is_known;

static bool find(void *library, const char *name, void *place) {
  if (ccurl_find(library, name, place)) return true;
  snprintf(problem, sizeof problem, "libcurl is too old: it has no %s", name);
  return false;
}

static bool find_all(void *library) {
#define FIND(NAME) find(library, #NAME, &ccurl_library.NAME)
  return FIND(curl_global_init) && FIND(curl_easy_init) && FIND(curl_easy_cleanup)
      && FIND(curl_easy_setopt) && FIND(curl_easy_getinfo) && FIND(curl_easy_pause)
      && FIND(curl_easy_strerror) && FIND(curl_multi_init) && FIND(curl_multi_cleanup)
      && FIND(curl_multi_setopt) && FIND(curl_multi_add_handle) && FIND(curl_multi_remove_handle)
      && FIND(curl_multi_socket_action) && FIND(curl_multi_info_read) && FIND(curl_slist_append)
      && FIND(curl_slist_free_all) && FIND(curl_mime_init) && FIND(curl_mime_free)
      && FIND(curl_mime_addpart) && FIND(curl_mime_name) && FIND(curl_mime_data)
      && FIND(curl_mime_filedata) && FIND(curl_mime_filename) && FIND(curl_mime_type)
      && FIND(curl_share_init) && FIND(curl_share_cleanup) && FIND(curl_share_setopt)
      && FIND(curl_url) && FIND(curl_url_cleanup) && FIND(curl_url_set) && FIND(curl_url_get)
      && FIND(curl_url_strerror) && FIND(curl_free) && FIND(curl_getdate);
#undef FIND
}

static char agent_line[] = "User-Agent: " CCURL_AGENT;
static char encoding_line[64] = "Accept-Encoding: ";
struct curl_slist ccurl_usual_lines[2] = {
    {agent_line, &ccurl_usual_lines[1]},
    {encoding_line, NULL},
};
static void load(void) {
  void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
  flowsystem_keep_crypto();
  if (library == NULL) {
    snprintf(problem, sizeof problem, "libcurl isn't installed: apt install libcurl4");
  } else if (find_all(library) && ccurl_library.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    snprintf(problem, sizeof problem, "libcurl can't be initialized");
  } else if (problem[0] == '\0') {
    ccurl_load_decoders();
    strcat(encoding_line, ccurl_encodings());
  }
}

const char *ccurl_load(void) {
  // Afterwards the library may be there.
  if (!atomic_load_explicit(&is_known, memory_order_acquire) && !flowsystem_has_descriptors())
    return "libcurl can't be opened: Too many open files";
  pthread_once(&once, load);
  atomic_store_explicit(&is_known, true, memory_order_release);
  return problem[0] == '\0' ? NULL : problem;
}

int64_t ccurl_date(const char *text) {
  return ccurl_load() == NULL ? (int64_t)ccurl_library.curl_getdate(text, NULL) : -1;
}
