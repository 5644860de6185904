/* Heat spreads over a plate whose rows are dealt out to the ranks.
 *
 * usage: halo [ROWS COLUMNS STEPS]
 *
 * The example shows how memory is shared: each rank attaches a segment, asks where those of its
 * neighbors are, and puts its outermost rows into them before each step. These are the halo: rows
 * of others that a rank needs to compute its own. At the end rank 0 gets the plate from all ranks
 * and compares it with one that it has computed alone.
 *
 * A segment holds two plates, of which a step reads one and writes the other:
 *
 *     row 0             halo, written by the rank above
 *     row 1 ... n       this rank's own
 *     row n + 1         halo, written by the rank below
 */
#include <gasnetex.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                         \
  do {                                                                                      \
    int result = (call);                                                                    \
    if (result != GASNET_OK) {                                                              \
      fprintf(stderr, "%s: %s\n", #call, gasnet_ErrorDesc(result));                         \
      gasnet_exit(1);                                                                       \
    }                                                                                       \
  } while (0)

static gex_TM_t team;
static gex_Rank_t me, ranks;
static size_t rows, columns, steps;

/* The number of rows of a rank, and its first row. The first ranks have one more if the rows do not
 * come out even. */
static size_t rows_of(gex_Rank_t rank) { return rows / ranks + (rank < rows % ranks); }
static size_t first_of(gex_Rank_t rank)
{
  const size_t extra = rows % ranks;
  return rank * (rows / ranks) + (rank < extra ? rank : extra);
}

/* Rows of one plate in a segment. All ranks leave room for as many, so that a neighbor's second
 * plate is easily found. */
static size_t stride(void) { return rows_of(0) + 2; }

/* The first number of a row; `base` is where the segment begins. */
static double *row(void *base, int plate, size_t number) { return (double *)base + (plate * stride() + number) * columns; }

/* The heat at the beginning: warm in places. */
static double initial(size_t line, size_t column) { return (double)((line * 7 + column * 13) % 100); }

/* One step for `count` rows from `from`, which has a row above and one below; its edges left and
 * right stay. */
static void relax(const double *from, double *to, size_t count)
{
  for (size_t line = 0; line < count; ++line, from += columns, to += columns) {
    to[0] = from[0];
    to[columns - 1] = from[columns - 1];
    for (size_t i = 1; i + 1 < columns; ++i)
      to[i] = 0.5 * from[i] + 0.125 * (from[i - 1] + from[i + 1] + from[i - (ptrdiff_t)columns] + from[i + columns]);
  }
}

static void barrier(void) { gex_Event_Wait(gex_Coll_BarrierNB(team, 0)); }

/* Where the segment of a rank begins, in the addresses of that rank: put and get want them so. */
static void *segment_of(gex_Rank_t rank)
{
  void *owner_address = NULL;
  uintptr_t size = 0;
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, rank, &owner_address, NULL, &size, 0));
  if (owner_address == NULL) {
    fprintf(stderr, "rank %u has no segment\n", (unsigned)rank);
    gasnet_exit(1);
  }
  return owner_address;
}

/* All steps; which plate has the result. */
static int run(void *base)
{
  const size_t own = rows_of(me);
  void *above = me > 0 ? segment_of(me - 1) : NULL;
  void *below = me + 1 < ranks ? segment_of(me + 1) : NULL;
  int plate = 0;
  for (size_t step = 0; step < steps; ++step, plate = !plate) {
    /* Both puts are on their way at once. DEFER: their sources stay as they are until the wait
     * below. */
    if (above)
      CHECK(gex_RMA_PutNBI(team, me - 1, row(above, plate, rows_of(me - 1) + 1), row(base, plate, 1),
                           columns * sizeof(double), GEX_EVENT_DEFER, 0));
    if (below)
      CHECK(gex_RMA_PutNBI(team, me + 1, row(below, plate, 0), row(base, plate, own), columns * sizeof(double),
                           GEX_EVENT_DEFER, 0));
    /* A put that is complete is in its target's memory, but only the barrier reports that to it. */
    gex_NBI_Wait(GEX_EC_PUT, 0);
    barrier();
    /* One barrier a step is enough: a neighbor that is ahead writes into the halo of the other
     * plate. */
    relax(row(base, plate, 1), row(base, !plate, 1), own);
    /* The plate has edges above and below, too, which stay. */
    if (me == 0) memcpy(row(base, !plate, 1), row(base, plate, 1), columns * sizeof(double));
    if (me == ranks - 1) memcpy(row(base, !plate, own), row(base, plate, own), columns * sizeof(double));
  }
  return plate;
}

