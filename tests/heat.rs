//! Heat diffusion as its users run it: whole jobs on pictures of all kinds, good and bad.
#![cfg(target_os = "linux")]

mod example;

use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

use example::{PORTALS_RANKS, RANKS, Scratch, finish, text, utf8};

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| example::built::example("heat"))
}

const GREY: u8 = 0;
const RGB: u8 = 2;
const PALETTE: u8 = 3;
const GREY_ALPHA: u8 = 4;
const RGB_ALPHA: u8 = 6;

/// A kind of PNG, as its header has it.
#[derive(Clone, Copy, Debug)]
struct Kind {
    color: u8,
    depth: u8,
    interlaced: bool,
    /// Whether it has a chunk that names the transparent color.
    transparency: bool,
}

impl Kind {
    const fn new(color: u8, depth: u8) -> Self {
        Self {
            color,
            depth,
            interlaced: false,
            transparency: false,
        }
    }

    fn all() -> Vec<Self> {
        let plain = [
            (GREY, &[1, 2, 4, 8, 16][..]),
            (RGB, &[8, 16]),
            (PALETTE, &[1, 2, 4, 8]),
            (GREY_ALPHA, &[8, 16]),
            (RGB_ALPHA, &[8, 16]),
        ];
        let mut kinds = Vec::new();
        for (color, depths) in plain {
            for &depth in depths {
                for interlaced in [false, true] {
                    for transparency in [false, true] {
                        if !transparency || color < GREY_ALPHA {
                            kinds.push(Self {
                                color,
                                depth,
                                interlaced,
                                transparency,
                            });
                        }
                    }
                }
            }
        }
        kinds
    }

    /// Samples of a pixel in the file.
    fn samples(self) -> usize {
        match self.color {
            GREY | PALETTE => 1,
            GREY_ALPHA => 2,
            RGB => 3,
            _ => 4,
        }
    }

    /// Channels that diffuse.
    fn channels(self) -> usize {
        if matches!(self.color, GREY | GREY_ALPHA) {
            1
        } else {
            3
        }
    }

    fn has_alpha(self) -> bool {
        self.transparency || self.color >= GREY_ALPHA
    }

    fn largest(self) -> u32 {
        (1 << self.depth) - 1
    }

    /// A sample of the file: anything, but the same each time.
    fn sample(self, x: usize, y: usize, sample: usize) -> u32 {
        let mixed = (x as u32 * 7919 + y as u32 * 104_729 + sample as u32 * 1_299_709)
            .wrapping_mul(0x9e37_79b1);
        (mixed >> 11) & self.largest()
    }

    /// Entry of the palette, with transparency.
    fn entry(index: u32) -> [u32; 4] {
        [index * 37, index * 91 + 5, 1000 - index * 3, index * 53].map(|n| n & 255)
    }

    /// Meaning of a pixel: its colors, and its alpha.
    fn pixel(self, x: usize, y: usize) -> (Vec<u32>, u32) {
        let samples: Vec<u32> = (0..self.samples()).map(|s| self.sample(x, y, s)).collect();
        let most = self.largest().max(255);
        let scale = most / self.largest();
        match self.color {
            PALETTE => {
                let [colors @ .., alpha] = Self::entry(samples[0]);
                (colors.to_vec(), alpha)
            }
            GREY | RGB => {
                let see_through = self.transparency && samples == self.see_through();
                let alpha = if see_through { 0 } else { most };
                (samples.iter().map(|s| s * scale).collect(), alpha)
            }
            _ => {
                let (alpha, colors) = samples.split_last().expect("samples");
                (colors.to_vec(), *alpha)
            }
        }
    }

    /// The transparent color: the color of one pixel.
    fn see_through(self) -> Vec<u32> {
        (0..self.samples()).map(|s| self.sample(1, 0, s)).collect()
    }

