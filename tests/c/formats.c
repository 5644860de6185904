/* Lists of memory, strides and transfers written out: their text, within the room that the bufsz
 * calls return. */
#include "check.h"

#include <gasnet_tools.h>

#define EXTRA 8
#define CANARY 0x5e

/* Room of just that size, with a canary behind it. */
static char *room(size_t bytes) {
  char *text = (char *)malloc(bytes + EXTRA);
  CHECK(text != NULL);
  memset(text, CANARY, bytes + EXTRA);
  return text;
}

/* The text ends within the room and says all of the words, separated by `|`. */
static void finish(char *text, size_t bytes, const char *words) {
  char word[80];
  size_t length;
  CHECK(memchr(text, 0, bytes) != NULL);
  CHECK_ALL(text + bytes, EXTRA, CANARY);
  for (; *words; words += length + (words[length] == '|')) {
    length = strcspn(words, "|");
    CHECK(length < sizeof word);
    memcpy(word, words, length);
    word[length] = 0;
    if (!strstr(text, word)) {
      fprintf(stderr, "\"%s\" is not in:\n%s\n", word, text);
      check_fail(__FILE__, __LINE__, "a text says less than it should");
    }
  }
  free(text);
}

static void *at(uintptr_t address) { return (void *)address; }

static void check_lists(void) {
  gex_Memvec_t pieces[11];
  void *addresses[11];
  size_t bytes = gasnett_format_memveclist_bufsz(3), each;
  char *text = room(bytes);
  pieces[0].gex_addr = at(0x2000);
  pieces[0].gex_len = 16;
  pieces[1].gex_addr = at(0x10);
  pieces[1].gex_len = 0;
  pieces[2].gex_addr = at(0x1000);
  pieces[2].gex_len = 300;
  {
    const size_t total = gasnett_format_memveclist(text, 3, pieces)._totalsz;
    CHECK_EQ(total, 316);
    CHECK_EQ(gasnett_format_memveclist(text, 3, pieces)._minsz, 16);
    CHECK_EQ(gasnett_format_memveclist(text, 3, pieces)._maxsz, 300);
    CHECK_SAME(gasnett_format_memveclist(text, 3, pieces)._minaddr, at(0x1000));
    CHECK_SAME(gasnett_format_memveclist(text, 3, pieces)._maxaddr, at(0x200f));
  }
  finish(text, bytes, "3 pieces|316 bytes|[0x1000...0x200f]|{0x2000, 16}|{0x10, 0}|{0x1000, 300}");
  bytes = gasnett_format_memveclist_bufsz(0);
  text = room(bytes);
  CHECK_EQ(gasnett_format_memveclist(text, 0, NULL)._totalsz, 0);
  finish(text, bytes, "0 pieces|empty|[]");
  /* The longest there can be. */
  for (each = 0; each < 11; ++each) {
    pieces[each].gex_addr = at(UINTPTR_MAX - 11 + each);
    pieces[each].gex_len = SIZE_MAX;
    addresses[each] = at(UINTPTR_MAX - each);
  }
  bytes = gasnett_format_memveclist_bufsz(11);
  text = room(bytes);
  (void)gasnett_format_memveclist(text, 11, pieces);
  finish(text, bytes, "11 pieces|{0xfffffffffffffff4, 18446744073709551615}");
  bytes = gasnett_format_addrlist_bufsz(11);
  text = room(bytes);
  (void)gasnett_format_addrlist(text, 11, addresses, SIZE_MAX);
  finish(text, bytes, "11 addresses of 18446744073709551615|0xfffffffffffffff5");
  bytes = gasnett_format_putvgetv_bufsz(11, 11);
  text = room(bytes);
  (void)gasnett_format_putvgetv(text, GEX_TM_INVALID, 0xffffffff, 11, pieces, 11, pieces);
  finish(text, bytes, "rank 4294967295");
  bytes = gasnett_format_putigeti_bufsz(11, 11);
  text = room(bytes);
  (void)gasnett_format_putigeti(text, team, 0xffffffff, 11, addresses, SIZE_MAX, 11, addresses, SIZE_MAX);
  finish(text, bytes, "rank 4294967295 of ");
}

