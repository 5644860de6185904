/* A libpmix without a server, which does as the variable FAKE says. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process {
    char name[256];
    uint32_t rank;
};

struct value {
    uint16_t kind;
    union {
        uint32_t number;
        struct {
            const char *bytes;
            size_t size;
        } object;
        uint64_t all[3];
    } data;
};

enum { NUMBER = 14, BYTES = 27, ALL_RANKS = -2, NOT_FOUND = -46 };

static struct value given;

static int is(const char *what) {
    const char *fake = getenv("FAKE");
    return fake && strcmp(fake, what) == 0;
}

const char *PMIx_Get_version(void) { return "0 of a test"; }

const char *PMIx_Error_string(int code) { return code == NOT_FOUND ? "NOT-FOUND" : "BROKEN"; }

int PMIx_Init(struct process *own, void *info, size_t infos) {
    (void)info, (void)infos;
    while (is("hangs at start")) pause();
    if (is("crashes")) abort();
    if (is("refuses")) return -25;
    strcpy(own->name, "job");
    own->rank = is("has a stranger") ? 7 : (uint32_t)atoi(getenv("PMIX_RANK"));
    return 0;
}

int PMIx_Put(uint8_t scope, const char *key, struct value *value) {
    (void)scope, (void)key, (void)value;
    return is("is full") ? -1 : 0;
}

int PMIx_Commit(void) { return 0; }

#ifndef NO_FENCE
int PMIx_Fence(const struct process *all, size_t count, const void *info, size_t infos) {
    (void)all, (void)count, (void)info, (void)infos;
    while (is("hangs at the fence")) pause();
    return 0;
}
#endif

int PMIx_Get(const struct process *owner, const char *key, const void *info, size_t infos,
             struct value **value) {
    (void)info, (void)infos;
    *value = &given;
    if (owner->rank == (uint32_t)ALL_RANKS && strcmp(key, "pmix.job.size") == 0) {
        given.kind = NUMBER;
        given.data.number = 3;
        return 0;
    }
    given.kind = is("gives a number") ? NUMBER : BYTES;
    given.data.object.bytes = "no host";
    given.data.object.size = is("gives no end") ? (size_t)-1 : 7;
    return is("gives nothing") ? NOT_FOUND : 0;
}

int PMIx_Abort(int code, const char *text, struct process *all, size_t count) {
    (void)all, (void)count;
    fprintf(stderr, "libpmix ends the job with code %d: %s\n", code, text);
    return 0;
}

int PMIx_Finalize(const void *info, size_t infos) {
    (void)info, (void)infos;
    return 0;
}
