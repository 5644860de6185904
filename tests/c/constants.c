/* Types, sizes, signs and values that the compiler can compare; constants that must be usable in
 * #if, in case labels and in static tables; flags that must not share bits; objects that are
 * nothing. */
#include "check.h"
#include <gasnet_coll.h>
#include <gasnet_mk.h>

#define IS_UNSIGNED(type) ((type)-1 > (type)0)
/* Fails to compile if not true. */
#define STATIC(name, condition) typedef char static_##name[(condition) ? 1 : -1]

#if GEX_SPEC_VERSION_MAJOR != 0 || GEX_SPEC_VERSION_MINOR < 19
#error the version of the specification is wrong
#endif
#if GASNET_RELEASE_VERSION_MAJOR <= 1 || GASNET_RELEASE_VERSION_MINOR < 0 || GASNET_RELEASE_VERSION_PATCH < 0
#error a release of GASNet-EX has a year as major number
#endif
#if GASNET_SUPPORTS_AM_CANCEL != 20240418L || GASNET_SUPPORTS_AM_COMMIT_V2 != 20240906L
#error cancel and commit in their second form are there
#endif
#if GASNET_MAXEPS < 1 || GASNET_MAXNODES < 2 || SIZEOF_GEX_RMA_VALUE_T != 8
#error limits
#endif
#if GEX_AM_INDEX_BASE > 128
#error the base of handlers
#endif
#if GASNET_HIDDEN_AM_CONCURRENCY_LEVEL < 0 || !defined(GASNET_HIDDEN_AM_CONCURRENCY_LEVEL)
#error threads of the library
#endif
#if GEX_FLAG_PEER_NEVER_SELF == GEX_FLAG_IMMEDIATE || GEX_FLAG_IMMEDIATE != 1
#error flags can be compared by the preprocessor
#endif
#if defined(GASNET_DEBUG) == defined(GASNET_NDEBUG)
#error debug or not
#endif
#if GASNET_SEGMENT_FAST + GASNET_SEGMENT_LARGE + GASNET_SEGMENT_EVERYTHING != 1
#error exactly one kind of segment
#endif
#if !GASNET_SUPPORTS_TI_SRCRANK || !GASNET_SUPPORTS_TI_EP
#error contents of tokens
#endif
#if GASNET_ALIGNED_SEGMENTS != 0 && GASNET_ALIGNED_SEGMENTS != 1
#error one or nought
#endif
#if GASNET_NULL_ARGV_OK != 0 && GASNET_NULL_ARGV_OK != 1
#error one or nought
#endif

STATIC(rank, IS_UNSIGNED(gex_Rank_t));
STATIC(ep_index, IS_UNSIGNED(gex_EP_Index_t));
STATIC(value, IS_UNSIGNED(gex_RMA_Value_t) && sizeof(gex_RMA_Value_t) == SIZEOF_GEX_RMA_VALUE_T);
STATIC(value_holds, sizeof(gex_RMA_Value_t) >= sizeof(void *) && sizeof(gex_RMA_Value_t) >= sizeof(long));
STATIC(am_index, sizeof(gex_AM_Index_t) == 1 && IS_UNSIGNED(gex_AM_Index_t));
STATIC(am_arg, sizeof(gex_AM_Arg_t) == 4 && !IS_UNSIGNED(gex_AM_Arg_t));
STATIC(flags, IS_UNSIGNED(gex_Flags_t));
STATIC(address, sizeof(gex_Addr_t) == sizeof(void *));
STATIC(no_client, sizeof(GEX_CLIENT_INVALID) == sizeof(gex_Client_t));
STATIC(no_ep, sizeof(GEX_EP_INVALID) == sizeof(gex_EP_t));
STATIC(no_team, sizeof(GEX_TM_INVALID) == sizeof(gex_TM_t));
STATIC(no_segment, sizeof(GEX_SEGMENT_INVALID) == sizeof(gex_Segment_t));
STATIC(no_kind, sizeof(GEX_MK_INVALID) == sizeof(gex_MK_t));
STATIC(no_event, sizeof(GEX_EVENT_INVALID) == sizeof(gex_Event_t));
STATIC(no_operation, sizeof(GEX_EVENT_NO_OP) == sizeof(gex_Event_t));
STATIC(no_descriptor, sizeof(GEX_AM_SRCDESC_NO_OP) == sizeof(gex_AM_SrcDesc_t));
STATIC(no_rank, sizeof(GEX_RANK_INVALID) == sizeof(gex_Rank_t));
STATIC(max_rank, GEX_RANK_INVALID >= GASNET_MAXNODES);
STATIC(page, GASNET_PAGESIZE > 0 && (GASNET_PAGESIZE & (GASNET_PAGESIZE - 1)) == 0);
STATIC(okay, GASNET_OK == 0);

