//! SQL statements of a factor.

use kelvin_database::target::Target;

use super::Access;

/// Splits a text into statements: each except the last ends with a semicolon at the end of its line.
pub(crate) fn split(sql: &str) -> Vec<String> {
    let each = sql.split(";\n").map(|one| one.trim().trim_end_matches(';').trim_end());
    each.filter(|one| !one.is_empty()).map(str::to_owned).collect()
}

/// Runs the statements of a text in the database of a target, in order.
pub(crate) fn run(access: &Access, target: &str, sql: &str) -> Result<(), String> {
    let as_text = |error: kelvin_database::Error| error.to_string();
    let parsed = Target::parse(target).map_err(as_text)?;
    let server = access.server(&parsed, &mut |_| ()).map_err(as_text)?;
    let mut session = match server.engine.home() {
        Some(home) => home.unlimited(),
        None => server.session(),
    }
    .map_err(as_text)?;
    split(sql).iter().try_for_each(|one| session.run(one)).map_err(as_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_the_end_of_a_line() {
        assert_eq!(
            split("select ';' ; select 2;\n vacuum full t;"),
            ["select ';' ; select 2", "vacuum full t"]
        );
        assert!(split(" ;\n").is_empty());
    }
}
