// Where the small blocks of a large Lua state stand: pages of blocks of one size, in address space that
// is reserved once. Thousands of coroutines take a tenth less memory than with malloc, which keeps the
// size before each block, and hardly a page fault, as the kernel is asked for many pages at a time.
//
// A block is known by its address, so that blocks of malloc and of the pool can live side by side:
// without a reservation, or when it is full, everything comes from malloc.
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "internal.h"

enum {
  /// Sizes are rounded up to a multiple of this, so blocks are aligned as malloc's are.
  UNIT = 16,
  PAGE = 32 << 10,
  /// Memory is taken from the system in steps.
  STEP = 256 << 10,
  /// So many empty pages keep their memory; of more, as many as are in use.
  KEPT_PAGES = 256,
  PAGES = 1 << 15,
};

/// The address space of a state's pool. Reserved only: it takes no memory. The numbers of
/// pages without memory stand after it.
static const size_t space = (size_t)PAGES * PAGE;
static const size_t numbers = PAGES * sizeof(uint16_t);
_Static_assert(PAGES - 1 <= UINT16_MAX, "a page has a number");

// The address sanitizer knows which blocks are in use: all others are poisoned.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_POISONED 1
#endif
#endif
#ifdef IS_POISONED
void __asan_poison_memory_region(const volatile void *start, size_t size);
void __asan_unpoison_memory_region(const volatile void *start, size_t size);
static void poison(void *start, size_t size) { __asan_poison_memory_region(start, size); }
static void unpoison(void *start, size_t size) { __asan_unpoison_memory_region(start, size); }
#else
static void poison(void *start, size_t size) { (void)start, (void)size; }
static void unpoison(void *start, size_t size) { (void)start, (void)size; }
#endif

/// At the beginning of each page.
struct pool_page {
  pool_page *next;
  pool_page *previous;
  /// Blocks that were given back, each with the address of the next one.
  void *free;
  /// Where the blocks begin that were never used.
  uint32_t fresh;
  uint32_t size;
  uint32_t live;
};

enum { FIRST_BLOCK = 64 };
_Static_assert(sizeof(pool_page) <= FIRST_BLOCK, "a page's blocks begin behind its head");

static bool is_full(const pool_page *page) {
  return page->free == NULL && page->fresh + page->size > PAGE;
}

void flowlua_pool_open(small_pool *pool) {
  pool->tried = true;
  // Of limited address space everybody else needs what the pool would only reserve.
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) return;
  size_t size = space + STEP + numbers;
  void *start = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return;
  uintptr_t base = ((uintptr_t)start + STEP - 1) & ~(uintptr_t)(STEP - 1);
  if (mprotect((void *)(base + space), numbers, PROT_READ | PROT_WRITE) != 0) {
    munmap(start, size);
    return;
  }
  pool->mapped = start;
  pool->base = base;
  pool->bare = (void *)(base + space);
}

void flowlua_pool_close(small_pool *pool) {
  if (pool->mapped != NULL) {
    // No more than was used: the sanitizer's notes about all of the space would take 128 MiB of memory.
    unpoison((void *)pool->base, pool->used);
    munmap(pool->mapped, space + STEP + numbers);
  }
  memset(pool, 0, sizeof *pool);
}

bool flowlua_pool_has(const small_pool *pool, const void *block) {
  return pool->base != 0 && (uintptr_t)block - pool->base < space;
}

/// A page that was never used; NULL when there is no memory.
static pool_page *fresh_page(small_pool *pool) {
  if (pool->base == 0 || pool->used + PAGE > space) return NULL;
  if (pool->used == pool->committed) {
    void *start = (void *)(pool->base + pool->committed);
    if (mprotect(start, STEP, PROT_READ | PROT_WRITE) != 0) return NULL;
    // All at once, which takes half the time of as many page faults. Huge pages would take a third of
    // that, but ten times as long on a virtual machine that has given its free memory back to its
    // host, as only blocks of their size are given back. A kernel that doesn't know it refuses.
    madvise(start, STEP, MADV_POPULATE_WRITE);
    pool->committed += STEP;
  }
  pool_page *page = (pool_page *)(pool->base + pool->used);
  pool->used += PAGE;
  pool->page_count += 1;
  return page;
}

static void link_page(pool_page **list, pool_page *page) {
  page->previous = NULL;
  page->next = *list;
  if (*list != NULL) (*list)->previous = page;
  *list = page;
}

static void unlink_page(pool_page **list, pool_page *page) {
  if (page->previous != NULL) page->previous->next = page->next;
  else *list = page->next;
  if (page->next != NULL) page->next->previous = page->previous;
}

/// A page that was used and has no memory; NULL without one.
static pool_page *bare_page(small_pool *pool) {
  if (pool->bare_count == 0) return NULL;
  pool_page *page = (pool_page *)(pool->base + (size_t)pool->bare[--pool->bare_count] * PAGE);
  madvise(page, PAGE, MADV_POPULATE_WRITE);
  pool->page_count += 1;
  return page;
}

/// Gives the memory of a page without blocks back.
static void strip_page(small_pool *pool, pool_page *page) {
  unlink_page(&pool->empty, page);
  pool->empty_count -= 1;
  pool->page_count -= 1;
  madvise(page, PAGE, MADV_DONTNEED);
  pool->bare[pool->bare_count++] = (uint16_t)(((uintptr_t)page - pool->base) / PAGE);
}

static pool_page *add_page(small_pool *pool, size_t class) {
  pool_page *page = pool->empty;
  if (page != NULL) {
    unlink_page(&pool->empty, page);
    pool->empty_count -= 1;
  } else if ((page = bare_page(pool)) == NULL && (page = fresh_page(pool)) == NULL) {
    return NULL;
  }
  page->free = NULL;
  page->fresh = FIRST_BLOCK;
  page->size = (uint32_t)(class * UNIT);
  page->live = 0;
  poison((char *)page + FIRST_BLOCK, PAGE - FIRST_BLOCK);
  link_page(&pool->partial[class], page);
  return page;
}

void *flowlua_pool_take(small_pool *pool, size_t size) {
  size_t class = (size + UNIT - 1) / UNIT;
  pool_page *page = pool->partial[class];
  if (page == NULL && (page = add_page(pool, class)) == NULL) return NULL;
  void *block = page->free;
  if (block != NULL) {
    unpoison(block, page->size);
    page->free = *(void **)block;
  } else {
    block = (char *)page + page->fresh;
    page->fresh += page->size;
    unpoison(block, page->size);
  }
  page->live += 1;
  if (is_full(page)) unlink_page(&pool->partial[class], page);
  return block;
}

static pool_page *page_of(void *block) {
  return (pool_page *)((uintptr_t)block & ~(uintptr_t)(PAGE - 1));
}

size_t flowlua_pool_size(void *block) { return page_of(block)->size; }

void flowlua_pool_give(small_pool *pool, void *block) {
  pool_page *page = page_of(block);
  size_t class = page->size / UNIT;
  if (is_full(page)) link_page(&pool->partial[class], page);
  *(void **)block = page->free;
  poison(block, page->size);
  page->free = block;
  page->live -= 1;
  // The last page of a size stays, for what comes next.
  if (page->live != 0 || (pool->partial[class] == page && page->next == NULL)) return;
  unlink_page(&pool->partial[class], page);
  link_page(&pool->empty, page);
  pool->empty_count += 1;
  while (!pool->is_closing && pool->empty_count > KEPT_PAGES
         && pool->empty_count > pool->page_count / 2)
    strip_page(pool, pool->empty);
}
