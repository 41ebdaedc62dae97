//! The lines of an order as one text, for engines without arrays as parameters.

use std::fmt::Write;

use crate::tproc_c::inputs::NewOrder;

/// Writes the lines as a JSON array of [number, item, supplying warehouse, quantity, round].
pub(super) fn as_json(order: &NewOrder, into: &mut String) {
    into.clear();
    let mut before = '[';
    for line in 0..order.len {
        // Writing to a string cannot fail.
        let _ = write!(
            into,
            "{before}[{},{},{},{},{}]",
            order.number[line], order.item[line], order.supply[line], order.quantity[line], order.round[line]
        );
        before = ',';
    }
    into.push(']');
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
    }
}
