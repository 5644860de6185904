//! Curves by size: latency and bandwidth, ours beside the raw limit.

use super::error::PerfError;
use super::metric::{Metric, Unit};
use super::report::Measured;
use super::stats;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::ops::Range;

const SIZE: (u32, u32) = (1400, 640);

/// One curve: sizes in bytes, and for each nanoseconds of an operation, ours and the limit's.
struct Curve {
    name: &'static str,
    /// The same in both panels.
    color: RGBAColor,
    /// Unit in which it is printed; there is a panel for each unit.
    unit: Unit,
    points: Vec<(f64, f64, f64)>,
}

/// A panel of the plot.
struct Panel {
    title: &'static str,
    axis: &'static str,
    /// A figure from bytes and nanoseconds.
    figure: fn(f64, f64) -> f64,
    /// Curves that it has.
    has: fn(&Curve) -> bool,
    /// The corner that they leave free.
    free: SeriesLabelPosition,
}

const PANELS: [Panel; 2] = [
    Panel {
        title: "Latency",
        axis: "us an operation",
        figure: |_, ns| ns / 1e3,
        // One operation of a flood of messages is no latency.
        has: |curve| curve.unit == Unit::Microseconds || !curve.name.starts_with("AM"),
        free: SeriesLabelPosition::UpperLeft,
    },
    Panel {
        title: "Bandwidth",
        axis: "GB/s (1,000 MiB)",
        figure: |bytes, ns| Unit::Gigabytes.figure(ns, bytes as usize),
        has: |curve| curve.unit == Unit::Gigabytes,
        free: SeriesLabelPosition::LowerRight,
    },
];

/// Whether metrics have curves to draw.
pub(crate) fn drawable(metrics: &[Metric]) -> bool {
    metrics.iter().any(|metric| metric.subject.curve.is_some())
}

fn curves(measured: &[Measured]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for measured in measured {
        let subject = &measured.subject;
        let Some(name) = subject.curve else { continue };
        let [ours, limit] =
            [&measured.chunks.ours, &measured.chunks.limit].map(|s| stats::median(s));
        let point = (subject.bytes as f64, ours, limit);
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve {
                name,
                color: Palette99::pick(curves.len()).to_rgba(),
                unit: subject.unit,
                points: vec![point],
            }),
        }
    }
    for curve in &mut curves {
        curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    curves
}

/// The plot as an SVG document.
pub(crate) fn svg(measured: &[Measured], heading: &str) -> Result<String, PerfError> {
    let mut text = String::new();
    draw(&mut text, measured, heading).map_err(|error| PerfError::Plot(error.to_string()))?;
    Ok(text)
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(text: &mut String, measured: &[Measured], heading: &str) -> Drawn {
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let area = area.titled(heading, ("sans-serif", 14))?;
    let curves = curves(measured);
    for (panel, area) in PANELS.iter().zip(area.split_evenly((1, PANELS.len()))) {
        let curves: Vec<&Curve> = curves.iter().filter(|curve| (panel.has)(curve)).collect();
        if !curves.is_empty() {
            draw_panel(panel, &curves, &area)?;
        }
    }
    area.present()?;
    Ok(())
}

/// From a power of `base` at or below all values to one above them.
fn decades(values: impl Iterator<Item = f64> + Clone, base: f64) -> Range<f64> {
    let low = values
        .clone()
        .fold(f64::INFINITY, f64::min)
        .log(base)
        .floor();
    let high = values.fold(0.0, f64::max).log(base).ceil();
    base.powf(low)..base.powf(high.max(low + 1.0))
}

fn draw_panel(
    panel: &Panel,
    curves: &[&Curve],
    area: &DrawingArea<SVGBackend<'_>, Shift>,
) -> Drawn {
    let points = curves.iter().flat_map(|curve| &curve.points);
    let sizes = decades(points.clone().map(|point| point.0), 4.0);
    let figure = panel.figure;
    let figures = points.flat_map(|&(x, a, b)| [figure(x, a), figure(x, b)]);
    let mut chart = ChartBuilder::on(area)
        .caption(panel.title, ("sans-serif", 20))
        .margin(12)
        .margin_right(28)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(
            sizes.log_scale().base(4.0),
            decades(figures, 10.0).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc("bytes")
        .y_desc(panel.axis)
        .x_label_formatter(&|bytes| size_name(*bytes))
        .y_label_formatter(&|value| format!("{value}"))
        .draw()?;
    for curve in curves {
        let color = curve.color;
        let ours = curve.points.iter().map(|&(x, ns, _)| (x, figure(x, ns)));
        let limit = curve.points.iter().map(|&(x, _, ns)| (x, figure(x, ns)));
        let solid = move |x, y| PathElement::new(vec![(x, y), (x + 20, y)], color.stroke_width(2));
        chart
            .draw_series(LineSeries::new(ours.clone(), color.stroke_width(2)))?
            .label(curve.name)
            .legend(move |(x, y)| solid(x, y));
        chart.draw_series(ours.map(|point| Circle::new(point, 3, color.filled())))?;
        let thin = move |x, y| PathElement::new(vec![(x, y), (x + 20, y)], color.mix(0.4));
        chart
            .draw_series(DashedLineSeries::new(limit, 4, 4, color.mix(0.6).into()))?
            .label(format!("{}: limit", curve.name))
            .legend(move |(x, y)| thin(x, y));
    }
    chart
        .configure_series_labels()
        .position(panel.free.clone())
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}

fn size_name(bytes: f64) -> String {
    match bytes as u64 {
        b if b >= 1 << 20 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 => format!("{} KiB", b >> 10),
        b => b.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::metric::{Goal, Subject};
    use super::super::stats::Chunks;
    use super::*;

    #[test]
    fn every_curve_and_its_limit_are_drawn() {
        let point = |curve, unit, bytes: usize| {
            let subject = Subject {
                name: format!("{curve}@{bytes}"),
                what: String::new(),
                unit,
                bytes,
                limit_is: "limit",
                goal: Goal::Information,
                curve: Some(curve),
            };
            let (ours, limit) = (vec![3.0 * bytes as f64], vec![2.0 * bytes as f64]);
            Measured::new(subject, Chunks { ours, limit })
        };
        let mut all = Vec::new();
        for bytes in [1, 64, 4096] {
            all.push(point("AM medium echo", Unit::Microseconds, bytes));
            all.push(point("put", Unit::Gigabytes, bytes));
        }
        let svg = svg(&all, "heading").unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for text in [
            "Latency",
            "Bandwidth",
            "AM medium echo",
            "put: limit",
            "4 KiB",
            "heading",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        // The echo is drawn once, the put in both panels, each point of ours a circle.
        assert_eq!(svg.matches("<circle").count(), 9);
    }

    #[test]
    fn axes_reach_beyond_all_values() {
        assert_eq!(decades([3.0, 40.0].into_iter(), 10.0), 1.0..100.0);
        assert_eq!(decades([1.0].into_iter(), 4.0), 1.0..4.0);
    }
}
