//! The cases of docs/flow-control.md.

use crate::cost::Cost;
use argonet_am::credit::{Form, Mends, Rules, Wishes};
use argonet_sim::flow::{Figures, Pattern, Setup, run};

/// Heads of the table's columns.
pub(crate) const HEADING: &str = "| case | ranks | epoch | credits | rule | most | stalled ms a rank | stalls a 100 requests | moved a rank and epoch | settled after | \
system messages a rank and epoch | most in use | state B a peer used | processor s | MiB |
| --- | --: | --: | --: | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |";

/// Which rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// All shared out, nothing moves.
    Fixed,
    /// The text's.
    Text,
    /// Ours, with the text's byte.
    Mended,
    /// Ours, with fields of 16 bits.
    Wide,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Fixed => "static",
            Kind::Text => "text",
            Kind::Mended => "mended",
            Kind::Wide => "mended, 16 bits",
        }
    }
}

/// One run.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) most: u16,
    pub(crate) epoch: u32,
    setup: Setup,
}

impl Case {
    fn new(
        name: &'static str,
        pattern: Pattern,
        kind: Kind,
        (ranks, epoch): (u32, u32),
        most: u16,
        wishes: Wishes,
    ) -> Self {
        let rules = Rules {
            epoch_requests: epoch,
            most,
            mends: if kind == Kind::Text {
                Mends::NONE
            } else {
                Mends::ALL
            },
            form: if kind == Kind::Wide {
                Form::WIDE
            } else {
                Form::BYTE
            },
            ..Rules::default()
        };
        // One plan for all rules of a case, so that all have the same receive space.
        let planned = Rules { most: 400, ..rules };
        let mut setup = Setup::new(ranks, pattern, planned, wishes).expect("a plan");
        setup.rules = rules;
        if kind == Kind::Fixed {
            setup = setup.fixed();
        }
        Self {
            name,
            kind,
            most,
            epoch,
            setup,
        }
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.setup.ranks()
    }

    /// The name by which a case is chosen.
    pub(crate) fn label(&self) -> String {
        format!(
            "{}, {}, {}, epoch {}",
            self.name,
            self.kind.name(),
            self.most,
            self.epoch
        )
    }

    pub(crate) fn run(&self) -> Figures {
        run(&self.setup)
    }

    pub(crate) fn row(&self, figures: &Figures, cost: &Cost) -> String {
        let a_peer = figures.state_bytes as f64 / figures.peers_used.max(1) as f64;
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {a_peer:.0} | {cost} |",
            self.name,
            self.ranks(),
            self.epoch,
            figures.credits,
            self.kind.name(),
            self.most,
            figures,
        )
    }
}

/// All of them, those first that the plots need.
pub(crate) fn all(ranks: u32, long_ranks: u32) -> Vec<Case> {
    use Kind::{Fixed, Mended, Text, Wide};
    let (short, long) = ((ranks, 64), (long_ranks, 1024));
    let derived = Wishes::default();
    let bank = |bank| Wishes {
        share: Some(4),
        bank: Some(bank),
        space_bytes: None,
    };
    let mut cases = Vec::new();
    let mut add = |name, pattern, kinds: &[Kind], size, most, wishes| {
        for kind in kinds {
            cases.push(Case::new(name, pattern, *kind, size, most, wishes));
        }
    };
    let ghost = Pattern::GhostZones;
    add(
        "ghost zones",
        ghost,
        &[Mended, Fixed, Text],
        short,
        640,
        derived,
    );
    add("ghost zones", ghost, &[Mended, Text], short, 400, derived);
    add(
        "rates, bank 900",
        Pattern::Rates,
        &[Mended, Text],
        long,
        400,
        bank(900),
    );
    add("rates", Pattern::Rates, &[Mended, Text], long, 400, derived);
    let changing = |(_, epoch): (u32, u32)| Pattern::Changing {
        rounds: (50 * epoch).div_ceil(960),
    };
    add(
        "changing, bank 4000",
        changing(short),
        &[Mended, Text],
        short,
        640,
        bank(4000),
    );
    add(
        "ghost zones",
        ghost,
        &[Mended, Fixed],
        long,
        640,
        bank(4000),
    );
    add(
        "rates",
        Pattern::Rates,
        &[Mended, Text],
        short,
        400,
        derived,
    );
    add("tree", Pattern::Tree, &[Mended, Fixed], short, 400, derived);
    add(
        "hot spot",
        Pattern::HotSpot,
        &[Mended, Text],
        short,
        400,
        derived,
    );
    add("random", Pattern::Random, &[Mended], short, 400, derived);
    add("idle", Pattern::Idle, &[Mended], short, 400, derived);
    add("rates", Pattern::Rates, &[Wide], short, 400, derived);
    add("ghost zones", ghost, &[Wide], short, 400, derived);
    add("ghost zones", ghost, &[Wide], short, 640, derived);
    add(
        "rates, bank 900",
        Pattern::Rates,
        &[Wide],
        long,
        400,
        bank(900),
    );
    cases
}
