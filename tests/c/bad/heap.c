/* Wrong use of checked memory, which debug builds have. */
#include "bad.h"

#include <gasnet_tools.h>

#if GASNET_DEBUGMALLOC
static char foreign[64];

static void wrong(void) {
  char *block = (char *)gasnett_debug_malloc(24);
  char *other = (char *)gasnett_debug_calloc(3, 7);
  /* Volatile, as compilers would warn of these values. */
  char *volatile hidden = block;
  CHECK(block && other);
  CASE("free-twice") {
    gasnett_debug_free(block);
    gasnett_debug_free(hidden);
  }
  CASE("free-twice-kept") {
    gasnett_debug_free(block);
    gasnett_debug_free(hidden);
  }
  CASE("free-foreign") gasnett_debug_free(foreign + 32);
  CASE("free-inside") gasnett_debug_free(hidden + 8);
  CASE("free-behind") {
    hidden[24] ^= 1;
    gasnett_debug_free(block);
  }
  CASE("free-before") {
    hidden[-3] ^= 1;
    gasnett_debug_free(block);
  }
  CASE("realloc-behind") {
    hidden[24 + 15] ^= 1;
    block = (char *)gasnett_debug_realloc(block, 10);
  }
  CASE("realloc-freed") {
    gasnett_debug_free(block);
    block = (char *)gasnett_debug_realloc(hidden, 10);
  }
  CASE("check-behind") {
    hidden[24] ^= 1;
    gasnett_debug_memcheck(block);
  }
  CASE("check-one") {
    hidden[25] ^= 1;
    gasnett_debug_memcheck_one();
    gasnett_debug_memcheck_one();
  }
  CASE("check-all") {
    hidden[24] ^= 1;
    gasnett_debug_memcheck(other);
    gasnett_debug_memcheck_all();
  }
  CASE("write-freed") {
    gasnett_debug_free(block);
    gasnett_debug_memcheck_all();
    hidden[5] ^= 1;
    gasnett_debug_memcheck_all();
  }
  CASE("extra-check") {
    hidden[24] ^= 1;
    block = (char *)gasnett_debug_malloc(1);
  }
  CASE("calloc-wrapping") block = (char *)gasnett_debug_calloc((size_t)1 << 33, (size_t)1 << 33);
}
#else
static void wrong(void) {}
#endif

int main(int argc, char **argv) {
  if (argc > 1) bad_case = argv[1];
  if (strcmp(bad_case, "free-twice-kept") == 0) gasnett_setenv("GASNET_MALLOC_LEAKALL", "1");
  if (strcmp(bad_case, "write-freed") == 0) gasnett_setenv("GASNET_MALLOC_SCANFREED", "1");
  if (strcmp(bad_case, "extra-check") == 0) gasnett_setenv("GASNET_MALLOC_EXTRACHECK", "1");
  check_start(&argc, &argv, "bad/heap");
  wrong();
  return bad_finish();
}
