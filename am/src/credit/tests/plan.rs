//! Credits that are dealt out at the start.

use super::super::*;

fn derived(nodes: u32) -> Plan {
    Plan::new(nodes, &Rules::default(), Wishes::default()).unwrap()
}

// spec P9: shares and bank by a table of job sizes.
#[test]
fn every_job_has_the_least_a_peer_and_a_tenth_in_the_bank() {
    let mut before = 0;
    for nodes in (1..3000)
        .chain([4096, 10_000, 65_536])
        .chain([100_000, 1_000_000])
    {
        let plan = derived(nodes);
        let rules = Rules::default();
        assert!((rules.least..=rules.most).contains(&plan.share()), "{plan}");
        assert!(u64::from(plan.bank()) * 10 >= plan.total(), "{plan}");
        // Grants are what the space holds, not one more.
        assert_eq!(plan.total(), plan.space().credits(), "{plan}");
        let slack = plan.space().slack_bytes() as f64 / plan.space().bytes() as f64;
        assert!(
            slack < 0.5 && (nodes < 56 || slack < 0.08),
            "{plan}: {slack}"
        );
        // More ranks never take less memory, but for rounding.
        assert!(plan.total() + 64 >= before, "{plan}");
        before = plan.total();
    }
}

// spec P16: credited space at 10,000 ranks.
#[test]
fn ten_thousand_ranks_need_the_memory_of_the_text() {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let six = derived(10_000);
    assert_eq!(six.share(), 4);
    assert!(six.bank() >= 19_998, "{six}");
    assert!(mib(six.space().credited_bytes()) <= 22.0, "{six}");
    let wishes = Wishes {
        share: Some(4),
        bank: Some(0),
        space_bytes: None,
    };
    let four = Plan::new(10_000, &Rules::default(), wishes).unwrap();
    assert!(mib(four.space().credited_bytes()) <= 15.0, "{four}");
    let state = size_of::<Peer>() + size_of::<crate::system_queue::Slot>();
    assert!(state <= 40, "{state} bytes a peer");
}

#[test]
fn the_table_explains_itself() {
    let table = Plan::table(&Rules::default());
    for text in ["10000", "21.9", "recycling", "6 faces", "256 bytes"] {
        assert!(table.contains(text), "{text} is not in\n{table}");
    }
}

#[test]
fn wishes_are_kept_or_refused_with_sums() {
    let rules = Rules::default();
    let wish = |share, bank, space_bytes| {
        Plan::new(
            100,
            &rules,
            Wishes {
                share,
                bank,
                space_bytes,
            },
        )
    };
    let plan = wish(Some(10), Some(500), None).unwrap();
    assert!(plan.share() == 10 && plan.bank() >= 500, "{plan}");
    let plan = wish(Some(10), None, None).unwrap();
    assert!(u64::from(plan.bank()) * 10 >= plan.total(), "{plan}");
    let plan = wish(None, None, Some(1 << 20)).unwrap();
    assert!(plan.space().bytes() <= 1 << 20 && plan.share() > 4 && plan.bank() > 1000);
    let plan = wish(None, Some(1000), Some(1 << 20)).unwrap();
    assert!(plan.bank() >= 1000 && plan.share() > 4, "{plan}");
    let refused = wish(Some(40), Some(500), Some(1 << 20)).unwrap_err();
    let PlanError::TooMany { enough, sum, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!(sum, 40 * 99 + 500);
    let text = refused.to_string();
    for part in ["40 credits", "99 peers", "500", "4460", "1048576"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert!(wish(Some(40), Some(500), Some(enough)).is_ok(), "{enough}");
    for (share, space) in [(Some(3), None), (None, Some(10_000)), (None, Some(0))] {
        let refused = wish(share, None, space).unwrap_err();
        assert!(matches!(refused, PlanError::TooFew { needed: 4, .. }));
        let text = refused.to_string();
        assert!(text.contains("ARGONET_CREDITS_SHARE") && text.contains("ARGONET_CREDITS_SPACE"));
    }
    assert!(wish(Some(401), None, None).is_err());
}

#[test]
fn rules_that_contradict_themselves_are_refused() {
    let good = Rules::default();
    let costs = |granularity, chunk_bytes| Costs {
        granularity,
        chunk_bytes,
        ..Costs::OF_TEXT
    };
    for (bad, word) in [
        (Rules { least: 3, ..good }, "least credits"),
        (Rules { most: 3, ..good }, "most credits"),
        (
            Rules {
                decay_shift: 0,
                ..good
            },
            "decay",
        ),
        (
            Rules {
                epoch_requests: 0,
                ..good
            },
            "epoch",
        ),
        (
            Rules {
                walk_looks: 7,
                ..good
            },
            "looked at",
        ),
        (
            Rules {
                lend_limit: 0,
                ..good
            },
            "lent",
        ),
        // 16 credits do not fit NNNN.
        (
            Rules {
                costs: costs(256, 4096),
                least: 16,
                ..good
            },
            "largest request",
        ),
        (
            Rules {
                costs: costs(256, 128),
                ..good
            },
            "chunk",
        ),
    ] {
        let refused = Plan::new(10, &bad, Wishes::default()).unwrap_err();
        assert!(refused.to_string().contains(word), "{refused}");
    }
}
