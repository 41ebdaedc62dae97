//! The middle customer of a last name, and the text for bad credit.

use std::fmt::Write;

use kelvin_database::{Result, Rows};

use crate::tproc_c::inputs::Payment;

/// Row of the middle customer: number ⌈n/2⌉ when ordered by first name, byte by byte, and by number where
/// first names are equal (clause 2.5.2.2). The rows may be in any order and begin with number and first name.
/// There are about three, so counting predecessors takes no memory and little time.
pub(super) fn middle(rows: &Rows) -> Result<Option<usize>> {
    let wanted = rows.len().saturating_sub(1) / 2;
    for candidate in 0..rows.len() {
        let key = (rows.text(candidate, 1)?, rows.int(candidate, 0)?);
        let mut before = 0;
        for other in 0..rows.len() {
            before += usize::from((rows.text(other, 1)?, rows.int(other, 0)?) < key);
        }
        if before == wanted {
            return Ok(Some(candidate));
        }
    }
    Ok(None)
}

/// Writes the text that a payment puts at the beginning of c_data if the customer's credit is bad: numbers of
/// customer, district, warehouse, paying district and warehouse, and the amount (clause 2.5.2.2). The
/// function `kelvin_payment` writes the same text.
pub(super) fn bad_credit_text(payment: &Payment, customer: i64, into: &mut String) {
    into.clear();
    // Writing to a string cannot fail.
    let _ = write!(
        into,
        "{customer} {} {} {} {} {}.{:02}|",
        payment.customer_district,
        payment.customer_warehouse,
        payment.district,
        payment.warehouse,
        payment.amount / 100,
        payment.amount % 100
    );
}

#[cfg(test)]
mod tests {
    use kelvin_database::Cell;

    use super::*;
    use crate::tproc_c::inputs::Customer;

    fn rows(people: &[(i64, &str)]) -> Rows {
        let mut rows = Rows::new();
        rows.reset(2, false);
        for &(id, first) in people {
            rows.push(Cell::Int(id));
            rows.push_text(first.as_bytes()).unwrap();
        }
        rows
    }

    #[test]
    fn the_middle_is_the_upper_half_rounded_up() {
        assert_eq!(middle(&rows(&[])).unwrap(), None);
        assert_eq!(middle(&rows(&[(7, "x")])).unwrap(), Some(0));
        assert_eq!(middle(&rows(&[(1, "b"), (2, "a")])).unwrap(), Some(1), "1 of 2");
        assert_eq!(middle(&rows(&[(1, "c"), (2, "a"), (3, "b")])).unwrap(), Some(2), "2 of 3");
        assert_eq!(middle(&rows(&[(1, "d"), (2, "a"), (3, "c"), (4, "b")])).unwrap(), Some(3), "2 of 4");
    }

    #[test]
    fn upper_case_comes_first_and_equal_names_are_ordered_by_number() {
        assert_eq!(middle(&rows(&[(1, "a"), (2, "B"), (3, "Z")])).unwrap(), Some(2));
        assert_eq!(middle(&rows(&[(9, "a"), (4, "a"), (5, "a")])).unwrap(), Some(2));
    }

    #[test]
    fn the_text_holds_all_numbers_and_two_digits_of_cents() {
        let payment = Payment {
            warehouse: 1,
            district: 2,
            customer_warehouse: 3,
            customer_district: 4,
            customer: Customer::Id(5),
            amount: 100_005,
        };
        let mut text = String::from("old");
        bad_credit_text(&payment, 5, &mut text);
        assert_eq!(text, "5 4 3 2 1 1000.05|");
    }
}
