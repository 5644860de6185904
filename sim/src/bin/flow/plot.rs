//! Curves over epochs.

use crate::cases::{Case, Kind};
use crate::kept::Outcome;
use argonet_sim::flow::Sample;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::Path;

type Drawn = Result<(), Box<dyn std::error::Error>>;

struct Panel {
    title: &'static str,
    axis: &'static str,
    /// A figure of an epoch, for each rank.
    figure: fn(&Sample, f64) -> f64,
    has: fn(&Case) -> bool,
}

fn stalled(sample: &Sample, ranks: f64) -> f64 {
    sample.stalled_ns as f64 / 1e6 / ranks
}

fn moved(sample: &Sample, ranks: f64) -> f64 {
    sample.moved as f64 / ranks
}

const PANELS: [Panel; 6] = [
    Panel {
        title: "Ghost zones, epoch 64: stalled",
        axis: "ms a rank",
        figure: stalled,
        has: |case| case.name == "ghost zones" && case.epoch == 64 && case.kind != Kind::Wide,
    },
    Panel {
        title: "Ghost zones, epoch 64: credits moved",
        axis: "a rank",
        figure: moved,
        has: |case| case.name == "ghost zones" && case.epoch == 64 && case.kind != Kind::Fixed,
    },
    Panel {
        title: "Ghost zones by length of epoch: credits moved",
        axis: "a rank",
        figure: moved,
        has: |case| case.name == "ghost zones" && case.kind == Kind::Mended && case.most == 640,
    },
    Panel {
        title: "Partners of rates 1 to 100, low bank: credits moved",
        axis: "a rank",
        figure: moved,
        has: |case| case.name == "rates, bank 900",
    },
    Panel {
        title: "Partners of rates 1 to 100, low bank: stalled",
        axis: "ms a rank",
        figure: stalled,
        has: |case| case.name == "rates, bank 900",
    },
    Panel {
        title: "Partners that change: credits moved",
        axis: "a rank",
        figure: moved,
        has: |case| case.name.starts_with("changing"),
    },
];

/// Draws the outcomes so far.
pub(crate) fn write(path: &Path, done: &[(Case, Outcome)]) -> Drawn {
    let area = SVGBackend::new(path, (1400, 1200)).into_drawing_area();
    area.fill(&WHITE)?;
    for (panel, area) in PANELS.iter().zip(area.split_evenly((3, 2))) {
        let curves: Vec<_> = done.iter().filter(|(case, _)| (panel.has)(case)).collect();
        if !curves.is_empty() {
            draw(panel, &curves, &area)?;
        }
    }
    area.present()?;
    Ok(())
}

fn draw(
    panel: &Panel,
    curves: &[&(Case, Outcome)],
    area: &DrawingArea<SVGBackend<'_>, Shift>,
) -> Drawn {
    let value = |sample: &Sample, case: &Case| (panel.figure)(sample, case.ranks().into());
    let all = curves
        .iter()
        .flat_map(|(case, outcome)| outcome.epochs.iter().map(|s| value(s, case)));
    let most = all.fold(0.1, f64::max) * 1.1;
    let epochs = curves.iter().map(|(_, outcome)| outcome.epochs.len()).max();
    let mut chart = ChartBuilder::on(area)
        .caption(panel.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..epochs.unwrap_or(1) as f64, 0.0..most)?;
    chart
        .configure_mesh()
        .x_desc("epochs")
        .y_desc(panel.axis)
        .draw()?;
    for (n, (case, outcome)) in curves.iter().enumerate() {
        let color = Palette99::pick(n).to_rgba();
        let points = (1..)
            .zip(&outcome.epochs)
            .map(|(epoch, s)| (f64::from(epoch), value(s, case)));
        let line = move |x, y| PathElement::new(vec![(x, y), (x + 20, y)], color.stroke_width(2));
        let label = format!(
            "{}, at most {} a peer, epoch {}, {} ranks",
            case.kind.name(),
            case.most,
            case.epoch,
            case.ranks()
        );
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))?
            .label(label)
            .legend(move |(x, y)| line(x, y));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}
