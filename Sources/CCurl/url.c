// URLs, read by the parser that the request uses: two parsers could disagree about the host.
#include <idn2.h>
#include <pthread.h>
#include <stddef.h>

#include "internal.h"

static struct {
  int (*idn2_to_ascii_8z)(const char *text, char **ascii, int flags);
  void (*idn2_free)(void *text);
} library;

// Few programs have such names.
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
  void *idn = dlopen("libidn2.so.0", RTLD_NOW | RTLD_LOCAL);
  if (idn == NULL || !ccurl_find(idn, "idn2_free", &library.idn2_free)
      || !ccurl_find(idn, "idn2_to_ascii_8z", &library.idn2_to_ascii_8z))
    library.idn2_to_ascii_8z = NULL;
}

// Gives a name in UTF-8 the form that is looked up. libcurl reads such names in the encoding of the process's
// locale, which is C's.
static CURLUcode encode_name(CURLU *url) {
  char *name = NULL;
  CURLUcode code = ccurl_library.curl_url_get(url, CURLUPART_HOST, &name, 0);
  if (code != CURLUE_OK) return code;
  bool is_plain = true;
  for (const char *c = name; *c != '\0'; c++) is_plain = is_plain && (unsigned char)*c < 0x80;
  if (!is_plain) pthread_once(&once, load);
  if (!is_plain && library.idn2_to_ascii_8z != NULL) {
    char *ascii = NULL;
    if (library.idn2_to_ascii_8z(name, &ascii, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL) == IDN2_OK) {
      code = ccurl_library.curl_url_set(url, CURLUPART_HOST, ascii, 0);
      library.idn2_free(ascii);
    } else {
      code = CURLUE_BAD_HOSTNAME;
    }
  }
  ccurl_library.curl_free(name);
  return code;
}

// The part, in the library's memory, or NULL.
static char *part(CURLU *url, CURLUPart which, unsigned int flags) {
  char *text = NULL;
  return ccurl_library.curl_url_get(url, which, &text, flags) == CURLUE_OK ? text : NULL;
}

static CURLUcode read(
    CURLU *url, const char *base, const char *text, bool encodes, ccurl_url *out) {
  CURLUcode code = CURLUE_OK;
  if (base != NULL) code = ccurl_library.curl_url_set(url, CURLUPART_URL, base, 0);
  if (code != CURLUE_OK) return code;
  unsigned int flags = CURLU_NON_SUPPORT_SCHEME | (encodes ? CURLU_URLENCODE : 0);
  code = ccurl_library.curl_url_set(url, CURLUPART_URL, text, flags);
  if (code == CURLUE_OK) code = encode_name(url);
  if (code != CURLUE_OK) return code;
  out->scheme = part(url, CURLUPART_SCHEME, 0);
  out->host = part(url, CURLUPART_HOST, 0);
  out->port = part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  out->user = part(url, CURLUPART_USER, CURLU_URLDECODE);
  out->password = part(url, CURLUPART_PASSWORD, CURLU_URLDECODE);
  ccurl_library.curl_url_set(url, CURLUPART_USER, NULL, 0);
  ccurl_library.curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
  ccurl_library.curl_url_set(url, CURLUPART_OPTIONS, NULL, 0);
  ccurl_library.curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0);
  out->url = part(url, CURLUPART_URL, 0);
  return out->url == NULL ? CURLUE_OUT_OF_MEMORY : CURLUE_OK;
}

const char *ccurl_url_read(const char *base, const char *text, bool encodes, ccurl_url *out) {
  *out = (ccurl_url){0};
  CURLU *url = ccurl_library.curl_url();
  CURLUcode code = CURLUE_OUT_OF_MEMORY;
  if (url != NULL) {
    code = read(url, base, text, encodes, out);
    ccurl_library.curl_url_cleanup(url);
  }
  return code == CURLUE_OK ? NULL : ccurl_library.curl_url_strerror(code);
}

void ccurl_url_free(ccurl_url *url) {
  char *parts[] = {url->url, url->scheme, url->host, url->port, url->user, url->password};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (parts[i] != NULL) ccurl_library.curl_free(parts[i]);
  }
  *url = (ccurl_url){0};
}
