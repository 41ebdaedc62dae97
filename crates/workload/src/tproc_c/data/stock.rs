//! Stock.

use kelvin_database::{Result, Value};

use super::{Emit, RowGenerator, int};
use crate::tproc_c::schema::{ITEMS, Name};

impl RowGenerator {
    pub(super) fn stock(&mut self, w_id: u32, emit: &mut Emit<'_>) -> Result<()> {
        let mut random = self.random(Name::Stock, w_id);
        for i_id in 1..=ITEMS {
            let quantity = random.range(10, 100);
            self.filler.begin();
            for _ in 0..10 {
                self.filler.alphanumeric(&mut random, 24, 24);
            }
            self.filler.maybe_original(&mut random, 26, 50);
            let texts: [&str; 11] = self.filler.texts()?;
            let mut row = [Value::Int(0); 17];
            row[0] = int(i_id);
            row[1] = int(w_id);
            // 2, 3 and 4 are the counters; they stay 0.
            row[5] = Value::Int(quantity);
            for (value, text) in row[6..].iter_mut().zip(texts) {
                *value = Value::Text(text);
            }
            emit(&row)?;
        }
        Ok(())
    }
}
