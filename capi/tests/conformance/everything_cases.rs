//! Expected outcomes of the cases of `tests/c/bad/everything.c`.

use crate::bad::Expected::{Ends, Returns};
use crate::cases::Build::{Any, Debug};
use crate::cases::Case;

/// In `GASNET_SEGMENT_EVERYTHING`.
///
/// Without copies by the kernel the sender's own memory is its own to get right.
pub(crate) const EVERYTHING: [Case; 30] = [
    (
        "put-nowhere",
        Any,
        Ends(&[
            "rank 0: a put of 8 bytes at 0x40 of rank 1",
            "nothing is mapped at 0x40 there",
        ]),
    ),
    (
        "messages-put-nowhere",
        Any,
        Ends(&[
            "rank 0: a put of 8 bytes at 0x40 of rank 1",
            "nothing is mapped at 0x40 there",
        ]),
    ),
    (
        "put-null",
        Any,
        Ends(&[
            "rank 0: a put of 100 bytes at 0x0 of rank 1",
            "nothing is mapped at 0x0 there",
        ]),
    ),
    (
        "put-kernel",
        Any,
        Ends(&[
            "rank 0: a put of 8 bytes at 0xfffffffffffff040 of rank 1",
            "nothing is mapped at 0xfffffffffffff040 there",
        ]),
    ),
    (
        "messages-put-kernel",
        Any,
        Ends(&[
            "rank 0: a put of 8 bytes at 0xfffffffffffff040 of rank 1",
            "nothing is mapped at 0xfffffffffffff040 there",
        ]),
    ),
    (
        "get-nowhere",
        Any,
        Ends(&[
            "rank 0: a get of 100000 bytes at 0x40 of rank 1",
            "nothing is mapped at 0x40 there",
        ]),
    ),
    (
        "messages-get-nowhere",
        Any,
        Ends(&[
            "rank 0: a get of 100000 bytes at 0x40 of rank 1",
            "nothing is mapped at 0x40 there",
        ]),
    ),
    (
        "put-value-nowhere",
        Any,
        Ends(&[
            "rank 0: a put of 4 bytes at 0x40 of rank 1",
            "nothing is mapped at 0x40 there",
        ]),
    ),
    (
        "get-value-nowhere",
        Any,
        Ends(&[
            "rank 0: a get of 3 bytes at 0x40 of rank 1",
            "nothing is mapped at 0x40 there",
        ]),
    ),
    (
        "put-constant",
        Any,
        Ends(&[
            "rank 0: a put of 5 bytes",
            "of rank 1 cannot be done",
            "cannot be written",
        ]),
    ),
    (
        "messages-put-constant",
        Any,
        Ends(&[
            "rank 0: a put of 5 bytes",
            "of rank 1 cannot be done",
            "cannot be written",
        ]),
    ),
    (
        "put-beyond",
        Any,
        Ends(&[
            "rank 0: a put of 200 bytes",
            "of rank 1 cannot be done: nothing is mapped at 0x",
            "000 there",
        ]),
    ),
    (
        "messages-put-beyond",
        Any,
        Ends(&[
            "rank 0: a put of 200 bytes",
            "of rank 1 cannot be done: nothing is mapped at 0x",
            "000 there",
        ]),
    ),
    (
        "get-beyond",
        Any,
        Ends(&[
            "rank 0: a get of 200 bytes",
            "of rank 1 cannot be done: nothing is mapped at 0x",
            "000 there",
        ]),
    ),
    (
        "messages-get-beyond",
        Any,
        Ends(&[
            "rank 0: a get of 200 bytes",
            "of rank 1 cannot be done: nothing is mapped at 0x",
            "000 there",
        ]),
    ),
    (
        "put-from-nowhere",
        Any,
        Ends(&[
            "rank 0: a put of 100 bytes between 0x40 here",
            "of rank 1",
            "nothing is mapped at 0x40 here",
        ]),
    ),
    (
        "get-to-nowhere",
        Any,
        Ends(&[
            "rank 0: a get of 100 bytes between 0x40 here",
            "of rank 1",
            "nothing is mapped at 0x40 here",
        ]),
    ),
    (
        "long-nowhere",
        Any,
        Ends(&[
            "rank 0: a long active message of 8 bytes at 0x40 of rank 1",
            "nothing is mapped at 0x40 there",
        ]),
    ),
    (
        "messages-long-nowhere",
        Any,
        Ends(&[
            "rank 0: a long active message of 8 bytes at 0x40 of rank 1",
            "nothing is mapped at 0x40 there",
        ]),
    ),
    (
        "long-constant",
        Any,
        Ends(&[
            "rank 0: a long active message of 8 bytes",
            "of rank 1",
            "cannot be written",
        ]),
    ),
    (
        "messages-long-constant",
        Any,
        Ends(&[
            "rank 0: a long active message of 8 bytes",
            "of rank 1",
            "cannot be written",
        ]),
    ),
    (
        "long-long-nowhere",
        Any,
        Ends(&[
            "rank 0: a put of 100000 bytes at 0x40 of rank 1",
            "nothing is mapped at 0x40 there",
        ]),
    ),
    (
        "messages-long-long-nowhere",
        Any,
        Ends(&[
            "rank 0: a put of 100000 bytes at 0x40 of rank 1",
            "nothing is mapped at 0x40 there",
        ]),
    ),
    (
        "reply-nowhere",
        Any,
        Ends(&[
            "rank 1: a long active message of 8 bytes at 0x40 of rank 0",
            "nothing is mapped at 0x40 there",
        ]),
    ),
    (
        "messages-reply-nowhere",
        Any,
        Ends(&[
            "rank 1: a long active message of 8 bytes at 0x40 of rank 0",
            "nothing is mapped at 0x40 there",
        ]),
    ),
    (
        "long-reply-nowhere",
        Any,
        Ends(&[
            "rank 1: a ",
            "of 100000 bytes at 0x40 of rank 0",
            "nothing is mapped at 0x40 there",
        ]),
    ),
    (
        "messages-long-reply-nowhere",
        Any,
        Ends(&[
            "rank 1: a ",
            "of 100000 bytes at 0x40 of rank 0",
            "nothing is mapped at 0x40 there",
        ]),
    ),
    (
        "put-own-nowhere",
        Debug,
        Ends(&[
            "rank 0: a put of 8 bytes at 0x40 of rank 0",
            "nothing is mapped at 0x40 there",
        ]),
    ),
    (
        "put-own-overlap",
        Debug,
        Ends(&["gex_RMA_PutBlocking", "overlap"]),
    ),
    ("attach-twice", Any, Returns("GASNET_ERR_BAD_ARG")),
];
