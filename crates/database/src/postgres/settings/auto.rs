//! `postgresql.auto.conf` of a server that does not run.

use super::file::quoted;
use super::name::check_name;
use crate::Result;
use crate::settings::PreviousSettings;

/// The text of `postgresql.auto.conf` with these settings as they were `before`: their lines are taken out, and those that
/// were there come back at the end. For a server that is stopped: a running one writes the file itself.
pub fn in_auto_conf(text: &str, before: &PreviousSettings) -> Result<String> {
    let is_of = |line: &str, name: &str| {
        let end =
            line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(line.len());
        line[..end].eq_ignore_ascii_case(name)
    };
    let mut kept: Vec<String> = text
        .lines()
        .filter(|line| !before.settings.iter().any(|one| is_of(line.trim_start(), &one.name)))
        .map(str::to_owned)
        .collect();
    for one in &before.settings {
        check_name(&one.name)?;
        if let Some(value) = &one.value {
            kept.push(format!("{} = {}", one.name, quoted(value)?));
        }
    }
    kept.push(String::new());
    Ok(kept.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::BeforeSetting;

    #[test]
    fn only_the_named_settings_change_and_doing_it_again_changes_nothing() {
        let before = PreviousSettings {
            settings: vec![
                BeforeSetting::new("shared_buffers", None),
                BeforeSetting::new("work_mem", Some("it's".into())),
            ],
        };
        let text = "# Do not edit\nshared_buffers = '900GB'\nWORK_MEM = '1GB'\nshared_buffers_x = '1'\n";
        let once = in_auto_conf(text, &before).unwrap();
        assert_eq!(once, "# Do not edit\nshared_buffers_x = '1'\nwork_mem = 'it''s'\n");
        assert_eq!(in_auto_conf(&once, &before).unwrap(), once);
    }
}
