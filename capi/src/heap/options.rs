//! The user's choice of checks: `GASNET_MALLOC_*`.

use argonet_settings::{
    MALLOC_CLOBBER, MALLOC_CLOBBERVAL, MALLOC_EXTRACHECK, MALLOC_FILE, MALLOC_INIT, MALLOC_INITVAL,
    MALLOC_LEAKALL, MALLOC_NODES, MALLOC_SCANFREED, NodeSet,
};

use crate::heap::fill::Fill;
use crate::job::fatal;
use crate::tools::settings_of;

pub(super) struct Options {
    /// Fills allocated memory, if that is wanted.
    pub(super) init: Option<Fill>,
    /// Fills freed memory, likewise.
    pub(super) clobber: Option<Fill>,
    /// Freed memory is kept, so that no later allocation gets it.
    pub(super) leak_all: bool,
    /// Freed memory is checked for writes; it is filled and kept then.
    pub(super) scan_freed: bool,
    /// Every allocation and release checks all blocks.
    pub(super) extra_check: bool,
    /// Where to report what is allocated at the end, and which ranks do.
    pub(super) file: Option<String>,
    pub(super) nodes: NodeSet,
}

fn fill(name: &str, text: &str) -> Fill {
    let wrong = || {
        let text = text.escape_debug();
        let what = format!(
            "the environment variable {name} is \"{text}\"; allowed: a whole number, also with 0x, NAN, qNAN, sNAN"
        );
        fatal("gasnett_debug_malloc", &what)
    };
    Fill::parse(text).unwrap_or_else(wrong)
}

impl Options {
    /// By the environment as it is now; a bad value ends the program.
    pub(super) fn read() -> Self {
        let settings = settings_of(&[
            "GASNET_MALLOC_INIT",
            "GASNET_MALLOC_INITVAL",
            "GASNET_MALLOC_CLOBBER",
            "GASNET_MALLOC_CLOBBERVAL",
            "GASNET_MALLOC_LEAKALL",
            "GASNET_MALLOC_SCANFREED",
            "GASNET_MALLOC_EXTRACHECK",
            "GASNET_MALLOCFILE",
            "GASNET_MALLOCNODES",
        ]);
        let init = fill("GASNET_MALLOC_INITVAL", &settings.get(&MALLOC_INITVAL));
        let clobber = fill(
            "GASNET_MALLOC_CLOBBERVAL",
            &settings.get(&MALLOC_CLOBBERVAL),
        );
        let scan_freed = settings.get(&MALLOC_SCANFREED);
        let clobbers = scan_freed || settings.get(&MALLOC_CLOBBER);
        Self {
            init: settings.get(&MALLOC_INIT).then_some(init),
            clobber: clobbers.then_some(clobber),
            leak_all: scan_freed || settings.get(&MALLOC_LEAKALL),
            scan_freed,
            extra_check: settings.get(&MALLOC_EXTRACHECK),
            file: settings.get(&MALLOC_FILE),
            nodes: settings.get(&MALLOC_NODES),
        }
    }
}
