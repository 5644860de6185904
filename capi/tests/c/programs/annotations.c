/* Every macro of the platform and the annotations, as statements, expressions and at file scope. */
#include "every.h"

#if !PLATFORM_OS_LINUX || PLATFORM_OS_DARWIN || PLATFORM_ARCH_32 + PLATFORM_ARCH_64 != 1
#error the platform
#endif
#if PLATFORM_COMPILER_GNU + PLATFORM_COMPILER_CLANG != 1
#error the compiler
#endif
#if PLATFORM_ARCH_X86_64 + PLATFORM_ARCH_AARCH64 != 1 || !PLATFORM_ARCH_LITTLE_ENDIAN || PLATFORM_ARCH_BIG_ENDIAN
#error the processor
#endif
#if PLATFORM_COMPILER_VERSION_LT(4, 0, 0) || !PLATFORM_COMPILER_VERSION_GE(4, 0, 0) ||                                 \
    PLATFORM_COMPILER_VERSION_EQ(4, 0, 0) || !PLATFORM_COMPILER_VERSION_GT(4, 0, 0) || PLATFORM_COMPILER_VERSION_LE(4, 0, 0)
#error the version
#endif
#ifdef __cplusplus
#if PLATFORM_COMPILER_GNU_CXX + PLATFORM_COMPILER_CLANG_CXX != 1 || PLATFORM_COMPILER_ID < 10000
#error the language
#endif
#else
#if PLATFORM_COMPILER_GNU_C + PLATFORM_COMPILER_CLANG_C != 1 || PLATFORM_COMPILER_ID > 10000
#error the language
#endif
#endif
#if GASNETT_SPEC_VERSION_MAJOR != 1 || GASNETT_SPEC_VERSION_MINOR != 20
#error the version of the interface
#endif
#if GASNETT_PAGESIZE != (1 << GASNETT_PAGESHIFT) || GASNETT_CACHE_LINE_BYTES & (GASNETT_CACHE_LINE_BYTES - 1)
#error sizes
#endif
#if GASNETT_RELEASE_VERSION_MAJOR < 2 || GASNETT_USE_GCC_ATTRIBUTE_PURE != 1
#error what is not there
#endif

GASNETT_IDENT(test_ident, "$ArgonetTest: found $");

GASNETT_INLINE(twice)
int twice(int v) { return 2 * v; }
GASNETT_NEVER_INLINE(pair, static int pair(int a, int b)) { return a + b; }
GASNETT_FORMAT_PRINTF(says, 1, 2, static int says(const char *format, ...));
static int says(const char *format, ...)
{
    char to[32];
    va_list arguments;
    int length;
    va_start(arguments, format);
    length = vsnprintf(to, sizeof to, format, arguments);
    va_end(arguments);
    return length;
}
GASNETT_FORMAT_PRINTF_FUNCPTR(saying, 1, 2, static int (*saying)(const char *format, ...)) = says;
GASNETT_NORETURN static void never(void);
GASNETT_NORETURNP(never)
static void never(void) { abort(); }
GASNETT_MALLOC static void *fresh(void) { return malloc(1); }
GASNETT_MALLOCP(fresh)
GASNETT_PURE static int pure(const int *p) { return *p; }
GASNETT_PUREP(pure)
GASNETT_CONST static int constant(int v) { return v; }
GASNETT_CONSTP(constant)
GASNETT_HOT static int hot(void) { return 1; }
GASNETT_COLD static int cold(void) { return 2; }
GASNETT_DEPRECATED int old_function(void);
GASNETT_WARN_UNUSED_RESULT static int wanted(void) { return 3; }
GASNETT_USED static int uncalled(void) { return 4; }
GASNETT_EXTERNC int outside;
GASNETT_BEGIN_EXTERNC
int outside = 5;
GASNETT_END_EXTERNC

static int restricted(const int *GASNETT_RESTRICT a, int *GASNETT_RESTRICT b) { return *b = *a; }

static int falls(int v)
{
    int sum = 0;
    switch (v) {
    case 1:
        sum += 1;
        GASNETT_FALLTHROUGH
    case 2:
        sum += 2;
    }
    return sum;
}

static int count;
static int counted(void) { return ++count; }

int main(int argc, char **argv)
{
    int one = 1, two = 0;
    void *memory = fresh();
    (void)argv;
    if_pf (argc > 100) never();
    if_pt (argc > 0) one = 1;
    else one = 2;
    CHECK(one == 1);
    CHECK(twice(2) == 4 && pair(1, 2) == 3 && says("%d", 12) == 2 && saying("%s", "abc") == 3);
    CHECK(pure(&one) == 1 && constant(7) == 7 && hot() == 1 && cold() == 2 && wanted() == 3 && outside == 5);
    CHECK(restricted(&one, &two) == 1 && two == 1);
    CHECK(falls(1) == 3 && falls(2) == 2);
    CHECK(GASNETT_PREDICT_TRUE(memory) && !GASNETT_PREDICT_FALSE(!memory));
    CHECK(gasnett_constant_p(3) && !gasnett_constant_p(argc));
    GASNETT_PREFETCH_READ_HINT(memory);
    GASNETT_PREFETCH_WRITE_HINT(memory);
    gasnett_assume(one == 1);
    if (one != 1) gasnett_unreachable();
    GASNETT_UNUSED_ARGS1(counted());
    GASNETT_UNUSED_ARGS2(counted(), counted());
    GASNETT_UNUSED_ARGS3(counted(), counted(), counted());
    GASNETT_UNUSED_ARGS4(counted(), 2, 3, counted());
    GASNETT_UNUSED_ARGS5(counted(), 2, 3, 4, counted());
    GASNETT_UNUSED_ARGS6(counted(), 2, 3, 4, 5, counted());
    GASNETT_UNUSED_ARGS7(counted(), 2, 3, 4, 5, 6, counted());
    GASNETT_UNUSED_ARGS8(counted(), 2, 3, 4, 5, 6, 7, counted());
    CHECK(count == 16);
    CHECK(strcmp(GASNETT_CURRENT_FUNCTION, "main") == 0);
    free(memory);
    printf("%s %s %s\n", _STRINGIFY(PLATFORM_COMPILER_FAMILYNAME), PLATFORM_COMPILER_VERSION_STR, PLATFORM_COMPILER_IDSTR);
    printf("%" PRIu64 " %" PRIuSZ "\n", (uint64_t)1, sizeof one);
    return 0;
}
