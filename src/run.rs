//! Programs whose errors end their job.

use crate::builder::Builder;
use crate::error::Result;
use crate::world::{Inner, Par, Seq, Threading, World};
use argonet_engine::PANIC_CODE;
use argonet_settings::Letter;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

/// The exit code of a program that returns an error.
pub(crate) const FAILURE: u8 = 1;

/// How long tasks may have a world after its program has returned.
const LATE: Duration = Duration::from_secs(1);

/// Runs a program on every rank of the job: joins with the default settings, calls `program`, and
/// finalizes.
///
/// Where `program` returns an error, the rank prints it on standard error with its number, then its
/// causes, and ends the job with code 1 at once: it does not wait for the other ranks, and no
/// destructor or exit handler runs. So `?` can be used on one rank alone. Where joining fails, the
/// process prints why and exits with code 1.
///
/// The error may be anything that becomes a `Box<dyn Error>`: an [`Error`](crate::Error), `Box<dyn
/// Error>` itself, a `String` or an error of a library such as anyhow. A closure with `?` names its
/// result type:
///
/// ```
/// argonet::run(|world| -> argonet::Result<()> {
///     println!("rank {} of {}", world.rank(), world.size());
///     world.barrier()?;
///     Ok(())
/// });
/// ```
///
/// It returns the value of `program`, after all ranks have come to their end and everything under
/// way has been handled. So a program has an exit code of its own:
///
/// ```no_run
/// use std::process::ExitCode;
/// use argonet::{Result, World};
///
/// fn main() -> ExitCode {
///     argonet::run(program)
/// }
///
/// fn program(world: &mut World) -> Result<ExitCode> {
///     world.barrier()?;
///     Ok(ExitCode::from(if world.size() > 1 { 0 } else { 3 }))
/// }
/// ```
///
/// A panic of `program` ends the job of several ranks with code 101, as it does for every
/// [`World`]. Settings and handlers of the program's own are given to [`Builder::run`]; a world for
/// many threads is that of [`Builder::run_par`].
///
/// Blocks; call it on the first thread, before there is a second one.
pub fn run<T, E>(program: impl FnOnce(&mut World) -> std::result::Result<T, E>) -> T
where
    E: Into<Box<dyn Error>>,
{
    Builder::new().run(program)
}

impl Builder {
    /// As [`run`](crate::run()), with the settings and handlers of this builder.
    ///
    /// ```
    /// let mut builder = argonet::World::builder().segment_bytes(1 << 20);
    /// let double = builder.rpc("double", |(x,): (u32,)| x * 2);
    /// let four = builder.run(|world| -> argonet::Result<u32> {
    ///     world.rpc(world.rank(), &double, (2,))?.wait()
    /// });
    /// assert_eq!(four, 4);
    /// ```
    pub fn run<T, E>(self, program: impl FnOnce(&mut World<Seq>) -> std::result::Result<T, E>) -> T
    where
        E: Into<Box<dyn Error>>,
    {
        run_in(self.build(), program)
    }

    /// As [`run`](Self::run), with a world that any number of threads may use.
    ///
    /// ```
    /// argonet::World::builder().run_par(|world| {
    ///     std::thread::scope(|s| {
    ///         let threads: Vec<_> = (0..4).map(|_| s.spawn(|| world.poll())).collect();
    ///         threads.into_iter().try_for_each(|t| t.join().unwrap().map(drop))
    ///     })
    /// });
    /// ```
    pub fn run_par<T, E>(
        self,
        program: impl FnOnce(&mut World<Par>) -> std::result::Result<T, E>,
    ) -> T
    where
        E: Into<Box<dyn Error>>,
    {
        run_in(self.build_par(), program)
    }

