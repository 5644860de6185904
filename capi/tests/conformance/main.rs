//! GASNet-EX from C's side: programs written from the specification, in `tests/c/`, each run with several numbers of
//! ranks. README.md beside them says what each one is about.

mod bad;
mod building;
mod cases;
mod chosen;
#[path = "../c/compiler.rs"]
#[allow(dead_code, reason = "shared with a test that compiles in more ways")]
mod compiler;
mod exits;
#[path = "../c/files.rs"]
#[allow(
    dead_code,
    reason = "shared with a test that has its programs elsewhere"
)]
mod files;
mod measuring;
mod running;
mod threads;

use libtest_mimic::Arguments;

fn main() {
    let chosen = chosen::Chosen::of_environment();
    let mut trials = running::trials(chosen);
    trials.extend(exits::trials(chosen));
    trials.extend(bad::trials());
    trials.extend(measuring::trials());
    trials.extend(threads::trials(chosen));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
