//! Flow control among many ranks. docs/flow-control.md has the same at full size.
//!
//! `ARGONET_FLOW_SEEDS` is how many small jobs with faults are run.
#![forbid(unsafe_code)]

use argonet_am::credit::{Form, Mends, Rules, Wishes};
use argonet_sim::flow::{Figures, Pattern, Setup, run, small};

/// Small jobs of a run that says nothing else.
const SEEDS: u64 = 400;

fn rules(epoch: u32, most: u16) -> Rules {
    Rules {
        epoch_requests: epoch,
        most,
        ..Rules::default()
    }
}

fn setup(ranks: u32, pattern: Pattern, rules: Rules, bank: u32, epochs: u32) -> Setup {
    let wishes = Wishes {
        share: Some(4),
        bank: Some(bank),
        space_bytes: None,
    };
    let setup = Setup::new(ranks, pattern, rules, wishes).unwrap();
    Setup { epochs, ..setup }
}

/// Runs it; no credit is lost, nothing overflows, all goes on.
fn well(setup: &Setup) -> Figures {
    let figures = run(setup);
    assert_eq!(figures.violations, [""; 0], "{setup:?}");
    assert_eq!(figures.overflows, 0);
    assert!(figures.fullest <= figures.credits, "{figures}");
    figures
}

// spec P10: no use, no movement.
#[test]
fn without_need_nothing_moves() {
    for mends in [Mends::ALL, Mends::NONE] {
        let rules = Rules {
            mends,
            ..rules(16, 400)
        };
        let idle = well(&setup(64, Pattern::Idle, rules, 4000, 30));
        assert_eq!((idle.total.moved, idle.total.system), (0, 0), "{idle}");
        assert_eq!(idle.total.stalls, 0);
    }
}

// spec P10: a static pattern settles; the same space is worth much more.
#[test]
fn ghost_zones_settle_and_stall_little() {
    let ranks = 343;
    let ghost = |rules| setup(ranks, Pattern::GhostZones, rules, 4000, 30);
    let moving = well(&ghost(rules(64, 640)));
    let narrow = well(&ghost(rules(64, 400)));
    let fixed = well(&ghost(rules(64, 640)).fixed());
    assert!(moving.is_quiescent() <= 20, "{moving}");
    assert_eq!(moving.moved_from(20) + narrow.moved_from(20), 0);
    let times = |figures: &Figures| fixed.total.stalled_ns as f64 / figures.total.stalled_ns as f64;
    assert!(times(&moving) >= 4.0, "{fixed}\n{moving}");
    assert!(times(&narrow) >= 2.0, "{fixed}\n{narrow}");
}

// spec P11: slow partners beside a busy one, with a bank that is low.
#[test]
fn partners_of_different_rates_settle() {
    let rates = |ranks, mends, form| {
        let rules = Rules {
            mends,
            form,
            ..rules(1024, 400)
        };
        well(&setup(ranks, Pattern::Rates, rules, 900, 40))
    };
    let mended = rates(27, Mends::ALL, Form::BYTE);
    let text = rates(27, Mends::NONE, Form::BYTE);
    assert!(mended.is_quiescent() <= 20, "{mended}");
    // Among more ranks, the one that settles last does so later.
    let many = rates(125, Mends::ALL, Form::BYTE);
    assert!(many.is_quiescent() <= 20, "{many}");
    // With a wide field a question takes much at once. Asked again by all that stall before the
    // answer, it took the credits that others need.
    let again = Mends {
        one_question: false,
        ..Mends::ALL
    };
    let (wide, again) = (
        rates(64, Mends::ALL, Form::WIDE),
        rates(64, again, Form::WIDE),
    );
    assert!(wide.is_quiescent() <= 10, "{wide}");
    assert!(again.is_quiescent() > 20, "{again}");
    assert!(again.total.moved > 2 * wide.total.moved, "{again}\n{wide}");
    assert!(text.moved_from(30) > 27 * 100, "{text}");
    assert!(
        text.total.stalled_ns > 5 * mended.total.stalled_ns,
        "{text}\n{mended}"
    );
}

