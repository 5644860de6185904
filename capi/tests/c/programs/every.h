/* Common to all programs of this directory. A check that fails says where and ends the program. */
#ifndef EVERY_H
#define EVERY_H
#ifdef AFTER_OTHERS
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#endif
#include <gasnet_tools.h>
#include <stdlib.h>
#include <string.h>
#define CHECK(condition)                                                                                               \
    ((condition) ? (void)0                                                                                             \
                 : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), exit(1)))
#endif
