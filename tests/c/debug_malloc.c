/* Checked memory: its contents, its counts, its filling by the environment, its report at the end.
 * A release build has none of it. */
#include "check.h"

#include <gasnet_tools.h>

#include <unistd.h>

#if GASNET_DEBUGMALLOC
#ifndef gasnett_debug_malloc
#error gasnett_debug_malloc is missing
#endif

static gasnett_heapstats_t stats(void) {
  gasnett_heapstats_t now;
  memset(&now, 0xff, sizeof now);
  CHECK_EQ(gasnett_getheapstats(&now), 0);
  return now;
}

static void check_blocks(void) {
  static const char text[] = "one text";
  const gasnett_heapstats_t before = stats();
  char *block = (char *)gasnett_debug_malloc(100);
  char *zeros = (char *)gasnett_debug_calloc(10, 30);
  char *whole = gasnett_debug_strdup(text);
  char *part = gasnett_debug_strndup(text, 3);
  char *more = gasnett_debug_strndup(text, 300);
  char *none = (char *)gasnett_debug_malloc(0);
  gasnett_heapstats_t now = stats();
  CHECK_EQ((uintptr_t)block % 16, 0);
  CHECK_EQ((uintptr_t)zeros % 16, 0);
  CHECK_ALL(zeros, 300, 0);
  CHECK_EQ(strcmp(whole, text), 0);
  CHECK_EQ(strcmp(part, "one"), 0);
  CHECK_EQ(strcmp(more, text), 0);
  CHECK(none != NULL);
  CHECK_EQ(now.live_objects - before.live_objects, 6);
  CHECK_EQ(now.live_bytes - before.live_bytes, 100 + 300 + 9 + 4 + 9);
  CHECK_EQ(now.allocated_objects - before.allocated_objects, 6);
  CHECK_EQ(now.freed_objects, before.freed_objects);
  CHECK(now.overhead_bytes >= before.overhead_bytes + 6 * 16);
  check_fill(block, 100, 5);
  block = (char *)gasnett_debug_realloc(block, 5000);
  CHECK_FILLED(block, 100, 5);
  block = (char *)gasnett_debug_realloc(block, 50);
  CHECK_FILLED(block, 50, 5);
  zeros = (char *)gasnett_debug_realloc(zeros, 0);
  CHECK(zeros != NULL);
  gasnett_debug_memcheck(block);
  gasnett_debug_memcheck_one();
  gasnett_debug_memcheck_all();
  gasnett_debug_free(NULL);
  gasnett_debug_free(block);
  gasnett_debug_free(zeros);
  gasnett_debug_free(whole);
  gasnett_debug_free(part);
  gasnett_debug_free(more);
  gasnett_debug_free(none);
  block = (char *)gasnett_debug_realloc(NULL, 7);
  gasnett_debug_free(block);
  now = stats();
  CHECK_EQ(now.live_objects, before.live_objects);
  CHECK_EQ(now.live_bytes, before.live_bytes);
  CHECK(now.live_objects_max >= before.live_objects + 6 && now.live_bytes_max >= 5000);
  CHECK_EQ(now.allocated_bytes - before.allocated_bytes, now.freed_bytes - before.freed_bytes);
  CHECK_EQ(now.freed_objects - before.freed_objects, 10);
}

/* The environment: a byte for new blocks, words of 8 bytes for freed ones, which are kept. */
static void check_filling(void) {
  unsigned char *block = (unsigned char *)gasnett_debug_malloc(33);
  unsigned char *volatile freed = block;
  size_t at;
  CHECK_ALL(block, 33, 0xC3);
  gasnett_debug_free(block);
  for (at = 0; at < 33; ++at) CHECK_EQ(freed[at], UINT64_C(0x1122334455667788) >> at % 8 * 8 & 0xff);
  gasnett_debug_memcheck_all();
}

/* The report has blocks that were never freed, and none that were. */
static void check_report(void) {
  char name[64], line[256];
  int leaks = 0, others = 0, counts = 0;
  FILE *file;
  char *leak = (char *)gasnett_debug_malloc(1234);
  snprintf(name, sizeof name, "debug_malloc_%ld_%u.txt", (long)getpid(), (unsigned)me);
  gasnett_heapinfo_dump(name, 1);
  file = fopen(name, "r");
  CHECK(file != NULL);
  while (file && fgets(line, sizeof line, file)) {
    if (strstr(line, "not freed: 1234 bytes") && strstr(line, "debug_malloc.c:")) ++leaks;
    else if (strstr(line, "not freed")) ++others;
    if (strstr(line, "live: 1 objects, 1234 bytes")) ++counts;
  }
  if (file) fclose(file);
  remove(name);
  CHECK_EQ(leaks, 1);
  CHECK_EQ(others, 0);
  CHECK_EQ(counts, 1);
  gasnett_debug_free(leak);
}
#endif

int main(int argc, char **argv) {
#if GASNET_DEBUGMALLOC
  gasnett_setenv("GASNET_MALLOC_INIT", "1");
  gasnett_setenv("GASNET_MALLOC_INITVAL", "0xC3");
  gasnett_setenv("GASNET_MALLOC_SCANFREED", "1");
  gasnett_setenv("GASNET_MALLOC_CLOBBERVAL", "0x1122334455667788");
  CHECK_EQ(GASNET_DEBUG, 1);
#elif defined(gasnett_debug_malloc) || defined(GASNET_DEBUG)
#error a release build has checked memory, or a debug build has none
#endif
  check_start(&argc, &argv, "debug_malloc");
#if GASNET_DEBUGMALLOC
  check_blocks();
  check_filling();
  check_report();
#endif
  return check_finish();
}