    /// The file, written without the library that reads it.
    fn png(self, width: usize, height: usize) -> Vec<u8> {
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        let size = [(width as u32).to_be_bytes(), (height as u32).to_be_bytes()].concat();
        let rest = [self.depth, self.color, 0, 0, u8::from(self.interlaced)];
        chunk(&mut file, b"IHDR", &[&size[..], &rest].concat());
        if self.color == PALETTE {
            let entries = (0..=self.largest()).map(Self::entry);
            let colors = entries.clone().flat_map(|e| [e[0], e[1], e[2]]);
            chunk(
                &mut file,
                b"PLTE",
                &colors.map(|c| c as u8).collect::<Vec<_>>(),
            );
            if self.transparency {
                chunk(
                    &mut file,
                    b"tRNS",
                    &entries.map(|e| e[3] as u8).collect::<Vec<_>>(),
                );
            }
        } else if self.transparency {
            let words = self.see_through().into_iter();
            let bytes: Vec<u8> = words.flat_map(|w| (w as u16).to_be_bytes()).collect();
            chunk(&mut file, b"tRNS", &bytes);
        }
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
        // First column and row, and steps, of the passes of Adam7.
        let passes = [
            [0, 0, 8, 8],
            [4, 0, 8, 8],
            [0, 4, 4, 8],
            [2, 0, 4, 4],
            [0, 2, 2, 4],
            [1, 0, 2, 2],
            [0, 1, 1, 2],
        ];
        let passes = if self.interlaced {
            &passes[..]
        } else {
            &[[0, 0, 1, 1]]
        };
        for &[left, top, dx, dy] in passes {
            for y in (top..height).step_by(dy) {
                let columns = (left..width).step_by(dx);
                if columns.len() > 0 {
                    packed.write_all(&self.line(columns, y)).unwrap();
                }
            }
        }
        chunk(&mut file, b"IDAT", &packed.finish().unwrap());
        chunk(&mut file, b"IEND", &[]);
        file
    }

    /// A line: the filter, which is none, and samples, the first in the highest bits.
    fn line(self, columns: impl Iterator<Item = usize>, y: usize) -> Vec<u8> {
        let mut line = vec![0];
        let (mut bits, mut gathered) = (0u32, 0);
        for x in columns {
            for sample in 0..self.samples() {
                bits = bits << self.depth | self.sample(x, y, sample);
                gathered += self.depth;
                while gathered >= 8 {
                    gathered -= 8;
                    line.push((bits >> gathered) as u8);
                }
            }
        }
        if gathered > 0 {
            line.push((bits << (8 - gathered)) as u8);
        }
        line
    }
}

fn chunk(file: &mut Vec<u8>, name: &[u8; 4], data: &[u8]) {
    let mut crc = Crc::new();
    crc.update(name);
    crc.update(data);
    file.extend((data.len() as u32).to_be_bytes());
    file.extend(name);
    file.extend(data);
    file.extend(crc.sum().to_be_bytes());
}

/// A picture in numbers: colors and alpha of each pixel, and the expected header of a result.
#[derive(PartialEq, Debug)]
struct Numbers {
    width: usize,
    height: usize,
    channels: usize,
    sixteen: bool,
    colors: Vec<u32>,
    alpha: Option<Vec<u32>>,
}

impl Numbers {
    fn of(kind: Kind, width: usize, height: usize) -> Self {
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let pixels: Vec<_> = places.map(|(x, y)| kind.pixel(x, y)).collect();
        Self {
            width,
            height,
            channels: kind.channels(),
            sixteen: kind.depth == 16,
            colors: pixels
                .iter()
                .flat_map(|(colors, _)| colors.clone())
                .collect(),
            alpha: kind
                .has_alpha()
                .then(|| pixels.iter().map(|(_, alpha)| *alpha).collect()),
        }
    }