static void *allocate(size_t count, size_t bytes)
{
  void *memory = calloc(count, bytes);
  if (memory == NULL) {
    fprintf(stderr, "rank %u: no memory for %zu times %zu bytes\n", (unsigned)me, count, bytes);
    gasnet_exit(1);
  }
  return memory;
}

/* The largest difference between the plate of the ranks and that of one process. */
static double compare(int plate)
{
  const size_t line = columns * sizeof(double);
  double *all = (double *)allocate(rows, line);
  gex_Event_t *events = (gex_Event_t *)allocate(ranks, sizeof *events);
  /* All gets at once, each with an event of its own. */
  for (gex_Rank_t rank = 0; rank < ranks; ++rank)
    events[rank] = gex_RMA_GetNB(team, all + first_of(rank) * columns, rank, row(segment_of(rank), plate, 1),
                                 rows_of(rank) * line, 0);
  gex_Event_WaitAll(events, ranks, 0);

  double *from = (double *)allocate(rows, line), *to = (double *)allocate(rows, line);
  for (size_t i = 0; i < rows * columns; ++i) from[i] = initial(i / columns, i % columns);
  memcpy(to, from, rows * line);
  for (size_t step = 0; step < steps; ++step) {
    relax(from + columns, to + columns, rows - 2);
    double *last = from;
    from = to;
    to = last;
  }
  double difference = 0;
  for (size_t i = 0; i < rows * columns; ++i) difference = fmax(difference, fabs(all[i] - from[i]));
  free(all);
  free(events);
  free(from);
  free(to);
  return difference;
}

/* A number from the command line; 0 if it is none. */
static size_t number(const char *text)
{
  char *end;
  const unsigned long value = strtoul(text, &end, 10);
  return text[0] == '-' || *end != '\0' || value > 100000 ? 0 : value;
}

int main(int argc, char **argv)
{
  gex_Client_t client;
  gex_EP_t endpoint;
  gex_Segment_t segment;
  CHECK(gex_Client_Init(&client, &endpoint, &team, "HALO", &argc, &argv, 0));
  me = gex_TM_QueryRank(team);
  ranks = gex_TM_QuerySize(team);
  rows = argc == 4 ? number(argv[1]) : 200;
  columns = argc == 4 ? number(argv[2]) : 300;
  steps = argc == 4 ? number(argv[3]) : 100;
  if ((argc != 1 && argc != 4) || rows < 3 || columns < 3 || steps < 1 || rows < ranks) {
    if (me == 0) fprintf(stderr, "usage: halo [ROWS COLUMNS STEPS], at least 3 3 1, and a row for each rank\n");
    gasnet_exit(2);
  }

  /* Memory that others may put to and get from. All ranks attach; sizes are whole pages and may
   * differ. */
  uintptr_t size = 2 * stride() * columns * sizeof(double);
  size = (size + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
  CHECK(gex_Segment_Attach(&segment, team, size));
  void *base = gex_Segment_QueryAddr(segment);
  for (int plate = 0; plate < 2; ++plate)
    for (size_t i = 0; i < rows_of(me) * columns; ++i)
      row(base, plate, 1)[i] = initial(first_of(me) + i / columns, i % columns);

  const int plate = run(base);
  barrier(); /* the last step of all ranks is done */

  int wrong = 0;
  if (me == 0) {
    const double difference = compare(plate);
    wrong = difference > 1e-12;
    printf("%zu x %zu, %zu steps, %u ranks: largest difference %g: %s\n", rows, columns, steps, (unsigned)ranks,
           difference, wrong ? "WRONG" : "right");
    fflush(stdout);
  }
  barrier(); /* rank 0 has got all rows of the others */
  gasnet_exit(wrong);
}
