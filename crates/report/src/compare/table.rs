//! Comparisons as a table: one row per load and metric.

use super::Comparison;
use super::text::load;
use crate::table::{Table, number};

/// All metrics of all comparisons, for each load the judged one first.
pub fn table(comparisons: &[Comparison]) -> Table {
    let mut table =
        Table::new("a,b,load,figure,unit,a_value,b_value,ratio,low,high,confidence,p,exploratory,verdict");
    for comparison in comparisons {
        for point in &comparison.points {
            for figure in &point.figures {
                let verdict = if figure.exploratory { "" } else { &point.words };
                let (low, high) = figure.interval.unzip();
                table.rows.push(vec![
                    comparison.name_a.clone(),
                    comparison.name_b.clone(),
                    load(point),
                    figure.name.clone(),
                    figure.unit.clone(),
                    number(figure.a),
                    number(figure.b),
                    number(figure.ratio),
                    number(low),
                    number(high),
                    comparison.confidence.to_string(),
                    number(figure.p),
                    figure.exploratory.to_string(),
                    verdict.into(),
                ]);
            }
        }
    }
    table
}
