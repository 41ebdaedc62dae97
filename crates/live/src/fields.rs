//! A line of fields, of which whole ones are omitted if the terminal is narrow.

/// The separator of fields.
const BETWEEN: &str = " · ";

/// Fields in order, each with a priority: the highest number is omitted first, 0 never.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(Vec<(u8, String)>);

impl Fields {
    /// Adds a field.
    pub(super) fn push(&mut self, left_out: u8, text: impl Into<String>) {
        self.0.push((left_out, text.into()));
    }

    /// The line in at most `width` columns, if omitting fields is enough.
    pub(super) fn fit(mut self, width: usize) -> String {
        loop {
            let line = self.join();
            let last = self.0.iter().enumerate().max_by_key(|(_, (left_out, _))| *left_out);
            match last {
                Some((index, (1.., _))) if line.chars().count() > width => drop(self.0.remove(index)),
                _ => return line,
            }
        }
    }

    /// The line with all its fields.
    pub(super) fn join(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(BETWEEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_line_leaves_out_whole_fields_and_never_the_first() {
        let mut fields = Fields::default();
        for (left_out, text) in [(0, "measure 3 s left"), (1, "p95 2 ms"), (3, "4 users"), (2, "0 errors")] {
            fields.push(left_out, text);
        }
        let fit = |width| fields.clone().fit(width);
        assert_eq!(fit(80), "measure 3 s left · p95 2 ms · 4 users · 0 errors");
        assert_eq!(fit(47), "measure 3 s left · p95 2 ms · 0 errors");
        assert_eq!(fit(37), "measure 3 s left · p95 2 ms");
        assert_eq!(fit(5), "measure 3 s left");
    }
}
