//! The lines of an order as one text, for engines without array parameters.

use crate::tproc_c::inputs::NewOrder;

/// Writes the lines as a JSON array of [number, item, supplying warehouse, quantity, round].
pub(super) fn as_json(order: &NewOrder, into: &mut String) {
    into.clear();
    let mut before = "[[";
    for line in 0..order.len {
        for number in [
            order.number[line],
            order.item[line],
            order.supply[line],
            order.quantity[line],
            order.round[line],
        ] {
            into.push_str(before);
            push_number(into, number.unsigned_abs());
            before = ",";
        }
        before = "],[";
    }
    into.push_str("]]");
}

/// Appends a number's digits. An order has up to 75 numbers; formatting each would be a call through a
/// vtable.
fn push_number(into: &mut String, number: u64) {
    let (mut digits, mut at, mut left) = ([b'0'; 20], 20, number);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    into.extend(digits[at..].iter().copied().map(char::from));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tproc_c::inputs::order_of;

    #[test]
    fn lines_stand_in_the_order_of_their_locks() {
        let mut text = String::from("old");
        as_json(&order_of(1, 1, 1, &[(9, 1, 4), (5, 2, 2), (9, 1, 3)]), &mut text);
        assert_eq!(text, "[[1,9,1,4,1],[2,5,2,2,1],[3,9,1,3,2]]");
        text.clear();
        for number in [0, 7, 10, 100_000, u64::MAX] {
            push_number(&mut text, number);
            text.push(' ');
        }
        assert_eq!(text, format!("0 7 10 100000 {} ", u64::MAX));
    }
}
