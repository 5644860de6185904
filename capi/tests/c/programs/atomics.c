/* Every atomic operation by one thread: results, wrap-around, flags, other types in the same
 * place. */
#include "every.h"

#define ALL_FLAGS                                                                                                      \
    (GASNETT_ATOMIC_RMB_PRE | GASNETT_ATOMIC_WMB_PRE | GASNETT_ATOMIC_MB_PRE | GASNETT_ATOMIC_RMB_POST |                \
     GASNETT_ATOMIC_WMB_POST | GASNETT_ATOMIC_MB_POST | GASNETT_ATOMIC_ACQ_IF_TRUE | GASNETT_ATOMIC_ACQ_IF_FALSE)

#define OPERATIONS(name, value, max)                                                                                   \
    static name##_t name##_at = name##_init(7);                                                                        \
    static void name##_check(int flags)                                                                                \
    {                                                                                                                  \
        name##_t x = name##_init(-1);                                                                                  \
        struct { char before; name##_t x; char after; } packed = {1, name##_init(0), 2};                               \
        CHECK(sizeof(x) == sizeof(value));                                                                             \
        CHECK(name##_read(&x, flags) == (max));                                                                        \
        CHECK(name##_read(&name##_at, flags) == 7);                                                                    \
        name##_set(&x, 5, flags);                                                                                      \
        CHECK(name##_read(&x, flags) == 5);                                                                            \
        CHECK(name##_add(&x, 3, flags) == 8);                                                                          \
        CHECK(name##_subtract(&x, 9, flags) == (max));                                                                 \
        name##_increment(&x, flags);                                                                                   \
        CHECK(name##_read(&x, flags) == 0);                                                                            \
        name##_decrement(&x, flags);                                                                                   \
        CHECK(name##_read(&x, flags) == (max));                                                                        \
        name##_set(&x, 2, flags);                                                                                      \
        CHECK(!name##_decrement_and_test(&x, flags));                                                                  \
        CHECK(name##_decrement_and_test(&x, flags));                                                                   \
        CHECK(!name##_decrement_and_test(&x, flags));                                                                  \
        CHECK(name##_compare_and_swap(&x, (value)-1, 9, flags));                                                       \
        CHECK(!name##_compare_and_swap(&x, 8, 1, flags));                                                              \
        CHECK(name##_read(&x, flags) == 9);                                                                            \
        CHECK(name##_swap(&x, 11, flags) == 9);                                                                        \
        CHECK(name##_read(&x, flags) == 11);                                                                           \
        name##_set(&packed.x, (max), flags);                                                                           \
        CHECK(packed.before == 1 && packed.after == 2);                                                                \
    }

OPERATIONS(gasnett_atomic, gasnett_atomic_val_t, GASNETT_ATOMIC_MAX)
OPERATIONS(gasnett_atomic32, uint32_t, UINT32_MAX)
OPERATIONS(gasnett_atomic64, uint64_t, UINT64_MAX)
OPERATIONS(gasnett_strongatomic, gasnett_strongatomic_val_t, GASNETT_STRONGATOMIC_MAX)
OPERATIONS(gasnett_strongatomic32, uint32_t, UINT32_MAX)
OPERATIONS(gasnett_strongatomic64, uint64_t, UINT64_MAX)

#if !GASNETT_HAVE_ATOMIC_CAS || !GASNETT_HAVE_ATOMIC_ADD_SUB || !GASNETT_HAVE_STRONGATOMIC_CAS ||                      \
    !GASNETT_HAVE_STRONGATOMIC_ADD_SUB
#error all groups are there
#endif
#if defined(GASNETT_USING_GENERIC_ATOMICOPS) || GASNETT_STRONGATOMIC_NOT_SIGNALSAFE
#error operations are those of the processor
#endif

int main(void)
{
    const int flags[] = {GASNETT_ATOMIC_NONE, GASNETT_ATOMIC_REL, GASNETT_ATOMIC_ACQ, GASNETT_ATOMIC_REL | GASNETT_ATOMIC_ACQ,
                         GASNETT_ATOMIC_MB_PRE | GASNETT_ATOMIC_MB_POST, ALL_FLAGS};
    size_t i;
    double number = 1.5;
    for (i = 0; i < sizeof flags / sizeof *flags; i++) {
        gasnett_atomic_check(flags[i]);
        gasnett_atomic32_check(flags[i]);
        gasnett_atomic64_check(flags[i]);
        gasnett_strongatomic_check(flags[i]);
        gasnett_strongatomic32_check(flags[i]);
        gasnett_strongatomic64_check(flags[i]);
    }
    CHECK(gasnett_atomic64_read((gasnett_atomic64_t *)&number, 0) == UINT64_C(0x3FF8000000000000));
    gasnett_atomic64_set((gasnett_atomic64_t *)&number, UINT64_C(0x4000000000000000), 0);
    CHECK(number == 2.0);
    CHECK(gasnett_atomic_signed((gasnett_atomic_val_t)-3) == -3);
    CHECK(gasnett_atomic_signed((gasnett_atomic_val_t)GASNETT_ATOMIC_SIGNED_MAX + 1) == GASNETT_ATOMIC_SIGNED_MIN);
    CHECK(gasnett_strongatomic_signed((gasnett_strongatomic_val_t)-3) == -3);
    CHECK(GASNETT_STRONGATOMIC_SIGNED_MIN < 0 && GASNETT_STRONGATOMIC_SIGNED_MAX > 0);
    CHECK(strlen(GASNETT_ATOMIC_CONFIG GASNETT_ATOMIC32_CONFIG GASNETT_ATOMIC64_CONFIG GASNETT_MEMBAR_CONFIG) > 0);
    return 0;
}
