//! Prometheus' text format 0.0.4, for clients that do not request OpenMetrics.

/// Converts a page of OpenMetrics. In the older format a family has the name of its samples: counters end in
/// `_total`, info is a gauge that ends in `_info`. Units and the end marker do not exist.
pub(crate) fn from_open(text: &str) -> String {
    let mut classic = String::with_capacity(text.len());
    // HELP comes before TYPE, but its name depends on the type.
    let mut help = None;
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(_), Some(text)) => help = Some(text),
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                let (end, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    kind => ("", kind),
                };
                if let Some(help) = help.take() {
                    classic.push_str(&format!("# HELP {name}{end} {help}\n"));
                }
                classic.push_str(&format!("# TYPE {name}{end} {kind}\n"));
            }
            (Some("#"), ..) => {}
            _ => {
                classic.push_str(line);
                classic.push('\n');
            }
        }
    }
    classic
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_called_as_their_samples() {
        let open = "# HELP a Some words.\n# TYPE a counter\na_total{b=\"c # d\"} 1\n# HELP e_seconds x\n\
            # TYPE e_seconds gauge\n# UNIT e_seconds seconds\ne_seconds 2.0\n# HELP f y\n# TYPE f info\nf_info 1\n# EOF\n";
        let classic = "# HELP a_total Some words.\n# TYPE a_total counter\na_total{b=\"c # d\"} 1\n\
            # HELP e_seconds x\n# TYPE e_seconds gauge\ne_seconds 2.0\n# HELP f_info y\n# TYPE f_info gauge\nf_info 1\n";
        assert_eq!(from_open(open), classic);
    }
}
