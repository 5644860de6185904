//! Whether a rank that dies is lost, and the job goes on, or ends it.
//!
//! The guardian is the judge: of a member whose process ends, it declares the rank lost, or stores
//! the exit word. The launcher, and rank 0 of a job that started itself, see the same end, and wait
//! for that ([`is_lost`]). A rank that crashes looks before its process has ended, and comes to the
//! same result by the same rule ([`may_be_lost`]): a rank's state only advances, and a client does
//! not take its acceptance back. A job that ends meanwhile ends anyway.

use std::fmt;
use std::time::{Duration, Instant};

use argonet_base::JobRank;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::guardian::Link;
use crate::page::{Control, RankState};

/// Time that the guardian has to see a process end that others have seen end, and to judge it.
///
/// Only a stopped guardian takes longer; then the job ends.
const JUDGMENT: Duration = Duration::from_secs(10);

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(1);

/// Why a job that was to go on without lost ranks does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// Ranks are still starting up.
    Starting,
    /// The client of this rank has not accepted losses.
    NoHandler(JobRank),
    /// One of these holds for a rank of another host.
    Elsewhere,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("as the job was still starting"),
            Self::NoHandler(rank) => write!(
                f,
                "as rank {rank} has no handler for lost ranks (Builder::on_peer_lost or argonet_SetPeerLostHandler, on all ranks)"
            ),
            Self::Elsewhere => f.write_str(
                "as a rank of another host was still starting, or has no handler for lost ranks \
                 (Builder::on_peer_lost or argonet_SetPeerLostHandler, on all ranks)",
            ),
        }
    }
}

/// What keeps a job from going on whose user has asked for that; `None` also where
/// that is not so.
///
/// Async-signal-safe.
pub(crate) fn obstacle(control: &Control) -> Option<Obstacle> {
    let of_rank = |rank| {
        let page = control.rank_page(rank);
        match page.state() {
            RankState::Starting | RankState::Joined => Some(Obstacle::Starting),
            RankState::Running if !page.accepts_losses() => Some(Obstacle::NoHandler(rank)),
            _ => None,
        }
    };
    let asked = control.job().goes_on();
    let mut ranks = control.host_ranks().filter(|_| asked);
    let here = ranks.find_map(of_rank);
    let of_others = || asked && !control.is_whole_job() && !control.job().all_accept();
    here.or_else(|| of_others().then_some(Obstacle::Elsewhere))
}

/// Whether `rank` is lost if its process ends now, and not the job.
///
/// Async-signal-safe.
pub(crate) fn may_be_lost(control: &Control, rank: JobRank) -> bool {
    let job = control.job();
    job.goes_on()
        && !job.is_ending()
        && runs(control, rank)
        && !is_launcher(control, rank)
        && obstacle(control).is_none()
}

/// Whether one of two ranks that cannot reach each other is lost if its process is killed now, and
/// both run.
pub(crate) fn one_may_be_lost(control: &Control, accuser: JobRank, accused: JobRank) -> bool {
    let victim = victim(control, accuser, accused);
    runs(control, accuser) && runs(control, accused) && may_be_lost(control, victim)
}

/// Whether a rank runs, as far as this host knows: the states of other hosts' ranks are known here
/// only where they have finalized and a rank waits for them.
fn runs(control: &Control, rank: JobRank) -> bool {
    let state = control.rank_page(rank).state();
    match control.part().all().contains(&rank.0) {
        true => state == RankState::Running,
        false => state <= RankState::Running,
    }
}

/// The one of two ranks that cannot reach each other that is killed: the accused one, unless the
/// user waits for its process.
pub(crate) fn victim(control: &Control, accuser: JobRank, accused: JobRank) -> JobRank {
    match is_launcher(control, accused) {
        true => accuser,
        false => accused,
    }
}

/// Whether the user waits for the process of `rank`, as for rank 0 of a job that started itself.
pub(crate) fn is_launcher(control: &Control, rank: JobRank) -> bool {
    control.rank_page(rank).pid() == control.job().launcher_pid()
}

