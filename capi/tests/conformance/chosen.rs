//! Choice of the combinations of a program, a way to build it and a number of ranks.
//!
//! All of them take long, so that usually some are, in which all ways and all numbers occur as
//! often; other ones with another base, which leaves out one of [`LEFT_OUT`] programs.

use std::collections::BTreeSet;

use libtest_mimic::Trial;

/// Each base leaves out one of so many programs.
const LEFT_OUT: usize = 2;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Chosen {
    /// All combinations of one of so many programs.
    Part(usize, usize),
    /// Some, by this number.
    From(usize),
}

impl Chosen {
    /// The choice of `C_CONFORMANCE` and `C_CONFORMANCE_BASE`.
    pub(crate) fn of_environment() -> Self {
        if let Ok(text) = std::env::var("C_CONFORMANCE") {
            return Self::of_text(&text)
                .unwrap_or_else(|| panic!("C_CONFORMANCE is neither `all` nor as `1/4`: {text}"));
        }
        let base = std::env::var("C_CONFORMANCE_BASE").map_or(0, |text| {
            let number = match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => text.parse(),
            };
            number.unwrap_or_else(|error| panic!("C_CONFORMANCE_BASE is `{text}`: {error}"))
        });
        // Far fewer than this are different.
        Self::From((base % 10_000) as usize)
    }

    /// The whole, or one part of several: `all`, `1/4` to `4/4`.
    fn of_text(text: &str) -> Option<Self> {
        if text == "all" {
            return Some(Self::Part(0, 1));
        }
        let (part, parts) = text.split_once('/')?;
        let (part, parts) = (part.parse::<usize>().ok()?, parts.parse().ok()?);
        (1..=parts)
            .contains(&part)
            .then(|| Self::Part(part - 1, parts))
    }

    /// Whether a program, given by its place in the list, is run in this way of `ways` with this
    /// number of `numbers`.
    pub(crate) fn has(
        self,
        program: usize,
        (way, ways): (usize, usize),
        (number, numbers): (usize, usize),
    ) -> bool {
        let base = match self {
            Self::Part(part, parts) => return (program + way) % parts == part,
            Self::From(base) => base,
        };
        let combinations = ways * numbers;
        !left_out(base, program, combinations)
            && in_turn(base + program, (way, ways), (number, numbers))
    }

    /// [`has`](Self::has) of three properties: places in lists of these lengths.
    pub(crate) fn has_of_three(
        self,
        program: usize,
        [first, second, third]: [usize; 3],
        [firsts, seconds, thirds]: [usize; 3],
    ) -> bool {
        let base = match self {
            Self::Part(part, parts) => return (program + first) % parts == part,
            Self::From(base) => base,
        };
        let turn = base + program;
        // Not the same third property with each pair of the others.
        let third_turn = turn / (firsts * seconds) + first + second;
        !left_out(base, program, firsts * seconds * thirds)
            && in_turn(turn, (first, firsts), (second, seconds))
            && third == third_turn % thirds
    }

    /// Whether the end of a job is tried with this one of `numbers`.
    pub(crate) fn has_end(self, case: usize, (number, numbers): (usize, usize)) -> bool {
        match self {
            Self::Part(part, parts) => case % parts == part,
            Self::From(base) => number == (base + case) % numbers,
        }
    }
}

/// Whether a program of so many combinations has none with this base.
fn left_out(base: usize, program: usize, combinations: usize) -> bool {
    (base / combinations + program).is_multiple_of(LEFT_OUT)
}

/// Whether it is the turn of this pair.
fn in_turn(turn: usize, (way, ways): (usize, usize), (number, numbers): (usize, usize)) -> bool {
    way == turn % ways && number == (turn / ways + 2 * way) % numbers
}

/// With [`LEFT_OUT`] times as many bases as there are ways and numbers together, every program has
/// had all of both.
pub(crate) fn trials() -> Vec<Trial> {
    let three = || {
        let lens = [3, 3, 3];
        for program in [0, 1, 17] {
            let mut had = BTreeSet::new();
            let bases = 0..27 * LEFT_OUT;
            for (base, place) in bases.flat_map(|base| (0..27).map(move |place| (base, place))) {
                let places = [place / 9, place / 3 % 3, place % 3];
                if Chosen::From(base).has_of_three(program, places, lens) {
                    had.insert(places);
                }
            }
            if had.len() != 27 {
                return Err(format!("{} of 27", had.len()).into());
            }
        }
        Ok(())
    };
    let three = Trial::test("the choice comes to all combinations of three", three);
    let two = Trial::test("the choice comes to all combinations", || {
        for (ways, numbers) in [(1, 1), (5, 5), (6, 5), (7, 5), (3, 7), (12, 5), (3, 3)] {
            for program in [0, 1, 17] {
                let mut had = BTreeSet::new();
                for base in 0..ways * numbers * LEFT_OUT {
                    for (way, number) in (0..ways).flat_map(|w| (0..numbers).map(move |n| (w, n))) {
                        if Chosen::From(base).has(program, (way, ways), (number, numbers)) {
                            had.insert((way, number));
                        }
                    }
                }
                if had.len() != ways * numbers {
                    return Err(format!("{} of {ways} times {numbers}", had.len()).into());
                }
            }
        }
        Ok(())
    });
    let parts = Trial::test("parts have every combination once", || {
        for place in 0..60 {
            let (program, way, number) = (place / 12, place / 3 % 4, place % 3);
            let has = |part: &usize| {
                let chosen = Chosen::of_text(&format!("{part}/5"));
                chosen.is_some_and(|chosen| chosen.has(program, (way, 4), (number, 3)))
            };
            let count = (1..=5).filter(has).count();
            if count != 1 {
                return Err(format!("{place} is in {count} parts").into());
            }
        }
        let wrong = ["", "0/4", "5/4", "1", "1/0", "x/2", "All"];
        match wrong.iter().find(|text| Chosen::of_text(text).is_some()) {
            None => Ok(()),
            Some(text) => Err(format!("`{text}` is taken").into()),
        }
    });
    vec![two, three, parts]
}
