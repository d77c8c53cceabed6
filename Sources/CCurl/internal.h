#ifndef CCURL_INTERNAL_H
#define CCURL_INTERNAL_H

#include <dlfcn.h>
#include <string.h>

#include "CCurl.h"

/// The name of the program for servers.
#define CCURL_AGENT "flowlua"

/// The functions of the library that are used, by their names in it.
struct ccurl_library {
  CURLcode (*curl_global_init)(long flags);
  CURL *(*curl_easy_init)(void);
  void (*curl_easy_cleanup)(CURL *easy);
  CURLcode (*curl_easy_setopt)(CURL *easy, CURLoption option, ...);
  CURLcode (*curl_easy_getinfo)(CURL *easy, CURLINFO info, ...);
  CURLcode (*curl_easy_pause)(CURL *easy, int bitmask);
  const char *(*curl_easy_strerror)(CURLcode code);
  CURLM *(*curl_multi_init)(void);
  CURLMcode (*curl_multi_cleanup)(CURLM *multi);
  CURLMcode (*curl_multi_setopt)(CURLM *multi, CURLMoption option, ...);
  CURLMcode (*curl_multi_add_handle)(CURLM *multi, CURL *easy);
  CURLMcode (*curl_multi_remove_handle)(CURLM *multi, CURL *easy);
  CURLMcode (*curl_multi_socket_action)(CURLM *multi, curl_socket_t s, int events, int *running);
  CURLMsg *(*curl_multi_info_read)(CURLM *multi, int *left);
  struct curl_slist *(*curl_slist_append)(struct curl_slist *list, const char *text);
  void (*curl_slist_free_all)(struct curl_slist *list);
  curl_mime *(*curl_mime_init)(CURL *easy);
  void (*curl_mime_free)(curl_mime *mime);
  curl_mimepart *(*curl_mime_addpart)(curl_mime *mime);
  CURLcode (*curl_mime_name)(curl_mimepart *part, const char *name);
  CURLcode (*curl_mime_data)(curl_mimepart *part, const char *data, size_t size);
  CURLcode (*curl_mime_filedata)(curl_mimepart *part, const char *path);
  CURLcode (*curl_mime_filename)(curl_mimepart *part, const char *name);
  CURLcode (*curl_mime_type)(curl_mimepart *part, const char *type);
  CURLSH *(*curl_share_init)(void);
  CURLSHcode (*curl_share_cleanup)(CURLSH *share);
  CURLSHcode (*curl_share_setopt)(CURLSH *share, CURLSHoption option, ...);
  CURLU *(*curl_url)(void);
  void (*curl_url_cleanup)(CURLU *url);
  CURLUcode (*curl_url_set)(CURLU *url, CURLUPart part, const char *text, unsigned int flags);
  CURLUcode (*curl_url_get)(CURLU *url, CURLUPart part, char **text, unsigned int flags);
  const char *(*curl_url_strerror)(CURLUcode code);
  void (*curl_free)(void *memory);
  time_t (*curl_getdate)(const char *text, const time_t *unused);
};

/// Filled by ccurl_load.
extern struct ccurl_library ccurl_library;

/// The list of the lines that tell a server who sends a request, and which encodings the response may
/// have. Filled by ccurl_load, then constant.
extern struct curl_slist ccurl_usual_lines[2];

/// Stores the address of a function of a library; false if there is none.
static inline bool ccurl_find(void *library, const char *name, void *place) {
  void *symbol = dlsym(library, name);
  // A pointer to a function: C has no conversion from one to data.
  memcpy(place, &symbol, sizeof symbol);
  return symbol != NULL;
}
/// Opens the libraries that decode bodies.
void ccurl_load_decoders(void);
/// The encodings that they know, as a header names them.
const char *ccurl_encodings(void);

struct ccurl_multi {
  CURLM *handle;
  const ccurl_loop_events *events;
  void *context;
};

struct ccurl_easy {
  CURL *handle;
  ccurl_multi *multi;
  const ccurl_transfer_events *events;
  void *context;
  struct curl_slist *headers;
  curl_mime *mime;
  bool lacks_descriptor;
  char problem[CURL_ERROR_SIZE];
};

#endif
