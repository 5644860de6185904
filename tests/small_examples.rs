//! Examples of one file as users run them, against serial answers, on several paths.
#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "the test takes its edges")]
#[path = "../examples/breadth_first.rs"]
mod breadth_first;
#[allow(dead_code, reason = "the test takes its matrix")]
#[path = "../examples/conjugate_gradient.rs"]
mod conjugate_gradient;
mod example;
#[allow(dead_code, reason = "the test takes its input")]
#[path = "../examples/fourier.rs"]
mod fourier;
#[allow(dead_code, reason = "the test takes its numbers")]
#[path = "../examples/hash_table.rs"]
mod hash_table;
#[allow(dead_code, reason = "the test takes its step")]
#[path = "../examples/jacobi.rs"]
mod jacobi;
#[allow(dead_code, reason = "the test takes its numbers")]
#[path = "../examples/sample_sort.rs"]
mod sample_sort;
#[allow(dead_code, reason = "the test takes its tree")]
#[path = "../examples/tree_search.rs"]
mod tree_search;

use example::{built, finish, text};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Conduits, and how many ranks share memory at most.
const PATHS: [(&str, &str); 5] = [
    ("smp", "0"),
    ("tcp", "1"),
    ("tcp", "2"),
    ("usnic", "1"),
    ("gni", "1"),
];

/// What an example prints, without what the launcher prints before each line.
fn printed(name: &str, args: &[&str], ranks: u32, (conduit, most): (&str, &str)) -> String {
    let mut job = Command::new(built::command());
    job.args(["run", "-n", &ranks.to_string(), "--conduit", conduit])
        .arg(built::example(name))
        .args(args)
        .env_remove("GASNET_PSHM_NODES")
        .env("GASNET_SUPERNODE_MAXSIZE", most);
    let output = finish(job);
    let case = format!("{name} {args:?}, {ranks} ranks over {conduit}");
    assert!(output.status.success(), "{case}: {}", text(&output.stderr));
    text(&output.stdout).to_string()
}

/// Runs an example on all paths, with one to five ranks, and checks what each run prints.
fn each(name: &str, args: &[&str], check: impl Fn(u32, &str)) {
    let networks = PATHS[1..].iter().map(|path| (3, *path));
    let memory = [1, 2, 5].map(|ranks| (ranks, PATHS[0]));
    for (ranks, path) in memory.into_iter().chain(networks) {
        check(ranks, &printed(name, args, ranks, path));
    }
}

/// A line is this one, or begins so.
#[track_caller]
fn says(printed: &str, line: &str) {
    let found = printed.lines().any(|found| found.starts_with(line));
    assert!(found, "no {line:?} in {printed}");
}

#[test]
fn bad_arguments_are_refused() {
    for (name, args, why) in [
        ("tree_search", "x", "invalid digit"),
        ("hash_table", "1e3", "invalid digit"),
        ("sample_sort", "-1", "invalid digit"),
        (
            "jacobi",
            "1",
            "a halo of 1, and a rank has 0 of its 1 indices",
        ),
        ("fourier", "12", "12 is no power of two"),
        ("jacobi", "ten", "invalid digit"),
        (
            "conjugate_gradient",
            "1",
            "1 equations are fewer than 2 ranks",
        ),
        ("breadth_first", "41", "more than 2^40 vertices"),
    ] {
        let mut job = Command::new(built::command());
        job.args(["run", "-n", "2"])
            .arg(built::example(name))
            .arg(args);
        let output = finish(job);
        assert_eq!(output.status.code(), Some(1), "{name} {args}");
        let errors = text(&output.stderr);
        assert!(errors.contains(why), "{name} {args}: {errors}");
    }
}

#[test]
fn gups_leaves_the_table_as_it_was() {
    for path in PATHS {
        for ranks in [1, 2, 4] {
            // Each single one over a network needs its target's turn on a processor.
            for (how, bits) in [("gathered", "12"), ("single", "5")] {
                let printed = printed("gups", &[bits, how], ranks, path);
                assert!(printed.contains("and the table is right"), "{printed}");
            }
        }
    }
}

#[test]
fn tree_search_visits_each_vertex_once() {
    let mut stack: Vec<u64> = (0..1000).collect();
    let mut count = 0;
    while let Some(vertex) = stack.pop() {
        count += 1;
        stack.extend(tree_search::children(vertex));
    }
    assert!(count > 10_000);
    each("tree_search", &["1000"], |ranks, printed| {
        says(printed, &format!("{count} vertices, "));
        let parts = printed.lines().filter_map(|line| {
            let (_, visited) = line.split_once(" visited ")?;
            visited.split_once(' ')?.0.parse::<u64>().ok()
        });
        let parts: Vec<u64> = parts.collect();
        assert_eq!(parts.len(), ranks as usize);
        assert_eq!(parts.iter().sum::<u64>(), count);
    });
}

#[test]
fn hash_table_counts_each_number() {
    const EACH: usize = 20_000;
    each("hash_table", &["20000"], |ranks, printed| {
        let mut counts = BTreeMap::<u64, u64>::new();
        for number in (0..ranks).flat_map(|rank| hash_table::numbers(rank, EACH)) {
            *counts.entry(number).or_default() += 1;
        }
        says(printed, &format!("{} different numbers", counts.len()));
        for rank in 0..ranks {
            for number in hash_table::numbers(rank, EACH).take(3) {
                let times = counts[&number];
                says(
                    printed,
                    &format!("rank {rank}: {number} is there {times} times"),
                );
            }
        }
    });
}

