//! The random inputs of the transactions (TPC-C clauses 2.4.1, 2.5.1, 2.6.1, 2.7.1, 2.8.1 and 5.2.5).
//!
//! All inputs of a transaction are drawn here, before it is executed, and in an order that depends neither on
//! the engine nor on the way of calling: the same seed gives the same transactions everywhere.

use std::sync::LazyLock;
use std::time::Duration;

use kelvin_database::Value;
use kelvin_measure::Random;

use super::non_uniform::{NonUniform, push_last_name};
use super::options::{Mix, Options};
use super::schema::DISTRICTS;
use crate::TransactionKind;

/// Most lines of an order.
pub(crate) const MAX_LINES: usize = 15;

/// An item number that no load creates. The last line of an order that must roll back has it.
pub(crate) const UNUSED_ITEM: i64 = 100_001;

/// The transaction types, in the order of [`Mix`].
pub(super) static KINDS: [TransactionKind; 5] = [
    TransactionKind::transaction("New-Order", true),
    TransactionKind::transaction("Payment", false),
    TransactionKind::transaction("Delivery", false),
    TransactionKind::transaction("Stock-Level", false),
    TransactionKind::transaction("Order-Status", false),
];

/// Index of New-Order among the transaction types, in the order of [`Mix`].
pub(crate) const NEW_ORDER: u16 = 0;
/// Index of Payment.
pub(crate) const PAYMENT: u16 = 1;
/// Index of Delivery.
pub(crate) const DELIVERY: u16 = 2;
/// Index of Stock-Level.
pub(crate) const STOCK_LEVEL: u16 = 3;
/// Index of Order-Status.
pub(crate) const ORDER_STATUS: u16 = 4;

/// Keying times in seconds, by transaction type (clause 5.2.5.7).
const KEYING: [u64; 5] = [18, 3, 2, 2, 2];

/// Mean thinking times in seconds, by transaction type.
const THINKING: [f64; 5] = [12.0, 12.0, 5.0, 5.0, 10.0];

/// The thousand last names, created once, so that transactions can borrow them.
static LAST_NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    (0..1000)
        .map(|number| {
            let mut name = String::new();
            push_last_name(number, &mut name);
            name
        })
        .collect()
});

/// A transaction and its inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "each user keeps one for the whole run")]
pub(crate) enum Transaction {
    NewOrder(NewOrder),
    Payment(Payment),
    Delivery(Delivery),
    StockLevel(StockLevel),
    OrderStatus(OrderStatus),
}

/// How a customer is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Customer {
    /// By number, 1 to 3000.
    Id(i64),
    /// By last name: of the customers with that name, the middle one by first name.
    Name(&'static str),
}

impl Customer {
    /// Whether the look-up is by last name.
    pub(crate) fn by_name(self) -> bool {
        matches!(self, Self::Name(_))
    }
}

/// The inputs of New-Order. Its lines are stored in arrays of `len` values, as they are sent. They are in the
/// order in which their stock rows are changed, by (supplying warehouse, item), so that orders do not
/// deadlock. A line that repeats a stock row comes in a later round than the line it repeats; the unused item
/// comes last. `number` is a line's number in the order as drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewOrder {
    pub(crate) warehouse: i64,
    pub(crate) district: i64,
    pub(crate) customer: i64,
    /// Whether the last line as drawn uses [`UNUSED_ITEM`].
    pub(crate) rolls_back: bool,
    pub(crate) len: usize,
    pub(crate) number: [i64; MAX_LINES],
    pub(crate) item: [i64; MAX_LINES],
    pub(crate) supply: [i64; MAX_LINES],
    pub(crate) quantity: [i64; MAX_LINES],
    /// 1 for the first line that takes from a stock row, 2 for the second, and so on.
    pub(crate) round: [i64; MAX_LINES],
}

impl NewOrder {
    /// Lines supplied by another warehouse.
    pub(crate) fn remote_lines(&self) -> usize {
        self.supply[..self.len].iter().filter(|&&supply| supply != self.warehouse).count()
    }

    /// The value of o_all_local: 1 if the home warehouse supplies every line, else 0.
    pub(crate) fn all_local(&self) -> i64 {
        i64::from(self.remote_lines() == 0)
    }

    /// Number of rounds.
    pub(crate) fn rounds(&self) -> i64 {
        self.round[self.len - 1]
    }

