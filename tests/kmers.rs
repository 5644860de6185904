//! The k-mer counter as its users run it: whole jobs on real files, good and bad.
#![cfg(target_os = "linux")]

mod example;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::GzEncoder;

use example::{PORTALS_RANKS, RANKS, Scratch, finish, text, utf8};

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| example::built::example("kmers"))
}

/// Ways to start a job of several ranks.
#[derive(Clone, Copy, Debug)]
enum Start {
    /// By `GASNET_PSHM_NODES`.
    Variable,
    /// By the program's own option.
    Option,
    /// By `argonet run`.
    Launcher,
    /// The same, over the portals conduit.
    Portals,
}

fn run(start: Start, ranks: u32, arguments: &[&str]) -> Output {
    let mut command = match start {
        Start::Variable | Start::Option => Command::new(program()),
        Start::Launcher => {
            let mut command = Command::new(example::built::command());
            command
                .args(["run", "-n", &ranks.to_string()])
                .arg(program());
            command
        }
        Start::Portals => example::over_portals(ranks, program()),
    };
    command.env_remove("GASNET_PSHM_NODES");
    match start {
        Start::Variable => drop(command.env("GASNET_PSHM_NODES", ranks.to_string())),
        Start::Option => drop(command.args(["--ranks", &ranks.to_string()])),
        Start::Launcher | Start::Portals => {}
    }
    command.args(arguments);
    finish(command)
}

/// Output of a job of `ranks` that succeeds.
fn counted(start: Start, ranks: u32, arguments: &[&str]) -> String {
    let output = run(start, ranks, arguments);
    let errors = text(&output.stderr);
    assert!(
        output.status.success(),
        "{start:?} {ranks} {arguments:?}: {errors}"
    );
    assert!(
        errors.contains(&format!("counting on {ranks} rank(s): ")),
        "{start:?} {ranks} {arguments:?}: {errors}"
    );
    if arguments.contains(&"--verify") {
        assert!(
            errors.contains("verified: equal to the sequential count"),
            "{errors}"
        );
    }
    text(&output.stdout)
}

/// Output of all numbers of ranks for a file, which is compared with the sequential count.
fn same_on_all(path: &Path, arguments: &[&str]) -> String {
    let arguments = [&[utf8(path)], arguments].concat();
    let verified = [&arguments[..], &["--verify"]].concat();
    let expected = counted(Start::Variable, 1, &verified);
    for ranks in RANKS {
        let printed = counted(Start::Variable, ranks, &arguments);
        assert_eq!(printed, expected, "{ranks} ranks, {arguments:?}");
    }
    assert_eq!(
        counted(Start::Variable, 4, &verified),
        expected,
        "{arguments:?}"
    );
    expected
}

fn lambda() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/kmers/data/lambda_virus.fa")
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Reads of the lambda genome that overlap, some with a letter that was not recognized.
fn reads() -> String {
    let genome = fs::read_to_string(lambda()).unwrap();
    let letters: String = genome.lines().skip(1).collect();
    let mut text = String::new();
    for (i, start) in (0..letters.len() - 150).step_by(37).enumerate() {
        let mut read = letters[start..start + 150].to_owned();
        if i % 5 == 0 {
            read.replace_range(70..71, "N");
        }
        // Quality lines that look like other lines.
        let quality = ["@", "+", "I"][i % 3].repeat(150);
        text += &format!("@read{i} of lambda\n{read}\n+\n{quality}\n");
    }
    text
}

/// A genome that the program makes.
fn generated(scratch: &Scratch, name: &str, size: &str) -> PathBuf {
    let path = scratch.0.join(name);
    let mut command = Command::new(program());
    command.args(["--generate", "11", size, "-o", utf8(&path)]);
    assert!(finish(command).status.success());
    path
}

#[test]
fn lambda_genome() {
    let scratch = Scratch::new("kmers-lambda");
    let packed = scratch.file("lambda.fa.gz", &gzip(&fs::read(lambda()).unwrap()));
    for k in [5, 31] {
        let k = k.to_string();
        let plain = same_on_all(&lambda(), &["-k", &k]);
        assert!(
            plain.starts_with(&format!("records\t1\nletters\t48502\nk\t{k}\n")),
            "{plain}"
        );
        assert_eq!(same_on_all(&packed, &["-k", &k]), plain);
    }
}

#[test]
fn generated_genome() {
    let scratch = Scratch::new("kmers-generated");
    let plain = generated(&scratch, "genome.fa", "600kB");
    let packed = scratch.file("genome.fa.gz", &gzip(&fs::read(&plain).unwrap()));
    assert_eq!(same_on_all(&packed, &[]), same_on_all(&plain, &[]));
    // Lists long enough for several messages and a segment that grows.
    let plain = generated(&scratch, "long.fa", "3MB");
    let lists = ["--top", "1500000", "--histogram", "1000"];
    let first = counted(Start::Variable, 1, &[&[utf8(&plain)], &lists[..]].concat());
    let third = counted(Start::Variable, 3, &[&[utf8(&plain)], &lists[..]].concat());
    assert!(first.len() > 1_500_000 * 31, "{} bytes", first.len());
    // Not assert_eq!, which would print both.
    assert!(first == third, "lists of 1 and 3 ranks differ");
}

#[test]
fn reads_of_lambda() {
    let scratch = Scratch::new("kmers-reads");
    let text = reads();
    let plain = scratch.file("reads.fq", text.as_bytes());
    let packed = scratch.file("reads.fq.gz", &gzip(text.as_bytes()));
    assert_eq!(same_on_all(&packed, &[]), same_on_all(&plain, &[]));
}