#[test]
fn sample_sort_sorts() {
    for count in [1, 10_000] {
        each("sample_sort", &[&count.to_string()], |ranks, printed| {
            let mut all: Vec<u64> = (0..ranks)
                .flat_map(|rank| sample_sort::numbers(rank, count))
                .collect();
            all.sort_unstable();
            says(printed, &format!("{} numbers in", all.len()));
            // Of each part the first number and the last one.
            let mut ends = BTreeSet::new();
            for words in printed.split("number ").skip(1) {
                let (at, number) = words.split_once(" is ").unwrap();
                let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap();
                let at: usize = at.parse().unwrap();
                assert_eq!(number[..digits].parse(), Ok(all[at]), "number {at}");
                ends.insert(at);
            }
            if count == 1 {
                // Parts may be empty.
                assert!(!ends.is_empty());
            } else {
                assert_eq!(ends.len(), 2 * ranks as usize);
                assert_eq!(ends.last(), Some(&(all.len() - 1)));
            }
        });
    }
}

#[test]
fn jacobi_heats_the_middle() {
    for side in [5usize, 20] {
        let mut plate = vec![vec![0.0; side + 2]; side + 2];
        plate[0].fill(1.0);
        for _ in 0..101 {
            let before = plate.clone();
            for row in 1..=side {
                let [above, own, below] = [&before[row - 1], &before[row], &before[row + 1]];
                jacobi::step(above, own, below, &mut plate[row]);
            }
        }
        let middle = plate[side / 2 + 1][side / 2 + 1];
        // By symmetry it has a quarter of the hot edge in the end.
        assert!(side != 5 || (middle - 0.25).abs() < 1e-6, "{middle}");
        each("jacobi", &[&side.to_string(), "101"], |_, printed| {
            says(printed, &format!("the middle has {middle:.9}"));
        });
    }
}

#[test]
fn fourier_transforms_a_cube() {
    for side in [1usize, 8] {
        // Each element by the sum that defines it.
        let element = |to: [usize; 3]| {
            let mut sum = [0.0; 2];
            for from in (0..side.pow(3)).map(|at| [at / side / side, at / side % side, at % side]) {
                let turns: usize = from.iter().zip(to).map(|(from, to)| from * to).sum();
                let angle = -std::f64::consts::TAU * (turns % side) as f64 / side as f64;
                let ([re, im], (sin, cos)) = (fourier::input(from), angle.sin_cos());
                sum[0] += re * cos - im * sin;
                sum[1] += re * sin + im * cos;
            }
            sum
        };
        each("fourier", &[&side.to_string()], |_, printed| {
            let mut found = 0;
            for line in printed
                .lines()
                .filter_map(|line| line.split_once("element ["))
            {
                let numbers = line.1.split([',', ']', ' ']);
                let numbers = numbers.filter_map(|number| number.parse::<f64>().ok());
                let numbers: Vec<f64> = numbers.collect();
                let index = [0, 1, 2].map(|d| numbers[d] as usize);
                let [re, im] = element(index);
                let error = (numbers[3] - re).abs() + (numbers[4] - im).abs();
                assert!(error < 1e-5, "{index:?} is {re} {im}, not {numbers:?}");
                found += 1;
            }
            assert_eq!(found, 3, "{printed}");
        });
    }
}

#[test]
fn conjugate_gradient_solves_the_equations() {
    const EQUATIONS: usize = 300;
    // Elimination: each equation without its unknown before has a factor and a right side.
    let mut rows = vec![(conjugate_gradient::DIAGONAL, 1.0)];
    for _ in 1..EQUATIONS {
        let (factor, side) = rows[rows.len() - 1];
        rows.push((
            conjugate_gradient::DIAGONAL - 1.0 / factor,
            1.0 + side / factor,
        ));
    }
    let unknowns = rows.iter().rev().scan(0.0, |behind, (factor, side)| {
        *behind = (side + *behind) / factor;
        Some(*behind)
    });
    let sum: f64 = unknowns.sum();
    each("conjugate_gradient", &["300"], |_, printed| {
        let (_, found) = printed.trim().rsplit_once(' ').unwrap();
        let found: f64 = found.parse().unwrap();
        assert!((found - sum).abs() < 1e-5, "{found}, not {sum}");
    });
}

#[test]
fn breadth_first_reaches_what_one_rank_reaches() {
    const SCALE: u32 = 9;
    let count = 1u64 << SCALE;
    let mut neighbors = vec![Vec::new(); count as usize];
    for number in 0..count * breadth_first::EDGES_A_VERTEX {
        let [a, b] = breadth_first::edge(SCALE, number);
        neighbors[a as usize].push(b);
        neighbors[b as usize].push(a);
    }
    let (mut reached, mut level, mut levels) = (BTreeSet::from([0u64]), vec![0u64], 0);
    while !level.is_empty() {
        levels += 1;
        let next = level.iter().flat_map(|vertex| &neighbors[*vertex as usize]);
        level = next
            .copied()
            .filter(|vertex| reached.insert(*vertex))
            .collect();
    }
    let line = format!("{} of {count} vertices on {levels} levels", reached.len());
    each("breadth_first", &["9"], |_, printed| {
        says(printed, &line);
    });
}