    /// The lines of each round as ranges into the arrays.
    pub(crate) fn each_round(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let mut start = 0;
        std::iter::from_fn(move || {
            if start == self.len {
                return None;
            }
            let round = self.round[start];
            let length = self.round[start..self.len].iter().take_while(|&&r| r == round).count();
            let range = start..start + length;
            start += length;
            Some(range)
        })
    }
}

/// The inputs of Payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Payment {
    pub(crate) warehouse: i64,
    pub(crate) district: i64,
    pub(crate) customer_warehouse: i64,
    pub(crate) customer_district: i64,
    pub(crate) customer: Customer,
    /// In cents.
    pub(crate) amount: i64,
}

/// The inputs of Delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) warehouse: i64,
    pub(crate) carrier: i64,
}

/// The inputs of Stock-Level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StockLevel {
    pub(crate) warehouse: i64,
    pub(crate) district: i64,
    pub(crate) threshold: i64,
}

impl StockLevel {
    /// The parameters of a statement that takes all of them.
    pub(crate) fn values(&self) -> [Value<'static>; 3] {
        [self.warehouse.into(), self.district.into(), self.threshold.into()]
    }
}

/// The inputs of Order-Status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OrderStatus {
    pub(crate) warehouse: i64,
    pub(crate) district: i64,
    pub(crate) customer: Customer,
}

/// Draws the transactions of one user.
#[derive(Debug, Clone)]
pub(crate) struct Inputs {
    random: Random,
    constants: NonUniform,
    warehouses: i64,
    /// `None` if every transaction draws a home warehouse.
    home: Option<i64>,
    mix: Mix,
    mix_total: i64,
    keying_and_thinking: bool,
}

impl Inputs {
    /// The inputs of a user with the home warehouse `home`, unless the options let each transaction draw one.
    pub(crate) fn new(
        options: &Options,
        warehouses: u32,
        random: Random,
        constants: NonUniform,
        home: i64,
    ) -> Self {
        LazyLock::force(&LAST_NAMES);
        Self {
            random,
            constants,
            warehouses: i64::from(warehouses),
            home: (!options.all_warehouses).then_some(home),
            mix: options.mix,
            mix_total: options.mix.0.iter().map(|&weight| i64::from(weight)).sum::<i64>().max(1),
            keying_and_thinking: options.keying_and_thinking,
        }
    }

    /// Draws the next transaction, and the waits before and after it.
    pub(crate) fn draw(&mut self) -> (u16, Transaction, Duration, Duration) {
        let kind = self.kind();
        let warehouse = match self.home {
            Some(home) => home,
            None => self.random.range(1, self.warehouses),
        };
        let transaction = match kind {
            NEW_ORDER => Transaction::NewOrder(self.new_order(warehouse)),
            PAYMENT => Transaction::Payment(self.payment(warehouse)),
            DELIVERY => Transaction::Delivery(Delivery { warehouse, carrier: self.random.range(1, 10) }),
            STOCK_LEVEL => Transaction::StockLevel(StockLevel {
                warehouse,
                district: self.random.range(1, DISTRICTS),
                threshold: self.random.range(10, 20),
            }),
            _ => Transaction::OrderStatus(OrderStatus {
                warehouse,
                district: self.random.range(1, DISTRICTS),
                customer: self.customer(),
            }),
        };
        // Drawn even without thinking time, so that waiting does not change the transactions.
        let mean = THINKING[usize::from(kind)];
        let thinking = self.random.exponential(mean).min(10.0 * mean);
        let (keying, thinking) = if self.keying_and_thinking {
            (Duration::from_secs(KEYING[usize::from(kind)]), Duration::from_secs_f64(thinking))
        } else {
            (Duration::ZERO, Duration::ZERO)
        };
        (kind, transaction, keying, thinking)
    }

    fn kind(&mut self) -> u16 {
        let mut left = self.random.range(1, self.mix_total);
        for (kind, &weight) in self.mix.0.iter().enumerate() {
            left -= i64::from(weight);
            if left <= 0 {
                return kind as u16;
            }
        }
        NEW_ORDER
    }

    fn customer(&mut self) -> Customer {
        if self.random.chance(60, 100) {
            Customer::Name(&LAST_NAMES[self.constants.last_name(&mut self.random) as usize])
        } else {
            Customer::Id(self.constants.customer(&mut self.random))
        }
    }

    /// Any warehouse other than `home`; at least two must exist.
    fn other_warehouse(&mut self, home: i64) -> i64 {
        let drawn = self.random.range(1, self.warehouses - 1);
        if drawn >= home { drawn + 1 } else { drawn }
    }