    /// As [`run_par`](Self::run_par), with a world that tasks of an executor may share, and a
    /// [progress thread](World::start_progress_thread) that wakes them.
    ///
    /// A task that is to outlive what started it has a clone of the [`Arc`], or an operation
    /// [of its own](crate::Op::into_owned). End the tasks, or the executor with them, before the
    /// program returns: if anything has the world a second later, the job ends with a message.
    ///
    /// Its error becomes a `Box<dyn Error>`, which a `Box<dyn Error + Send + Sync>` does not:
    /// return an error of this library, of anyhow, or a `String` from tasks.
    ///
    /// ```
    /// use argonet::{SharedArray, World};
    /// use std::sync::Arc;
    /// use std::thread;
    ///
    /// let sum = World::builder().run_shared(|world| -> argonet::Result<u64> {
    ///     let v = Arc::new(SharedArray::<u64>::alloc(world, 2)?);
    ///     let tasks: Vec<_> = (0..4)
    ///         .map(|_| {
    ///             let (world, v) = (Arc::clone(world), Arc::clone(&v));
    ///             thread::spawn(move || world.get(v.on(world.rank()))?.wait())
    ///         })
    ///         .collect();
    ///     let values = tasks.into_iter().map(|task| task.join().unwrap());
    ///     values.map(|values| Ok(values?.iter().sum::<u64>())).sum()
    /// });
    /// assert_eq!(sum, 0);
    /// ```
    #[doc(alias = "tokio")]
    pub fn run_shared<T, E>(
        self,
        program: impl FnOnce(&mut Arc<World<Par>>) -> std::result::Result<T, E>,
    ) -> T
    where
        E: Into<Box<dyn Error>>,
    {
        let joined = self.build_par().and_then(|mut world| {
            world.start_progress_thread()?;
            Ok(Arc::new(world))
        });
        let mut world = joined.unwrap_or_else(|error| fail_alone(&error));
        let inner = Arc::clone(&world.inner);
        let unfinished = Unfinished(&inner);
        let result = program(&mut world);
        core::mem::forget(unfinished);
        match result {
            Ok(value) => {
                finish(own(world));
                value
            }
            Err(error) => fail(&world, &*error.into()),
        }
    }
}

fn run_in<M: Threading, T, E: Into<Box<dyn Error>>>(
    joined: Result<World<M>>,
    program: impl FnOnce(&mut World<M>) -> std::result::Result<T, E>,
) -> T {
    let mut world = joined.unwrap_or_else(|error| fail_alone(&error));
    match program(&mut world) {
        Ok(value) => {
            finish(world);
            value
        }
        Err(error) => fail(&world, &*error.into()),
    }
}

/// The world, once nothing else has a part of it.
fn own(world: Arc<World<Par>>) -> World<Par> {
    // A task may be about to end on another thread.
    let is_free = || Arc::strong_count(&world) == 1;
    if let Err(error) = world.wait_timeout(LATE, is_free) {
        fail(&world, &error);
    }
    let others = Arc::strong_count(&world).saturating_sub(1).max(1);
    Arc::try_unwrap(world).unwrap_or_else(|world| {
        let message = format!(
            "the program has returned, but tasks or values that it made still have {others} clones of its `Arc<World>`: end or drop them before it returns"
        );
        fail(&world, &*Box::<dyn Error>::from(message))
    })
}

/// Dropped when a program panics: another clone of its world would keep the job from ending.
struct Unfinished<'w>(&'w Inner);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let engine = &self.0.engine;
        if engine.size() > 1 {
            let why = "a panic left a program whose world is shared";
            engine.boot().abort(PANIC_CODE, why);
        }
    }
}

/// Leaves the job.
fn finish<M: Threading>(world: World<M>) {
    if let Err(error) = world.finalize() {
        fail_alone(&error);
    }
}

/// Ends the job.
#[cold]
fn fail<M: Threading>(world: &World<M>, error: &dyn Error) -> ! {
    let message = with_causes(error);
    argonet_trace::note(Letter::Info, &message);
    world.engine().boot().abort(FAILURE, &message)
}

/// Ends a process that has no world.
///
/// If it is a rank already, its end is that of the job.
#[cold]
fn fail_alone(error: &crate::Error) -> ! {
    // In one write, since several ranks may have the same to say.
    let line = format!("argonet: {}\n", with_causes(error));
    // There is nowhere left to report that this fails.
    let _ = io::stderr().write_all(line.as_bytes());
    std::process::exit(FAILURE.into())
}

/// The message of an error, and those of its causes that it does not repeat.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {message}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Failure(&'static str, #[source] Option<Box<Failure>>);

    #[test]
    fn causes_follow_unless_the_message_has_them() {
        let inner = || Some(Box::new(Failure("no such file", None)));
        let outer = Failure("cannot read the input", inner());
        assert_eq!(with_causes(&outer), "cannot read the input: no such file");
        let outer = Failure("cannot read: no such file", inner());
        assert_eq!(with_causes(&outer), "cannot read: no such file");
    }

    #[test]
    fn the_debug_form_of_an_error_is_its_message() {
        let error = crate::Error::DuplicateName {
            name: "twin".into(),
        };
        assert_eq!(format!("{error:?}"), error.to_string());
    }
}
