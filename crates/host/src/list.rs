//! Lists in the kernel's files: of CPUs and memory nodes, such as "0-3,8", of choices, such as "none
//! [mq-deadline] kyber", and of named fields, such as "Tgid: 5".

use std::collections::BTreeSet;

/// No CPU or memory node has a higher number.
const MOST: u32 = 1 << 16;

/// The distinct numbers of a list; an empty list has none. `None` if the text is not a list.
pub fn numbers(text: &str) -> Option<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    if text.trim().is_empty() {
        return Some(found);
    }
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number <= MOST);
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        found.extend(first..=last);
    }
    Some(found)
}

/// The choice in brackets, which is in effect; the whole text if there are no brackets.
pub fn chosen(choices: &str) -> &str {
    let within = choices.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(within, _)| within);
    within.unwrap_or(choices)
}

/// The value of a line "name: value".
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_are_read() {
        let read = |text: &str| numbers(text).map(|found| found.into_iter().collect::<Vec<_>>());
        assert_eq!(read("0-2,8, 10 - 11\n"), Some(vec![0, 1, 2, 8, 10, 11]));
        assert_eq!(read("3,3,1"), Some(vec![1, 3]));
        assert_eq!(read("\n"), Some(Vec::new()));
        for wrong in ["x", "1-", "-1", "3-1", "0-99999999", "1;2", "0,,1"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_choice_in_brackets_is_in_effect() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("[none] mq-deadline"), "none");
        assert_eq!(chosen("never"), "never");
        let status = "Name:\tTgid\nTgid:\t7\nNSpid:\t7 1\n";
        assert_eq!(["Tgid", "NSpid", "NS"].map(|name| field(status, name)), [Some("7"), Some("7 1"), None]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String) {
            numbers(&text);
            chosen(&text);
        }
    }
}
