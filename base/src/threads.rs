//! The library's own threads, by the system's numbers of them.
//!
//! Whether a job can go on depends on whether threads of the program can act. Names do not say
//! whose a thread is: a program's main thread has the name of its file, and clients name theirs as
//! they like. So a thread of the library registers itself when it begins.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use rustix::thread::gettid;

/// The threads that run now.
///
/// Each adds itself first and removes itself last; as many entries as the library has threads.
static OWN: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Starts a thread of the library, which does nothing for the program by itself.
///
/// Until it has begun, it counts as a thread of the program.
///
/// # Errors
/// The system gives no thread.
pub fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(move || {
        let _registered = Registered::new();
        run()
    })
}

/// Whether the thread of this process with this number, as `/proc/self/task` has it, was started by
/// [`spawn`].
#[must_use]
pub fn is_of_library(thread: u32) -> bool {
    own(|threads| threads.contains(&thread))
}

/// The calling thread, from its begin to its end, a panic included: the system gives its number to
/// another thread afterwards.
struct Registered(u32);

impl Registered {
    fn new() -> Self {
        let thread = gettid().as_raw_nonzero().get() as u32;
        own(|threads| threads.push(thread));
        Self(thread)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        own(|threads| threads.retain(|thread| *thread != self.0));
    }
}

fn own<R>(act: impl FnOnce(&mut Vec<u32>) -> R) -> R {
    // A number is added or removed whole, also where a thread has panicked.
    act(&mut OWN.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this() -> u32 {
        gettid().as_raw_nonzero().get() as u32
    }

    #[test]
    fn a_thread_is_the_librarys_while_it_runs() {
        let run = || (this(), is_of_library(this()));
        let (thread, was_known) = spawn("argonet-test", run).unwrap().join().unwrap();
        assert!(was_known);
        assert!(!is_of_library(thread) && !is_of_library(this()));
        let fails = || -> u32 { std::panic::resume_unwind(Box::new(this())) };
        let panic = spawn("argonet-test", fails).unwrap().join().unwrap_err();
        assert!(!is_of_library(*panic.downcast::<u32>().unwrap()));
    }

    #[test]
    fn a_name_makes_no_thread_the_librarys() {
        let builder = Builder::new().name("argonet-serve".into());
        let known = builder.spawn(|| is_of_library(this())).unwrap();
        assert!(!known.join().unwrap());
    }
}
