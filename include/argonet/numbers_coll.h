/* Made by `cargo xtask numbers` from base/gasnet.tsv. Not included by clients. */
#ifndef ARGONET_NUMBERS_COLL_H
#define ARGONET_NUMBERS_COLL_H

/* When data may move: at once; when its rank has called; when all have. One of them is needed. */
#define GASNET_COLL_IN_NOSYNC 1
#define GASNET_COLL_IN_MYSYNC 2
#define GASNET_COLL_IN_ALLSYNC 4

/* When an operation is complete: this rank's part is; its data is there; all are. One is needed. */
#define GASNET_COLL_OUT_NOSYNC 8
#define GASNET_COLL_OUT_MYSYNC 0x10
#define GASNET_COLL_OUT_ALLSYNC 0x20

/* All of them. */
#define GASNET_COLL_SYNC_FLAG_MASK 63

/* Each rank gives addresses of its own. Needed. */
#define GASNET_COLL_LOCAL 0x80

/* Hints, which change nothing here. */
#define GASNET_COLL_FIXED_THREADS_PER_NODE 0x200
#define GASNET_COLL_DST_IN_SEGMENT 0x400
#define GASNET_COLL_SRC_IN_SEGMENT 0x800
#define GASNET_COLL_DISABLE_AUTOTUNE 0x40000
#define GASNET_COLL_NO_IMAGES 0x80000

#endif