    fn read(path: &Path) -> Self {
        let file = BufReader::new(File::open(path).expect("a result"));
        let mut reader = png::Decoder::new(file).read_info().expect("a PNG");
        let mut bytes = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut bytes).expect("a picture");
        let (channels, has_alpha) = match info.color_type {
            png::ColorType::Grayscale => (1, false),
            png::ColorType::GrayscaleAlpha => (1, true),
            png::ColorType::Rgb => (3, false),
            png::ColorType::Rgba => (3, true),
            png::ColorType::Indexed => panic!("a palette"),
        };
        let sixteen = info.bit_depth == png::BitDepth::Sixteen;
        let size = if sixteen { 2 } else { 1 };
        let samples = bytes.chunks(size).map(|sample| {
            sample
                .iter()
                .fold(0, |high, &low| high << 8 | u32::from(low))
        });
        let samples: Vec<u32> = samples.collect();
        let pixels = samples.chunks(channels + usize::from(has_alpha));
        Self {
            width: info.width as usize,
            height: info.height as usize,
            channels,
            sixteen,
            colors: pixels
                .clone()
                .flat_map(|p| p[..channels].to_vec())
                .collect(),
            alpha: has_alpha.then(|| pixels.map(|p| p[channels]).collect()),
        }
    }

    /// The colors after `steps` steps, computed pixel by pixel.
    fn diffuse(mut self, steps: u32, alpha: f64, boundary: &str) -> Self {
        let (width, height) = (self.width as isize, self.height as isize);
        let mut now: Vec<f64> = self.colors.iter().map(|&c| f64::from(c)).collect();
        for _ in 0..steps {
            let at = |x: isize, y: isize, c: usize| {
                let (x, y) = match boundary {
                    "periodic" => (x.rem_euclid(width), y.rem_euclid(height)),
                    _ => (x.clamp(0, width - 1), y.clamp(0, height - 1)),
                };
                now[(y * width + x) as usize * self.channels + c]
            };
            let mut next = Vec::new();
            for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
                for c in 0..self.channels {
                    let h = at(x, y, c);
                    let edge = x == 0 || y == 0 || x == width - 1 || y == height - 1;
                    let flow = ((at(x, y - 1, c) - h) + (at(x, y + 1, c) - h))
                        + ((at(x - 1, y, c) - h) + (at(x + 1, y, c) - h));
                    let still = boundary == "fixed" && edge;
                    next.push(if still { h } else { h + alpha * flow });
                }
            }
            now = next;
        }
        self.colors = now.iter().map(|value| value.round() as u32).collect();
        self
    }
}

fn heat(ranks: u32, input: &Path, output: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(program());
    command
        .args([input, output])
        .args(options)
        .env("GASNET_PSHM_NODES", ranks.to_string());
    finish(command)
}

/// Runs all numbers of ranks, and returns the file that all of them wrote, and their output.
fn same_on_all(scratch: &Scratch, input: &Path, options: &[&str]) -> (PathBuf, String) {
    let first = scratch.0.join("out-1.png");
    let mut outputs = Vec::new();
    for ranks in RANKS {
        let output = scratch.0.join(format!("out-{ranks}.png"));
        let run = heat(ranks, input, &output, options);
        let what = format!(
            "{ranks} ranks, {input:?} {options:?}: {}",
            text(&run.stderr)
        );
        assert!(run.status.success(), "{what}");
        assert!(
            fs::read(&output).unwrap() == fs::read(&first).unwrap(),
            "{what}"
        );
        outputs.push(text(&run.stdout));
        assert_eq!(outputs.first(), outputs.last(), "{what}");
    }
    (first, outputs.swap_remove(0))
}

/// The two sums of the report.
fn sums(report: &str) -> [f64; 2] {
    let sum = |which: &str| {
        let line = report.lines().find(|line| line.contains(which));
        let number = line.and_then(|line| line.split('\t').nth(1));
        number
            .and_then(|n| n.parse().ok())
            .unwrap_or_else(|| panic!("{report}"))
    };
    [sum("before"), sum("after")]
}

#[test]
fn all_kinds() {
    let scratch = Scratch::new("heat-kinds");
    for kind in Kind::all() {
        let input = scratch.file("in.png", &kind.png(13, 9));
        let options = ["--steps", "7", "--alpha", "0.17"];
        let (output, _) = same_on_all(&scratch, &input, &options);
        let wanted = Numbers::of(kind, 13, 9).diffuse(7, 0.17, "insulated");
        assert_eq!(Numbers::read(&output), wanted, "{kind:?}");
    }
}

/// More ranks than rows, one row, one column, one pixel; all boundaries.
#[test]
fn all_shapes() {
    let scratch = Scratch::new("heat-shapes");
    for (width, height) in [(1, 1), (1, 9), (9, 1), (2, 2), (5, 3), (40, 30)] {
        for boundary in ["insulated", "fixed", "periodic"] {
            for kind in [Kind::new(GREY, 16), Kind::new(RGB_ALPHA, 8)] {
                let input = scratch.file("in.png", &kind.png(width, height));
                let options = ["--steps", "9", "--alpha", "0.25", "--boundary", boundary];
                let (output, _) = same_on_all(&scratch, &input, &options);
                let wanted = Numbers::of(kind, width, height).diffuse(9, 0.25, boundary);
                assert_eq!(
                    Numbers::read(&output),
                    wanted,
                    "{width} x {height} {boundary} {kind:?}"
                );
            }
        }
    }
}