static void check_transfers(void) {
  gex_Memvec_t to[1], from[2];
  void *addresses[3];
  size_t bytes = gasnett_format_putvgetv_bufsz(1, 2);
  char *text = room(bytes);
  char peer[40];
  to[0].gex_addr = at(0x5000);
  to[0].gex_len = 24;
  from[0].gex_addr = at(0x6000);
  from[0].gex_len = 8;
  from[1].gex_addr = at(0x7000);
  from[1].gex_len = 16;
  CHECK_EQ(gasnett_format_putvgetv(text, team, me, 1, to, 2, from), 24);
  snprintf(peer, sizeof peer, "24 bytes with rank %u of %u", (unsigned)me, (unsigned)ranks);
  CHECK(strstr(text, peer) != NULL);
  finish(text, bytes, "to 1 pieces|from 2 pieces|{0x5000, 24}|{0x6000, 8}|{0x7000, 16}");
  addresses[0] = at(0x300);
  addresses[1] = at(0x100);
  addresses[2] = at(0x200);
  bytes = gasnett_format_addrlist_bufsz(3);
  text = room(bytes);
  CHECK_SAME(gasnett_format_addrlist(text, 3, addresses, 4)._minaddr, at(0x100));
  CHECK_SAME(gasnett_format_addrlist(text, 3, addresses, 4)._maxaddr, at(0x303));
  finish(text, bytes, "3 addresses of 4 bytes each|12 bytes|[0x100...0x303]|[0x300, 0x100, 0x200]");
  bytes = gasnett_format_putigeti_bufsz(3, 1);
  text = room(bytes);
  CHECK_EQ(gasnett_format_putigeti(text, team, me, 3, addresses, 4, 1, addresses, 12), 12);
  finish(text, bytes, "to 3 addresses of 4|from 1 addresses of 12");
}

static void check_strides(void) {
  static const ptrdiff_t forth[] = {64, 1024, -4096};
  static const ptrdiff_t back[] = {PTRDIFF_MIN, PTRDIFF_MIN, PTRDIFF_MIN};
  static const size_t counts[] = {2, 3, 4};
  static const size_t nothing[] = {2, 0, 4};
  size_t bytes = gasnett_format_strides_bufsz(3);
  char *text = room(bytes);
  gasnett_format_strides(text, 3, forth);
  CHECK_EQ(strcmp(text, "[64, 1024, -4096]"), 0);
  gasnett_format_strides(text, 0, NULL);
  CHECK_EQ(strcmp(text, "[]"), 0);
  gasnett_format_strides(text, 3, back);
  finish(text, bytes, "[-9223372036854775808, -9223372036854775808, -9223372036854775808]");
  bytes = gasnett_format_putsgets_bufsz(3);
  text = room(bytes);
  CHECK_EQ(gasnett_format_putsgets(text, NULL, team, me, at(0x10000), forth, at(0x90000), forth, 8, counts, 3), 192);
  /* Forwards 64 + 2 * 1024 + 7, backwards 3 * 4096. */
  finish(text, bytes, "192 bytes|elements of 8 bytes|counts [2, 3, 4]|to 0x10000, strides [64, 1024, -4096]|"
                      "[0xd000...0x10847]|from 0x90000|[0x8d000...0x90847]");
  text = room(bytes);
  CHECK_EQ(gasnett_format_putsgets(text, NULL, team, me, at(0x10000), forth, at(0x90000), forth, 8, nothing, 3), 0);
  finish(text, bytes, "0 bytes|empty");
  text = room(bytes);
  (void)gasnett_format_putsgets(text, NULL, GEX_TM_INVALID, 0xffffffff, at(UINTPTR_MAX), back, at(UINTPTR_MAX), back,
                                SIZE_MAX, (const size_t *)back, 3);
  finish(text, bytes, "elements of 18446744073709551615 bytes");
  bytes = gasnett_format_putsgets_bufsz(0);
  text = room(bytes);
  CHECK_EQ(gasnett_format_putsgets(text, NULL, team, me, at(0x1000), NULL, at(0x2000), NULL, 5, NULL, 0), 5);
  finish(text, bytes, "5 bytes with|counts []|[0x1000...0x1004]|[0x2000...0x2004]");
}

int main(int argc, char **argv) {
  check_start(&argc, &argv, "formats");
  check_lists();
  check_transfers();
  check_strides();
  return check_finish();
}