STATIC(kinds, (GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_LONG) == GEX_FLAG_AM_MEDLONG);
STATIC(directions, (GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_REPLY) == GEX_FLAG_AM_REQREP);
STATIC(all_categories, ((GEX_EC_GET | GEX_EC_PUT | GEX_EC_AM | GEX_EC_LC | GEX_EC_RMW) & ~GEX_EC_ALL) == 0);
STATIC(all_capabilities, ((GEX_EP_CAPABILITY_RMA | GEX_EP_CAPABILITY_AM | GEX_EP_CAPABILITY_VIS |
                           GEX_EP_CAPABILITY_COLL | GEX_EP_CAPABILITY_AD) & ~GEX_EP_CAPABILITY_ALL) == 0);
STATIC(all_infos, ((GEX_TI_SRCRANK | GEX_TI_EP | GEX_TI_ENTRY | GEX_TI_IS_REQ | GEX_TI_IS_LONG) & ~GEX_TI_ALL) == 0);

/* Static tables and enumerators take them. */
enum { A_HANDLER = GEX_AM_INDEX_BASE, AN_EC = GEX_EC_PUT, A_TI = GEX_TI_EP };
static const gex_Flags_t some_flags[] = {GEX_FLAG_IMMEDIATE, GEX_FLAG_PEER_NEVER_SELF};
static gex_AM_Entry_t partial[] = {{GEX_AM_INDEX_BASE, NULL, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL}};
static gex_HSL_t lock = GEX_HSL_INITIALIZER;

static void disjoint(const uint64_t *bits, size_t count) {
  size_t i;
  uint64_t seen = 0;
  for (i = 0; i < count; ++i) {
    CHECK(bits[i] != 0);
    CHECK_EQ(seen & bits[i], 0);
    seen |= bits[i];
  }
}

static int labels(int error) {
  switch (error) {
    case GASNET_OK: return 0;
    case GASNET_ERR_NOT_INIT: return 1;
    case GASNET_ERR_RESOURCE: return 2;
    case GASNET_ERR_BAD_ARG: return 3;
    case GASNET_ERR_NOT_READY: return 4;
    case GASNET_ERR_BARRIER_MISMATCH: return 5;
    default: return -1;
  }
}

static void zero(const void *value, size_t bytes) { CHECK_ALL(value, bytes, 0); }
#define CHECK_ZERO(type, name)       \
  do {                               \
    type nothing_here = name;        \
    zero(&nothing_here, sizeof(type)); \
  } while (0)