/// No heat is lost or made, and in the end it is everywhere the same.
#[test]
fn heat_is_conserved() {
    let scratch = Scratch::new("heat-energy");
    let kind = Kind::new(RGB, 16);
    let input = scratch.file("in.png", &kind.png(12, 9));
    let before = Numbers::of(kind, 12, 9);
    let sum: f64 = before.colors.iter().map(|&c| f64::from(c)).sum();
    for boundary in ["insulated", "periodic"] {
        for steps in ["0", "1", "50", "1200"] {
            let options = ["--steps", steps, "--boundary", boundary];
            let (output, report) = same_on_all(&scratch, &input, &options);
            let [said_before, said_after] = sums(&report);
            assert_eq!(said_before, sum);
            assert!(
                (said_after / sum - 1.0).abs() < 1e-12,
                "{boundary}, {steps} steps: {report}"
            );
            let after = Numbers::read(&output);
            match steps {
                "0" => assert_eq!(after, before),
                "1200" => {
                    for channel in 0..3 {
                        let all = after.colors.iter().skip(channel).step_by(3);
                        let (low, high) = (all.clone().min(), all.max());
                        assert_eq!(low, high, "{boundary}, channel {channel}");
                    }
                }
                _ => assert_ne!(after, before),
            }
        }
    }
}

/// By the launcher, and by the program's own option; and nothing is printed that is not wanted.
#[test]
fn other_ways_to_start() {
    let scratch = Scratch::new("heat-start");
    let input = scratch.file("in.png", &Kind::new(RGB, 8).png(20, 20));
    let (expected, report) = same_on_all(&scratch, &input, &[]);
    assert!(
        report.starts_with("20 x 20 pixels, 3 color channel(s), 100 steps\n"),
        "{report}"
    );
    let output = scratch.0.join("out.png");
    let mut launched = Command::new(example::built::command());
    launched.args(["run", "-n", "3"]).arg(program());
    let mut own = Command::new(program());
    own.args(["--ranks", "3"]);
    for mut command in [launched, own] {
        command
            .args([&input, &output])
            .arg("--quiet")
            .env_remove("GASNET_PSHM_NODES");
        let run = finish(command);
        assert!(run.status.success(), "{}", text(&run.stderr));
        assert_eq!((text(&run.stdout), text(&run.stderr)), Default::default());
        assert!(fs::read(&output).unwrap() == fs::read(&expected).unwrap());
        fs::remove_file(&output).unwrap();
    }
}

// spec P1
#[test]
fn the_same_over_portals() {
    let scratch = Scratch::new("heat-portals");
    let output = scratch.0.join("out.png");
    for (width, height) in [(9, 1), (5, 3), (80, 60)] {
        let input = scratch.file("in.png", &Kind::new(RGB, 16).png(width, height));
        for boundary in ["insulated", "periodic"] {
            let options = ["--steps", "40", "--boundary", boundary];
            let (expected, report) = same_on_all(&scratch, &input, &options);
            for ranks in PORTALS_RANKS {
                let mut command = example::over_portals(ranks, program());
                command.args([&input, &output]).args(options);
                let run = finish(command);
                let what = format!(
                    "{ranks} ranks, {width} x {height} {boundary}: {}",
                    text(&run.stderr)
                );
                assert!(run.status.success(), "{what}");
                assert_eq!(text(&run.stdout), report, "{what}");
                assert!(
                    fs::read(&output).unwrap() == fs::read(&expected).unwrap(),
                    "{what}"
                );
                fs::remove_file(&output).unwrap();
            }
        }
    }
}

