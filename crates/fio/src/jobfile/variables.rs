//! `${NAME}` of the environment, and the numbers of this machine that a value may name.

use super::number::plain;

/// Puts the environment's values in the place of `${NAME}`.
///
/// fio takes a variable that is not set as empty, which makes `${DIR}/x` a path below the root. Here it is an error.
pub(crate) fn environment(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find("${") {
        out.push_str(&rest[..begin]);
        let inside = &rest[begin + 2..];
        let end = inside.find('}').ok_or("\"${\" has no closing brace")?;
        let name = &inside[..end];
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(format!("${{{name}}} does not name an environment variable"));
        }
        let value = std::env::var(name)
            .map_err(|_| format!("the environment variable {name} is not set: set it, or write its value"))?;
        out.push_str(&value);
        rest = &inside[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// The words that stand for a number of this machine, and what they mean.
pub(crate) const RESERVED: [(&str, &str); 3] = [
    ("$pagesize", "memory page size in bytes"),
    ("$mb_memory", "memory of this machine, in MiB"),
    ("$ncpus", "CPUs that are online"),
];

/// Puts numbers in the place of `$pagesize`, `$mb_memory` and `$ncpus`, and calculates what comes of it (`4*$ncpus`),
/// with parentheses or without.
pub(crate) fn machine(text: &str) -> String {
    if !RESERVED.iter().any(|(word, _)| text.contains(word)) {
        return text.to_owned();
    }
    let numbers = [page_size(), memory() >> 20, processors()];
    let mut out = text.to_owned();
    for ((word, _), number) in RESERVED.iter().zip(numbers) {
        out = out.replace(word, &number.to_string());
    }
    if let Some(value) = plain(&out) {
        return value.to_string();
    }
    // With units (`$ncpus*1m`) it has to be read by who knows which units the option has.
    let calculates = out.contains(['+', '-', '*', '/', '^', '%'])
        && !out.starts_with(['(', '/', '.'])
        && out.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-*/^%() ".contains(letter));
    if calculates { format!("({out})") } else { out }
}

pub(crate) fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

fn memory() -> u64 {
    let info = rustix::system::sysinfo();
    // The type differs between architectures.
    #[allow(clippy::useless_conversion)]
    u64::from(info.totalram).saturating_mul(u64::from(info.mem_unit))
}

fn processors() -> u64 {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
    let counted =
        online.and_then(|list| super::lists::numbers(list.trim()).ok()).map(|cpus| cpus.len() as u64);
    counted.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |count| count.get() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_and_missing_ones_are_errors() {
        let path = std::env::var("PATH").unwrap();
        assert_eq!(environment("a${PATH}b$PATH").unwrap(), format!("a{path}b$PATH"));
        assert!(environment("${KELVIN_HAS_NO_SUCH_VARIABLE}/x").unwrap_err().contains("KELVIN_HAS_NO_SUCH"));
        assert!(environment("${PATH").is_err());
        assert!(environment("${}").is_err());
        assert!(environment("${A=B}").is_err());
    }

    #[test]
    fn numbers_of_the_machine_are_calculated_with() {
        assert_eq!(machine("$pagesize*4"), (page_size() * 4).to_string());
        assert_eq!(machine("(2*$ncpus)"), (processors() * 2).to_string());
        assert_eq!(machine("$ncpus*1m"), format!("({}*1m)", processors()));
        assert_eq!(machine("/tmp/$ncpus"), format!("/tmp/{}", processors()));
        assert_eq!(machine("$jobname.$jobnum"), "$jobname.$jobnum");
    }
}