    fn payment(&mut self, warehouse: i64) -> Payment {
        let district = self.random.range(1, DISTRICTS);
        let remote = self.random.chance(15, 100) && self.warehouses > 1;
        let (customer_warehouse, customer_district) = if remote {
            (self.other_warehouse(warehouse), self.random.range(1, DISTRICTS))
        } else {
            (warehouse, district)
        };
        let customer = self.customer();
        let amount = self.random.range(100, 500_000);
        Payment { warehouse, district, customer_warehouse, customer_district, customer, amount }
    }

    fn new_order(&mut self, warehouse: i64) -> NewOrder {
        let district = self.random.range(1, DISTRICTS);
        let customer = self.constants.customer(&mut self.random);
        let len = self.random.range(5, MAX_LINES as i64) as usize;
        let rolls_back = self.random.chance(1, 100);
        let mut lines = [Line::default(); MAX_LINES];
        for (index, line) in lines[..len].iter_mut().enumerate() {
            let mut item = self.constants.item(&mut self.random);
            if rolls_back && index + 1 == len {
                item = UNUSED_ITEM;
            }
            let remote = self.random.chance(1, 100) && self.warehouses > 1;
            let supply = if remote { self.other_warehouse(warehouse) } else { warehouse };
            let quantity = self.random.range(1, 10);
            *line = Line { number: index as i64 + 1, item, supply, quantity, round: 1 };
        }
        arrange(&NewOrderHead { warehouse, district, customer, rolls_back }, &mut lines[..len])
    }
}

/// One line as drawn.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    number: i64,
    item: i64,
    supply: i64,
    quantity: i64,
    round: i64,
}

struct NewOrderHead {
    warehouse: i64,
    district: i64,
    customer: i64,
    rolls_back: bool,
}

/// Sorts lines, given in the order of their numbers, into the order described at [`NewOrder`].
fn arrange(head: &NewOrderHead, lines: &mut [Line]) -> NewOrder {
    let mut last_round = 1;
    for index in 1..lines.len() {
        let (before, line) = (&lines[..index], lines[index]);
        let repeats = before.iter().filter(|l| l.item == line.item && l.supply == line.supply).count();
        lines[index].round = repeats as i64 + 1;
        last_round = last_round.max(lines[index].round);
    }
    for line in lines.iter_mut().filter(|line| line.item == UNUSED_ITEM) {
        line.round = last_round;
    }
    lines.sort_unstable_by_key(|l| (l.round, l.item == UNUSED_ITEM, l.supply, l.item, l.number));
    let mut order = NewOrder {
        warehouse: head.warehouse,
        district: head.district,
        customer: head.customer,
        rolls_back: head.rolls_back,
        len: lines.len(),
        number: [0; MAX_LINES],
        item: [0; MAX_LINES],
        supply: [0; MAX_LINES],
        quantity: [0; MAX_LINES],
        round: [0; MAX_LINES],
    };
    for (index, line) in lines.iter().enumerate() {
        order.number[index] = line.number;
        order.item[index] = line.item;
        order.supply[index] = line.supply;
        order.quantity[index] = line.quantity;
        order.round[index] = line.round;
    }
    order
}

