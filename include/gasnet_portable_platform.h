/* Compiler, operating system and processor by one scheme of names: each name is defined to 1 or not
 * at all, so that an unknown one is 0 in #if. Known are gcc and clang on Linux, x86-64 and AArch64;
 * anything else is an error. */
#ifndef ARGONET_PORTABLE_PLATFORM_H
#define ARGONET_PORTABLE_PLATFORM_H

/* Other libraries, such as those of MPI, bring headers with these names too. All of them keep the
 * same two guards: the newest interface wins, whichever came first, and takes the place of what an
 * older one has defined. */
#if !defined(_PORTABLE_PLATFORM_H) || !defined(PLATFORM_HEADER_VERSION) || PLATFORM_HEADER_VERSION < 24 ||             \
    _PORTABLE_PLATFORM_H != PLATFORM_HEADER_VERSION

#undef PLATFORM_ARCH_64
#undef PLATFORM_ARCH_AARCH64
#undef PLATFORM_ARCH_FAMILYNAME
#undef PLATFORM_ARCH_LITTLE_ENDIAN
#undef PLATFORM_ARCH_X86_64
#undef PLATFORM_COMPILER_CLANG
#undef PLATFORM_COMPILER_CLANG_C
#undef PLATFORM_COMPILER_CLANG_CXX
#undef PLATFORM_COMPILER_CXX_LANGLVL
#undef PLATFORM_COMPILER_C_LANGLVL
#undef PLATFORM_COMPILER_FAMILYID
#undef PLATFORM_COMPILER_FAMILYNAME
#undef PLATFORM_COMPILER_GNU
#undef PLATFORM_COMPILER_GNU_C
#undef PLATFORM_COMPILER_GNU_CXX
#undef PLATFORM_COMPILER_ID
#undef PLATFORM_COMPILER_IDSTR
#undef PLATFORM_COMPILER_VERSION
#undef PLATFORM_COMPILER_VERSION_EQ
#undef PLATFORM_COMPILER_VERSION_GE
#undef PLATFORM_COMPILER_VERSION_GT
#undef PLATFORM_COMPILER_VERSION_LE
#undef PLATFORM_COMPILER_VERSION_LT
#undef PLATFORM_COMPILER_VERSION_STR
#undef PLATFORM_OS_FAMILYNAME
#undef PLATFORM_OS_LINUX
#undef PLATFORM_HEADER_VERSION
#undef _PORTABLE_PLATFORM_H
#define PLATFORM_HEADER_VERSION 24
#define _PORTABLE_PLATFORM_H PLATFORM_HEADER_VERSION

#define ARGONETP_STRING_OF(x) #x
#define ARGONETP_STRING(x) ARGONETP_STRING_OF(x)

/* Versions are compared as numbers: 8 bits of minor and of patch. */
#define ARGONETP_VERSION(a, b, c) (((a) << 16) | ((b) << 8) | (c))

#if defined(__clang__)
#define PLATFORM_COMPILER_CLANG 1
#define PLATFORM_COMPILER_FAMILYNAME CLANG
#define PLATFORM_COMPILER_FAMILYID 19
#ifdef __cplusplus
#define PLATFORM_COMPILER_CLANG_CXX 1
#else
#define PLATFORM_COMPILER_CLANG_C 1
#endif
#define PLATFORM_COMPILER_VERSION ARGONETP_VERSION(__clang_major__, __clang_minor__, __clang_patchlevel__)
#define PLATFORM_COMPILER_VERSION_STR                                                                                  \
    ARGONETP_STRING(__clang_major__) "." ARGONETP_STRING(__clang_minor__) "." ARGONETP_STRING(__clang_patchlevel__)
#elif defined(__GNUC__)
#define PLATFORM_COMPILER_GNU 1
#define PLATFORM_COMPILER_FAMILYNAME GNU
#define PLATFORM_COMPILER_FAMILYID 1
#ifdef __cplusplus
#define PLATFORM_COMPILER_GNU_CXX 1
#else
#define PLATFORM_COMPILER_GNU_C 1
#endif
#define PLATFORM_COMPILER_VERSION ARGONETP_VERSION(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__)
#define PLATFORM_COMPILER_VERSION_STR                                                                                  \
    ARGONETP_STRING(__GNUC__) "." ARGONETP_STRING(__GNUC_MINOR__) "." ARGONETP_STRING(__GNUC_PATCHLEVEL__)
#else
#error argonet needs gcc or clang
#endif

/* One number for each family and language. */
#ifdef __cplusplus
#define PLATFORM_COMPILER_ID (10000 + PLATFORM_COMPILER_FAMILYID)
#define PLATFORM_COMPILER_CXX_LANGLVL __cplusplus
#else
#define PLATFORM_COMPILER_ID PLATFORM_COMPILER_FAMILYID
#if defined(__STDC_VERSION__)
#define PLATFORM_COMPILER_C_LANGLVL __STDC_VERSION__
#else
#define PLATFORM_COMPILER_C_LANGLVL 199000L
#endif
#endif
#define PLATFORM_COMPILER_IDSTR                                                                                        \
    "|COMPILER_FAMILY:" ARGONETP_STRING(PLATFORM_COMPILER_FAMILYNAME) "|COMPILER_VERSION:"                            \
    PLATFORM_COMPILER_VERSION_STR "|"

#define PLATFORM_COMPILER_VERSION_GT(a, b, c) (PLATFORM_COMPILER_VERSION > ARGONETP_VERSION(a, b, c))
#define PLATFORM_COMPILER_VERSION_GE(a, b, c) (PLATFORM_COMPILER_VERSION >= ARGONETP_VERSION(a, b, c))
#define PLATFORM_COMPILER_VERSION_EQ(a, b, c) (PLATFORM_COMPILER_VERSION == ARGONETP_VERSION(a, b, c))
#define PLATFORM_COMPILER_VERSION_LE(a, b, c) (PLATFORM_COMPILER_VERSION <= ARGONETP_VERSION(a, b, c))
#define PLATFORM_COMPILER_VERSION_LT(a, b, c) (PLATFORM_COMPILER_VERSION < ARGONETP_VERSION(a, b, c))

#if defined(__linux__)
#define PLATFORM_OS_LINUX 1
#define PLATFORM_OS_FAMILYNAME LINUX
#else
#error argonet needs Linux
#endif

#if defined(__x86_64__) && defined(__LP64__)
#define PLATFORM_ARCH_X86_64 1
#define PLATFORM_ARCH_FAMILYNAME X86_64
#elif defined(__aarch64__) && defined(__LP64__)
#define PLATFORM_ARCH_AARCH64 1
#define PLATFORM_ARCH_FAMILYNAME AARCH64
#else
#error argonet needs x86-64 or AArch64, with pointers of 64 bits
#endif
#define PLATFORM_ARCH_64 1

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define PLATFORM_ARCH_LITTLE_ENDIAN 1
#else
#error argonet needs a little-endian processor
#endif

#endif

#endif
