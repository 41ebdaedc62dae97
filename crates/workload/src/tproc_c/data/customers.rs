//! Customers, and the one payment that each has in history.

use kelvin_database::{Result, Value};

use super::{Emit, RowGenerator, int, money, rate};
use crate::tproc_c::schema::{CUSTOMERS, DISTRICTS, Name};

impl RowGenerator {
    pub(super) fn customers(&mut self, w_id: u32, emit: &mut Emit<'_>) -> Result<()> {
        let mut random = self.random(Name::Customer, w_id);
        for d_id in 1..=DISTRICTS {
            for c_id in 1..=CUSTOMERS {
                // Every name exists in every district: the first thousand customers take the names in turn.
                let last = match i64::from(c_id) {
                    c_id if c_id <= 1000 => c_id - 1,
                    _ => self.constants.last_name(&mut random),
                };
                let credit = if random.chance(1, 10) { "BC" } else { "GC" };
                let discount = random.range(0, 5000);
                self.filler.begin();
                self.filler.alphanumeric(&mut random, 8, 16);
                self.filler.literal(&self.last_names[last as usize]);
                self.filler.address(&mut random);
                self.filler.digits(&mut random, 16);
                self.filler.alphanumeric(&mut random, 300, 500);
                let [first, last, street_1, street_2, city, state, zip, phone, data] = self.filler.texts()?;
                emit(&[
                    Value::Timestamp(self.now),
                    int(c_id),
                    int(w_id),
                    Value::Int(1),
                    Value::Int(0),
                    int(d_id),
                    Value::Text(first),
                    Value::Text("OE"),
                    Value::Text(last),
                    Value::Text(street_1),
                    Value::Text(street_2),
                    Value::Text(city),
                    Value::Text(state),
                    Value::Text(zip),
                    Value::Text(phone),
                    Value::Text(credit),
                    money(5_000_000),
                    rate(discount),
                    money(-1000),
                    money(1000),
                    Value::Text(data),
                ])?;
            }
        }
        Ok(())
    }

    pub(super) fn history(&mut self, w_id: u32, emit: &mut Emit<'_>) -> Result<()> {
        let mut random = self.random(Name::History, w_id);
        for d_id in 1..=DISTRICTS {
            for c_id in 1..=CUSTOMERS {
                self.filler.begin();
                self.filler.alphanumeric(&mut random, 12, 24);
                let [data] = self.filler.texts()?;
                emit(&[
                    Value::Timestamp(self.now),
                    int(c_id),
                    int(w_id),
                    int(w_id),
                    int(d_id),
                    int(d_id),
                    money(1000),
                    Value::Text(data),
                ])?;
            }
        }
        Ok(())
    }
}
