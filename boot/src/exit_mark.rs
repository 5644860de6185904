//! The mark by which ranks that share memory report to each other that the job ends, as polls read
//! it.

use std::sync::Arc;

use crate::page::Control;

/// Whether the end of the job has been reported to the ranks of this host.
///
/// One load of a cache line that no rank writes before the end.
// spec P13: the system queue of ranks that share memory.
#[derive(Debug, Clone, Default)]
pub struct ExitMark(Option<Arc<Control>>);

impl ExitMark {
    pub(crate) fn new(control: &Arc<Control>) -> Self {
        Self(Some(Arc::clone(control)))
    }

    /// Whether it is set: then [`Bootstrap::attend`](crate::Bootstrap::attend) is to be called when
    /// there is nothing else to do.
    #[inline]
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|control| control.job().is_exit_reported())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::make_job;
    use argonet_settings::Settings;

    #[test]
    fn a_mark_belongs_to_one_job() {
        let jobs = [(); 2].map(|()| {
            let (_files, control) = make_job(2, &Settings::default()).expect("a job");
            Arc::new(control)
        });
        let marks = jobs.each_ref().map(ExitMark::new);
        assert!(!marks.iter().any(ExitMark::is_set));
        jobs[1].job().report_exit();
        assert_eq!(marks.each_ref().map(ExitMark::is_set), [false, true]);
        assert!(!ExitMark::default().is_set());
    }
}