int main(int argc, char **argv) {
  static const uint64_t communication[] = {GEX_FLAG_IMMEDIATE,          GEX_FLAG_PEER_NEVER_NBRHD,
                                           GEX_FLAG_SELF_SEG_UNKNOWN,   GEX_FLAG_SELF_SEG_SOME,
                                           GEX_FLAG_SELF_SEG_BOUND,     GEX_FLAG_SELF_SEG_OFFSET,
                                           GEX_FLAG_PEER_SEG_UNKNOWN,   GEX_FLAG_PEER_SEG_SOME,
                                           GEX_FLAG_PEER_SEG_BOUND,     GEX_FLAG_PEER_SEG_OFFSET};
  static const uint64_t queries[] = {GEX_FLAG_IMMEDIATE, GEX_FLAG_AM_PREPARE_LEAST_CLIENT,
                                     GEX_FLAG_AM_PREPARE_LEAST_ALLOC};
  static const uint64_t registration[] = {GEX_FLAG_AM_SHORT, GEX_FLAG_AM_MEDIUM, GEX_FLAG_AM_LONG, GEX_FLAG_AM_REQUEST,
                                          GEX_FLAG_AM_REPLY};
  static const uint64_t clients[] = {GEX_FLAG_USES_GASNET1, GEX_FLAG_DEFER_THREADS};
  static const uint64_t capabilities[] = {GEX_EP_CAPABILITY_RMA, GEX_EP_CAPABILITY_AM, GEX_EP_CAPABILITY_VIS,
                                          GEX_EP_CAPABILITY_COLL, GEX_EP_CAPABILITY_AD};
  static const uint64_t infos[] = {GEX_TI_SRCRANK, GEX_TI_EP, GEX_TI_ENTRY, GEX_TI_IS_REQ, GEX_TI_IS_LONG};
  static const uint64_t types[] = {GEX_DT_I32, GEX_DT_U32, GEX_DT_I64, GEX_DT_U64, GEX_DT_FLT, GEX_DT_DBL, GEX_DT_USER};
  static const uint64_t operations[] = {
      GEX_OP_ADD,  GEX_OP_MULT,  GEX_OP_MIN,  GEX_OP_MAX,  GEX_OP_SUB,  GEX_OP_INC,  GEX_OP_DEC,  GEX_OP_AND,
      GEX_OP_OR,   GEX_OP_XOR,   GEX_OP_FADD, GEX_OP_FMULT, GEX_OP_FMIN, GEX_OP_FMAX, GEX_OP_FSUB, GEX_OP_FINC,
      GEX_OP_FDEC, GEX_OP_FAND,  GEX_OP_FOR,  GEX_OP_FXOR, GEX_OP_SET,  GEX_OP_CAS,  GEX_OP_GET,  GEX_OP_SWAP,
      GEX_OP_FCAS, GEX_OP_USER};
  static const uint64_t categories[] = {GEX_EC_GET, GEX_EC_PUT, GEX_EC_RMW};
  static const int errors[] = {GASNET_OK, GASNET_ERR_NOT_INIT, GASNET_ERR_RESOURCE, GASNET_ERR_BAD_ARG,
                               GASNET_ERR_NOT_READY, GASNET_ERR_BARRIER_MISMATCH};
  gex_Memvec_t vector = {&vector, sizeof vector};
  gex_EP_Location_t place = {1, 2};
  gex_RankInfo_t one = {7};
  int i;

  CHECK_ZERO(gex_Client_t, GEX_CLIENT_INVALID);
  CHECK_ZERO(gex_EP_t, GEX_EP_INVALID);
  CHECK_ZERO(gex_TM_t, GEX_TM_INVALID);
  CHECK_ZERO(gex_Segment_t, GEX_SEGMENT_INVALID);
  CHECK_ZERO(gex_Event_t, GEX_EVENT_INVALID);
  CHECK_ZERO(gex_MK_t, GEX_MK_INVALID);
  CHECK_ZERO(gex_AM_SrcDesc_t, GEX_AM_SRCDESC_NO_OP);
  CHECK(GEX_MK_HOST != GEX_MK_INVALID);
  CHECK(GEX_EVENT_NO_OP != GEX_EVENT_INVALID);
  {
    gex_Event_t *ways[4];
    int j;
    ways[0] = NULL;
    ways[1] = GEX_EVENT_NOW;
    ways[2] = GEX_EVENT_DEFER;
    ways[3] = GEX_EVENT_GROUP;
    for (i = 0; i < 4; ++i)
      for (j = 0; j < i; ++j) CHECK(ways[i] != ways[j]);
  }
  disjoint(communication, CHECK_COUNT(communication));
  disjoint(queries, CHECK_COUNT(queries));
  disjoint(registration, CHECK_COUNT(registration));
  disjoint(clients, CHECK_COUNT(clients));
  disjoint(capabilities, CHECK_COUNT(capabilities));
  disjoint(infos, CHECK_COUNT(infos));
  disjoint(types, CHECK_COUNT(types));
  disjoint(operations, CHECK_COUNT(operations));
  disjoint(categories, CHECK_COUNT(categories));
  CHECK(GEX_EC_AM != 0 && GEX_EC_LC != 0);
  CHECK(GEX_FLAG_PEER_NEVER_SELF != 0);
  CHECK(GASNET_BARRIERFLAG_ANONYMOUS != 0 && GASNET_BARRIERFLAG_MISMATCH != 0 && GASNET_BARRIERFLAG_UNNAMED != 0);
  CHECK_EQ(GASNET_BARRIERFLAG_ANONYMOUS & GASNET_BARRIERFLAG_MISMATCH, 0);
  CHECK(GASNET_WAIT_SPIN != GASNET_WAIT_BLOCK && GASNET_WAIT_BLOCK != GASNET_WAIT_SPINBLOCK);
  CHECK(GEX_THREAD_ROLE_RCV != 0 && GEX_THREAD_ROLE_SND != 0 && (GEX_THREAD_ROLE_RCV & GEX_THREAD_ROLE_SND) == 0);
  for (i = 0; i < (int)CHECK_COUNT(errors); ++i) CHECK_EQ(labels(errors[i]), i);
  CHECK_EQ(labels(-5), -1);
  CHECK_EQ(GEX_OP_TO_FETCHING(GEX_OP_ADD), GEX_OP_FADD);
  CHECK_EQ(GEX_OP_TO_FETCHING(GEX_OP_SET), GEX_OP_SWAP);
  CHECK_EQ(GEX_OP_TO_FETCHING(GEX_OP_CAS), GEX_OP_FCAS);
  CHECK_EQ(GEX_OP_TO_NONFETCHING(GEX_OP_SWAP), GEX_OP_SET);
  CHECK_EQ(GEX_OP_TO_NONFETCHING(GEX_OP_FXOR), GEX_OP_XOR);
  CHECK_EQ(A_HANDLER, GEX_AM_INDEX_BASE);
  CHECK(AN_EC != 0 && A_TI != 0);
  CHECK(some_flags[0] == 1 && partial[0].gex_index == GEX_AM_INDEX_BASE);
  CHECK(vector.gex_addr == &vector && vector.gex_len == sizeof vector);
  CHECK(place.gex_rank == 1 && place.gex_ep_index == 2 && one.gex_jobrank == 7);
  {
    gex_HSL_t other = GEX_HSL_INITIALIZER;
    CHECK(memcmp(&other, &lock, sizeof lock) == 0);
  }
  check_start(&argc, &argv, "constants");
  CHECK(ranks <= GASNET_MAXNODES);
  return check_finish();
}