/// The file behind a link is replaced, and files get the permissions of any new file.
#[test]
fn results_replace_older_files() {
    let scratch = Scratch::new("heat-replace");
    let input = scratch.file("in.png", &Kind::new(GREY, 8).png(20, 20));
    let link = scratch.0.join("link.png");
    symlink("in.png", &link).unwrap();
    let wanted = Numbers::of(Kind::new(GREY, 8), 20, 20).diffuse(5, 0.2, "insulated");
    let run = heat(2, &input, &link, &["--steps", "5"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(link.is_symlink());
    assert_eq!(Numbers::read(&input), wanted);
    let usual = scratch.file("usual", b"");
    let modes = [input, usual].map(|path| fs::metadata(path).unwrap().permissions());
    assert_eq!(modes[0], modes[1]);
    assert_eq!(
        fs::read_dir(&scratch.0).unwrap().count(),
        3,
        "a scratch file is left"
    );
}

#[test]
fn bad_inputs() {
    let scratch = Scratch::new("heat-bad");
    let good = Kind::new(RGB, 8).png(30, 20);
    let file = |name: &str, contents: &[u8]| scratch.file(name, contents);
    let header = |width: u32, height: u32, color: u8| {
        let mut file = good[..8].to_vec();
        let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
        chunk(
            &mut file,
            b"IHDR",
            &[&size[..], &[8, color, 0, 0, 0]].concat(),
        );
        chunk(&mut file, b"IDAT", &[]);
        file
    };
    let mut flipped = good.clone();
    // In the middle of the picture's data.
    flipped[good.len() / 2] ^= 0x10;
    let input = file("good.png", &good);
    let output = scratch.0.join("out.png");
    let old = b"what was there";
    let cases = [
        (scratch.0.join("missing.png"), "No such file or directory"),
        (scratch.0.clone(), "Is a directory"),
        (file("empty.png", b""), "the file is empty or was cut off"),
        (
            file("text.png", b"Hello, picture\n"),
            "not a good PNG file: Invalid PNG signature",
        ),
        (
            file("cut.png", &good[..good.len() / 2]),
            "the file is empty or was cut off",
        ),
        (
            file("headless.png", &good[..20]),
            "the file is empty or was cut off",
        ),
        (
            file("endless.png", &good[..good.len() - 12]),
            "the file is empty or was cut off",
        ),
        (file("flipped.png", &flipped), "not a good PNG file: "),
        (
            file("zero.png", &header(0, 5, RGB)),
            "not a good PNG file: Invalid image dimensions",
        ),
        (
            file("huge.png", &header(i32::MAX as u32, i32::MAX as u32, RGB)),
            "2147483647 x 2147483647 pixels are too many; at most 268435456 are allowed",
        ),
        (
            file("color.png", &header(5, 5, 5)),
            "not a good PNG file: Invalid color type 5",
        ),
    ];
    for (path, message) in &cases {
        for ranks in RANKS {
            fs::write(&output, old).unwrap();
            fails(
                ranks,
                path,
                &output,
                &[],
                &format!("{}: {message}", path.display()),
            );
            assert_eq!(fs::read(&output).unwrap(), old);
        }
    }
    let read_only = file("read-only.png", old);
    let mut permissions = fs::metadata(&read_only).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&read_only, permissions).unwrap();
    let targets = [
        (
            scratch.0.join("no/where.png"),
            "its directory: No such file or directory",
        ),
        (input.join("file.png"), "Not a directory"),
        (scratch.0.clone(), "there is something other than a file"),
        (
            PathBuf::from("/dev/null"),
            "there is something other than a file",
        ),
        (read_only.clone(), "the file there is read-only"),
    ];
    for (path, message) in &targets {
        for ranks in [1, 4] {
            fails(
                ranks,
                &input,
                path,
                &[],
                &format!("{}: {message}", path.display()),
            );
        }
    }
    assert_eq!(fs::read(&read_only).unwrap(), old);
    for (options, message) in [
        (["--alpha", "0.26"], "must be above 0 and at most 0.25"),
        (["--alpha", "0"], "must be above 0 and at most 0.25"),
        (["--alpha", "NaN"], "must be above 0 and at most 0.25"),
        (["--steps", "many"], "invalid value 'many'"),
        (["--boundary", "soft"], "insulated, fixed, periodic"),
    ] {
        let run = heat(4, &input, &output, &options);
        let errors = text(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{options:?}: {errors}");
        assert_eq!(errors.matches(message).count(), 1, "{options:?}: {errors}");
    }
    assert_eq!(fs::read(&output).unwrap(), old);
}

/// A job fails with one line that begins with this message, and prints nothing else.
fn fails(ranks: u32, input: &Path, output: &Path, options: &[&str], message: &str) {
    let run = heat(ranks, input, output, options);
    let errors = text(&run.stderr);
    let what = format!(
        "{ranks} ranks, {} to {}: {errors}",
        utf8(input),
        utf8(output)
    );
    assert_eq!(run.status.code(), Some(1), "{what}");
    assert!(run.stdout.is_empty(), "{what}");
    let reports: Vec<&str> = errors.lines().filter(|l| l.contains(message)).collect();
    assert_eq!(reports.len(), 1, "{what}");
    let (rank, error) = reports[0].split_once("): ").expect(&what);
    assert!(rank.starts_with("argonet: rank "), "{what}");
    assert!(error.starts_with(message), "{what}");
}