#[test]
fn partners_of_different_rates_with_room_settle_soon() {
    let figures = well(&setup(27, Pattern::Rates, rules(1024, 400), 4000, 40));
    assert!(figures.is_quiescent() <= 20, "{figures}");
}

// spec P10: nothing moves after the first bursts, however seldom a partner has one.
#[test]
fn partners_that_seldom_have_a_burst_settle_in_their_first() {
    let rates = |mends, form, seed| {
        let rules = Rules {
            mends,
            form,
            ..rules(64, 400)
        };
        let setup = setup(64, Pattern::Rates, rules, 20_000, 100);
        well(&Setup { seed, ..setup })
    };
    for seed in 1..=3 {
        for form in [Form::BYTE, Form::WIDE] {
            let figures = rates(Mends::ALL, form, seed);
            assert!(figures.is_quiescent() <= 5, "seed {seed}: {figures}");
            assert!(figures.total.moved > 64 * 600, "{figures}");
        }
    }
    // Where the next burst asks for the rest, it comes with the second burst of a partner that
    // sends in each 100th round.
    let later = Mends {
        one_burst: false,
        ..Mends::ALL
    };
    let later = rates(later, Form::BYTE, 1);
    assert!(later.is_quiescent() > 80, "{later}");
}

// spec P9: all ranks at once to one rank.
#[test]
fn a_hot_spot_neither_stops_nor_overflows() {
    for mends in [Mends::ALL, Mends::NONE] {
        let rules = Rules {
            mends,
            ..rules(64, 400)
        };
        let hot = well(&setup(500, Pattern::HotSpot, rules, 250, 100));
        assert!(
            hot.total.requests >= 500 * 20 && hot.total.stalls > 5000,
            "{hot}"
        );
    }
}

// spec P10: movement follows a change, and ends.
#[test]
fn credits_follow_partners_that_change() {
    let pattern = Pattern::Changing { rounds: 10 };
    let rules = Rules {
        form: Form::WIDE,
        ..rules(192, 640)
    };
    let figures = well(&setup(64, pattern, rules, 5000, 95));
    let moved =
        |from: usize, to: usize| -> u64 { figures.epochs[from..to].iter().map(|s| s.moved).sum() };
    // 10 rounds are 50 epochs.
    assert_eq!(moved(30, 48), 0, "{figures}");
    assert!(moved(48, 70) > 64 * 1000, "{figures}");
    let rest = moved(85, 95);
    assert!(rest * 20 < moved(48, 60), "{rest}, {figures}");
}

#[test]
fn trees_and_random_partners_go_on() {
    let tree = well(&setup(255, Pattern::Tree, rules(64, 400), 500, 20));
    assert_eq!(tree.moved_from(15), 0, "{tree}");
    let random = well(&setup(200, Pattern::Random, rules(64, 400), 500, 20));
    assert!(random.stalls_per_hundred() < 5.0, "{random}");
}

// spec P7: halves in any order. spec P8: buffers at any fill level. spec P9: exactly once, minimum
// credits, one chunk, one ticket.
// spec P12: system messages lost and repeated.
#[test]
fn small_jobs_with_faults() {
    let count = match std::env::var("ARGONET_FLOW_SEEDS") {
        Ok(text) => text.parse().unwrap(),
        Err(_) => SEEDS,
    };
    let mut all = small::Report::default();
    for seed in 0..count {
        let report = small::run_seed(seed);
        assert_eq!(report.violations, [""; 0], "seed {seed:#x}");
        all.handled += report.handled;
        all.pushed_back += report.pushed_back;
        all.overflows += report.overflows;
        all.moved += report.moved;
        all.resent += report.resent;
        all.data_first += report.data_first;
    }
    // The events to be tested do happen.
    for (what, times) in [
        ("handled", all.handled),
        ("pushed back", all.pushed_back),
        ("without a buffer", all.overflows * 20),
        ("moved", all.moved),
        ("repeated", all.resent),
        ("data first", all.data_first),
    ] {
        assert!(times > count / 4, "{what}: {times} in {count} seeds");
    }
    println!("{all:?}");
}