/// Whether `rank`, whose process has ended, is lost: waits for the guardian's judgment, where that
/// can be the answer.
///
/// The rule is not looked at: another rank may start up between this look and the guardian's. Of a
/// member the guardian declares the loss, or stores the exit word. Async-signal-safe.
pub(crate) fn is_lost(control: &Control, rank: JobRank, link: &Link) -> bool {
    let (job, page) = (control.job(), control.rank_page(rank));
    let begun = Instant::now();
    loop {
        let is_open = job.goes_on() && !job.is_ending() && page.state().is_member();
        let may_come = is_open && !link.is_broken() && begun.elapsed() < JUDGMENT;
        // Last, as it may have come right before.
        if !may_come || page.lost().is_some() {
            return page.lost().is_some();
        }
        let pause = Timespec::try_from(PAUSE).ok();
        // No news ends the pause, but its end, which is always reported.
        let mut guardian = [PollFd::new(link, PollFlags::empty())];
        let _ = poll(&mut guardian, pause.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::make_job;
    use crate::losses::declare;
    use crate::page::{ExitKind, ExitWord};
    use argonet_settings::Settings;

    /// A job whose ranks run and accept losses.
    fn accepting(size: u32) -> Control {
        let (_files, control) = make_job(size, &Settings::default()).unwrap();
        control.job().set_goes_on(true);
        for rank in control.host_ranks() {
            let page = control.rank_page(rank);
            assert!(page.join(rank.0 + 1));
            page.accept_losses();
            page.advance(RankState::Running);
        }
        control
    }

    #[test]
    fn a_rank_is_lost_only_where_user_and_all_clients_accept_that() {
        let control = accepting(3);
        assert!(control.host_ranks().all(|rank| may_be_lost(&control, rank)));
        control.job().set_goes_on(false);
        assert!(!may_be_lost(&control, JobRank(1)));
        assert_eq!(obstacle(&control), None);

        let (_files, control) = make_job(3, &Settings::default()).unwrap();
        control.job().set_goes_on(true);
        for rank in [0, 1].map(JobRank) {
            control.rank_page(rank).join(rank.0 + 1);
            control.rank_page(rank).accept_losses();
            control.rank_page(rank).advance(RankState::Running);
        }
        assert_eq!(obstacle(&control), Some(Obstacle::Starting));
        let last = control.rank_page(JobRank(2));
        last.join(3);
        assert!(!may_be_lost(&control, JobRank(0)));
        last.advance(RankState::Running);
        assert_eq!(obstacle(&control), Some(Obstacle::NoHandler(JobRank(2))));
        assert!(!may_be_lost(&control, JobRank(0)));
        // It does not need the others any more.
        last.advance(RankState::Finalized);
        assert!(may_be_lost(&control, JobRank(0)) && !may_be_lost(&control, JobRank(2)));
    }

    #[test]
    fn no_rank_is_lost_once_the_job_ends() {
        let control = accepting(2);
        let (kind, rank, code) = (ExitKind::Exit, JobRank(0), 0);
        control.job().set_exit_word(ExitWord { kind, rank, code });
        assert!(!may_be_lost(&control, JobRank(1)));
    }

    #[test]
    fn the_process_that_the_user_waits_for_is_not_lost() {
        let control = accepting(2);
        control.job().set_launcher_pid(1);
        assert!(!may_be_lost(&control, JobRank(0)) && may_be_lost(&control, JobRank(1)));
    }

    #[test]
    fn the_guardian_alone_judges_a_member() {
        use crate::guardian::tests::link;
        use std::thread;
        // Whatever the rule says here.
        for obstacle in [false, true] {
            let mut control = accepting(3);
            if obstacle {
                let (_files, starting) = make_job(3, &Settings::default()).unwrap();
                starting.job().set_goes_on(true);
                for rank in [0, 1].map(JobRank) {
                    starting.rank_page(rank).join(rank.0 + 1);
                    starting.rank_page(rank).advance(RankState::Running);
                }
                control = starting;
            }
            let (link, guardian) = link();
            let lost = thread::scope(|scope| {
                let lost = scope.spawn(|| is_lost(&control, JobRank(1), &link));
                declare(&control, JobRank(1));
                lost.join().unwrap()
            });
            assert!(lost);
            let ended = thread::scope(|scope| {
                let lost = scope.spawn(|| is_lost(&control, JobRank(0), &link));
                let (kind, rank, code) = (ExitKind::Died, JobRank(0), 1);
                control.job().set_exit_word(ExitWord { kind, rank, code });
                !lost.join().unwrap()
            });
            assert!(ended);
            drop(guardian);
        }
        let control = accepting(2);
        let (link, guardian) = link();
        drop(guardian);
        assert!(
            !is_lost(&control, JobRank(1), &link),
            "no guardian is there"
        );
        declare(&control, JobRank(1));
        assert!(is_lost(&control, JobRank(1), &link), "it judged before");
    }

    #[test]
    fn a_rank_that_is_lost_keeps_no_other_from_being_lost() {
        let control = accepting(3);
        declare(&control, JobRank(0));
        assert!(may_be_lost(&control, JobRank(2)));
    }
}
