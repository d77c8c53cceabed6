// Digests by OpenSSL's libcrypto, which is loaded when the first one is needed: linking it would
// cost every start of a script about a millisecond. Its headers aren't needed, because its
// functions are few and their types are opaque.
#include "CFlowSystem.h"

#include "internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef struct evp_md evp_md;
typedef struct engine engine;

// The functions of the library, by the names that they have there.
static struct {
  int (*OPENSSL_init_crypto)(uint64_t options, const void *settings);
  flowsystem_digest *(*EVP_MD_CTX_new)(void);
  void (*EVP_MD_CTX_free)(flowsystem_digest *);
  int (*EVP_DigestInit_ex)(flowsystem_digest *, const evp_md *, engine *);
  int (*EVP_DigestUpdate)(flowsystem_digest *, const void *, size_t);
  int (*EVP_DigestFinal_ex)(flowsystem_digest *, unsigned char *, unsigned int *);
  int (*EVP_MD_CTX_copy_ex)(flowsystem_digest *, const flowsystem_digest *);
  const evp_md *(*algorithms[4])(void);
} crypto;

/// OpenSSL's OPENSSL_INIT_NO_ATEXIT. Only the first call of the process decides about that.
static const uint64_t NO_ATEXIT = 0x00080000;

static void *library;
static char problem[300];
/// Whether the library was opened, or is known not to be there.
static atomic_bool is_known;
static bool has_failed;

// A POSIX system allows the conversion of the pointer.
bool flowsystem_find_crypto(const char *name, void *place) {
  void *symbol = dlsym(library, name);
  if (!symbol) {
    snprintf(problem, sizeof problem, "libcrypto.so.3 has no function %s", name);
    return false;
  }
  *(void **)place = symbol;
  return true;
}

static bool find_all(void) {
  return flowsystem_find_crypto("OPENSSL_init_crypto", &crypto.OPENSSL_init_crypto)
      && flowsystem_find_crypto("EVP_MD_CTX_new", &crypto.EVP_MD_CTX_new)
      && flowsystem_find_crypto("EVP_MD_CTX_free", &crypto.EVP_MD_CTX_free)
      && flowsystem_find_crypto("EVP_DigestInit_ex", &crypto.EVP_DigestInit_ex)
      && flowsystem_find_crypto("EVP_DigestUpdate", &crypto.EVP_DigestUpdate)
      && flowsystem_find_crypto("EVP_DigestFinal_ex", &crypto.EVP_DigestFinal_ex)
      && flowsystem_find_crypto("EVP_MD_CTX_copy_ex", &crypto.EVP_MD_CTX_copy_ex)
      && flowsystem_find_crypto("EVP_sha256", &crypto.algorithms[FLOWSYSTEM_SHA256])
      && flowsystem_find_crypto("EVP_sha512", &crypto.algorithms[FLOWSYSTEM_SHA512])
      && flowsystem_find_crypto("EVP_sha1", &crypto.algorithms[FLOWSYSTEM_SHA1])
      && flowsystem_find_crypto("EVP_md5", &crypto.algorithms[FLOWSYSTEM_MD5]);
}

static void load(void) {
  has_failed = true;
  library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(problem, sizeof problem, "%s (apt install libssl3)", dlerror());
  } else if (find_all()) {
    has_failed = crypto.OPENSSL_init_crypto(NO_ATEXIT, NULL) != 1;
    if (has_failed) snprintf(problem, sizeof problem, "libcrypto.so.3 can't be initialized");
  }
}

void flowsystem_keep_crypto(void) {
  void *present = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (present == NULL) return;
  int (*initialize)(uint64_t options, const void *settings);
  void *symbol = dlsym(present, "OPENSSL_init_crypto");
  memcpy(&initialize, &symbol, sizeof symbol);
  if (initialize != NULL) initialize(NO_ATEXIT, NULL);
}

const char *flowsystem_load_crypto(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  // Afterwards the library may be there.
  if (!atomic_load_explicit(&is_known, memory_order_acquire) && !flowsystem_has_descriptors())
    return "libcrypto can't be opened: Too many open files";
  pthread_once(&once, load);
  atomic_store_explicit(&is_known, true, memory_order_release);
  return has_failed ? problem : NULL;
}

flowsystem_digest *flowsystem_digest_begin(flowsystem_digest_algorithm algorithm) {
  flowsystem_digest *digest = crypto.EVP_MD_CTX_new();
  if (!digest) return NULL;
  if (crypto.EVP_DigestInit_ex(digest, crypto.algorithms[algorithm](), NULL) == 1) return digest;
  crypto.EVP_MD_CTX_free(digest);
  return NULL;
}

bool flowsystem_digest_add(flowsystem_digest *digest, const void *bytes, size_t count) {
  return crypto.EVP_DigestUpdate(digest, bytes, count) == 1;
}

bool flowsystem_digest_end(flowsystem_digest *digest, uint8_t *bytes, unsigned int *count) {
  bool ends = bytes && crypto.EVP_DigestFinal_ex(digest, bytes, count) == 1;
  crypto.EVP_MD_CTX_free(digest);
  return ends;
}

bool flowsystem_digest_copy(flowsystem_digest *digest, const flowsystem_digest *source) {
  return crypto.EVP_MD_CTX_copy_ex(digest, source) == 1;
}

bool flowsystem_digest_finish(flowsystem_digest *digest, uint8_t *bytes, unsigned int *count) {
  return crypto.EVP_DigestFinal_ex(digest, bytes, count) == 1;
}
