//! Handlers and functions that `ctor` registers before `main`.
//!
//! Read-only from then on. The order among other functions that run before `main`, such as
//! constructors of C++, is the linker's: a world is made after them all.

use crate::am::AmEntry;
use crate::rpc::RpcEntry;
use parking_lot::Mutex;

static AMS: Mutex<Vec<&'static dyn AmEntry>> = Mutex::new(Vec::new());
static RPCS: Mutex<Vec<&'static dyn RpcEntry>> = Mutex::new(Vec::new());

/// Called before `main` by the expansion of [`am!`](crate::am!).
#[doc(hidden)]
pub fn register_am(entry: &'static dyn AmEntry) {
    AMS.lock().push(entry);
}

/// Called before `main` by the expansion of [`rpc!`](crate::rpc!).
#[doc(hidden)]
pub fn register_rpc(entry: &'static dyn RpcEntry) {
    RPCS.lock().push(entry);
}

pub(crate) fn ams() -> Vec<&'static dyn AmEntry> {
    AMS.lock().clone()
}

pub(crate) fn rpcs() -> Vec<&'static dyn RpcEntry> {
    RPCS.lock().clone()
}
