//! Expected outcomes of the cases of `tests/c/bad/endpoints.c`.

use crate::bad::Expected::{Ends, Returns};
use crate::cases::Build::{Any, Debug};
use crate::cases::Case;

const BAD: &str = "GASNET_ERR_BAD_ARG";
const SHORT: &str = "gex_AM_RequestShort";
const MEDIUM: &str = "gex_AM_RequestMedium";
const WITHOUT: &str = "endpoint 1 of this process, which was created without GEX_EP_CAPABILITY_AM";
const MUTE: &str =
    "rank 1 has no endpoint 1 for active messages: it was created without GEX_EP_CAPABILITY_AM";
const ABSENT: &str = "rank 1 has no endpoint 9 for active messages: gex_EP_Create has not made it";

pub(crate) const ENDPOINTS: [Case; 39] = [
    ("create-nothing", Any, Returns(BAD)),
    ("create-unknown", Any, Returns(BAD)),
    ("create-nowhere", Any, Returns(BAD)),
    ("create-one-more", Any, Returns("GASNET_ERR_RESOURCE")),
    ("register-without", Any, Returns(BAD)),
    ("register-twice", Any, Returns(BAD)),
    ("short-from-without", Any, Ends(&[SHORT, WITHOUT])),
    ("medium-from-without", Any, Ends(&[MEDIUM, WITHOUT])),
    (
        "long-from-without",
        Any,
        Ends(&["gex_AM_RequestLong", WITHOUT]),
    ),
    (
        "prepare-from-without",
        Any,
        Ends(&["gex_AM_PrepareRequestMedium", WITHOUT]),
    ),
    (
        "limit-from-without",
        Any,
        Ends(&["gex_AM_MaxRequestMedium", WITHOUT]),
    ),
    (
        "team-from-without",
        Any,
        Ends(&[SHORT, "tm stands for", WITHOUT]),
    ),
    (
        "short-to-own-without",
        Any,
        Ends(&[
            SHORT,
            "has no endpoint 1 for active messages",
            "GEX_EP_CAPABILITY_AM",
        ]),
    ),
    ("medium-too-long", Any, Ends(&[MEDIUM, "nbytes"])),
    (
        "prepare-arguments",
        Any,
        Ends(&["gex_AM_PrepareRequestMedium", "numargs is 17", "16"]),
    ),
    ("rank", Any, Ends(&[SHORT, "rank is 2", "2 ranks"])),
    (
        "below-base",
        Any,
        Ends(&[SHORT, "handler index 20", "128 to 255"]),
    ),
    (
        "other-kind",
        Debug,
        Ends(&[MEDIUM, "does not fit handler 160", "request"]),
    ),
    (
        "short-to-without",
        Any,
        Ends(&[
            "rank 1 has no endpoint 1 for active messages",
            "endpoint 2 of rank 0",
            "GEX_EP_CAPABILITY_AM",
        ]),
    ),
    (
        "medium-to-absent",
        Any,
        Ends(&[
            "rank 1 has no endpoint 9 for active messages",
            "endpoint 0 of rank 0",
            "GEX_EP_CAPABILITY_AM",
        ]),
    ),
    (
        "unknown-handler",
        Any,
        Ends(&[
            "no handler is registered for index 250 on rank 1, endpoint 2 or 0",
            "from rank 0",
            "endpoint 2 to endpoint 2",
        ]),
    ),
    (
        "long-outside",
        Any,
        Ends(&[
            "a long active message of 8 bytes",
            "of rank 1, endpoint 2",
            "has bound 4096 bytes",
        ]),
    ),
    (
        "long-not-bound",
        Any,
        Ends(&[
            "a long active message of 8 bytes",
            "of rank 1, endpoint 3",
            "rank 1 has bound no segment",
        ]),
    ),
    (
        "reply-unknown-handler",
        Any,
        Ends(&["no handler is registered for index 250 on rank 0, endpoint 2 or 0"]),
    ),
    (
        "two-replies",
        Any,
        Ends(&["gex_AM_ReplyShort", "replied twice"]),
    ),
    (
        "reply-outside",
        Any,
        Ends(&[
            "rank 1: a long active message of 8 bytes",
            "of rank 0, endpoint 2",
            "has bound 4096 bytes",
        ]),
    ),
    (
        "limit-to-without",
        Debug,
        Ends(&["gex_AM_MaxRequestMedium", MUTE, "endpoint 2 of rank 0"]),
    ),
    (
        "limit-to-absent",
        Debug,
        Ends(&["gex_AM_MaxReplyLong", ABSENT, "endpoint 0 of rank 0"]),
    ),
    (
        "limit-to-own-without",
        Debug,
        Ends(&[
            "gex_AM_MaxRequestLong",
            "rank 0 has no endpoint 1 for active messages",
        ]),
    ),
    (
        "limit-of-absent",
        Debug,
        Ends(&[
            "gex_AM_MaxReplyMedium",
            "none of the 2 endpoints that tm leads to",
            "GEX_EP_CAPABILITY_AM",
        ]),
    ),
    ("short-named-without", Debug, Ends(&[SHORT, MUTE])),
    (
        "long-named-absent",
        Debug,
        Ends(&["gex_AM_RequestLong", ABSENT]),
    ),
    (
        "prepare-to-without",
        Debug,
        Ends(&["gex_AM_PrepareRequestMedium", MUTE]),
    ),
    (
        "prepare-to-absent",
        Debug,
        Ends(&["gex_AM_PrepareRequestLong", ABSENT]),
    ),
    (
        "vis-named-absent",
        Debug,
        Ends(&["gex_VIS_VectorPutBlocking", ABSENT]),
    ),
    (
        "vis-completion-absent",
        Any,
        Ends(&[
            "rank 1 has no endpoint 9 for active messages",
            "endpoint 2 of rank 0",
        ]),
    ),
    (
        "vis-completion-unknown",
        Any,
        Ends(&["no handler is registered for index 250 on rank 1, endpoint 2 or 0"]),
    ),
    (
        "team-to-without",
        Debug,
        Ends(&["gex_AM_MaxRequestMedium", MUTE]),
    ),
    (
        "token-limit-in-reply",
        Debug,
        Ends(&["gex_Token_MaxReplyMedium", "that of a reply"]),
    ),
];
