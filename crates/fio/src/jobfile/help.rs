//! `--cmdhelp` and `--enghelp`, made of the tables.

use super::guess;
use super::table::engines::{Carried, ENGINES, EngineEntry};
use super::table::{self, Effect, FAMILIES, OptionEntry, ValueKind};
use super::variables::RESERVED;

/// Help for one option, or a list of all.
pub fn command_help(option: Option<&str>) -> String {
    match option {
        None => list(),
        Some(name) => match table::find(name) {
            Some(entry) => page(entry),
            None => format!("there is no option {name:?}{}\n", guess::question(name, table::names())),
        },
    }
}

/// Help for one engine (`io_uring`, or `io_uring,hipri` for one of its options), or a list of all.
pub fn engine_help(engine: Option<&str>) -> String {
    let Some(name) = engine else { return engines() };
    if let Some((_, option)) = name.split_once(',') {
        return command_help(Some(option.trim()));
    }
    match table::engines::find(name) {
        Ok(engine) => engine_page(engine),
        Err(problem) => format!("{name}: {problem}\n"),
    }
}

fn list() -> String {
    let mut out = String::new();
    for (family, entries) in FAMILIES {
        out.push_str(&format!("{family}:\n"));
        for entry in *entries {
            let mark = match entry.effect {
                Effect::Applied(_) if entry.own => " (Kelvin only)",
                Effect::Applied(_) => "",
                Effect::Ignored(..) => " (no effect)",
                Effect::Refused(_) => " (not supported)",
            };
            out.push_str(&format!("  {:<30} {}{mark}\n", entry.name, entry.help));
        }
        out.push('\n');
    }
    out.push_str("variables for properties of this machine:\n");
    for (word, help) in RESERVED {
        out.push_str(&format!("  {word:<30} {help}\n"));
    }
    out
}

fn page(entry: &OptionEntry) -> String {
    let mut out = format!("{}: {}\n", entry.name, entry.help);
    if !entry.aliases.is_empty() {
        out.push_str(&format!("  aliases:       {}\n", entry.aliases.join(", ")));
    }
    if let Effect::Refused(reason) = entry.effect {
        out.push_str(&format!("  not supported: {reason}\n"));
        return out;
    }
    out.push_str(&format!("  value:         {}\n", entry.kind.described()));
    if !entry.default.is_empty() {
        out.push_str(&format!("  default:       {}\n", entry.default));
    }
    if !entry.engines.is_empty() {
        out.push_str(&format!("  engines:       {}\n", entry.engines.join(", ")));
    }
    if let Effect::Ignored(reason, _) = entry.effect {
        out.push_str(&format!("  no effect:     {reason}\n"));
    }
    if entry.own {
        out.push_str("  Kelvin only:   fio does not have it\n");
    }
    if let ValueKind::Words(words) = entry.kind {
        for (word, help) in words {
            out.push_str(&format!("    {word:<14} {help}\n"));
        }
    }
    out
}

fn engines() -> String {
    let mut out = String::new();
    let mut missing = Vec::new();
    for engine in ENGINES {
        match engine.carried {
            Carried::Refused(_) => missing.push(engine.word),
            _ => out.push_str(&format!("  {:<12} {}\n", engine.word, engine.help)),
        }
    }
    format!("engines:\n{out}not supported (--enghelp=ENGINE shows why):\n  {}\n", missing.join(", "))
}

fn engine_page(engine: &EngineEntry) -> String {
    let mut out = format!("{}: {}\n", engine.word, engine.help);
    let carried = match engine.carried {
        Carried::As(name) => name,
        Carried::Instead(name, note) => {
            out.push_str(&format!("  {note}\n"));
            name
        }
        Carried::Refused(reason) => {
            out.push_str(&format!("  {reason}\n"));
            return out;
        }
    };
    let own: Vec<&OptionEntry> =
        table::all_options().filter(|entry| entry.engines.contains(&carried.word())).collect();
    if own.is_empty() {
        out.push_str("  it has no options\n");
    }
    for entry in own {
        out.push_str(&format!("  {:<20} {}\n", entry.name, entry.help));
    }
    out
}
