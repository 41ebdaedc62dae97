//! Items, warehouses and districts.

use kelvin_database::{Result, Value};

use super::{Emit, RowGenerator, int, money, rate};
use crate::tproc_c::schema::{CUSTOMERS, DISTRICTS, ITEMS, Name};

impl RowGenerator {
    pub(super) fn items(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        let mut random = self.random(Name::Item, 0);
        for i_id in 1..=ITEMS {
            let image = random.range(1, 10_000);
            let price = random.range(100, 10_000);
            self.filler.begin();
            self.filler.alphanumeric(&mut random, 14, 24);
            self.filler.maybe_original(&mut random, 26, 50);
            let [name, data] = self.filler.texts()?;
            emit(&[int(i_id), Value::Int(image), Value::Text(name), money(price), Value::Text(data)])?;
        }
        Ok(())
    }

    pub(super) fn warehouse(&mut self, w_id: u32, emit: &mut Emit<'_>) -> Result<()> {
        let mut random = self.random(Name::Warehouse, w_id);
        let tax = random.range(0, 2000);
        self.filler.begin();
        self.filler.alphanumeric(&mut random, 6, 10);
        self.filler.address(&mut random);
        let [name, street_1, street_2, city, state, zip] = self.filler.texts()?;
        emit(&[
            int(w_id),
            Value::Text(name),
            Value::Text(street_1),
            Value::Text(street_2),
            Value::Text(city),
            Value::Text(state),
            Value::Text(zip),
            rate(tax),
            money(30_000_000),
        ])
    }

    pub(super) fn districts(&mut self, w_id: u32, emit: &mut Emit<'_>) -> Result<()> {
        let mut random = self.random(Name::District, w_id);
        for d_id in 1..=DISTRICTS {
            let tax = random.range(0, 2000);
            self.filler.begin();
            self.filler.alphanumeric(&mut random, 6, 10);
            self.filler.address(&mut random);
            let [name, street_1, street_2, city, state, zip] = self.filler.texts()?;
            emit(&[
                int(w_id),
                int(CUSTOMERS + 1),
                int(d_id),
                money(3_000_000),
                rate(tax),
                Value::Text(name),
                Value::Text(street_1),
                Value::Text(street_2),
                Value::Text(city),
                Value::Text(state),
                Value::Text(zip),
            ])?;
        }
        Ok(())
    }
}
