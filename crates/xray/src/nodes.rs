//! Which nodes of a cluster a scenario means: `all`, `0, 2`, `1:`, `:n-1`, `n/2:`.

/// The largest cluster that a scenario is tried on.
pub(crate) const LARGEST_CLUSTER: u32 = 64;

/// The numbers of the selected nodes of a cluster of `count`, in their order and once each: slices as Python's, joined
/// by commas, in which `n` is the number of nodes.
pub(crate) fn select(text: &str, count: u32) -> Result<Vec<u32>, String> {
    let mut nodes = Vec::new();
    for part in text.split(',') {
        let selected =
            slice(part.trim(), i64::from(count)).map_err(|reason| format!("nodes {text:?}: {reason}"))?;
        nodes.extend(selected.filter(|node| !nodes.contains(node)).collect::<Vec<_>>());
    }
    Ok(nodes)
}

/// The nodes of one slice or index.
fn slice(text: &str, count: i64) -> Result<impl Iterator<Item = u32>, String> {
    let from_start = |value: i64| if value < 0 { value + count } else { value };
    let (first, end) = if text == "all" {
        (0, count)
    } else if let Some((first, end)) = text.split_once(':') {
        let bound = |text: &str, missing: i64| match text.trim() {
            "" => Ok(missing),
            text => expression(text, count).map(|value| from_start(value).clamp(0, count)),
        };
        (bound(first, 0)?, bound(end, count)?)
    } else {
        let index = from_start(expression(text, count)?);
        if !(0..count).contains(&index) {
            return Err(format!("there is no node {text} in a cluster of {count}"));
        }
        (index, index + 1)
    };
    Ok((first..end).filter_map(|node| u32::try_from(node).ok()))
}

/// Whole numbers and `n`, with `+ - * /`.
fn expression(text: &str, n: i64) -> Result<i64, String> {
    let mut tokens = Vec::new();
    let mut digits = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_ascii_digit() && digits.len() < 9 {
            digits.push(c);
            continue;
        }
        if !digits.is_empty() {
            tokens.push(Token::Number(digits.parse().unwrap_or_default()));
            digits.clear();
        }
        match c {
            ' ' => {}
            'n' => tokens.push(Token::Number(n)),
            '+' | '-' | '*' | '/' => tokens.push(Token::Operator(c)),
            _ => return Err(format!("{c:?} is not understood")),
        }
    }
    let mut tokens = tokens.into_iter().peekable();
    let mut sum = 0;
    let mut sign = 1;
    loop {
        if tokens.next_if_eq(&Token::Operator('-')).is_some() {
            sign = -sign;
        }
        let incomplete = || format!("{text:?} is not complete");
        let Some(Token::Number(mut product)) = tokens.next() else { return Err(incomplete()) };
        while let Some(Token::Operator(operator)) =
            tokens.next_if(|token| matches!(token, Token::Operator('*' | '/')))
        {
            let Some(Token::Number(factor)) = tokens.next() else { return Err(incomplete()) };
            let result =
                if operator == '*' { product.checked_mul(factor) } else { product.checked_div(factor) };
            product = result.ok_or_else(|| format!("{text:?} cannot be computed"))?;
        }
        sum = i64::checked_add(sum, sign * product).ok_or_else(|| format!("{text:?} cannot be computed"))?;
        match tokens.next() {
            None => return Ok(sum),
            Some(Token::Operator('+')) => sign = 1,
            Some(Token::Operator('-')) => sign = -1,
            Some(_) => return Err(format!("{text:?} lacks an operator")),
        }
    }
}

#[derive(Debug, PartialEq)]
enum Token {
    Number(i64),
    Operator(char),
}

/// The smallest cluster in which every selection names at least one node.
pub(crate) fn smallest_cluster(selections: &[&str]) -> Option<u32> {
    (1..=LARGEST_CLUSTER)
        .find(|count| selections.iter().all(|text| select(text, *count).is_ok_and(|nodes| !nodes.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_are_pythons_slices() {
        for (text, expected) in [
            ("all", vec![0, 1, 2, 3]),
            (":", vec![0, 1, 2, 3]),
            ("0", vec![0]),
            ("1, 2", vec![1, 2]),
            ("1:", vec![1, 2, 3]),
            (":n-1", vec![0, 1, 2]),
            ("n/2:", vec![2, 3]),
            ("-1", vec![3]),
            ("0:2, n-2:n", vec![0, 1, 2, 3]),
            ("2:9", vec![2, 3]),
        ] {
            assert_eq!(select(text, 4).unwrap(), expected, "{text}");
        }
        for text in ["4", "x", "1 2", "1+", "n/0", "", "99999999999", "0:1:2"] {
            assert!(select(text, 4).is_err(), "{text}");
        }
    }

    #[test]
    fn a_cluster_is_as_small_as_the_selections_allow() {
        assert_eq!(smallest_cluster(&["0", "1,2"]), Some(3));
        assert_eq!(smallest_cluster(&[":n-1"]), Some(2));
        assert_eq!(smallest_cluster(&["all"]), Some(1));
        assert_eq!(smallest_cluster(&[]), Some(1));
        assert_eq!(smallest_cluster(&["2:2"]), None);
    }
}
