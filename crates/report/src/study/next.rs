//! The open questions of a study, as a file from which another study can be started.

use kelvin_analysis::Analysis;

/// `next.toml`: one `[[next]]` per question, the most important first.
pub fn render(of: &Analysis) -> String {
    let quoted = |text: &str| toml::Value::String(text.replace(|c: char| c.is_control(), " ")).to_string();
    let mut out = format!(
        "# Open questions of the study {}, written by `kelvin study analyze`. `kelvin study fork` starts the \
         next study.\n",
        quoted(&of.name)
    );
    for question in &of.next {
        out.push_str(&format!(
            "\n[[next]]\nquestion = {}\nwhy = {}\n",
            quoted(&question.question),
            quoted(&question.why)
        ));
        if !question.factors.is_empty() {
            let factors: Vec<String> = question.factors.iter().map(|factor| quoted(factor)).collect();
            out.push_str(&format!("factors = [{}]\n", factors.join(", ")));
        }
        if let Some(metric) = &question.metric {
            out.push_str(&format!("metric = {}\n", quoted(metric)));
        }
        if let Some(blocks) = question.blocks {
            out.push_str(&format!("blocks = {blocks}\n"));
        }
    }
    out
}
