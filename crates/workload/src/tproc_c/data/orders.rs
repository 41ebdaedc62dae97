//! Orders, their lines, and the undelivered orders.

use kelvin_database::{Result, Value};
use kelvin_measure::Random;

use super::{Emit, RowGenerator, int, money};
use crate::tproc_c::schema::{CUSTOMERS, DELIVERED, DISTRICTS, ITEMS, Name};

/// The values of an order on which its lines depend, or that must be drawn together with them. Orders and
/// lines are loaded as separate tables, so both passes draw these values from the stream of orders.
struct Order {
    o_id: u32,
    c_id: u16,
    lines: u8,
    carrier: Option<u8>,
}

fn each_order(random: &mut Random, mut each: impl FnMut(i64, &Order) -> Result<()>) -> Result<()> {
    let mut customers: Vec<u16> = (1..=CUSTOMERS as u16).collect();
    for d_id in 1..=DISTRICTS {
        customers.sort_unstable();
        random.shuffle(&mut customers);
        for (o_id, &c_id) in (1..).zip(&customers) {
            let lines = random.range(5, 15) as u8;
            let carrier = (o_id <= DELIVERED).then(|| random.range(1, 10) as u8);
            each(d_id, &Order { o_id, c_id, lines, carrier })?;
        }
    }
    Ok(())
}

impl RowGenerator {
    pub(super) fn orders(&mut self, w_id: u32, emit: &mut Emit<'_>) -> Result<()> {
        let now = self.now;
        each_order(&mut self.random(Name::Orders, w_id), |d_id, order| {
            emit(&[
                Value::Timestamp(now),
                int(order.o_id),
                int(w_id),
                int(u32::from(order.c_id)),
                int(d_id),
                order.carrier.map_or(Value::Null, |carrier| int(u32::from(carrier))),
                int(u32::from(order.lines)),
                Value::Int(1),
            ])
        })
    }

    pub(super) fn order_lines(&mut self, w_id: u32, emit: &mut Emit<'_>) -> Result<()> {
        let mut random = self.random(Name::OrderLine, w_id);
        let mut orders = self.random(Name::Orders, w_id);
        let (now, filler) = (self.now, &mut self.filler);
        each_order(&mut orders, |d_id, order| {
            let delivered = order.o_id <= DELIVERED;
            for number in 1..=order.lines {
                let item = random.range(1, i64::from(ITEMS));
                let amount = if delivered { 0 } else { random.range(1, 999_999) };
                filler.begin();
                filler.alphanumeric(&mut random, 24, 24);
                let [info] = filler.texts()?;
                emit(&[
                    if delivered { Value::Timestamp(now) } else { Value::Null },
                    int(order.o_id),
                    int(w_id),
                    Value::Int(item),
                    int(w_id),
                    int(d_id),
                    int(u32::from(number)),
                    Value::Int(5),
                    money(amount),
                    Value::Text(info),
                ])?;
            }
            Ok(())
        })
    }
}

/// The last 900 orders of every district are undelivered.
pub(super) fn new_orders(w_id: u32, emit: &mut Emit<'_>) -> Result<()> {
    for d_id in 1..=DISTRICTS {
        for o_id in DELIVERED + 1..=CUSTOMERS {
            emit(&[int(w_id), int(o_id), int(d_id)])?;
        }
    }
    Ok(())
}
