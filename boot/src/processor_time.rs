//! What the threads of a process have had of the processors, as the scheduler of Linux counts it.

use std::fs;
use std::time::Duration;

use rustix::process::Pid;

/// Times of all threads that the process has now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ProcessorTime {
    /// On a processor.
    pub(crate) ran: Duration,
    /// Ready, without a processor.
    pub(crate) waited: Duration,
}

impl ProcessorTime {
    /// Zero where the system does not tell, as with a process that has ended.
    pub(crate) fn of(pid: Pid) -> Self {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"));
        let texts = tasks.into_iter().flatten().flatten();
        let texts = texts.filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok());
        texts.fold(Self::default(), |sum, text| {
            let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
            let mut next = || Duration::from_nanos(numbers.next().unwrap_or(0));
            Self {
                ran: sum.ran + next(),
                waited: sum.waited + next(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted() {
        let own = rustix::process::getpid();
        let before = ProcessorTime::of(own);
        let mut sum = 0_u64;
        while ProcessorTime::of(own).ran < before.ran + Duration::from_millis(5) {
            sum = std::hint::black_box(sum + 1);
        }
    }
}
