/* Compiled as C99, C11 and C++11 by the test `layout`: as a program that prints the layout that C sees, and
 * as a library whose functions the test calls and disassembles. */
#include "argonet_near.h"
#include "argonet_near.h" /* Twice is allowed. */

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

int near_put8(const struct argonet_near_team *team, uint32_t rank, void *own, uint64_t value);
int near_get8(const struct argonet_near_team *team, uint32_t rank, const void *own, uint64_t *value);
int near_valid(const struct argonet_near_team *team);

int near_put8(const struct argonet_near_team *team, uint32_t rank, void *own, uint64_t value) {
  return argonet_near_put8(team, rank, own, value);
}

int near_get8(const struct argonet_near_team *team, uint32_t rank, const void *own, uint64_t *value) {
  return argonet_near_get8(team, rank, own, value);
}

int near_valid(const struct argonet_near_team *team) { return argonet_near_valid(team); }

#ifdef __cplusplus
}
#endif

#define FIELD(name) \
  printf(#name " %zu %zu\n", offsetof(struct argonet_near_team, name), \
         sizeof(((struct argonet_near_team *)0)->name))

int main(void) {
  printf("struct 0 %zu\n", sizeof(struct argonet_near_team));
  FIELD(magic);
  FIELD(version);
  FIELD(near_lo);
  FIELD(near_len);
  FIELD(rank);
  FIELD(size);
  FIELD(delta);
  printf("constants %lu %lu\n", (unsigned long)ARGONET_NEAR_MAGIC, (unsigned long)ARGONET_NEAR_VERSION);
  return 0;
}