#[test]
fn fewer_kmers_than_ranks() {
    let scratch = Scratch::new("kmers-tiny");
    let tiny = scratch.file("tiny.fa", b">a\nACGTA\n");
    let printed = same_on_all(&tiny, &["-k", "4"]);
    assert!(printed.contains("k-mers\t2\n"), "{printed}");
    let none = scratch.file("none.fa", b">a\nACGNNACG\n");
    let printed = same_on_all(&none, &["-k", "4"]);
    assert!(printed.contains("k-mers\t0\n"), "{printed}");
}

#[test]
fn all_ways_to_start() {
    let lambda = lambda();
    let arguments = [utf8(&lambda), "--verify"];
    let expected = counted(Start::Variable, 3, &arguments);
    assert_eq!(counted(Start::Option, 3, &arguments), expected);
    assert_eq!(counted(Start::Launcher, 3, &arguments), expected);
}

/// Lists long enough for several messages, and a segment that grows.
// spec P1
#[test]
fn the_same_over_portals() {
    let scratch = Scratch::new("kmers-portals");
    let genome = generated(&scratch, "genome.fa", "300KB");
    let lambda = lambda();
    for arguments in [
        &[utf8(&lambda), "--verify"][..],
        &[utf8(&genome), "--top", "150000", "--histogram", "1000"],
    ] {
        let expected = counted(Start::Variable, 1, arguments);
        for ranks in PORTALS_RANKS {
            let printed = counted(Start::Portals, ranks, arguments);
            // Not assert_eq!, which would print both.
            assert!(printed == expected, "{ranks} ranks, {arguments:?}");
        }
    }
}

/// A job fails with one error, which is `message`; a `*` in it stands for any number.
fn fails(start: Start, ranks: u32, path: &Path, message: &str) {
    let output = run(start, ranks, &[utf8(path)]);
    let errors = text(&output.stderr);
    let what = format!("{start:?}, {ranks} ranks, {}: {errors}", path.display());
    assert_eq!(output.status.code(), Some(1), "{what}");
    assert!(output.stdout.is_empty(), "{what}");
    let mut reports = errors.lines().filter_map(|line| {
        let (rank, error) = line.split_once("): ")?;
        rank.starts_with("argonet: rank ").then_some(error)
    });
    let error = reports.next().expect(&what);
    assert_eq!(reports.next(), None, "{what}");
    let wanted = format!("{}: {message}", path.display());
    if let Some((head, tail)) = wanted.split_once('*') {
        let number = error
            .strip_prefix(head)
            .and_then(|rest| rest.strip_suffix(tail))
            .and_then(|number| number.parse::<u64>().ok());
        assert!(number.is_some_and(|number| number > 0), "{what}");
    } else {
        assert_eq!(error, wanted, "{what}");
    }
}

#[test]
fn bad_files() {
    let scratch = Scratch::new("kmers-bad");
    let genome = fs::read(lambda()).unwrap();
    let packed = gzip(&genome);
    let letters = String::from_utf8(genome).unwrap();
    // Lines of 70 letters; one far from the start of the file, so that it is not rank 0 that finds
    // it.
    let at = letters.match_indices('\n').nth(600).unwrap().0 + 10;
    let bad_letter = format!("{}!{}", &letters[..at], &letters[at + 1..]);
    let reads = reads();
    let (lines, last) = (reads.lines().count(), reads.lines().count() / 4 - 1);
    let truncated = reads.trim_end();
    let truncated = &truncated[..truncated.len() - 20];

    let file = |name: &str, contents: &[u8]| scratch.file(name, contents);
    let cases = [
        (
            scratch.0.join("missing.fa"),
            "No such file or directory (os error 2)".to_owned(),
        ),
        (
            scratch.0.clone(),
            "not a regular file; every rank must be able to read it on its own".to_owned(),
        ),
        (file("empty.fa", b""), "the file is empty".to_owned()),
        (
            file("text.fa", b"Hello\n"),
            "line 1: neither FASTA nor FASTQ, which start with '>' or '@'; this starts with 'H'"
                .to_owned(),
        ),
        (
            file("letter.fa", bad_letter.as_bytes()),
            "line 602, record gi|9626243|ref|NC_001416.1|: '!' is not a sequence letter".to_owned(),
        ),
        (
            file("record.fq", truncated.as_bytes()),
            format!("line {lines}, record read{last}: the file ends within this record"),
        ),
        (
            file("cut.fa.gz", &packed[..packed.len() / 2]),
            "line *: the gzip data ends here, within a member; the file was cut off".to_owned(),
        ),
    ];
    for (path, message) in &cases {
        for ranks in RANKS {
            fails(Start::Variable, ranks, path, message);
        }
        fails(Start::Launcher, 3, path, message);
    }
}

/// Too little address space for the tables, but enough to start.
#[test]
fn no_memory_for_tables() {
    let scratch = Scratch::new("kmers-memory");
    let path = generated(&scratch, "genome.fa", "40MB");
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "ulimit -v 260000; GASNET_MAX_SEGSIZE=32MB exec \"$0\" --ranks 2 \"$1\"",
        ])
        .args([program(), &path])
        .env_remove("GASNET_PSHM_NODES");
    let output = finish(command);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert_eq!(
        errors.matches("no memory for a table of ").count(),
        1,
        "{errors}"
    );
}
