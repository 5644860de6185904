//! Lets the colors of a picture flow into each other like heat in a plate, on one rank or on many.
//!
//! Every rank has some rows. To compute the next step of a row it needs the rows above and below,
//! so before each step the ranks put the rows at their edges into each other's memory: a *halo
//! exchange*, in [`plate`], which is the file to read. [`picture`] is PNG in and out.
//!
//! The result has the same bytes however many ranks there are: each value is computed by the same
//! operations on 64-bit floats in the same order, whichever rank computes it.
#![forbid(unsafe_code)]
#![allow(
    unreachable_pub,
    reason = "nothing can reach into a program; `pub` marks what one module offers the others"
)]

mod picture;
mod plate;

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use argonet::{Rank, Reduction, World};
use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use picture::Picture;
use plate::{Boundary, Plate, Shape};

/// Lets the colors of a PNG picture flow into each other like heat in a plate.
#[derive(Parser)]
#[command(name = "heat")]
struct Arguments {
    /// The picture: any PNG
    input: PathBuf,
    /// Where to write the result; it appears when it is complete
    output: PathBuf,
    /// Number of time steps
    #[arg(long, value_name = "N", default_value_t = 100)]
    steps: u32,
    /// Diffusivity times the time step, in pixels squared: above 0, at most 0.25
    #[arg(long, default_value_t = 0.2, value_parser = stable)]
    alpha: f64,
    /// Condition at the edge of the picture
    #[arg(long, value_enum, default_value_t = Boundary::Insulated)]
    boundary: Boundary,
    /// Number of ranks, where no launcher and no GASNET_PSHM_NODES says it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: Option<u32>,
    /// Show no progress bar and print no report
    #[arg(long)]
    quiet: bool,
}

/// Beyond a quarter the explicit scheme blows up: a pixel would give away more than it has.
fn stable(text: &str) -> Result<f64, String> {
    let alpha = text.parse().ok();
    alpha
        .filter(|&alpha: &f64| alpha > 0.0 && alpha <= 0.25)
        .ok_or_else(|| "must be above 0 and at most 0.25, or the computation is not stable".into())
}

/// Why all ranks give up.
///
/// One of them prints the reason.
enum Failure {
    /// This one.
    Here(Box<dyn Error>),
    /// Another.
    Elsewhere,
}

impl<E: Into<Box<dyn Error>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Here(error.into())
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::try_parse();
    // Before there is a second thread: other ranks may be forked here.
    let ranks = arguments.as_ref().ok().and_then(|a| a.ranks);
    let mut builder = World::builder();
    if let Some(ranks) = ranks {
        builder = builder.ranks(ranks);
    }
    // It prints the error of a rank, and ends the job.
    builder.run(|world| -> Result<ExitCode, Box<dyn Error>> {
        // Every rank has the same arguments; one complains about them.
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(error) => {
                if world.rank() == Rank(0) {
                    // A failure here cannot be reported any more.
                    let _ = error.print();
                }
                return Ok(ExitCode::from(error.exit_code() as u8));
            }
        };
        match flow(world, &arguments) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(Failure::Here(error)) => Err(error),
            Err(Failure::Elsewhere) => Ok(ExitCode::FAILURE),
        }
    })
}

/// Makes an error of any rank one of all: of the ranks that have one, the lowest gets it to print.
///
/// Collective.
fn agree<T>(world: &World, result: Result<T, impl Into<Box<dyn Error>>>) -> Result<T, Failure> {
    let me = world.rank().0;
    let mut failed = [if result.is_err() { me } else { u32::MAX }];
    world.reduce_all(Reduction::Min, &mut failed)?;
    match result {
        Ok(value) if failed == [u32::MAX] => Ok(value),
        Err(error) if failed == [me] => Err(Failure::Here(error.into())),
        _ => Err(Failure::Elsewhere),
    }
}

fn flow(world: &World, arguments: &Arguments) -> Result<(), Failure> {
    // Rank 0 alone reads and writes files, so that the others need not see them.
    let first = world.rank() == Rank(0);
    let picture = first
        .then(|| {
            picture::check_target(&arguments.output)?;
            Picture::read(&arguments.input)
        })
        .transpose();
    let mut picture = agree(world, picture)?;

    let shape = picture.as_ref().map_or([0; 3], |p| p.shape().numbers());
    let mut shape = shape;
    world.broadcast(Rank(0), &mut shape)?;
    let shape = Shape::from_numbers(shape);
    let plate = Plate::new(world, shape, arguments.boundary);
    // All ranks get memory or none; those that get none say so once.
    let mut plate = agree(world, plate)?;
    let values = picture.as_ref().map(Picture::values).transpose();
    let mut values = agree(world, values)?;
    if let Some(values) = &values {
        plate.scatter(world, values)?;
    }
    plate.load(world)?;

    let before = values.as_deref().map_or(0.0, sum);
    let bar = progress_bar(arguments.steps, arguments.quiet || !first);
    let begun = Instant::now();
    for _ in 0..arguments.steps {
        plate.step(world, arguments.alpha)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let took = begun.elapsed();

    plate.store(world)?;
    let mut written = Ok(());
    if let (Some(picture), Some(values)) = (&mut picture, &mut values) {
        plate.gather(world, values)?;
        picture.set_values(values);
        written = picture.write(&arguments.output);
    }
    // The others wait until then: all end as rank 0 does.
    agree(world, written)?;
    if let (Some(values), false) = (&values, arguments.quiet) {
        report(shape, arguments.steps, [before, sum(values)])?;
        let steps = f64::from(arguments.steps) / took.as_secs_f64();
        eprintln!("{steps:.0} steps a second on {} rank(s)", world.size());
    }
    Ok(())
}

/// All heat, in a fixed order.
fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

fn report(shape: Shape, steps: u32, [before, after]: [f64; 2]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let [width, height, channels] = shape.numbers();
    writeln!(
        out,
        "{width} x {height} pixels, {channels} color channel(s), {steps} steps"
    )?;
    writeln!(out, "sum of all values before\t{before}")?;
    writeln!(out, "sum of all values after\t{after}")?;
    out.flush()
}

fn progress_bar(steps: u32, hidden: bool) -> ProgressBar {
    let steps = Some(u64::from(steps));
    if hidden || !io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(steps, ProgressDrawTarget::hidden());
    }
    let bar = ProgressBar::with_draw_target(steps, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("step {pos} of {len} {wide_bar} {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