/// An order with these lines, each (item, supplying warehouse, quantity), for tests of the transactions.
#[cfg(test)]
pub(crate) fn order_of(warehouse: i64, district: i64, customer: i64, lines: &[(i64, i64, i64)]) -> NewOrder {
    let rolls_back = lines.iter().any(|line| line.0 == UNUSED_ITEM);
    let mut drawn: Vec<Line> = lines
        .iter()
        .zip(1..)
        .map(|(&(item, supply, quantity), number)| Line { number, item, supply, quantity, round: 1 })
        .collect();
    arrange(&NewOrderHead { warehouse, district, customer, rolls_back }, &mut drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(warehouses: u32, options: &Options) -> Inputs {
        let mut constants = Random::part(1, 1, 1);
        let constants = NonUniform::for_run(&mut constants, 100);
        Inputs::new(options, warehouses, Random::part(5, 5, 5), constants, 1)
    }

    #[test]
    fn waiting_does_not_change_the_transactions() {
        let mut quick = inputs(3, &Options::default());
        let mut slow = inputs(3, &Options { keying_and_thinking: true, ..Options::default() });
        for _ in 0..2000 {
            let (a, b) = (quick.draw(), slow.draw());
            assert_eq!((a.0, &a.1), (b.0, &b.1));
            assert!(a.2.is_zero() && a.3.is_zero());
            assert_eq!(b.2.as_secs(), KEYING[usize::from(b.0)]);
            assert!(b.3.as_secs_f64() <= 10.0 * THINKING[usize::from(b.0)]);
        }
    }

    #[test]
    fn one_warehouse_has_nothing_remote_and_two_never_take_home_for_remote() {
        for (warehouses, remote_expected) in [(1, false), (2, true)] {
            let mut inputs = inputs(warehouses, &Options::default());
            let (mut remote_lines, mut remote_payments) = (0, 0);
            for _ in 0..20_000 {
                match inputs.draw().1 {
                    Transaction::NewOrder(order) => {
                        remote_lines += order.remote_lines();
                        assert!((5..=15).contains(&order.len));
                        assert_eq!(order.all_local() == 1, order.remote_lines() == 0);
                        for index in 0..order.len {
                            assert!((1..=i64::from(warehouses)).contains(&order.supply[index]));
                            assert!((1..=10).contains(&order.quantity[index]));
                            let unused = order.item[index] == UNUSED_ITEM;
                            assert!(unused || (1..=100_000).contains(&order.item[index]));
                            assert!(!unused || (order.rolls_back && index + 1 == order.len));
                        }
                    }
                    Transaction::Payment(payment) => {
                        assert!((100..=500_000).contains(&payment.amount));
                        remote_payments += usize::from(payment.customer_warehouse != 1);
                    }
                    _ => {}
                }
            }
            assert_eq!(remote_lines > 0, remote_expected);
            assert_eq!(remote_payments > 0, remote_expected);
        }
    }

    #[test]
    fn every_warehouse_is_drawn_when_asked() {
        let options = Options { all_warehouses: true, mix: Mix([0, 0, 1, 0, 0]), ..Options::default() };
        let mut inputs = inputs(4, &options);
        let mut seen = [0; 4];
        for _ in 0..4000 {
            let (kind, Transaction::Delivery(delivery), ..) = inputs.draw() else {
                panic!("only deliveries")
            };
            assert_eq!(kind, DELIVERY);
            seen[delivery.warehouse as usize - 1] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }

    #[test]
    fn lines_stand_in_the_order_of_their_locks_and_repetitions_in_later_rounds() {
        let order = order_of(1, 1, 1, &[(9, 1, 1), (5, 2, 2), (9, 1, 3), (3, 1, 4), (9, 1, 5)]);
        assert_eq!(order.item[..5], [3, 9, 5, 9, 9]);
        assert_eq!(order.number[..5], [4, 1, 2, 3, 5], "repetitions keep the order of their numbers");
        assert_eq!(order.round[..5], [1, 1, 1, 2, 3]);
        assert_eq!(order.each_round().collect::<Vec<_>>(), [0..3, 3..4, 4..5]);
        assert_eq!((order.rounds(), order.all_local()), (3, 0));
        let order = order_of(1, 1, 1, &[(7, 2, 1), (7, 2, 1), (UNUSED_ITEM, 1, 1)]);
        assert_eq!(order.item[..3], [7, 7, UNUSED_ITEM], "all the work comes before the roll-back");
        assert_eq!(order.each_round().collect::<Vec<_>>(), [0..1, 1..3]);
    }

    #[test]
    fn the_mix_and_the_shares_are_as_the_rules_say() {
        let mut inputs = inputs(10, &Options::default());
        let mut kinds = [0_u32; 5];
        let (mut rolled_back, mut lines, mut by_name) = (0_u32, 0, 0_u32);
        for _ in 0..230_000 {
            let (kind, transaction, ..) = inputs.draw();
            kinds[usize::from(kind)] += 1;
            match transaction {
                Transaction::NewOrder(order) => {
                    rolled_back += u32::from(order.rolls_back);
                    lines += order.len;
                }
                Transaction::Payment(payment) => by_name += u32::from(payment.customer.by_name()),
                _ => {}
            }
        }
        for (kind, expected) in [100_000.0, 100_000.0, 10_000.0, 10_000.0, 10_000.0].into_iter().enumerate() {
            assert!((f64::from(kinds[kind]) / expected - 1.0).abs() < 0.05, "{kinds:?}");
        }
        assert!((f64::from(rolled_back) / f64::from(kinds[0]) - 0.01).abs() < 0.002);
        assert!((lines as f64 / f64::from(kinds[0]) - 10.0).abs() < 0.05);
        assert!((f64::from(by_name) / f64::from(kinds[1]) - 0.6).abs() < 0.01);
    }
}
